"""The event bus of the engine."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # loaded after the first frame
    from tui.model.events import Event

Publish = Callable[["Event"], None]
"""Publishes one event; never blocks, never raises."""

MAX_UNREAD: Final = 10_000
"""Events that wait for the reader of an `EventStream`."""

_log: Final = logging.getLogger(__name__)


class EventBus:
    """Delivers each event to every subscriber, in order of subscription.

    An event published by a subscriber is delivered after the current one, so that all
    subscribers see the same order. Belongs to one event loop; other threads use
    ``loop.call_soon_threadsafe``.
    """

    def __init__(self) -> None:
        self._subscribers: dict[object, Publish] = {}
        self._events: deque[Event] = deque()
        self._is_publishing = False

    def subscribe(self, subscriber: Publish) -> Callable[[], object]:
        """Call `subscriber` with every event until the returned function is called."""
        key = object()
        self._subscribers[key] = subscriber
        return partial(self._subscribers.pop, key, None)

    def publish(self, event: "Event") -> None:
        """Deliver an event. A failing subscriber is logged and stays subscribed."""
        self._events.append(event)
        if self._is_publishing:
            return
        self._is_publishing = True
        try:
            while self._events:
                self._tell(self._events.popleft())
        finally:
            self._is_publishing = False

    def _tell(self, event: "Event") -> None:
        for key in tuple(self._subscribers):
            subscriber = self._subscribers.get(key)
            if subscriber is None:
                continue
            try:
                subscriber(event)
            except Exception:  # noqa: BLE001 - one listener's fault must not end what publishes
                _log.exception("A subscriber failed on %s", type(event).__name__)


class EventStream:
    """The events of a bus as an async iterator, from the moment it is made until it is closed.

    At most `MAX_UNREAD` events wait to be read; then the oldest are dropped.
    """

    def __init__(self, bus: "EventBus") -> None:
        self._unread: deque[Event] = deque(maxlen=MAX_UNREAD)
        self._changed = asyncio.Event()
        self._is_closed = False
        self._unsubscribe = bus.subscribe(self._take)

    def __aiter__(self) -> "EventStream":
        return self

    async def __anext__(self) -> "Event":
        while not self._unread:
            if self._is_closed:
                raise StopAsyncIteration
            self._changed.clear()
            await self._changed.wait()
        return self._unread.popleft()

    def close(self) -> None:
        """End the iteration once what has come is read."""
        self._is_closed = True
        self._unsubscribe()
        self._changed.set()

    def _take(self, event: "Event") -> None:
        self._unread.append(event)
        self._changed.set()
