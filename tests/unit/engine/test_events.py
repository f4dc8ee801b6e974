"""The event bus: everybody hears of everything, in one order."""

import pytest

from tui.engine.bus import EventBus
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
    bus.subscribe(lambda _: unsubscribe())
    unsubscribe = bus.subscribe(heard.append)

    bus.publish(FIRST)

    assert heard == []


def test_a_subscriber_that_fails_is_logged_and_neither_who_publishes_nor_others_notice(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bus, heard = EventBus(), list[Event]()

    def fail(_: Event) -> None:
        raise ValueError("a bug")

    bus.subscribe(fail)
    bus.subscribe(heard.append)
    bus.publish(FIRST)
    bus.publish(SECOND)

    assert heard == [FIRST, SECOND]
    assert caplog.text.count("ValueError: a bug") == 2
    assert "NoticeRaised" in caplog.text
