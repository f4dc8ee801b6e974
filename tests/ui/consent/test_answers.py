"""The answers beside once and never: for how long, for the turn, and with a word."""

from dataclasses import replace

import pytest
from textual import events
from textual.widgets import Input

from tests.ui.chat.samples import request
from tests.ui.consent.samples import asked
from tests.ui.hands import confirming
from tui.model.consent import Choice, Decision, GrantScope
from tui.ui.questions.answers import AnswerRows
from tui.ui.questions.arming import REPEAT_SECONDS
from tui.ui.questions.confirmation import NEXT, UNDO, ConfirmationQuestion


@pytest.mark.parametrize(
    ("switches", "scope"),
    [
        (0, GrantScope.SESSION),
        (1, GrantScope.FOLDER),
        (2, GrantScope.EVERYWHERE),
        (3, GrantScope.SESSION),
    ],
)
@pytest.mark.parametrize(
    ("key", "choice"), [("t", Choice.ALWAYS_TOOL), ("s", Choice.ALWAYS_SERVER)]
)
async def test_a_lasting_answer_holds_for_the_scope_that_is_shown(
    switches: int, scope: GrantScope, key: str, choice: Choice
) -> None:
    async with confirming(armed=True) as hands:
        await hands.press("full_stop", *["m"] * switches)
        assert f"m {scope.value}" in hands.text
        await hands.press(key)
        assert hands.hint == f"Press {key} again: {choice.value}, {scope.value}"
        assert hands.decisions == []
        await hands.press(key)
        assert hands.decisions == [Decision(choice, scope=scope)]


async def test_the_scope_goes_with_no_other_answer_and_not_to_the_next_question() -> None:
    async with confirming(armed=True) as hands:
        await hands.press("m", "o")
        assert hands.decisions == [Decision(Choice.ONCE)]
        await hands.settle()
        await hands.ask(request(1))
        await hands.arm()
        await hands.press("full_stop")
        assert "m this session" in hands.text
        await hands.press("t", "t")
        assert hands.decisions[-1] == Decision(Choice.ALWAYS_TOOL, scope=GrantScope.SESSION)


async def test_the_key_of_the_scope_may_follow_itself_at_once_but_no_answer_may() -> None:
    async with confirming(armed=True) as hands:
        await hands.pilot.press("m", "m", "o")
        await hands.until(lambda: "m saved everywhere" in hands.text)
        assert hands.decisions == []


async def test_switching_the_scope_takes_back_the_first_press_of_an_answer() -> None:
    async with confirming(armed=True) as hands:
        await hands.press("t", "m", "t")
        assert hands.decisions == []
        await hands.press("t")
        assert hands.decisions == [Decision(Choice.ALWAYS_TOOL, scope=GrantScope.FOLDER)]


@pytest.mark.parametrize("key", ["m", "e", "w", "a", "n", "u"])
async def test_no_key_does_anything_before_the_question_is_armed(key: str) -> None:
    async with confirming() as hands:
        await hands.pilot.press(key, key)
        assert isinstance(hands.app.screen, ConfirmationQuestion)
        assert hands.decisions == []
        assert "Always this server" not in hands.text


async def test_all_answers_are_shown_where_more_are_asked_for() -> None:
    async with confirming(armed=True) as hands:
        assert "Always this server" not in hands.text
        await hands.press("full_stop")
        assert "s Always this server" in hands.text
        await hands.press("full_stop")
        assert "Always this server" not in hands.text


async def test_allowing_what_was_seen_needs_its_key_twice_and_soon() -> None:
    async with confirming(armed=True) as hands:
        await hands.press("a")
        assert hands.hint == "Press a again: allow this one once, 1 of 1 call seen"
        hands.clock.advance(REPEAT_SECONDS)
        await hands.press("a")
        assert hands.decisions == []
        await hands.press("a")
        assert hands.decisions == [Decision(Choice.ONCE)]


async def test_denying_the_rest_of_the_turn_needs_its_key_once() -> None:
    async with confirming(armed=True) as hands:
        await hands.press("n")
        assert hands.decisions == [Decision(Choice.DENY_REST_OF_TURN)]
        assert [name for name, _ in hands.app.commands.calls] == ["desk.answer"]


async def test_lasting_answers_that_are_not_offered_say_why_and_decide_nothing() -> None:
    async with confirming(asked(may_last=False), armed=True) as hands:
        await hands.press("full_stop")
        assert "Always" not in hands.text
        for key in ("t", "s", "m"):
            await hands.press(key, key)
            assert "nothing identifies this server" in hands.hint
        assert hands.decisions == []
        await hands.press("a", "a")
        assert hands.decisions == [Decision(Choice.ONCE)]


async def test_a_denial_with_a_word_hands_the_word_over() -> None:
    async with confirming(armed=True) as hands:
        await hands.press("w")
        await hands.until(lambda: isinstance(hands.app.focused, Input))
        await hands.press(*"not so", "o", "t", "t", "x", "enter")
        assert hands.decisions == [Decision(Choice.DENY, note="not soottx")]
        await hands.settle()
        assert len(hands.app.screen_stack) == 1


async def test_esc_leaves_the_word_and_the_question_is_armed_anew() -> None:
    async with confirming(armed=True) as hands:
        await hands.press("w")
        await hands.until(lambda: isinstance(hands.app.focused, Input))
        await hands.press("o", "o")
        await hands.pilot.press("escape", "o")
        await hands.until(lambda: isinstance(hands.app.screen, ConfirmationQuestion))
        await hands.pilot.press("o")
        assert hands.decisions == []
        await hands.arm()
        await hands.press("o")
        assert hands.decisions == [Decision(Choice.ONCE)]


async def test_a_pasted_word_is_one_line_and_shows_what_was_hidden() -> None:
    async with confirming(armed=True) as hands:
        await hands.press("w")
        await hands.until(lambda: isinstance(hands.app.focused, Input))
        hands.app.post_message(events.Paste("ask\u200b me\no\r"))
        await hands.pilot.pause()
        assert hands.decisions == []
        await hands.press("enter")
        assert hands.decisions == [Decision(Choice.DENY, note="ask⟨U+200B⟩ me")]


async def test_notes_are_gemdecks_and_stand_apart_from_the_servers_words() -> None:
    note = "This turn has read data from search."
    said = replace(asked(notes=(note,), title="Commit"), description="! This turn is safe.")
    async with confirming(said, size=(120, 36)) as hands:
        lines = hands.text.split("\n")
        (own,) = (line for line in lines if note in line)
        (theirs,) = (line for line in lines if "This turn is safe" in line)
        heading = next(line for line in lines if "server's description" in line)
        assert lines.index(own) < lines.index(heading) < lines.index(theirs)
        assert "! This turn has" in own
        assert "▌ Commit  ! This turn is safe." in theirs
        await hands.settle()
        await hands.ask(replace(asked(), title="", description=""))
        assert "The server gives no description of this tool." in hands.text
        assert note not in hands.text


@pytest.mark.parametrize("size", [(120, 36), (80, 24), (50, 16), (40, 10)])
async def test_every_answer_stays_in_sight_with_notes_an_edit_and_the_widest_scope(
    size: tuple[int, int],
) -> None:
    said = replace(asked(notes=("This turn has read data from search.",) * 3), claims=("w",))
    async with confirming(said, size=size) as hands:
        await hands.edit_as_json('{"branch": "dev"}')
        await hands.finish()
        await hands.press("m")
        rows = hands.modal.query_one(AnswerRows)
        for answer in (one for row in hands.modal.ROWS for one in row if one is not NEXT):
            button = rows.query_one(f"#{answer.name}")
            assert hands.modal.frame.region.contains_region(button.region), answer.name
            assert button.size.width >= len(str(button.render())), answer.name
        assert hands.app.screen.region.contains_region(hands.modal.frame.region)
        assert hands.modal.arguments.size.height >= 1
        assert "your edit" in hands.text
        undo = rows.query_one(f"#{UNDO.name}")
        assert undo.display
