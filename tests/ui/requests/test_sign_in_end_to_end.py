"""Signing in from the screen: the key, the question, the browser, and a restart without either."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from textual import events
from textual.pilot import Pilot
from textual.widgets import Input

from tests.conftest import World
from tests.servers.authority import GuardedServer, walk_through
from tests.servers.web import free_port
from tests.support.leaks import FIXTURE_SECRET
from tests.support.waiting import PATIENCE
from tests.ui.harness import until
from tests.unit.engine.sign_in.support import guarded
from tui.engine.bus import EventBus
from tui.engine.engine import Engine, EngineOptions
from tui.engine.logs.log_file import prepare_process
from tui.model.servers import ServerId
from tui.model.servers import ServerStatus as S
from tui.store.commands import Commands
from tui.store.state import AppState
from tui.store.store import Store
from tui.ui.app import GemdeckApp
from tui.ui.panes.servers_tree import ServersTree
from tui.ui.questions.sign_in import SignInQuestion
from tui.ui.themes import UiPreferences

SERVER = ServerId("events")

pytestmark = [pytest.mark.slow, pytest.mark.writes_secrets("sign-ins.json")]


@dataclass
class Screen:
    """The real app over the real engine, with one server that wants a sign-in."""

    engine: Engine
    store: Store
    pilot: Pilot[int]

    async def reach(self, status: S) -> None:
        await until(
            self.pilot, lambda: [view.status for view in self.store.state.servers] == [status]
        )

    async def question(self) -> SignInQuestion:
        """Press the key, and wait until the question takes answers."""
        app = self.pilot.app
        tree = app.screen_stack[0].query_one(ServersTree)
        tree.focus()
        await self.pilot.pause()
        await self.pilot.press("a")
        await until(self.pilot, lambda: isinstance(app.screen, SignInQuestion) and app.screen.armed)
        assert isinstance(app.screen, SignInQuestion)
        await self.pilot.press("end")
        screen = app.screen
        await until(self.pilot, lambda: screen.reading.unread is None)
        return screen

    async def call(self, text: str) -> str:
        calling = self.engine.call_tool(SERVER, "echo", {"text": text}, by_user=True)
        return (await asyncio.wait_for(calling, PATIENCE)).display


@asynccontextmanager
async def gemdeck(
    server: GuardedServer, home: Path, browser: Callable[[str], Awaitable[object]]
) -> AsyncIterator[Screen]:
    entry = {
        "url": server.url,
        "type": "http",
        "oauth": {"redirectUri": f"http://localhost:{free_port()}/oauth/callback"},
    }
    settings = home / ".gemini" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps({"mcpServers": {"events": entry}}))
    workspace = home / "shop"
    workspace.mkdir(exist_ok=True)
    bus, store = EventBus(), Store(AppState(workspace="~/shop"))
    bus.subscribe(store.dispatch)

    async def open_url(url: str) -> bool:
        return await browser(url) is not False

    options = EngineOptions(workspace, follow_settings=False, attended=True, needs_model=False)
    redactor = prepare_process(verbose=True)
    async with Engine(options, bus.publish, open_url=open_url, redactor=redactor) as engine:
        commands = Commands(bus.publish)
        app = GemdeckApp(store, commands, preferences=UiPreferences())
        async with app.run_test(size=(120, 40)) as pilot:
            await engine.start()
            commands.attach(engine)
            yield Screen(engine, store, pilot)


async def test_one_key_and_it_stays_signed_in_without_a_word_of_it_in_any_file(
    world: World,
) -> None:
    opened: list[str] = []
    verifiers: list[str] = []

    async def browser(url: str) -> object:
        opened.append(url)
        return await walk_through(url)

    async with guarded() as server:
        async with gemdeck(server, world.home, browser) as screen:
            await screen.reach(S.NEEDS_SIGN_IN)
            question = await screen.question()
            shown = screen.pilot.app.export_screenshot()
            assert "127.0.0.1" in shown
            assert not opened
            await screen.pilot.press("ctrl+s")
            await screen.reach(S.READY)
            assert not question.is_active
            assert await screen.call("hi") == "hi"
            notices = [notice.text for notice in screen.store.state.notices]
            assert any("Signed in to events" in text for text in notices), notices
            assert FIXTURE_SECRET not in screen.pilot.app.export_screenshot()
        authority = server.authority
        verifiers += [form["code_verifier"] for form in authority.forms]
        authority.tokens.clear()
        async with gemdeck(server, world.home, browser) as screen:
            await screen.reach(S.READY)
            assert await screen.call("again") == "again"
        assert len(opened) == 1
        assert len(authority.refreshes()) == 1
    written = [path for path in world.state.rglob("*") if path.is_file()]
    assert any(path.name == "gemdeck.log" for path in written)
    secrets = [*verifiers, *(form["code"] for form in authority.forms if "code" in form)]
    secrets += [asked["state"] for asked in authority.asked]
    for path in written:
        content = path.read_text(errors="replace")
        assert not any(secret in content for secret in secrets), path


async def test_without_a_browser_the_address_is_pasted(world: World) -> None:
    ends: list[str] = []

    async def elsewhere(url: str) -> bool:
        ends.append((await walk_through(url, comes_back=False)).headers["location"])
        return False

    async with guarded() as server, gemdeck(server, world.home, elsewhere) as screen:
        await screen.reach(S.NEEDS_SIGN_IN)
        question = await screen.question()
        await screen.pilot.press("ctrl+s")
        await until(screen.pilot, lambda: question.query_one(Input).has_focus and question.armed)
        screen.pilot.app.post_message(events.Paste(ends[0]))
        await until(screen.pilot, lambda: question.query_one(Input).value)
        await screen.pilot.press("enter")
        await screen.reach(S.READY)


async def test_signing_out_is_a_key_too(world: World) -> None:
    async with guarded() as server, gemdeck(server, world.home, walk_through) as screen:
        await screen.reach(S.NEEDS_SIGN_IN)
        await screen.question()
        await screen.pilot.press("ctrl+s")
        await screen.reach(S.READY)
        screen.pilot.app.screen_stack[0].query_one(ServersTree).focus()
        await screen.pilot.pause()
        await screen.pilot.press("A")
        await screen.reach(S.NEEDS_SIGN_IN)
        assert len(server.authority.revoked) == 2
