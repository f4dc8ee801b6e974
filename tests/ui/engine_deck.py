"""The real app over the real engine, without a terminal."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from textual.pilot import Pilot

from tui.engine.bus import EventBus
from tui.engine.engine import Engine, EngineOptions
from tui.engine.logs.redaction import Redactor
from tui.engine.mcp.context import OpenUrl, open_nothing
from tui.store.commands import Commands
from tui.store.state import AppState
from tui.store.store import Store
from tui.ui.app import GemdeckApp
from tui.ui.themes import UiPreferences


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
