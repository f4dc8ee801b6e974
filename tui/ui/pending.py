"""Puts the first question that waits for the user on the screen, and takes it away again."""

from collections.abc import Callable
from time import monotonic
from typing import Any

from textual.app import App
from textual.widgets import Input

from tui.model.consent import ConfirmationRequest
from tui.store.commands import Commands
from tui.ui.bridge import StoreBridge
from tui.ui.screens.confirmation import ConfirmationScreen
from tui.ui.widgets.composer import Composer


class PendingController:
    """Keeps one modal in step with `AppState.pending`.

    The state decides: a question is on the screen because it is the first of the state, and goes
    when the state no longer holds it, whoever settled it.

    Args:
        app: The running app.
        bridge: Where the state comes from.
        commands: Where answers go.
        clock: Gives seconds for the arming delay.
    """

    def __init__(
        self,
        app: App[Any],
        bridge: StoreBridge,
        commands: Commands,
        *,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._app = app
        self._bridge = bridge
        self._commands = commands
        self._clock = clock
        self._screen: ConfirmationScreen | None = None
        self._announced: set[str] = set()

    def start(self) -> None:
        """Begin to watch; called once the first screen stands."""
        self._bridge.watch(self._app.screen_stack[0], lambda state: state.pending, self._show)

    def _show(self, pending: tuple[ConfirmationRequest, ...]) -> None:
        self._announce(pending)
        if not pending:
            self._close()
            return
        if self._screen is None:
            self._screen = ConfirmationScreen(self._commands, clock=self._clock)
            self._screen.show(pending[0], len(pending), writing=self._is_writing())
            self._app.push_screen(self._screen)
        else:
            self._screen.show(pending[0], len(pending))

    def _is_writing(self) -> bool:
        """Tell whether keys that come now are likely meant for a text."""
        composers = self._app.screen_stack[0].query(Composer)
        return isinstance(self._app.focused, Input) or any(one.is_writing for one in composers)

    def _announce(self, pending: tuple[ConfirmationRequest, ...]) -> None:
        """Ring when a new question comes while the user looks elsewhere."""
        ids = {str(request.id) for request in pending}
        if ids - self._announced and not self._app.app_focus:
            self._app.bell()
        self._announced = ids

    def _close(self) -> None:
        screen, self._screen = self._screen, None
        if screen is not None:
            screen.close()
