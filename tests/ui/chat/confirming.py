"""Hands on the question whether a tool may run."""

from textual.app import App
from textual.pilot import Pilot

from tests.ui.chat.app import ChatApp
from tests.ui.chat.support import Clock, request, until
from tui.model import events as e
from tui.model.requests import ConfirmationRequest
from tui.ui.screens.arming import ARMING_SECONDS
from tui.ui.screens.confirmation import ConfirmationScreen


def modal(app: App[None]) -> ConfirmationScreen:
    """Give the question on the screen."""
    screen = app.screen
    assert isinstance(screen, ConfirmationScreen)
    return screen


async def ask(app: ChatApp, pilot: Pilot[None], asked: ConfirmationRequest | None = None) -> None:
    """Raise a question and wait until it has been drawn."""
    app.store.dispatch(e.RequestRaised(asked or request()))
    await until(pilot, lambda: isinstance(app.screen, ConfirmationScreen))
    await until(pilot, lambda: modal(app)._gate._quiet_since is not None)


async def arm(
    app: ChatApp, pilot: Pilot[None], clock: Clock, seconds: float = ARMING_SECONDS
) -> None:
    """Let the clock go on until the question takes answers."""
    clock.advance(seconds + 0.01)
    await until(pilot, lambda: modal(app).armed)


def decisions(app: ChatApp) -> list[tuple[object, ...]]:
    """List the answers that were given."""
    return [arguments for name, arguments in app.commands.calls if name == "decide"]


def hint(app: ChatApp) -> str:
    """Give the last line of the question."""
    return str(modal(app).view.hint.render())


def shows(app: ChatApp, number: int) -> bool:
    """Tell whether a question is on the screen and has been drawn."""
    shown = modal(app).request
    return (
        shown is not None and shown.id == f"r{number}" and modal(app)._gate._quiet_since is not None
    )
