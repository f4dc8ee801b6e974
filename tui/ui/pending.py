"""Puts the first question that waits for the user on the screen, and takes it away again."""

from collections.abc import Callable
from time import monotonic
from typing import Any

from textual.app import App
from textual.widgets import Input

from tui.model.requests import (
    ConfirmationRequest,
    FormRequest,
    PendingRequest,
    SamplingRequest,
    SamplingReview,
    UrlRequest,
)
from tui.model.trust import ToolChangeRequest, TrustRequest
from tui.store.commands import Commands
from tui.ui.bridge import StoreBridge
from tui.ui.screens.armed_screen import RequestScreen
from tui.ui.screens.confirmation import ConfirmationScreen
from tui.ui.widgets.composer import Composer

OtherRequest = (
    FormRequest | UrlRequest | SamplingRequest | SamplingReview | TrustRequest | ToolChangeRequest
)
"""What is asked beside the confirmation of a tool."""

OtherScreen = RequestScreen[Any, Any]
"""A modal for one such request."""


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
        self._screen: ConfirmationScreen | OtherScreen | None = None
        self._announced: set[str] = set()

    def start(self) -> None:
        """Begin to watch; called once the first screen stands."""
        self._bridge.watch(self._app.screen_stack[0], lambda state: state.pending, self._show)

    def _show(self, pending: tuple[PendingRequest, ...]) -> None:
        self._announce(pending)
        if not pending:
            self._close()
            return
        request, waiting = pending[0], len(pending)
        if isinstance(request, ConfirmationRequest):
            self._confirm(request, waiting)
        else:
            self._ask(request, waiting)

    def _confirm(self, request: ConfirmationRequest, waiting: int) -> None:
        """Show the confirmation, which is one screen for all tools that ask after each other."""
        if isinstance(self._screen, ConfirmationScreen):
            self._screen.show(request, waiting)
            return
        self._close()
        self._screen = ConfirmationScreen(self._commands, clock=self._clock)
        self._screen.show(request, waiting, writing=self._is_writing())
        self._app.push_screen(self._screen)

    def _ask(self, request: OtherRequest, waiting: int) -> None:
        """Show another request; each has a screen of its own, kept while it is asked again."""
        if isinstance(self._screen, RequestScreen) and self._screen.accepts(request):
            self._screen.show(request, waiting)
            return
        self._close()
        screen = self._make(request)
        screen.show(request, waiting, writing=self._is_writing())
        self._screen = screen
        self._app.push_screen(screen)

    def _is_writing(self) -> bool:
        """Tell whether keys that come now are likely meant for a text."""
        composers = self._app.screen_stack[0].query(Composer)
        return isinstance(self._app.focused, Input) or any(one.is_writing for one in composers)

    def _make(self, request: OtherRequest) -> OtherScreen:
        """Make the screen for a kind of request; each is loaded on first use."""
        match request:
            case FormRequest():
                from tui.ui.screens.form import FormScreen  # noqa: PLC0415

                return FormScreen(request, self._commands, clock=self._clock)
            case UrlRequest():
                from tui.ui.screens.address import AddressScreen  # noqa: PLC0415

                return AddressScreen(request, self._commands, clock=self._clock)
            case SamplingRequest():
                from tui.ui.screens.sampling import SamplingScreen  # noqa: PLC0415

                return SamplingScreen(request, self._commands, clock=self._clock)
            case SamplingReview():
                from tui.ui.screens.sampling import ReviewScreen  # noqa: PLC0415

                return ReviewScreen(request, self._commands, clock=self._clock)
            case TrustRequest():
                from tui.ui.screens.trust import TrustScreen  # noqa: PLC0415

                return TrustScreen(request, self._commands, clock=self._clock)
            case ToolChangeRequest():
                from tui.ui.screens.tool_changes import ToolChangeScreen  # noqa: PLC0415

                return ToolChangeScreen(request, self._commands, clock=self._clock)

    def _announce(self, pending: tuple[PendingRequest, ...]) -> None:
        """Ring when a new question comes while the user looks elsewhere."""
        ids = {str(request.id) for request in pending}
        if ids - self._announced and not self._app.app_focus:
            self._app.bell()
        self._announced = ids

    def _close(self) -> None:
        screen, self._screen = self._screen, None
        if screen is not None:
            screen.close()
