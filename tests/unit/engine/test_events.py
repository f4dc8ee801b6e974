"""Events: everybody hears of everything in one order, problems in any thread as notices."""

import asyncio
import threading

import pytest

from tests.support.waiting import PATIENCE
from tui.engine.bus import EventBus
from tui.engine.logs.problems import MAX_NOTICES, Problems
from tui.engine.logs.redaction import Redactor
from tui.model.chat import Severity
from tui.model.events import Event, Notice, NoticeRaised

FIRST, SECOND = (NoticeRaised(Notice(Severity.INFO, text)) for text in ("first", "second"))


def test_subscribers_hear_of_events_in_order_of_subscription() -> None:
    bus, heard = EventBus(), list[tuple[str, Event]]()
    bus.subscribe(lambda event: heard.append(("a", event)))
    bus.subscribe(lambda event: heard.append(("b", event)))
    bus.publish(FIRST)
    assert heard == [("a", FIRST), ("b", FIRST)]


def test_an_event_published_by_a_subscriber_comes_after_the_one_it_was_told_of() -> None:
    bus, heard = EventBus(), list[Event]()
    bus.subscribe(lambda event: bus.publish(SECOND) if event is FIRST else None)
    bus.subscribe(heard.append)
    bus.publish(FIRST)
    assert heard == [FIRST, SECOND]


def test_who_unsubscribed_meanwhile_is_told_no_more() -> None:
    bus, heard = EventBus(), list[Event]()

    def leave(_: Event) -> None:
        unsubscribe()

    bus.subscribe(leave)
    unsubscribe = bus.subscribe(heard.append)
    bus.publish(FIRST)
    assert heard == []


def test_a_subscriber_that_fails_is_logged_and_alone(caplog: pytest.LogCaptureFixture) -> None:
    bus, heard = EventBus(), list[Event]()

    def fail(_: Event) -> None:
        raise ValueError("a bug")

    bus.subscribe(fail)
    bus.subscribe(heard.append)
    bus.publish(FIRST)
    bus.publish(SECOND)

    assert (heard, caplog.text.count("ValueError: a bug")) == ([FIRST, SECOND], 2)
    assert "NoticeRaised" in caplog.text


async def test_a_problem_met_in_a_thread_is_told_on_the_loop() -> None:
    heard: asyncio.Queue[tuple[Event, int]] = asyncio.Queue()
    redactor = Redactor()
    redactor.register("hunter2hunter2")
    problems = Problems(lambda event: heard.put_nowait((event, threading.get_ident())), redactor)
    problems("before \x1b[2J")
    assert heard.empty()
    problems.attach()
    await asyncio.to_thread(problems, "during hunter2hunter2")
    async with asyncio.timeout(PATIENCE):
        told = [await heard.get(), await heard.get()]
    texts = ["before", "during ***"]
    notices = [NoticeRaised(Notice(Severity.WARNING, text)) for text in texts]
    assert told == [(notice, threading.get_ident()) for notice in notices]


def test_many_problems_are_one_fault_and_after_the_end_nobody_is_told() -> None:
    events: list[Event] = []
    problems = Problems(events.append, Redactor())
    for number in range(100):
        problems(f"file {number} cannot be written.")

    async def attach() -> None:
        problems.attach()
        assert len(events) == MAX_NOTICES

    asyncio.run(attach())
    assert "Further problems are in the log" in str(events[-1])
    assert "Further" not in str(events[:-1])
    late = Problems(events.append, Redactor())

    async def attach_late() -> None:
        late.attach()

    asyncio.run(attach_late())
    late("too late")
    assert len(events) == MAX_NOTICES
