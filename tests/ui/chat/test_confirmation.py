"""The question whether a tool may run: arming, keys, the queue, and who may settle it."""

import functools
import json
import re
from dataclasses import replace

import pytest
from textual import events
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Static

from tests.support.stalls import HANG_SECONDS, LoopWatch
from tests.ui.chat.app import ChatApp
from tests.ui.chat.support import Clock, request, until
from tui.model import events as e
from tui.model.consent import Choice, Decision, RequestId
from tui.model.requests import ConfirmationRequest
from tui.model.servers import ServerId
from tui.ui.screens.answers import ANSWERS, UNDO
from tui.ui.screens.arming import ARMING_SECONDS
from tui.ui.screens.confirmation import REPEAT_SECONDS, ConfirmationScreen
from tui.ui.screens.question import coloured_arguments
from tui.ui.screens.viewer import ViewerScreen
from tui.ui.widgets.composer import WRITING_SECONDS

SHOWN = tuple(answer.name for answer in ANSWERS if answer is not UNDO)
"""The buttons that are always there."""


def modal(app: App[None]) -> ConfirmationScreen:
    screen = app.screen
    assert isinstance(screen, ConfirmationScreen)
    return screen


async def ask(app: ChatApp, pilot: Pilot[None], asked: ConfirmationRequest | None = None) -> None:
    """Raise a question and wait until it has been drawn."""
    app.store.dispatch(e.RequestRaised(asked or request()))
    await until(pilot, lambda: isinstance(app.screen, ConfirmationScreen))
    await until(pilot, lambda: modal(app)._gate._quiet_since is not None)


async def arm(
    app: ChatApp, pilot: Pilot[None], clock: Clock, seconds: float = ARMING_SECONDS
) -> None:
    clock.advance(seconds + 0.01)
    await until(pilot, lambda: modal(app).armed)


def decisions(app: ChatApp) -> list[tuple[object, ...]]:
    return [arguments for name, arguments in app.commands.calls if name == "decide"]


async def test_the_question_shows_server_tool_claims_and_all_arguments() -> None:
    app = ChatApp()
    arguments = json.dumps({"message": "hello", "deep": {"list": list(range(100))}}, indent=2)
    async with app.run_test(size=(80, 24)) as pilot:
        await ask(app, pilot, request(arguments=arguments))
        facts = str(modal(app).query_one("#confirmation-facts", Static).render())
        assert "git" in facts
        assert "commit0" in facts
        assert "read-only  (claimed, not checked)" in facts
        shown = modal(app).arguments
        rows = [shown._row(row).plain for row in range(shown.row_count)]
        assert "\n".join(rows) == arguments


@pytest.mark.parametrize(
    ("size", "rows"), [((80, 24), 6), ((120, 36), 6), ((50, 16), 2), ((40, 10), 1)]
)
async def test_every_choice_and_some_arguments_are_in_sight(
    size: tuple[int, int], rows: int
) -> None:
    app = ChatApp()
    arguments = json.dumps(list(range(100)), indent=2)
    async with app.run_test(size=size) as pilot:
        await ask(app, pilot, request(arguments=arguments))
        assert modal(app).arguments.size.height >= rows
        for name in SHOWN:
            button = modal(app).query_one(f"#{name}")
            assert app.screen.region.contains_region(button.region)
            assert modal(app).query_one("#confirmation").region.contains_region(button.region)
            assert button.size.width >= len(str(button.render())), name


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
    clock = Clock()
    app = ChatApp(clock=clock)
    async with app.run_test() as pilot:
        await ask(app, pilot)
        await pilot.press(key)
        assert decisions(app) == [], "not armed yet"
        await arm(app, pilot, clock)
        for pressed in range(presses):
            assert decisions(app) == [], pressed
            await pilot.press(key)
        await pilot.press(key, key, "o")
        assert decisions(app) == [(RequestId("r0"), Decision(choice))]


async def test_keys_typed_for_the_composer_are_swallowed_and_each_delays_the_arming() -> None:
    clock = Clock()
    app = ChatApp(clock=clock)
    async with app.run_test() as pilot:
        await ask(app, pilot)
        for key in "yyyyoots":
            await pilot.press(key)
            clock.advance(0.3)
        await pilot.press("enter", "tab", "enter")
        assert decisions(app) == []
        assert app.chat.composer.text == ""
        clock.advance(0.3)
        assert not modal(app)._gate.armed, "the last key was 0.3 s ago"
        await arm(app, pilot, clock, WRITING_SECONDS)
        await pilot.press("o")
        assert decisions(app) == [(RequestId("r0"), Decision(Choice.ONCE))]


async def test_enter_denies_and_never_allows_unless_the_focus_was_moved() -> None:
    clock = Clock()
    app = ChatApp(clock=clock)
    async with app.run_test() as pilot:
        await ask(app, pilot)
        await pilot.press("enter")
        assert decisions(app) == []
        await arm(app, pilot, clock)
        assert app.focused is modal(app).deny
        await pilot.press("enter")
        assert decisions(app) == [(RequestId("r0"), Decision(Choice.DENY))]


def hint(app: ChatApp) -> str:
    return str(modal(app).view.hint.render())


@pytest.mark.parametrize("pace", [0.12, 0.62])
async def test_words_typed_at_an_armed_question_answer_nothing(pace: float) -> None:
    clock = Clock()
    app = ChatApp(clock=clock)
    async with app.run_test() as pilot:
        await ask(app, pilot)
        await arm(app, pilot, clock)
        for key in ("p", "l", "e", "a", "s", "e", "space", "n", "o", "enter"):
            await pilot.press(key)
            clock.advance(pace)
        assert decisions(app) == []
        await until(pilot, lambda: not modal(app).armed)
        assert "stopped typing" in hint(app)


@pytest.mark.parametrize("draft", ["a dra", ""])
async def test_a_question_that_interrupts_somebody_writing_waits_longer(draft: str) -> None:
    clock = Clock()
    app = ChatApp(clock=clock)
    async with app.run_test() as pilot:
        await pilot.press("a", "backspace", *draft.replace(" ", ""))
        await ask(app, pilot)
        clock.advance(WRITING_SECONDS - 0.1)
        await pilot.press("o")
        assert decisions(app) == []
        await arm(app, pilot, clock, WRITING_SECONDS)
        await pilot.press("o")
        assert decisions(app) == [(RequestId("r0"), Decision(Choice.ONCE))]


async def test_a_message_that_was_sent_is_no_writing() -> None:
    clock = Clock()
    app = ChatApp(clock=clock)
    async with app.run_test() as pilot:
        await pilot.press("h", "i", "enter")
        await ask(app, pilot)
        await arm(app, pilot, clock)
        assert modal(app).armed


async def test_a_lasting_answer_needs_its_key_twice_and_soon() -> None:
    clock = Clock()
    app = ChatApp(clock=clock)
    async with app.run_test() as pilot:
        await ask(app, pilot)
        await arm(app, pilot, clock)
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
        await pilot.press("s")
        clock.advance(1)
        await pilot.press("s")
        assert decisions(app) == [(RequestId("r0"), Decision(Choice.ALWAYS_SERVER))]


async def test_stopping_denies_the_call_and_ends_the_turn() -> None:
    clock = Clock()
    app = ChatApp(clock=clock)
    async with app.run_test() as pilot:
        await ask(app, pilot)
        await arm(app, pilot, clock)
        await pilot.press("x")
        assert app.commands.calls == [
            ("decide", (RequestId("r0"), Decision(Choice.DENY))),
            ("cancel_turn", ()),
        ]


async def test_arguments_that_do_not_fit_can_be_allowed_only_after_their_end() -> None:
    clock = Clock()
    app = ChatApp(clock=clock)
    arguments = json.dumps(list(range(2_998)), indent=2)
    async with app.run_test(size=(80, 24)) as pilot:
        await ask(app, pilot, request(arguments=arguments))
        await arm(app, pilot, clock)
        assert hint(app) == "Scroll to the end first: End · line 1 of 3,000"
        for keys in (["o"], ["t", "t"], ["s", "s"]):
            clock.advance(1)
            await pilot.press(*keys)
        await pilot.click("#once")
        await pilot.click("#always-tool")
        assert decisions(app) == []
        assert modal(app).arguments.show_vertical_scrollbar
        await arm(app, pilot, clock)
        await pilot.press("end")
        await until(pilot, lambda: "scroll the arguments" in hint(app))
        heading = str(modal(app).query_one("#confirmation-heading", Static).render())
        assert re.search(r"line 2,99\d of 3,000", heading)
        clock.advance(1)
        await pilot.press("o")
        assert decisions(app) == [(RequestId("r0"), Decision(Choice.ONCE))]


async def test_arguments_that_do_not_fit_can_be_denied_unread() -> None:
    clock = Clock()
    app = ChatApp(clock=clock)
    async with app.run_test(size=(80, 24)) as pilot:
        await ask(app, pilot, request(arguments="x" * 200_000))
        await arm(app, pilot, clock)
        await pilot.press("d")
        assert decisions(app) == [(RequestId("r0"), Decision(Choice.DENY))]


@pytest.mark.parametrize("size", [(120, 36), (80, 24), (40, 10)])
async def test_long_names_take_a_row_each_and_show_both_ends(size: tuple[int, int]) -> None:
    app = ChatApp()
    async with app.run_test(size=size) as pilot:
        asked = replace(
            request(),
            server=ServerId("s" * 194 + "server"),
            tool="rm" + "t" * 194 + "last",
            claims=("c" * 200,),
        )
        await ask(app, pilot, asked)
        facts = modal(app).view.facts
        await until(pilot, lambda: "…" in str(facts.render()))
        server, tool, claims = str(facts.render()).split("\n")
        assert server.endswith("server")
        assert tool.startswith("tool     rmt")
        assert tool.endswith("last")
        assert claims.endswith("(claimed, not checked)")
        assert max(map(len, (server, tool))) <= facts.size.width
        assert app.screen.region.contains_region(facts.region)
        assert facts.size.height >= 2


async def test_a_button_answers_by_mouse_only_once_it_is_armed() -> None:
    clock = Clock()
    app = ChatApp(clock=clock)
    async with app.run_test() as pilot:
        await ask(app, pilot)
        await pilot.click("#once")
        assert decisions(app) == []
        await arm(app, pilot, clock)
        await pilot.click("#always-tool")
        assert decisions(app) == [(RequestId("r0"), Decision(Choice.ALWAYS_TOOL))]


async def test_a_paste_answers_nothing() -> None:
    clock = Clock()
    app = ChatApp(clock=clock)
    async with app.run_test() as pilot:
        await ask(app, pilot)
        app.post_message(events.Paste("o\r"))
        await pilot.pause()
        await arm(app, pilot, clock, WRITING_SECONDS)
        app.post_message(events.Paste("o\ry\r"))
        await pilot.pause()
        assert decisions(app) == []
        assert app.chat.composer.text == ""


async def test_no_answer_can_be_given_by_the_name_of_an_action() -> None:
    clock = Clock()
    app = ChatApp(clock=clock)
    async with app.run_test() as pilot:
        await ask(app, pilot)
        await arm(app, pilot, clock)
        for _, binding in modal(app)._bindings:
            if binding.id and binding.id.startswith("confirmation."):
                await modal(app).run_action(binding.action)
        assert decisions(app) == []


async def test_a_key_can_be_remapped_by_its_binding() -> None:
    clock = Clock()
    app = ChatApp(clock=clock)
    async with app.run_test() as pilot:
        app.set_keymap({"confirmation.once": "f9"})
        await ask(app, pilot)
        await arm(app, pilot, clock)
        await pilot.press("o")
        assert decisions(app) == []
        await arm(app, pilot, clock, WRITING_SECONDS)
        await pilot.press("f9")
        assert decisions(app) == [(RequestId("r0"), Decision(Choice.ONCE))]


async def test_ten_questions_are_one_modal_after_another_each_armed_anew() -> None:
    clock = Clock()
    app = ChatApp(clock=clock)
    async with app.run_test() as pilot:
        for number in range(10):
            app.store.dispatch(e.RequestRaised(request(number)))
        for number in range(10):
            await until(pilot, lambda: isinstance(app.screen, ConfirmationScreen))
            await until(pilot, functools.partial(_shows, app, number))
            assert len(app.screen_stack) == 2
            left = 10 - number
            subtitle = str(modal(app).query_one("#confirmation").border_subtitle or "")
            assert subtitle == (f"1 of {left}" if left > 1 else "")
            await pilot.press("o")
            assert len(decisions(app)) == number, "not armed for the next question"
            await arm(app, pilot, clock)
            await pilot.press("o")
            assert decisions(app)[-1] == (RequestId(f"r{number}"), Decision(Choice.ONCE))
            app.store.dispatch(e.RequestSettled(RequestId(f"r{number}")))
        await until(pilot, lambda: len(app.screen_stack) == 1)


def _shows(app: ChatApp, number: int) -> bool:
    shown = modal(app).request
    return (
        shown is not None and shown.id == f"r{number}" and modal(app)._gate._quiet_since is not None
    )


async def test_a_question_settled_elsewhere_goes_and_the_next_takes_its_place() -> None:
    app = ChatApp()
    async with app.run_test() as pilot:
        await ask(app, pilot)
        app.store.dispatch(e.RequestRaised(request(1)))
        app.store.dispatch(e.RequestSettled(RequestId("r0")))
        await until(pilot, lambda: _shows(app, 1))
        app.store.dispatch(e.RequestSettled(RequestId("r1")))
        await until(pilot, lambda: not isinstance(app.screen, ConfirmationScreen))
        assert decisions(app) == []
        assert app.focused is app.chat.composer


async def test_an_answered_question_is_not_asked_again_while_the_engine_settles_it() -> None:
    clock = Clock()
    app = ChatApp(clock=clock)
    async with app.run_test() as pilot:
        await ask(app, pilot)
        await arm(app, pilot, clock)
        await pilot.press("o")
        app.store.dispatch(e.RequestRaised(request(1)))
        await pilot.pause(0.1)
        assert modal(app).request is None
        clock.advance(1)
        await pilot.press("o")
        assert len(decisions(app)) == 1


async def test_a_question_under_another_dialog_goes_when_that_closes() -> None:
    app = ChatApp()
    async with app.run_test() as pilot:
        await ask(app, pilot)
        await app.push_screen(ViewerScreen("title", "text"))
        app.store.dispatch(e.RequestSettled(RequestId("r0")))
        await pilot.pause(0.1)
        assert isinstance(app.screen, ViewerScreen)
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)


async def test_the_bell_rings_for_a_question_only_while_the_user_is_elsewhere() -> None:
    app = ChatApp()
    async with app.run_test() as pilot:
        await ask(app, pilot)
        assert app.bells == 0
        app.post_message(events.AppBlur())
        await pilot.pause()
        app.store.dispatch(e.RequestRaised(request(1)))
        await until(pilot, lambda: app.bells == 1)
        app.store.dispatch(e.RequestSettled(RequestId("r0")))
        await until(pilot, lambda: _shows(app, 1))
        assert app.bells == 1


async def test_quitting_works_over_the_question_and_deck_keys_do_not_reach_behind() -> None:
    app = ChatApp()
    async with app.run_test() as pilot:
        await pilot.press("f2")
        assert app.leaks == 1
        await ask(app, pilot)
        await pilot.press("f2", "f6", "f7")
        assert app.leaks == 1
        await pilot.press("ctrl+q")
        await pilot.pause()
        assert not app.is_running
    assert decisions(app) == []


async def test_arguments_scroll_with_the_keys_to_their_last_line() -> None:
    clock = Clock()
    app = ChatApp(clock=clock)
    arguments = json.dumps(list(range(1_000)), indent=2)
    async with app.run_test(size=(80, 24)) as pilot:
        await ask(app, pilot, request(arguments=arguments))
        await arm(app, pilot, clock)
        view = modal(app).arguments
        await pilot.press("down", "pagedown")
        await until(pilot, lambda: view.scroll_y > 1)
        await pilot.press("end")
        await until(pilot, lambda: view.scroll_y == view.max_scroll_y)
        assert view.row_count == arguments.count("\n") + 1
        assert app.focused is modal(app).deny


def test_runs_of_blanks_are_made_visible_and_nothing_is_lost() -> None:
    text = json.dumps({"path": "/safe" + " " * 5_000 + "; rm -rf /", "indent": {"x": 1}}, indent=2)
    shown = coloured_arguments(text).plain
    assert len(shown) == len(text)
    assert " " * 5 not in shown.split('"indent"')[0]
    assert shown.replace("·", " ") == text


@pytest.mark.parametrize(
    "text",
    ["[/x] [@click=app.quit]q[/]", "\n" * 5_000, "x" * 1_000_000, "漢" * 300_000],
    ids=["markup", "blank", "long", "wide"],
)
async def test_hostile_questions_neither_crash_nor_hold_up_the_loop(
    text: str, loop_watch: LoopWatch
) -> None:
    app = ChatApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await ask(app, pilot, request(arguments='{"warm": "up"}'))
        loop_watch.clear()
        hostile = ConfirmationRequest(
            RequestId("h"), request().call, request().server, text, text, text, (text, text)
        )
        app.store.dispatch(e.RequestRaised(hostile))
        app.store.dispatch(e.RequestSettled(RequestId("r0")))
        await until(pilot, lambda: modal(app).request == hostile)
        await pilot.pause(0.05)
        modal(app).action_edge(1)
        await pilot.pause(0.05)
        loop_watch.assert_smooth(HANG_SECONDS)
        assert app.is_running
        assert app.screen.region.contains_region(modal(app).deny.region)
