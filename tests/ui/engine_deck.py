"""The real app over the real engine, without a terminal."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from textual.pilot import Pilot
from textual.screen import Screen

from tests.ui.harness import screen_lines, until
from tui.engine.bus import EventBus
from tui.engine.engine import Engine, EngineOptions
from tui.engine.logs.redaction import Redactor
from tui.engine.mcp.context import OpenUrl, open_nothing
from tui.model.servers import ServerStatus
from tui.store.commands import Commands
from tui.store.state import AppState
from tui.store.store import Store
from tui.ui.app import GemdeckApp
from tui.ui.themes import UiPreferences

S = TypeVar("S", bound=Screen[Any])


@dataclass
class EngineDeck:
    """The real app over the real engine, and the hands on it."""

    engine: Engine
    store: Store
    commands: Commands
    pilot: Pilot[int]

    @property
    def app(self) -> GemdeckApp:
        assert isinstance(self.pilot.app, GemdeckApp)
        return self.pilot.app

    @property
    def text(self) -> str:
        return "\n".join(screen_lines(self.app))

    async def until(self, condition: Callable[[], object]) -> None:
        await until(self.pilot, condition)

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
            await self.pilot.pause()

    async def shows(self, *words: str) -> None:
        """Wait until all these words are on the screen."""
        try:
            await self.until(lambda: all(one in self.text for one in words))
        except TimeoutError:
            raise AssertionError(f"{words} are not in\n{self.text}") from None

    async def come(self, kind: type[S]) -> S:
        """Wait until a screen is on top, and give it."""
        await self.until(lambda: isinstance(self.app.screen, kind))
        screen = self.app.screen
        assert isinstance(screen, kind)
        return screen

    async def are(self, *statuses: ServerStatus) -> None:
        """Wait until the servers stand so, in their order."""
        await self.until(lambda: [one.status for one in self.store.state.servers] == [*statuses])


@asynccontextmanager
async def over_an_engine(
    options: EngineOptions, *, open_url: OpenUrl = open_nothing, redactor: Redactor | None = None
) -> AsyncIterator[tuple[Engine, Store, Commands, Pilot[int]]]:
    """Run the app as the program does."""
    bus, store = EventBus(), Store(AppState(workspace="~/shop"))
    bus.subscribe(store.dispatch)
    async with Engine(options, bus.publish, open_url=open_url, redactor=redactor) as engine:
        commands = Commands(bus.publish)
        app = GemdeckApp(store, commands, preferences=UiPreferences())
        async with app.run_test(size=(120, 40), notifications=True) as pilot:
            await engine.start()
            commands.attach(engine)
            yield engine, store, commands, pilot
