"""Hands on the question whether a tool may run."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from textual.app import App
from textual.pilot import Pilot

from tests.ui.chat.samples import request
from tests.ui.harness import ChatApp, Clock, chatting, holds, until
from tui.model import events as e
from tui.model.requests import ConfirmationRequest
from tui.ui.questions.arming import ARMING_SECONDS
from tui.ui.questions.confirmation import ConfirmationQuestion


def modal(app: App[None]) -> ConfirmationQuestion:
    """Give the question on the screen."""
    screen = app.screen
    assert isinstance(screen, ConfirmationQuestion)
    return screen


async def ask(app: ChatApp, pilot: Pilot[None], asked: ConfirmationRequest | None = None) -> None:
    """Raise a question and wait until it has been drawn."""
    app.store.dispatch(e.RequestRaised(asked or request()))
    await until(pilot, lambda: isinstance(app.screen, ConfirmationQuestion))
    await until(pilot, lambda: modal(app)._arming.is_begun)


async def arm(
    app: ChatApp, pilot: Pilot[None], clock: Clock, seconds: float = ARMING_SECONDS
) -> None:
    """Let the clock go on until the question takes answers."""
    clock.advance(seconds + 0.01)
    await until(pilot, lambda: modal(app).armed)


@asynccontextmanager
async def asking(
    asked: ConfirmationRequest | None = None,
    *,
    size: tuple[int, int] = (80, 24),
    armed: bool = True,
) -> AsyncIterator[tuple[ChatApp, Pilot[None], Clock]]:
    """Run the chat with a question over it, which takes answers unless it shall not yet."""
    clock = Clock()
    async with chatting(size=size, clock=clock) as (app, pilot):
        await ask(app, pilot, asked)
        if armed:
            await arm(app, pilot, clock)
        yield app, pilot, clock


async def press(app: ChatApp, pilot: Pilot[None], clock: Clock, *keys: str) -> None:
    """Press keys, each as slowly as an answer wants it."""
    for key in keys:
        await pilot.press(key)
        await pilot.pause()
        clock.advance(ARMING_SECONDS + 0.01)
        await until(pilot, lambda: not holds(app))


def decisions(app: ChatApp) -> list[tuple[object, ...]]:
    """List the answers that were given."""
    return [arguments for name, arguments in app.commands.calls if name == "desk.answer"]


def hint(app: ChatApp) -> str:
    """Give the last line of the question."""
    return str(modal(app).hint.render())


def shows(app: ChatApp, number: int) -> bool:
    """Tell whether a question is on the screen and has been drawn."""
    return modal(app).request.id == f"r{number}" and modal(app)._arming.is_begun
