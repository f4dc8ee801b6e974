"""Signing in to a server, on the real app over the real engine."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.conftest import World
from tests.servers.authority import GuardedServer, walk_through
from tests.servers.web import free_port
from tests.support.leaks import FIXTURE_SECRET
from tests.support.waiting import PATIENCE
from tests.ui.engine_deck import EngineDeck, engine_deck
from tests.unit.engine.sign_in.support import guarded
from tui.engine.logs.log_file import prepare_process
from tui.model.servers import ServerId
from tui.model.servers import ServerStatus as S
from tui.ui.panes.servers_tree import ServersTree
from tui.ui.questions.question import Question

EVENTS = ServerId("events")

pytestmark = [pytest.mark.slow]


class Deck(EngineDeck):
    """The app with one server that wants a sign-in."""

    async def echo(self, text: str) -> str:
        calling = self.engine.call_tool(EVENTS, "echo", {"text": text}, by_user=True)
        return (await asyncio.wait_for(calling, PATIENCE)).display

    async def press_in_the_tree(self, key: str) -> None:
        self.app.deck.query_one(ServersTree).focus()
        await self.pilot.pause()
        await self.pilot.press(key)

    async def question(self) -> Question[Any]:
        """Wait for a question that takes answers, and read it."""
        await self.until(lambda: getattr(self.app.screen, "armed", False))
        screen = self.app.screen
        assert isinstance(screen, Question)
        await self.pilot.press("end")
        await self.until(lambda: screen.reading.unread is None)
        return screen


@asynccontextmanager
async def signing_in(
    server: GuardedServer, browser: Callable[[str], Awaitable[bool]]
) -> AsyncIterator[Deck]:
    """Run with a server in the settings that wants a sign-in."""
    back = {"redirectUri": f"http://localhost:{free_port()}/oauth/callback"}
    settings = {"mcpServers": {"events": {"url": server.url, "type": "http", "oauth": back}}}
    redactor = prepare_process(verbose=True)
    async with engine_deck(
        Deck, settings, open_url=browser, redactor=redactor, needs_model=False
    ) as deck:
        yield deck


@pytest.mark.writes_secrets("sign-ins.json")
async def test_one_key_and_it_stays_signed_in_without_a_word_of_it_in_any_file(
    world: World,
) -> None:
    opened: list[str] = []

    async def browser(url: str) -> bool:
        opened.append(url)
        await walk_through(url)
        return True

    async with guarded() as server:
        authority = server.authority
        async with signing_in(server, browser) as deck:
            await deck.are(S.NEEDS_SIGN_IN)
            await deck.press_in_the_tree("t")
            await deck.until(lambda: deck.store.state.notices)
            [told] = deck.store.state.notices
            assert told.text == "gemdeck trust show"
            assert (await deck.question()).title_words() == "Do you trust this folder?"
            await deck.pilot.press("n")
            await deck.press_in_the_tree("a")
            question = await deck.question()
            assert "127.0.0.1" in deck.pilot.app.export_screenshot()
            assert not opened
            await deck.pilot.press("ctrl+s")
            await deck.are(S.READY)
            assert not question.is_active
            assert await deck.echo("hi") == "hi"
            notices = [notice.text for notice in deck.store.state.notices]
            assert any("Signed in to events" in text for text in notices), notices
            assert "gemdeck mcp auth events" in notices
            assert FIXTURE_SECRET not in deck.pilot.app.export_screenshot()
        secrets = [form["code_verifier"] for form in authority.forms]
        authority.tokens.clear()
        async with signing_in(server, browser) as deck:
            await deck.are(S.READY)
            assert await deck.echo("again") == "again"
            assert len(opened) == len(authority.refreshes()) == 1
            await deck.press_in_the_tree("A")
            await deck.are(S.NEEDS_SIGN_IN)
            assert len(authority.revoked) == 2, "signing out is a key too"
    written = [path for path in world.state.rglob("*") if path.is_file()]
    assert any(path.name == "gemdeck.log" for path in written)
    secrets += [form["code"] for form in authority.forms if "code" in form]
    secrets += [asked["state"] for asked in authority.asked]
    for path in written:
        content = path.read_text(errors="replace")
        assert not any(secret in content for secret in secrets), path
