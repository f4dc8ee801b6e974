"""What widgets know of the world: the store's snapshots, at most thirty times a second.

Ten thousand events become a handful of repaints. An idle app has no timer.
"""

from collections.abc import Callable
from contextvars import Context, copy_context
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final, Generic, TypeVar

from textual.app import App
from textual.message_pump import MessagePump
from textual.timer import Timer
from textual.widget import Widget

from tui.store.commands import Commands
from tui.store.state import AppState
from tui.store.store import Store

T = TypeVar("T")

MIN_INTERVAL: Final = 1 / 30
"""Seconds between two rounds of updates."""

MIN_WAIT: Final = 0.005
"""Shortest wait of a timer in seconds; what happens within it is shown together."""

_UNSEEN: Final = object()


@dataclass(slots=True)
class _Watch(Generic[T]):
    """A widget's subscription to a part of the state."""

    widget: Widget
    selector: Callable[[AppState], T]
    callback: Callable[[T], object]
    last: T | object = _UNSEEN

    def update(self, state: AppState) -> None:
        value = self.selector(state)
        if value is not self.last and value != self.last:
            self.last = value
            self.callback(value)


class Delay:
    """Calls back once, later; what is begun anew takes the place of what has not come yet.

    Args:
        node: The app, screen or widget whose timers are used.
    """

    def __init__(self, node: MessagePump) -> None:
        self._node = node
        self._timer: Timer | None = None

    @property
    def is_begun(self) -> bool:
        """Whether it was begun, and not stopped since."""
        return self._timer is not None

    def begin(self, wait: float, callback: Callable[[], object]) -> None:
        """Call back after `wait` seconds or later.

        Textual forgets a timer whose moment has passed before its task runs: all it takes is that
        the system or another thread holds that up for as long as it was to wait.
        """
        self.stop()
        self._timer = self._node.set_timer(max(MIN_WAIT, wait), callback)
        self._timer._skip = False

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None


class StoreBridge:
    """Subscribe widgets to parts of the state, and take what the user asks for to the engine.

    Args:
        app: The running app, which provides the timers.
        source: The store; it must publish snapshots on the app's event loop.
        commands: Ask the engine.
    """

    def __init__(self, app: App[Any], source: Store, commands: Commands) -> None:
        self.commands = commands
        self._app = app
        self._source = source
        self._watches: list[_Watch[Any]] = []
        self._delay = Delay(app)
        self._last_round = 0.0
        self._unsubscribe: Callable[[], object] = lambda: None
        self._context = Context()

    @property
    def state(self) -> AppState:
        return self._source.state

    def start(self) -> None:
        """Start to listen; called once the app runs, from one of its own handlers.

        Changes since the widgets subscribed are shown soon after.
        """
        self._context = copy_context()
        self._unsubscribe = self._source.listen(self._on_state)
        self._on_state(self._source.state)

    def stop(self) -> None:
        self._unsubscribe()
        self._delay.stop()
        self._context = Context()
        self._watches.clear()

    def watch(
        self, widget: Widget, selector: Callable[[AppState], T], callback: Callable[[T], object]
    ) -> None:
        """Show a part of the state in a widget as long as it is mounted.

        Call it in `on_mount`. The callback is called at once with the current value, then after
        changes with the newest value.

        Args:
            widget: The widget; unmounting it ends the subscription.
            selector: A pure function of the state. Its values are compared by ``==``.
            callback: Shows the value. Runs on the event loop in the context of the app.
        """
        watch = _Watch(widget, selector, callback)
        self._watches.append(watch)
        watch.update(self._source.state)

    def _on_state(self, _state: AppState) -> None:
        if self._delay.is_begun:
            return
        wait = self._last_round + MIN_INTERVAL - monotonic()
        # Events come from the engine's tasks, whose context has no active app: a timer made
        # there would fail with a LookupError.
        self._context.run(self._delay.begin, wait, self.update)

    def update(self) -> None:
        """Show the newest state now."""
        self._delay.stop()
        self._last_round = monotonic()
        state = self._source.state
        self._watches = [watch for watch in self._watches if watch.widget.is_attached]
        with self._app.batch_update():
            for watch in tuple(self._watches):
                watch.update(state)
