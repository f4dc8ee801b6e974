"""The real app over the real engine, without a terminal."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from textual.pilot import Pilot

from tests.fakes.gemini import KEY, FakeGemini, Step
from tests.ui.harness import OnScreen, without_hurry
from tui.engine.bus import EventBus
from tui.engine.engine import Engine, EngineOptions
from tui.engine.logs.redaction import Redactor
from tui.engine.mcp.context import OpenUrl, open_nothing
from tui.model.chat import ToolCall
from tui.model.servers import ServerId, ServerStatus
from tui.store import selectors
from tui.store.commands import Commands
from tui.store.state import AppState
from tui.store.store import Store
from tui.ui.app import GemdeckApp
from tui.ui.themes import UiPreferences
from tui.ui.widgets.chat.composer import Composer

D = TypeVar("D", bound="EngineDeck")


@dataclass
class EngineDeck(OnScreen):
    """The real app over the real engine in a folder, the hands on it, and a model's service."""

    engine: Engine
    store: Store
    commands: Commands
    pilot: Pilot[int]
    fake: FakeGemini
    folder: Path

    @property
    def app(self) -> GemdeckApp:
        assert isinstance(self.pilot.app, GemdeckApp)
        return self.pilot.app

    @property
    def composer(self) -> Composer:
        return self.app.deck.query_one(Composer)

    @property
    def calls(self) -> list[ToolCall]:
        """The calls in the conversation on the screen."""
        return [one for one in selectors.entries(self.store.state) if isinstance(one, ToolCall)]

    async def press(self, *keys: str) -> None:
        """Press keys, and wait until what came of them at once is on the screen."""
        for key in keys:
            await self.pilot.press(key)
            await self.until(lambda: not self.app.bridge._delay.is_begun)
            await self.pilot.pause()

    async def shows(self, *words: str) -> None:
        """Wait until all these words are on the screen."""
        try:
            await self.until(lambda: all(one in self.text for one in words))
        except TimeoutError:
            raise AssertionError(f"{words} are not in\n{self.text}") from None

    async def written(self, name: str) -> Path:
        """Wait until a file of the folder is written, and said to be."""
        said = f" was saved to ~/{self.folder.name}/{name}."
        await self.until(lambda: any(one.text.endswith(said) for one in self.store.state.notices))
        return self.folder / name

    async def idle(self) -> None:
        """Wait for the end of the turn."""
        await self.until(lambda: self.store.state.conversation.turn is None)
        await self.pilot.pause()

    def status(self, server: str) -> ServerStatus | None:
        """Give the status of a server, if there is one of this name."""
        view = selectors.server(self.store.state, ServerId(server))
        return view.status if view is not None else None

    async def reaches(self, server: str, status: ServerStatus | None) -> None:
        await self.until(lambda: self.status(server) is status)

    async def are(self, *statuses: ServerStatus) -> None:
        """Wait until the servers stand so, in their order."""
        await self.until(lambda: [one.status for one in self.store.state.servers] == [*statuses])


@asynccontextmanager
async def engine_deck(
    kind: type[D],
    settings: Mapping[str, object] | str | None = None,
    *steps: Step,
    open_url: OpenUrl = open_nothing,
    redactor: Redactor | None = None,
    **options: Any,  # noqa: ANN401 - as for `EngineOptions`
) -> AsyncIterator[D]:
    """Run the app in ``~/shop`` with these settings of the user's.

    With steps it has a key for a model that plays them.
    """
    folder, file = Path.home() / "shop", Path.home() / ".gemini" / "settings.json"
    folder.mkdir(exist_ok=True)
    if settings is not None:
        file.parent.mkdir(exist_ok=True)
        file.write_text(settings if isinstance(settings, str) else json.dumps(settings), "utf-8")
    made = EngineOptions(folder, **{"follow_settings": False, "attended": True, **options})
    async with FakeGemini(steps) as fake:
        with pytest.MonkeyPatch.context() as patch:
            if steps:
                patch.setenv("GEMINI_API_KEY", KEY)
                patch.setenv("GOOGLE_GEMINI_BASE_URL", fake.url)
            async with over_an_engine(made, open_url=open_url, redactor=redactor) as parts:
                yield kind(*parts, fake, folder)


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
        with without_hurry():
            async with app.run_test(size=(120, 40), notifications=True) as pilot:
                await engine.start()
                commands.attach(engine)
                yield engine, store, commands, pilot
