"""The page of a server: over real servers and an engine, and what its keys do."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from textual.widgets import Sparkline

from tests.cli.running import library
from tests.servers.sample import server as sample
from tests.servers.web import serving
from tests.support.node import node_server
from tests.ui.engine_deck import EngineDeck, engine_deck
from tests.ui.harness import running, ticking
from tests.ui.shell import decks
from tui.model.servers import ServerId, ServerInfo, ServerStatus
from tui.store.selectors import server as find_server
from tui.ui.dialogs.list_dialog import ListDialog
from tui.ui.dialogs.server_page import ServerPage
from tui.ui.dialogs.tool_run import ToolFormScreen
from tui.ui.messages import PaneName, ShowServer
from tui.ui.panes.activity import ActivityPane
from tui.ui.panes.servers_tree import ServersTree
from tui.ui.panes.side import SidePane
from tui.ui.questions.address import LinkScreen

EVERYTHING, SHELF, WEB = ServerId("everything"), ServerId("shelf"), ServerId("web")


class Paging(EngineDeck):
    """The app, and the page of a server on it."""

    @property
    def page(self) -> str:
        """All that the page says, in view or not."""
        assert isinstance(self.app.screen, ServerPage)
        return f"{self.app.screen.facts.content}\n{self.app.screen.rest.content}"

    async def shows(self, *words: str) -> None:
        try:
            await self.until(lambda: all(word in self.page for word in words))
        except TimeoutError:
            raise AssertionError(self.page) from None

    async def open(self, server: ServerId) -> None:
        self.app.deck.post_message(ShowServer(server))
        await self.come(ServerPage)


@asynccontextmanager
async def paging(**servers: object) -> AsyncIterator[Paging]:
    """Run servers of the user's settings, one of which is called over HTTP."""
    async with serving(sample.streamable_http_app()) as base:
        entries = {**servers, "web": {"httpUrl": f"{base}/mcp"}}
        settings = json.dumps({"mcpServers": entries}, indent=1)
        trusted = (Path.home() / "shop",)
        async with engine_deck(
            Paging, settings, attended=False, needs_model=False, trusted_folders=trusted
        ) as deck:
            await deck.until(lambda: deck.app.query(ServersTree))
            yield deck


async def test_a_page_tells_how_a_real_server_does_and_restarts_it() -> None:
    command, arguments = node_server("everything", "stdio")
    entry = {"command": command, "args": arguments, "env": {"EXTRA_TOKEN": "fixture-token"}}
    async with paging(everything=entry) as deck:
        await deck.reaches(EVERYTHING, ServerStatus.READY)
        await deck.reaches(WEB, ServerStatus.READY)
        await deck.until(lambda: deck.app.deck.servers._clock is None)
        before = ticking()
        await deck.open(EVERYTHING)
        pid = deck.engine.servers.usage(EVERYTHING).pid
        await deck.shows(
            "● ready",
            f"process      {pid} · ",
            " MB\n",
            "Everything Reference Server · mcp-servers/everything 2.0.0",
            "2025-11-25 · handshake",
            "server can   completions, logging, prompts, resources, tasks, tools",
            "gemdeck can  elicitation, roots",
            "settings     ~/.gemini/settings.json, line 3",
            "set by its entry: EXTRA_TOKEN",
            "calls        0",
            "Instructions (not sent to the model)\n# Everything Server",
            "Latest log lines\nStarting default (STDIO) server...",
            "r restart    /mcp restart everything",
            "x disable    gemdeck mcp disable everything",
        )
        assert "fixture-token" not in deck.page
        assert "restarts" not in deck.page
        line = deck.app.screen.query_one(Sparkline)
        assert not line.display
        for number in range(3):
            message = {"message": f"call {number}"}
            await deck.engine.call_tool(EVERYTHING, "echo", message, by_user=True)
        await deck.shows("calls        3", "latency      median ")
        await deck.until(lambda: line.size.width == 3)
        assert (line.display, len(line.data or ())) == (True, 3)
        await deck.pilot.press("r")
        await deck.shows("restarts     1", "● ready", "calls        3")
        assert f"process      {pid} " not in deck.page
        assert "Changes" not in deck.page, "it offers the same"
        await deck.pilot.press("escape")
        await deck.until(lambda: deck.app.screen is deck.app.deck)
        await deck.until(lambda: ticking() == before)  # nothing is measured any more


async def test_a_page_tells_of_a_server_that_sleeps_and_opening_it_wakes_it() -> None:
    shelf = {**library(tools={"one": [], "two": []}), "start": "lazy"}
    async with paging(shelf=shelf) as deck:
        await deck.open(SHELF)
        await deck.shows("● ready")
        deck.engine._context.sleep_after = 0.2
        await deck.pilot.press("r")
        await deck.shows("◌ asleep", "asleep       for ", "tools        2", "library 1")
        await deck.shows("s start      /mcp start shelf", "r restart    /mcp restart shelf")
        deck.engine._context.sleep_after = 0
        await deck.pilot.press("escape")
        await deck.until(lambda: deck.app.screen is deck.app.deck)
        asleep = ["◌", "shelf", "asleep"]
        await deck.until(lambda: asleep in [line.split()[1:4] for line in deck.lines])
        await deck.until(lambda: "1 asleep" in deck.lines[0])
        await deck.open(SHELF)
        await deck.shows("● ready", "restarts     1")
        assert "Changes" not in deck.page, "it offers the same"


async def test_a_page_names_what_a_restart_changed_and_shows_a_server_over_http() -> None:
    shelf = library(tools={"one": [], "two": []}, info={"title": "Shelf"})
    async with paging(shelf=shelf) as deck:
        await deck.reaches(SHELF, ServerStatus.READY)
        await deck.open(SHELF)
        await deck.shows("Shelf · library 1", "● ready")
        library(tools={"one": [], "[b]three": []})
        await deck.pilot.press("r")
        await deck.shows("Changes\ngained 1     tool [b]three\nlost 1       tool two")
        await deck.pilot.press("x")
        await deck.shows("○ disabled", "x enable     gemdeck mcp enable shelf")
        assert "/mcp restart" not in deck.page, "only what has an effect is listed"
        await deck.pilot.press("escape")
        await deck.reaches(WEB, ServerStatus.READY)
        await deck.open(WEB)
        await deck.shows("transport    http", "sample 1.2.3", "2026-07-28 · stateless")
        assert "\nprocess " not in deck.page
        await deck.engine.call_tool(WEB, "add", {"a": 2, "b": 3}, by_user=True)
        await deck.shows("calls        1")


async def test_the_page_of_a_failed_server_begins_with_the_problem_and_has_no_zeros() -> None:
    told = "raise ValueError('SHOP_URL is not set')"
    shelf = {"command": sys.executable, "args": ["-c", told], "env": {"EXTRA_TOKEN": "fixture"}}
    async with paging(shelf=shelf) as deck:
        await deck.open(SHELF)
        parts = (
            *(
                "exited with code 1",
                ": ValueError: SHOP_URL is not set\nSee its log",
                "stderr\nTraceback",
                "\nstatus  ",
                "\ncommand  ",
                "\ntimeout  ",
                "\nsettings  ",
            ),
            *("Environment\npassed: ", "Keys and their commands"),
        )
        await deck.shows(*parts)
        page = deck.page
        assert page.startswith(parts[0])
        places = [page.index(part) for part in parts]
        assert places == sorted(places)
        for name in ("calls", "context", "tools", "prompts", "resources", "restarts"):
            assert f"\n{name}  " not in page, "it has never been ready"


INFO = ServerInfo("git", "1", "2025-11-25", website="https://git.example/[b]")


async def test_the_keys_of_a_page_lead_to_what_a_server_offers_its_log_and_its_website() -> None:
    async with running(decks.full_store()) as deck:
        git = find_server(deck.store.state, decks.GIT)
        assert git is not None
        decks.configure(deck.store, replace(git, info=INFO))
        for key, pane in (("f3", PaneName.TOOLS), ("f5", PaneName.RESOURCES)):
            deck.app.deck.post_message(ShowServer(decks.GIT))
            await deck.until(lambda: deck.on_top(ServerPage))
            await deck.press(key)
            assert deck.app.screen is deck.app.deck
            assert deck.one(SidePane).active is pane
        deck.app.deck.post_message(ShowServer(decks.GIT))
        await deck.until(lambda: deck.on_top(ServerPage))
        await deck.press("o")
        question = await deck.come(LinkScreen)
        assert "https://git.example/[b]" in deck.text
        assert deck.asked("features.open_link") == []
        await deck.until(lambda: question.armed)
        await deck.press("escape")
        await deck.until(lambda: deck.on_top(ServerPage))
        await deck.press("c")
        assert deck.on_top(ListDialog)
        await deck.press("enter")
        assert deck.app.clipboard.startswith("status       ● ready\ncalls        0\n")
        assert "\nr restart    /mcp restart git\n" in deck.app.clipboard
        await deck.press("c", "down", "down", "enter")
        assert deck.app.clipboard == "/mcp restart git"
        await deck.press("enter", *"branch", "enter")
        await deck.until(lambda: deck.on_top(ToolFormScreen))
        assert "Run branch_list (git)" in deck.text
        await deck.press("escape")
        deck.app.deck.post_message(ShowServer(decks.GIT))
        await deck.until(lambda: deck.on_top(ServerPage))
        await deck.press("s", "x")
        assert deck.asked("servers.stop") == [(decks.GIT,)]
        assert deck.asked("servers.set_enabled") == [(decks.GIT, False)]
        await deck.press("l")
        assert deck.one(SidePane).active is PaneName.ACTIVITY
        assert {entry.owner for entry in deck.one(ActivityPane).view.entries} <= {"git"}


async def test_a_page_without_an_engine_and_of_a_server_that_is_gone_says_so() -> None:
    async with running(decks.full_store()) as deck:
        deck.commands.answers["servers.usage"] = None
        deck.app.deck.post_message(ShowServer(decks.GIT))
        await deck.until(lambda: deck.on_top(ServerPage))
        await deck.until(lambda: "calls        0" in deck.text)
        decks.configure(deck.store)
        await deck.until(lambda: "This server is no longer in the settings." in deck.text)
        await deck.press("r", "o")
        assert deck.on_top(ServerPage)
        assert deck.asked("servers.restart") == []
