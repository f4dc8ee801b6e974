"""An app in which servers ask, with a clock that a test moves by hand."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from textual.pilot import Pilot
from textual.widget import Widget
from textual.widgets import Static

from tests.ui.chat.app import ChatApp
from tests.ui.chat.support import Clock, until
from tui.model import events as e
from tui.model.requests import PendingRequest, Reply
from tui.ui.screens.server_question import QuestionScreen
from tui.ui.widgets.composer import WRITING_SECONDS

W = TypeVar("W", bound=Widget)


@dataclass
class Asking:
    """The app, and the hands on it."""

    app: ChatApp
    pilot: Pilot[None]
    clock: Clock

    @property
    def modal(self) -> QuestionScreen[Any]:
        screen = self.app.screen
        assert isinstance(screen, QuestionScreen)
        return screen

    def one(self, kind: type[W], selector: str = "") -> W:
        return self.modal.query_one(selector, kind) if selector else self.modal.query_one(kind)

    async def ask(self, request: PendingRequest) -> None:
        """Raise a request and wait until it has been drawn."""
        self.app.store.dispatch(e.RequestRaised(request))
        await until(self.pilot, lambda: isinstance(self.app.screen, QuestionScreen))
        await until(self.pilot, lambda: self.modal.request == request)
        await until(self.pilot, lambda: self.modal._gate._quiet_since is not None)

    async def arm(self) -> None:
        self.clock.advance(WRITING_SECONDS + 0.01)
        await until(self.pilot, lambda: self.modal.armed)
        await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    @property
    def replies(self) -> list[Reply]:
        calls = (arguments for name, arguments in self.app.commands.calls if name == "reply")
        return [reply for _, reply in calls if isinstance(reply, Reply)]

    @property
    def text(self) -> str:
        """The screen as text."""
        return "\n".join(s.text for s in self.app.screen._compositor.render_strips())

    @property
    def problem(self) -> str:
        return str(self.one(Static, ".request-problem").render())


@asynccontextmanager
async def asking(
    request: PendingRequest, size: tuple[int, int] = (80, 24)
) -> AsyncIterator[Asking]:
    """Run an app in which a request has been raised and drawn."""
    clock = Clock()
    app = ChatApp(clock=clock)
    async with app.run_test(size=size) as pilot:
        hands = Asking(app, pilot, clock)
        await hands.ask(request)
        yield hands
