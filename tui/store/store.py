"""The store: holds the current snapshot, applies events, and notifies listeners."""

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from tui.store.state import AppState

if TYPE_CHECKING:  # loaded after the first frame, with the engine
    from tui.model.events import Event

Listener = Callable[[AppState], object]
Unsubscribe = Callable[[], object]

_log: Final = logging.getLogger(__name__)


class Store:
    """The single writer of `AppState`. Belongs to one event loop."""

    def __init__(self, initial: AppState | None = None) -> None:
        self._state = initial or AppState()
        self._listeners: dict[object, Listener] = {}

    @property
    def state(self) -> AppState:
        return self._state

    def dispatch(self, event: "Event") -> None:
        """Apply one event, and notify listeners if the state changed.

        A listener may dispatch: all listeners then get the newer snapshot, and the older one is
        skipped for those that did not get it yet, so that no listener sees an older state last.
        """
        from tui.store.reducer import after_fault, reduce  # noqa: PLC0415 - there is no event before the first frame

        try:
            state = reduce(self._state, event)
        except Exception as error:  # noqa: BLE001 - the other events must be shown
            _log.exception("%s could not be shown", type(event).__name__)
            state = after_fault(self._state, event, error)
        if state is self._state:
            return
        self._state = state
        for key in tuple(self._listeners):
            if (listener := self._listeners.get(key)) is not None and self._state is state:
                listener(state)

    def listen(self, listener: Listener) -> Unsubscribe:
        """Call `listener` with each new snapshot until the returned function is called."""
        key = object()
        self._listeners[key] = listener
        return partial(self._listeners.pop, key, None)
