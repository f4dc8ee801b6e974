"""Servers on the real app over the real engine: what they ask, and signing in to one."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.pilot import Pilot
from textual.widgets import Input

from tests.conftest import World
from tests.servers.authority import GuardedServer, walk_through
from tests.servers.web import free_port
from tests.support.leaks import FIXTURE_SECRET
from tests.support.node import node_server
from tests.support.waiting import PATIENCE
from tests.ui.harness import click, until
from tests.unit.engine.mcp.support import find_tool
from tests.unit.engine.sign_in.support import guarded
from tui.engine.bus import EventBus
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.engine import Engine, EngineOptions
from tui.engine.logs.log_file import prepare_process
from tui.engine.mcp.catalog.offered_tool import ToolResult
from tui.model.chat import Progress
from tui.model.events import Event, ToolCallProgressed
from tui.model.servers import Origin, ServerId, Transport
from tui.model.servers import ServerStatus as S
from tui.store.commands import Commands
from tui.store.state import AppState
from tui.store.store import Store
from tui.ui.app import GemdeckApp
from tui.ui.panes.servers_tree import ServersTree
from tui.ui.questions.question import Question
from tui.ui.questions.sampling import ReviewQuestion
from tui.ui.themes import UiPreferences

EVERYTHING, EVENTS = ServerId("everything"), ServerId("events")

pytestmark = [pytest.mark.slow]


@dataclass
class Deck:
    """The real app over the real engine, with one server."""

    engine: Engine
    bus: EventBus
    store: Store
    pilot: Pilot[int]
    server: ServerId

    async def until(self, condition: Callable[[], object]) -> None:
        await until(self.pilot, condition)

    async def reach(self, status: S) -> None:
        await self.until(lambda: [view.status for view in self.store.state.servers] == [status])

    def begin(self, name: str, **arguments: object) -> "asyncio.Task[ToolResult]":
        calling = self.engine.call_tool(self.server, name, arguments, by_user=True)
        return asyncio.create_task(calling)

    async def call(self, name: str, **arguments: object) -> ToolResult:
        return await asyncio.wait_for(self.begin(name, **arguments), PATIENCE)

    async def question(self) -> Question[Any]:
        """Wait for a question that takes answers, and read it."""
        app = self.pilot.app
        await self.until(lambda: isinstance(app.screen, Question) and app.screen.armed)
        screen = app.screen
        assert isinstance(screen, Question)
        await self.pilot.press("end")
        await self.until(lambda: screen.reading.unread is None)
        return screen

    async def sign_in(self) -> Question[Any]:
        """Press the key, and wait for its question."""
        self.pilot.app.screen_stack[0].query_one(ServersTree).focus()
        await self.pilot.pause()
        await self.pilot.press("a")
        return await self.question()


@asynccontextmanager
async def engine_deck(
    server: ServerId, options: EngineOptions, browser: Callable[[str], Awaitable[object]]
) -> AsyncIterator[Deck]:
    """Run the app over the engine; a browser that gives False could not be opened."""
    bus, store = EventBus(), Store(AppState(workspace="~/shop"))
    bus.subscribe(store.dispatch)

    async def open_url(url: str) -> bool:
        return await browser(url) is not False

    redactor = prepare_process(verbose=True)
    async with Engine(options, bus.publish, open_url=open_url, redactor=redactor) as engine:
        commands = Commands(bus.publish)
        app = GemdeckApp(store, commands, preferences=UiPreferences())
        async with app.run_test(size=(120, 40)) as pilot:
            await engine.start()
            commands.attach(engine)
            yield Deck(engine, bus, store, pilot, server)


@asynccontextmanager
async def everything(workspace: Path, opened: list[str]) -> AsyncIterator[Deck]:
    """Run the reference server."""

    async def browser(url: str) -> None:
        opened.append(url)

    options = EngineOptions(workspace, demo=True, follow_settings=False, attended=True)
    command, arguments = node_server("everything")
    server = ServerDefinition(EVERYTHING, Origin.USER, Transport.STDIO, command, tuple(arguments))
    async with engine_deck(EVERYTHING, options, browser) as deck:
        deck.engine.servers.configure((server,))
        await deck.reach(S.READY)
        await deck.until(lambda: find_tool(deck.engine.servers, "trigger-elicitation-request"))
        yield deck


async def test_what_a_server_asks_is_shown_and_answered_only_after_consent(tmp_path: Path) -> None:
    opened: list[str] = []
    async with everything(tmp_path, opened) as deck:
        form = deck.begin("trigger-elicitation-request")
        screen = await deck.question()
        screen.query(Input).first().value = "Ada Lovelace"
        await deck.pilot.press("ctrl+s")
        assert "Ada Lovelace" in (await asyncio.wait_for(form, PATIENCE)).display
        await deck.until(lambda: not isinstance(deck.pilot.app.screen, Question))

        sampling = deck.begin("trigger-sampling-request", prompt="Say something.", maxTokens=50)
        await deck.question()
        await click(deck.pilot, "#once")
        await deck.until(lambda: isinstance(deck.pilot.app.screen, ReviewQuestion))
        await deck.question()
        await click(deck.pilot, "#send")
        result = await asyncio.wait_for(sampling, PATIENCE)
        assert not result.is_error
        assert "demo" in result.display
        await deck.until(lambda: not isinstance(deck.pilot.app.screen, Question))

        address = deck.begin("trigger-url-elicitation", url="https://example.org/sign?x=1")
        await deck.question()
        assert opened == []
        await click(deck.pilot, "#open")
        await deck.until(lambda: opened)
        assert opened == ["https://example.org/sign?x=1"]
        address.cancel()
        await asyncio.wait({address})


async def test_progress_roots_and_logs_arrive(tmp_path: Path) -> None:
    heard: list[Progress] = []

    def hear(event: Event) -> None:
        if isinstance(event, ToolCallProgressed):
            heard.append(event.progress)

    async with everything(tmp_path, []) as deck:
        deck.bus.subscribe(hear)
        await deck.call("trigger-long-running-operation", duration=1, steps=4)
        assert [progress.total for progress in heard] == [4.0] * len(heard)
        assert heard
        assert tmp_path.as_uri() in (await deck.call("get-roots-list")).display
        await deck.call("toggle-simulated-logging")

        def logged() -> list[str]:
            lines = deck.store.state.logs.get(EVERYTHING, ())
            return [line.text for line in lines if line.source == "log"]

        await deck.until(logged)
        await deck.pilot.press("f7")
        words = logged()[0].split()[0]
        await deck.until(lambda: words in deck.pilot.app.export_screenshot())


@asynccontextmanager
async def signing_in(
    server: GuardedServer, home: Path, browser: Callable[[str], Awaitable[object]]
) -> AsyncIterator[Deck]:
    """Run with a server in the settings that wants a sign-in."""
    entry = {
        "url": server.url,
        "type": "http",
        "oauth": {"redirectUri": f"http://localhost:{free_port()}/oauth/callback"},
    }
    settings, workspace = home / ".gemini" / "settings.json", home / "shop"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps({"mcpServers": {"events": entry}}))
    workspace.mkdir(exist_ok=True)
    options = EngineOptions(workspace, follow_settings=False, attended=True, needs_model=False)
    async with engine_deck(EVENTS, options, browser) as deck:
        yield deck


@pytest.mark.writes_secrets("sign-ins.json")
async def test_one_key_and_it_stays_signed_in_without_a_word_of_it_in_any_file(
    world: World,
) -> None:
    opened: list[str] = []
    verifiers: list[str] = []

    async def browser(url: str) -> object:
        opened.append(url)
        return await walk_through(url)

    async with guarded() as server:
        authority = server.authority
        async with signing_in(server, world.home, browser) as deck:
            await deck.reach(S.NEEDS_SIGN_IN)
            question = await deck.sign_in()
            assert "127.0.0.1" in deck.pilot.app.export_screenshot()
            assert not opened
            await deck.pilot.press("ctrl+s")
            await deck.reach(S.READY)
            assert not question.is_active
            assert (await deck.call("echo", text="hi")).display == "hi"
            notices = [notice.text for notice in deck.store.state.notices]
            assert any("Signed in to events" in text for text in notices), notices
            assert FIXTURE_SECRET not in deck.pilot.app.export_screenshot()
        verifiers += [form["code_verifier"] for form in authority.forms]
        authority.tokens.clear()
        async with signing_in(server, world.home, browser) as deck:
            await deck.reach(S.READY)
            assert (await deck.call("echo", text="again")).display == "again"
            assert len(opened) == 1
            assert len(authority.refreshes()) == 1
            deck.pilot.app.screen_stack[0].query_one(ServersTree).focus()
            await deck.pilot.pause()
            await deck.pilot.press("A")
            await deck.reach(S.NEEDS_SIGN_IN)
            assert len(authority.revoked) == 2, "signing out is a key too"
    written = [path for path in world.state.rglob("*") if path.is_file()]
    assert any(path.name == "gemdeck.log" for path in written)
    secrets = [*verifiers, *(form["code"] for form in authority.forms if "code" in form)]
    secrets += [asked["state"] for asked in authority.asked]
    for path in written:
        content = path.read_text(errors="replace")
        assert not any(secret in content for secret in secrets), path


@pytest.mark.writes_secrets("sign-ins.json")
async def test_without_a_browser_the_address_is_pasted(world: World) -> None:
    ends: list[str] = []

    async def elsewhere(url: str) -> bool:
        ends.append((await walk_through(url, comes_back=False)).headers["location"])
        return False

    async with guarded() as server, signing_in(server, world.home, elsewhere) as deck:
        await deck.reach(S.NEEDS_SIGN_IN)
        question = await deck.sign_in()
        await deck.pilot.press("ctrl+s")
        await deck.until(lambda: question.query_one(Input).has_focus and question.armed)
        deck.pilot.app.post_message(events.Paste(ends[0]))
        await deck.until(lambda: question.query_one(Input).value)
        await deck.pilot.press("enter")
        await deck.reach(S.READY)
