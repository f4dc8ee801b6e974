"""The question whether a tool may run: which keys answer it, and when."""

import json
import re

import pytest
from textual import events

from tests.ui.chat.confirming import arm, ask, asking, decisions, hint, modal, press
from tests.ui.chat.samples import request
from tests.ui.harness import Clock, chatting, click, until
from tui.model.consent import Choice, Decision, RequestId
from tui.ui.questions.arming import PAUSE_SECONDS, REPEAT_SECONDS
from tui.ui.questions.confirmation import DENY
from tui.ui.widgets.frame import Heading


@pytest.mark.parametrize(
    ("key", "presses", "choice"),
    [
        ("o", 1, Choice.ONCE),
        ("t", 2, Choice.ALWAYS_TOOL),
        ("s", 2, Choice.ALWAYS_SERVER),
        ("d", 1, Choice.DENY),
        ("escape", 1, Choice.DENY),
    ],
)
async def test_each_key_gives_its_answer_once_it_is_armed_and_only_one(
    key: str, presses: int, choice: Choice
) -> None:
    async with asking(armed=False) as (app, pilot, clock):
        await pilot.press(key)
        assert decisions(app) == [], "not armed yet"
        await arm(app, pilot, clock)
        for pressed in range(presses):
            assert decisions(app) == [], pressed
            await press(app, pilot, clock, key)
        await pilot.press(key, key, "o")
        assert decisions(app) == [(RequestId("r0"), Decision(choice))]


async def test_keys_typed_for_the_composer_are_swallowed_and_each_delays_the_arming() -> None:
    async with asking(armed=False) as (app, pilot, clock):
        for key in "yyyyoots":
            await pilot.press(key)
            clock.advance(0.3)
        await pilot.press("enter", "tab", "enter")
        assert decisions(app) == []
        assert app.chat.composer.text == ""
        clock.advance(0.3)
        assert not modal(app)._arming.armed, "the last key was 0.3 s ago"
        await arm(app, pilot, clock, PAUSE_SECONDS)
        await press(app, pilot, clock, "o")
        assert decisions(app) == [(RequestId("r0"), Decision(Choice.ONCE))]


async def test_enter_denies_and_never_allows_unless_the_focus_was_moved() -> None:
    async with asking(armed=False) as (app, pilot, clock):
        await pilot.press("enter")
        assert decisions(app) == []
        await arm(app, pilot, clock)
        assert app.focused is modal(app).rows.button(DENY)
        await pilot.press("enter")
        assert decisions(app) == [(RequestId("r0"), Decision(Choice.DENY))]


@pytest.mark.parametrize("pace", [0.12, 0.62])
async def test_words_typed_at_an_armed_question_answer_nothing(pace: float) -> None:
    async with asking() as (app, pilot, clock):
        for key in ("p", "l", "e", "a", "s", "e", "space", "n", "o", "enter"):
            await pilot.press(key)
            clock.advance(pace)
        assert decisions(app) == []
        await until(pilot, lambda: not modal(app).armed)
        assert "stop typing" in hint(app)


@pytest.mark.parametrize("draft", ["a dra", ""])
async def test_a_question_that_interrupts_somebody_writing_waits_longer(draft: str) -> None:
    clock = Clock()
    async with chatting(clock=clock) as (app, pilot):
        await pilot.press("a", "backspace", *draft.replace(" ", ""))
        await ask(app, pilot)
        clock.advance(PAUSE_SECONDS - 0.1)
        await pilot.press("o")
        assert decisions(app) == []
        await arm(app, pilot, clock, PAUSE_SECONDS)
        await press(app, pilot, clock, "o")
        assert decisions(app) == [(RequestId("r0"), Decision(Choice.ONCE))]


async def test_a_message_that_was_sent_is_no_writing() -> None:
    clock = Clock()
    async with chatting(clock=clock) as (app, pilot):
        await pilot.press("h", "i", "enter")
        await ask(app, pilot)
        await arm(app, pilot, clock)
        assert modal(app).armed


async def test_a_lasting_answer_needs_its_key_twice_and_soon() -> None:
    async with asking() as (app, pilot, clock):
        await pilot.press("t")
        assert hint(app) == "Press t again: always this tool, this session"
        clock.advance(REPEAT_SECONDS + 0.1)
        await pilot.press("t")
        clock.advance(1)
        await pilot.press("s")
        assert hint(app) == "Press s again: always this server, this session"
        clock.advance(1)
        await pilot.press("down", "s")
        assert decisions(app) == []
        clock.advance(1)
        await press(app, pilot, clock, "s")
        assert decisions(app) == [(RequestId("r0"), Decision(Choice.ALWAYS_SERVER))]


async def test_stopping_denies_the_call_and_ends_the_turn() -> None:
    async with asking() as (app, pilot, _clock):
        await pilot.press("x")
        assert app.commands.calls == [
            ("desk.answer", (RequestId("r0"), Decision(Choice.DENY))),
            ("conversations.current.cancel", ()),
        ]


async def test_arguments_that_do_not_fit_can_be_allowed_only_after_their_end() -> None:
    arguments = json.dumps(list(range(2_998)), indent=2)
    async with asking(request(arguments=arguments)) as (app, pilot, clock):
        assert hint(app) == "Read to the end first: PageDown, End · line 1 of 3,000"
        for keys in (["o"], ["t", "t"], ["s", "s"]):
            clock.advance(1)
            await pilot.press(*keys)
        await click(pilot, "#once")
        await click(pilot, "#always-tool")
        assert decisions(app) == []
        assert modal(app).arguments.show_vertical_scrollbar
        await arm(app, pilot, clock)
        await pilot.press("end")
        await until(pilot, lambda: "scroll the arguments" in hint(app))
        heading = str(modal(app).query_one(Heading).render())
        assert re.search(r"line 2,9\d\d of 3,000", heading)
        clock.advance(1)
        await press(app, pilot, clock, "o")
        assert decisions(app) == [(RequestId("r0"), Decision(Choice.ONCE))]


async def test_arguments_that_do_not_fit_can_be_denied_unread() -> None:
    async with asking(request(arguments="x" * 200_000)) as (app, pilot, _clock):
        await pilot.press("d")
        assert decisions(app) == [(RequestId("r0"), Decision(Choice.DENY))]


async def test_a_button_answers_by_mouse_only_once_it_is_armed() -> None:
    async with asking(armed=False) as (app, pilot, clock):
        await click(pilot, "#deny")
        assert decisions(app) == []
        await arm(app, pilot, clock)
        await click(pilot, "#once")
        assert decisions(app) == [(RequestId("r0"), Decision(Choice.ONCE))]


async def test_a_paste_answers_nothing() -> None:
    async with asking(armed=False) as (app, pilot, clock):
        app.post_message(events.Paste("o\r"))
        await pilot.pause()
        await arm(app, pilot, clock, PAUSE_SECONDS)
        app.post_message(events.Paste("o\ry\r"))
        await pilot.pause()
        assert decisions(app) == []
        assert app.chat.composer.text == ""


async def test_no_answer_can_be_given_by_the_name_of_an_action() -> None:
    async with asking() as (app, _pilot, _clock):
        for _, binding in modal(app)._bindings:
            if binding.id and binding.id.startswith("confirmation."):
                await modal(app).run_action(binding.action)
        assert decisions(app) == []


async def test_a_key_can_be_remapped_by_its_binding() -> None:
    clock = Clock()
    async with chatting(clock=clock) as (app, pilot):
        app.set_keymap({"confirmation.once": "f9"})
        await ask(app, pilot)
        await arm(app, pilot, clock)
        await pilot.press("o")
        assert decisions(app) == []
        await arm(app, pilot, clock, PAUSE_SECONDS)
        await press(app, pilot, clock, "f9")
        assert decisions(app) == [(RequestId("r0"), Decision(Choice.ONCE))]
