"""The answers by key, by mouse and by Enter: once, for how long, for the turn, and with a word."""

from dataclasses import replace

import pytest
from textual import events
from textual.widgets import Button, Input

from tests.support.waiting import PATIENCE
from tests.ui.chat.samples import request
from tests.ui.consent.samples import asked
from tests.ui.hands import Confirming, confirming
from tests.ui.harness import WIDE, click, holds
from tui.model.consent import Choice, Decision, GrantScope
from tui.ui.questions.answers import AnswerRows
from tui.ui.questions.arming import (
    ARMING_SECONDS,
    CLICK_SECONDS,
    HOLD_SECONDS,
    PAUSE_SECONDS,
    REPEAT_SECONDS,
)
from tui.ui.questions.confirmation import (
    ALWAYS_THESE,
    NEXT,
    UNDO,
    WITH_REASON,
    ConfirmationQuestion,
)
from tui.ui.widgets.frame import WORDY

ONCE, DENY = Decision(Choice.ONCE), Decision(Choice.DENY)


@pytest.mark.parametrize(
    "given",
    [
        {
            "o": ONCE,
            "tt": Decision(Choice.ALWAYS_TOOL),
            "ss": Decision(Choice.ALWAYS_SERVER),
            "aa": ONCE,
        },
        {
            "d": DENY,
            ("escape",): DENY,
            ("enter",): DENY,
            ("ctrl+c",): DENY,
            "n": Decision(Choice.DENY_REST_OF_TURN),
        },
    ],
    ids=["allowing", "denying"],
)
async def test_each_key_gives_its_answer_once_it_is_armed_and_only_one(
    given: dict[str | tuple[str, ...], Decision],
) -> None:
    async with confirming() as hands:
        for keys, decision in given.items():
            await hands.ask_next(asked(), armed=False)
            await hands.pilot.press(*keys)
            assert hands.decisions == [], f"{keys}: not armed yet"
            hands.clock.advance(PAUSE_SECONDS)
            await hands.arm()
            assert hands.focused == "deny"
            await hands.press(keys[0])
            assert hands.decisions == [decision][len(keys) - 1 :], f"{keys}: once"
            await hands.press(*keys[1:], "o", keys[0])
            assert [name for name, _ in hands.calls] == ["desk.answer"]
            assert hands.decisions == [decision], keys


async def test_no_answer_to_another_client_stops_the_turn_of_the_chat() -> None:
    async with confirming() as hands:
        await hands.ask_next(replace(asked(), caller="codex in ~/shop"))
        await hands.press("full_stop", "x")
        assert "Stop turn" not in hands.text
        assert hands.calls == []
        await hands.ask_next(replace(request(1), caller="codex in ~/shop"))
        await hands.press("n")
        assert hands.decisions == [Decision(Choice.DENY_REST_OF_TURN)]


async def test_an_answer_is_given_by_its_own_keys_with_the_scope_that_is_shown() -> None:
    async with confirming(armed=True) as hands:
        # Stopping denies the call and ends the turn.
        await hands.press("x")
        assert [name for name, _ in hands.calls] == ["desk.answer", "conversations.current.cancel"]
        assert hands.decisions == [DENY]
        # The scope goes with no other answer and not to the next question.
        await hands.ask_next(asked())
        await hands.press("m", "o")
        assert hands.decisions == [ONCE]
        await hands.ask_next(request(1))
        await hands.press("full_stop")
        assert "m Scope: session" in hands.text
        await hands.press("t", "t")
        assert hands.decisions == [Decision(Choice.ALWAYS_TOOL, scope=GrantScope.SESSION)]
        # The key of the scope takes a first press back and may follow itself.
        await hands.ask_next(asked())
        await hands.press("t", "m", "t")
        assert hands.decisions == []
        await hands.press("t")
        assert hands.decisions == [Decision(Choice.ALWAYS_TOOL, scope=GrantScope.FOLDER)]
        await hands.ask_next(request(1))
        await hands.pilot.press("m", "m", "o")
        await hands.until(lambda: "m Scope: everywhere" in hands.text)
        assert hands.decisions == [], "an answer may not"
        # An answer that needs its key twice needs it soon and nothing between.
        await hands.ask_next(asked())
        await hands.press("a")
        assert hands.hint == "Press a again: allow the 1 of 1 call you have seen"
        hands.clock.advance(REPEAT_SECONDS)
        await hands.press("a", "s")
        assert hands.hint == "Press s again: always allow this server, this session"
        await hands.press("down", "s")
        assert hands.decisions == []
        await hands.press("s")
        assert hands.decisions == [Decision(Choice.ALWAYS_SERVER)]
        # No answer can be given by the name of an action.
        await hands.ask_next(asked())
        bindings = [one.binding for one in hands.modal.active_bindings.values()]
        answers = [one for one in bindings if (one.id or "").startswith("confirmation.")]
        assert len(answers) > len(hands.modal.ROWS)
        for binding in answers:
            await hands.modal.run_action(binding.action)
        assert hands.decisions == []


async def test_what_is_offered_is_shown_and_lasts_for_the_scope_in_sight() -> None:
    async with confirming() as hands:
        # All answers are shown where more are asked for and no key works early.
        for key in ("m", "e", "w", "u", "full_stop"):
            await hands.pilot.press(key, key)
            assert isinstance(hands.app.screen, ConfirmationQuestion)
        assert "Always server" not in hands.text
        hands.clock.advance(PAUSE_SECONDS)
        await hands.arm()
        await hands.press("full_stop")
        assert "s Always server" in hands.text
        await hands.press("full_stop")
        assert "Always server" not in hands.text
        # A lasting answer holds for the scope that is shown.
        for key, choice, switches, scope in (
            ("t", Choice.ALWAYS_TOOL, 0, GrantScope.SESSION),
            ("s", Choice.ALWAYS_SERVER, 1, GrantScope.FOLDER),
            ("t", Choice.ALWAYS_TOOL, 2, GrantScope.EVERYWHERE),
            ("s", Choice.ALWAYS_SERVER, 3, GrantScope.SESSION),
        ):
            await hands.ask_next(asked())
            await hands.press("full_stop", *["m"] * switches)
            assert f"m Scope: {scope.name.lower()}" in hands.text
            await hands.press(key)
            words = choice.value.replace("always", "always allow")
            assert hands.hint == f"Press {key} again: {words}, {scope.value}"
            assert hands.decisions == []
            await hands.press(key)
            assert hands.decisions == [Decision(choice, scope=scope)]
        # Lasting answers that are not offered say why and decide nothing.
        why = "this server cannot be recognized later"
        await hands.ask_next(asked(not_lasting=why))
        await hands.press("full_stop")
        assert "Always" not in hands.text
        for key in ("t", "s", "m"):
            await hands.press(key, key)
            assert hands.hint == f"Always is not available: {why}."
        assert hands.decisions == []
        await hands.press("a", "a")
        assert hands.decisions == [ONCE]
        # A key can be remapped by its binding.
        hands.app.set_keymap({"confirmation.once": "f12", "confirmation.deny": "N"})
        await hands.ask_next(request(1))
        assert "f12 Once" in hands.text
        assert "N Deny" in hands.text
        await hands.press("o")
        assert hands.decisions == []
        await hands.arm()
        await hands.press("f12")
        assert hands.decisions == [ONCE]


async def test_a_denial_with_a_word_is_one_line_and_can_be_left() -> None:
    async with confirming(armed=True) as hands:
        # Esc leaves the word and the question is armed anew.
        await hands.press("w")
        await hands.until(lambda: isinstance(hands.app.focused, Input))
        await hands.press("o", "o")
        await hands.pilot.press("escape", "o")
        await hands.until(lambda: isinstance(hands.app.screen, ConfirmationQuestion))
        await hands.pilot.press("o")
        assert hands.decisions == []
        await hands.arm()
        await hands.press("o")
        assert hands.decisions == [ONCE]
        # A pasted word is one line and shows what was hidden.
        await hands.ask_next(asked())
        await hands.press("w")
        await hands.until(lambda: isinstance(hands.app.focused, Input))
        hands.app.post_message(events.Paste("ask\u200b me\no\r"))
        await hands.pilot.pause()
        assert hands.decisions == []
        await hands.press("enter")
        assert hands.decisions == [Decision(Choice.DENY, note="ask⟨U+200B⟩ me")]
        # A denial with a word hands the word over.
        await hands.ask_next(asked())
        await hands.press("w")
        await hands.until(lambda: isinstance(hands.app.focused, Input))
        await hands.press(*"not so", "o", "t", "t", "x", "enter")
        assert hands.decisions == [Decision(Choice.DENY, note="not soottx")]
        await hands.settle()
        assert len(hands.app.screen_stack) == 1


async def test_notes_are_gemdecks_and_stand_apart_from_the_servers_words() -> None:
    note = "This turn has read data from search."
    said = replace(asked(notes=(note,), title="Commit"), description="! This turn is safe.")
    async with confirming(said, size=(120, 36)) as hands:
        assert "This turn is safe" not in hands.text
        await hands.arm()
        await hands.press("i")
        lines = hands.text.split("\n")
        (own,) = (line for line in lines if note in line)
        (theirs,) = (line for line in lines if "This turn is safe" in line)
        assert lines.index(own) < lines.index(theirs)
        assert "! This turn has" in own
        assert "▌ Commit  ! This turn is safe." in theirs
        await hands.settle()
        await hands.ask(replace(asked(), title="", description=""))
        await hands.arm()
        await hands.press("i")
        assert "The server gives no description of this tool." in hands.text
        assert note not in hands.text


async def test_every_answer_stays_in_sight_with_notes_an_edit_and_the_widest_scope() -> None:
    notes = ("This turn has read data from search.",) * 3
    said = replace(asked(notes=notes), claims=("w",), read_only=1)
    sizes = ((120, 36), (80, 24), (50, 16), (40, 10))
    async with confirming(said, size=sizes[0], armed=True) as hands:
        await hands.press("m")
        for size, is_edited in ((size, is_edited) for is_edited in (False, True) for size in sizes):
            await hands.resize(size)
            if is_edited and size == sizes[0]:
                await hands.edit_as_json('{"branch": "dev"}')
                await hands.finish()
            rows = hands.modal.query_one(AnswerRows)
            hidden = [NEXT] if size[0] >= WORDY else [NEXT, WITH_REASON]
            hidden.append(ALWAYS_THESE if is_edited else UNDO)
            for answer in (one for row in hands.modal.ROWS for one in row if one not in hidden):
                button = rows.query_one(f"#{answer.name}")
                assert hands.modal.frame.region.contains_region(button.region), answer.name
                assert button.size.width >= len(str(button.render())), answer.name
            assert hands.app.screen.region.contains_region(hands.modal.frame.region), size
            assert hands.modal.arguments.size.height >= 1, size
            assert ("your edit" in hands.text) == is_edited, size
            assert rows.query_one(f"#{UNDO.name}").display == is_edited, size


# Buttons, by mouse and by Enter: they hold to the same rules as the keys of their answers.

TWICE = {
    "allow-seen": Decision(Choice.ONCE),
    "always-tool": Decision(Choice.ALWAYS_TOOL),
    "always-server": Decision(Choice.ALWAYS_SERVER),
}


async def rest(hands: Confirming, name: str) -> None:
    """Wait until a button can be pressed again."""
    button = hands.modal.query_one(f"#{name}")
    await hands.until(lambda: not button.has_class("-active"))


async def click_and_wait(hands: Confirming, name: str, seconds: float = CLICK_SECONDS) -> None:
    await click(hands.pilot, f"#{name}")
    await rest(hands, name)
    hands.clock.advance(seconds)


async def open_all(hands: Confirming) -> None:
    """Ask anew, and show all answers."""
    await hands.ask_next(asked())
    await hands.press("full_stop")


async def test_buttons_keep_the_rules_of_their_keys_by_mouse_and_by_enter() -> None:
    async with confirming(size=WIDE) as hands:
        # A click on a wide answer takes a second one and a double click is one.
        for name, decision in TWICE.items():
            await open_all(hands)
            await click_and_wait(hands, name, CLICK_SECONDS - 0.01)
            await click_and_wait(hands, name)
            assert hands.decisions == [], "that was a double click"
            assert "again: " in hands.hint
            await click(hands.pilot, f"#{name}")
            assert hands.decisions == [decision]
        # A click elsewhere or too late is no second one.
        await open_all(hands)
        await click_and_wait(hands, "allow-seen")
        await click_and_wait(hands, "always-tool")
        await click_and_wait(hands, "allow-seen", REPEAT_SECONDS)
        await click_and_wait(hands, "allow-seen")
        assert hands.decisions == []
        # Clicks switch the scope that an answer takes.
        await open_all(hands)
        await click_and_wait(hands, "scope", 0.2)
        assert "Scope: folder" in hands.text
        await click_and_wait(hands, "always-server")
        await click(hands.pilot, "#always-server")
        expected = Decision(Choice.ALWAYS_SERVER, scope=GrantScope.FOLDER)
        await hands.until(lambda: hands.decisions == [expected])
        # Enter on a wide answer has to be pressed again.
        for name in ("allow-seen", "always-server"):
            await open_all(hands)
            while hands.focused != name:
                await hands.pilot.press("tab")
            hands.clock.advance(ARMING_SECONDS)
            await hands.pilot.press("enter")
            assert "again: " in hands.hint
            assert not holds(hands.app)
            hands.clock.advance(ARMING_SECONDS)
            assert hands.decisions == []
            await hands.pilot.press("enter")
            hands.clock.advance(HOLD_SECONDS)
            await hands.until(lambda: not holds(hands.app))
            assert hands.decisions == [TWICE[name]]
        # A mouse button that went down before the question was armed answers nothing.
        await hands.ask_next(asked(), armed=False)
        await click(hands.pilot, "#deny")
        assert hands.decisions == []
        button = hands.modal.query_one("#deny", Button)
        await rest(hands, "deny")
        button.active_effect_duration = PATIENCE  # what shows that it was pressed lasts
        x, y, *_ = button.region
        down, up = (
            kind(None, x + 1, y, 0, 0, 1, False, False, False)
            for kind in (events.MouseDown, events.MouseUp)
        )
        hands.app.post_message(down)
        await hands.pilot.pause()
        await hands.arm()
        hands.app.post_message(up)
        await hands.until(lambda: button.has_class("-active"))
        assert hands.answers == []
        button.remove_class("-active")
        await click(hands.pilot, "#deny")
        await hands.until(lambda: hands.decisions == [Decision(Choice.DENY)])
