"""How the engine tells the world what happened."""

import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # what events are made of is loaded after the first frame
    from tui.model.events import Event

Publish = Callable[["Event"], None]
"""Takes one event; never blocks, never raises."""

_log: Final = logging.getLogger(__name__)


class EventBus:
    """Hands each published event to every subscriber, in order of subscription.

    An event that a subscriber publishes is handed on after the one it was told of, so that all
    hear of both in the same order. Lives on one event loop; other threads hand over with
    ``loop.call_soon_threadsafe``.
    """

    def __init__(self) -> None:
        self._subscribers: dict[int, Publish] = {}
        self._next_key = 0
        self._events: deque[Event] = deque()
        self._is_publishing = False

    def subscribe(self, subscriber: Publish) -> Callable[[], None]:
        """Call `subscriber` with every event until the returned function is called."""
        key = self._next_key
        self._next_key += 1
        self._subscribers[key] = subscriber

        def unsubscribe() -> None:
            self._subscribers.pop(key, None)

        return unsubscribe

    def publish(self, event: "Event") -> None:
        """Tell every subscriber. One that fails is named in the log and told of later events."""
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
