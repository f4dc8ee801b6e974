"""What the reference server asks, seen and answered on the real app over the real engine."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from tests.support.node import node_server
from tests.support.waiting import PATIENCE
from tests.ui.harness import click, until
from tests.unit.engine.mcp.support import find_tool
from tui.engine.bus import EventBus
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.engine import Engine, EngineOptions
from tui.engine.mcp.catalog.offered_tool import ToolResult
from tui.model.chat import Progress
from tui.model.events import Event, ToolCallProgressed
from tui.model.servers import Origin, ServerId, ServerStatus, Transport
from tui.store.commands import Commands
from tui.store.state import AppState
from tui.store.store import Store
from tui.ui.app import GemdeckApp
from tui.ui.questions.question import Question
from tui.ui.questions.sampling import ReviewQuestion
from tui.ui.themes import UiPreferences

SERVER = ServerId("everything")


@dataclass
class Deck:
    """A running deck with the reference server, and the addresses it opened."""

    engine: Engine
    store: Store
    pilot: Pilot[int]
    opened: list[str]
    progress: list[Progress] = field(default_factory=list)

    async def until(self, condition: Callable[[], object]) -> None:
        await until(self.pilot, condition)

    def hear(self, event: Event) -> None:
        if isinstance(event, ToolCallProgressed):
            self.progress.append(event.progress)

    def call(self, name: str, **arguments: object) -> "asyncio.Task[ToolResult]":
        return asyncio.create_task(self.engine.call_tool(SERVER, name, arguments, by_user=True))

    async def question(self) -> Question[Any]:
        """Wait for a question of the server that takes answers."""
        app = self.pilot.app
        await self.until(lambda: isinstance(app.screen, Question) and app.screen.armed)
        assert isinstance(app.screen, Question)
        return app.screen


@asynccontextmanager
async def everything(workspace: Path) -> AsyncIterator[Deck]:
    bus, store, opened = EventBus(), Store(AppState(workspace="~/shop")), list[str]()
    bus.subscribe(store.dispatch)

    async def open_url(url: str) -> bool:
        opened.append(url)
        return True

    options = EngineOptions(workspace, demo=True, follow_settings=False, attended=True)
    command, arguments = node_server("everything")
    server = ServerDefinition(SERVER, Origin.USER, Transport.STDIO, command, tuple(arguments))
    async with Engine(options, bus.publish, open_url=open_url) as engine:
        commands = Commands(bus.publish)
        app = GemdeckApp(store, commands, preferences=UiPreferences())
        async with app.run_test(size=(120, 40)) as pilot:
            await engine.start()
            commands.attach(engine)
            engine.servers.configure((server,))
            deck = Deck(engine, store, pilot, opened)
            bus.subscribe(deck.hear)
            await deck.until(
                lambda: [view.status for view in store.state.servers] == [ServerStatus.READY]
            )
            await deck.until(lambda: find_tool(engine.servers, "trigger-elicitation-request"))
            yield deck


@pytest.mark.slow
async def test_a_form_is_filled_in_and_reaches_the_server(tmp_path: Path) -> None:
    async with everything(tmp_path) as deck:
        call = deck.call("trigger-elicitation-request")
        screen = await deck.question()
        screen.query(Input).first().value = "Ada Lovelace"
        await deck.pilot.press("pagedown", "pagedown", "pagedown")
        await deck.until(lambda: screen.reading.unread is None)
        await deck.pilot.press("ctrl+s")
        result = await asyncio.wait_for(call, PATIENCE)
        assert "Ada Lovelace" in result.display
        await deck.until(lambda: not isinstance(deck.pilot.app.screen, Question))


@pytest.mark.slow
async def test_an_address_is_shown_and_opened_only_after_consent(tmp_path: Path) -> None:
    async with everything(tmp_path) as deck:
        call = deck.call("trigger-url-elicitation", url="https://example.org/sign?x=1")
        await deck.question()
        assert deck.opened == []
        await click(deck.pilot, "#open")
        await deck.until(lambda: deck.opened)
        assert deck.opened == ["https://example.org/sign?x=1"]
        call.cancel()
        await asyncio.wait({call})


@pytest.mark.slow
async def test_a_prompt_for_the_model_is_shown_and_so_is_its_answer(tmp_path: Path) -> None:
    async with everything(tmp_path) as deck:
        call = deck.call("trigger-sampling-request", prompt="Say something.", maxTokens=50)
        await deck.question()
        await click(deck.pilot, "#once")
        await deck.until(lambda: isinstance(deck.pilot.app.screen, ReviewQuestion))
        await deck.question()
        await click(deck.pilot, "#send")
        result = await asyncio.wait_for(call, PATIENCE)
        assert not result.is_error
        assert "demo" in result.display


@pytest.mark.slow
async def test_progress_and_roots_arrive(tmp_path: Path) -> None:
    async with everything(tmp_path) as deck:
        call = deck.call("trigger-long-running-operation", duration=1, steps=4)
        await asyncio.wait_for(call, PATIENCE)
        assert [progress.total for progress in deck.progress] == [4.0] * len(deck.progress)
        assert deck.progress
        roots = await asyncio.wait_for(deck.call("get-roots-list"), PATIENCE)
        assert tmp_path.as_uri() in roots.display


@pytest.mark.slow
async def test_what_the_server_logs_stands_in_the_activity(tmp_path: Path) -> None:
    async with everything(tmp_path) as deck:
        await asyncio.wait_for(deck.call("toggle-simulated-logging"), PATIENCE)
        await deck.until(
            lambda: [line for line in deck.store.state.logs.get(SERVER, ()) if line.source == "log"]
        )
        await deck.pilot.press("f7")
        logged = next(line for line in deck.store.state.logs[SERVER] if line.source == "log")
        words = logged.text.split()[0]
        await deck.until(lambda: words in deck.pilot.app.export_screenshot())
