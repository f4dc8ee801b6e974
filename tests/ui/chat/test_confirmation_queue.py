"""Questions after each other, and who else may settle one."""

import functools

import pytest
from textual import events

from tests.ui.chat.confirming import arm, ask, asking, decisions, modal, press, shows
from tests.ui.chat.samples import request
from tests.ui.harness import ChatApp, Clock, chat_app, chatting, until
from tui.model import events as e
from tui.model.consent import Choice, Decision, RequestId
from tui.model.requests import BellSet
from tui.ui.dialogs.list_dialog import ViewerScreen
from tui.ui.pending import notification
from tui.ui.questions.confirmation import ConfirmationQuestion


async def test_ten_calls_are_one_question_that_counts_up_and_is_armed_anew_for_each() -> None:
    clock = Clock()
    async with chatting(clock=clock) as (app, pilot):
        for number in range(10):
            app.store.dispatch(e.RequestRaised(request(number)))
        for number in range(10):
            await until(pilot, lambda: isinstance(app.screen, ConfirmationQuestion))
            await until(pilot, functools.partial(shows, app, number))
            assert len(app.screen_stack) == 2
            assert f"call {number + 1} of 10" in str(modal(app).frame.border_title)
            await pilot.press("o")
            assert len(decisions(app)) == number, "not armed for the next question"
            await arm(app, pilot, clock)
            await press(app, pilot, clock, "o")
            assert decisions(app)[-1] == (RequestId(f"r{number}"), Decision(Choice.ONCE))
            app.store.dispatch(e.RequestSettled(RequestId(f"r{number}")))
        await until(pilot, lambda: len(app.screen_stack) == 1)


async def test_a_question_settled_elsewhere_goes_and_the_next_takes_its_place() -> None:
    async with chatting() as (app, pilot):
        await ask(app, pilot)
        app.store.dispatch(e.RequestRaised(request(1)))
        app.store.dispatch(e.RequestSettled(RequestId("r0")))
        await until(pilot, lambda: shows(app, 1))
        app.store.dispatch(e.RequestSettled(RequestId("r1")))
        await until(pilot, lambda: not isinstance(app.screen, ConfirmationQuestion))
        assert decisions(app) == []
        assert app.focused is app.chat.composer


async def test_an_answered_question_is_not_asked_again_while_the_engine_settles_it() -> None:
    async with asking() as (app, pilot, clock):
        await press(app, pilot, clock, "o")
        app.store.dispatch(e.RequestRaised(request(1)))
        await pilot.pause(0.1)
        assert not modal(app).asks
        clock.advance(1)
        await pilot.press("o")
        assert len(decisions(app)) == 1


async def test_a_question_under_another_dialog_goes_when_that_closes() -> None:
    async with chatting() as (app, pilot):
        await ask(app, pilot)
        await app.push_screen(ViewerScreen("title", "text"))
        app.store.dispatch(e.RequestSettled(RequestId("r0")))
        await pilot.pause(0.1)
        assert isinstance(app.screen, ViewerScreen)
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)


async def test_the_bell_rings_for_a_question_only_while_the_user_is_elsewhere() -> None:
    async with chatting() as (app, pilot):
        await ask(app, pilot)
        assert app.bells == 0
        app.post_message(events.AppBlur())
        await pilot.pause()
        app.store.dispatch(e.RequestRaised(request(1)))
        await until(pilot, lambda: app.bells == 1)
        app.store.dispatch(e.RequestSettled(RequestId("r0")))
        await until(pilot, lambda: shows(app, 1))
        assert app.bells == 1


def is_announced(app: ChatApp, number: int) -> bool:
    return RequestId(f"r{number}") in app.pending._announced


async def test_the_bell_rings_once_in_ten_seconds_and_never_where_it_is_off() -> None:
    async with chat_app((80, 24)) as (app, pilot, clock):
        app.post_message(events.AppBlur())
        await until(pilot, lambda: not app.app_focus)
        for number, seconds, rung in ((0, 0.0, 1), (1, 9.9, 1), (2, 0.2, 2)):
            clock.advance(seconds)
            app.store.dispatch(e.RequestRaised(request(number)))
            await until(pilot, functools.partial(is_announced, app, number))
            assert app.bells == rung
        clock.advance(60)
        app.store.dispatch(BellSet(False))
        app.store.dispatch(e.RequestRaised(request(3)))
        await until(pilot, lambda: is_announced(app, 3))
        assert app.bells == 2


@pytest.mark.parametrize(
    ("environment", "begins"),
    [
        ({"TERM_PROGRAM": "iTerm.app"}, "\x1b]9;"),
        ({"TERM_PROGRAM": "WezTerm", "TERM": "xterm-256color"}, "\x1b]9;"),
        ({"TERM": "xterm-ghostty"}, "\x1b]9;"),
        ({"TERM": "xterm-kitty"}, "\x1b]99;"),
        ({"TERM_PROGRAM": "tmux", "TERM": "xterm-256color"}, ""),
        ({}, ""),
    ],
)
def test_a_notification_is_for_terminals_known_to_show_it(
    environment: dict[str, str], begins: str
) -> None:
    assert notification(environment).startswith(begins)
    assert bool(notification(environment)) is bool(begins)


async def test_quitting_works_over_the_question_and_deck_keys_do_not_reach_behind() -> None:
    async with chatting() as (app, pilot):
        await pilot.press("f2")
        assert app.leaks == 1
        await ask(app, pilot)
        await pilot.press("f2", "f6", "f7")
        assert app.leaks == 1
        await pilot.press("ctrl+q")
        await pilot.pause()
        assert not app.is_running
    assert decisions(app) == []
