"""The store: holds the current snapshot, applies events to it, tells who listens."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from tui.store.state import AppState

if TYPE_CHECKING:  # loaded after the first frame, with the engine
    from tui.model.events import Event

Listener = Callable[[AppState], None]
Unsubscribe = Callable[[], None]


class StateSource(Protocol):
    """What a reader of the state needs."""

    @property
    def state(self) -> AppState:
        """The current snapshot."""

    def listen(self, listener: Listener) -> Unsubscribe:
        """Call `listener` with each new snapshot."""


class Store:
    """The single writer of `AppState`. Lives on one event loop; other threads hand over to it."""

    def __init__(self, initial: AppState | None = None) -> None:
        self._state = initial or AppState()
        self._listeners: dict[int, Listener] = {}
        self._next_key = 0

    @property
    def state(self) -> AppState:
        """The current snapshot."""
        return self._state

    def dispatch(self, event: "Event") -> None:
        """Apply one event. Listeners hear of it only if it changed anything.

        A listener may dispatch in turn: everyone then hears of the newer snapshot, and those
        who had not yet heard of the older one never do, so that nobody goes back in time.
        """
        from tui.store.reducer import reduce  # noqa: PLC0415 - there is no event before the first frame

        state = reduce(self._state, event)
        if state is self._state:
            return
        self._state = state
        for key in tuple(self._listeners):
            listener = self._listeners.get(key)
            if listener is not None and self._state is state:
                listener(state)

    def listen(self, listener: Listener) -> Unsubscribe:
        """Call `listener` with each new snapshot until the returned function is called."""
        key = self._next_key
        self._next_key += 1
        self._listeners[key] = listener

        def unsubscribe() -> None:
            self._listeners.pop(key, None)

        return unsubscribe
