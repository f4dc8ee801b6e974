"""How the engine tells the world what happened."""

from collections.abc import Callable

from tui.model.events import Event

Publish = Callable[[Event], None]
"""Takes one event; never blocks, never raises."""


class EventBus:
    """Hands each published event to every subscriber, in order of subscription.

    Lives on one event loop; other threads hand over with ``loop.call_soon_threadsafe``.
    """

    def __init__(self) -> None:
        self._subscribers: dict[int, Publish] = {}
        self._next_key = 0

    def subscribe(self, subscriber: Publish) -> Callable[[], None]:
        """Call `subscriber` with every event until the returned function is called."""
        key = self._next_key
        self._next_key += 1
        self._subscribers[key] = subscriber

        def unsubscribe() -> None:
            self._subscribers.pop(key, None)

        return unsubscribe

    def publish(self, event: Event) -> None:
        """Tell every subscriber."""
        for subscriber in tuple(self._subscribers.values()):
            subscriber(event)
