"""What is typed while the event loop stands still counts by when it was typed.

The clock is the real one here, and so are the stalls: a test blocks the loop, and hands keys to the
driver as the thread does that reads the terminal.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual import events
from textual.pilot import Pilot

from tests.ui.consent.samples import asked
from tests.ui.harness import ChatApp, holds, screen_lines, until
from tui.model import events as e
from tui.model.consent import Choice, Decision, GrantScope
from tui.ui.questions.arming import (
    ARMING_SECONDS,
    HOLD_SECONDS,
    KEY_REPEAT_SECONDS,
    PAUSE_SECONDS,
    Arming,
)
from tui.ui.questions.question import Question


def stall(seconds: float) -> None:
    """Hold the loop up."""
    time.sleep(seconds)


def read(key: str) -> events.Key:
    """Read a key from the terminal, which is when it is stamped."""
    return events.Key(key, key)


def hand_over(app: ChatApp, *keys: events.Key) -> None:
    assert app._driver is not None
    for key in keys:
        app._driver.send_message(key)


def question(app: ChatApp) -> Question[Any]:
    assert isinstance(app.screen, Question)
    return app.screen


def answers(app: ChatApp) -> list[object]:
    return [arguments[1] for name, arguments in app.commands.calls if name == "desk.answer"]


def when_held(app: ChatApp, act: Callable[[], None]) -> None:
    """Act once as soon as an answer is held, in the very moment."""
    arming = question(app)._arming
    changed = arming._changed

    def act_once() -> None:
        changed()
        if arming.held is not None:
            arming._changed = changed
            act()

    arming._changed = act_once


async def rearmed(app: ChatApp, pilot: Pilot[None]) -> None:
    """Wait until what was typed has held answers back, and no longer does."""
    await until(pilot, lambda: not question(app).armed)
    await until(pilot, lambda: question(app).armed and not holds(app))


@asynccontextmanager
async def armed() -> AsyncIterator[tuple[ChatApp, Pilot[None]]]:
    app = ChatApp()
    async with app.run_test() as pilot:
        app.store.dispatch(e.RequestRaised(asked()))
        await until(pilot, lambda: isinstance(app.screen, Question) and app.screen.armed)
        yield app, pilot


async def test_a_word_typed_during_a_stall_runs_nothing() -> None:
    async with armed() as (app, pilot):

        def type_on() -> None:
            hand_over(app, read("k"))
            stall(ARMING_SECONDS + 0.1)

        when_held(app, type_on)
        hand_over(app, read("o"))
        await rearmed(app, pilot)
        assert answers(app) == []


async def test_a_letter_that_is_read_only_after_a_stall_still_ends_the_word() -> None:
    """A parser may hold the interpreter, and with it the thread that reads the terminal."""
    async with armed() as (app, pilot):

        def stall_then_read() -> None:
            stall(ARMING_SECONDS + 0.1)
            loop = asyncio.get_running_loop()
            loop.call_later(HOLD_SECONDS / 4, lambda: hand_over(app, read("k")))

        when_held(app, stall_then_read)
        hand_over(app, read("o"))
        await rearmed(app, pilot)
        assert answers(app) == []


async def test_an_answer_alone_counts_after_a_stall() -> None:
    async with armed() as (app, pilot):
        when_held(app, lambda: stall(ARMING_SECONDS + 0.1))
        hand_over(app, read("o"))
        await until(pilot, lambda: answers(app) == [Decision(Choice.ONCE)])


async def test_a_key_from_before_the_question_was_armed_is_too_early_however_late_its_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begin = Arming.begin
    app = ChatApp()

    def begin_and_stall(arming: Arming) -> None:
        begin(arming)
        hand_over(app, read("d"))
        stall(ARMING_SECONDS + 0.1)

    async with app.run_test() as pilot:
        monkeypatch.setattr(Arming, "begin", begin_and_stall)
        app.store.dispatch(e.RequestRaised(asked()))
        await until(pilot, lambda: isinstance(app.screen, Question))
        await until(pilot, lambda: question(app).armed)
        hand_over(app, read("m"))
        await until(pilot, lambda: GrantScope.FOLDER in "\n".join(screen_lines(app)))
        assert answers(app) == []


async def test_a_held_key_whose_repeats_are_handled_late_is_no_second_press() -> None:
    async with armed() as (app, pilot):
        first, repeated = read("t"), read("t")
        hand_over(app, first)
        await until(pilot, lambda: question(app)._arming.awaited is not None)
        stall(2 * KEY_REPEAT_SECONDS)
        hand_over(app, repeated)
        await until(pilot, lambda: question(app)._arming.awaited is None)
        assert answers(app) == []


async def test_what_was_being_written_goes_on_through_a_stall() -> None:
    app = ChatApp()
    async with app.run_test() as pilot:
        hand_over(app, read("h"), read("a"))
        await until(pilot, lambda: app.chat.composer.text == "ha")
        rest = read("d")
        app.store.dispatch(e.RequestRaised(asked()))
        await until(pilot, lambda: isinstance(app.screen, Question))
        stall(PAUSE_SECONDS)
        hand_over(app, rest)
        await until(pilot, lambda: app.chat.composer.text == "had")
        assert answers(app) == []
