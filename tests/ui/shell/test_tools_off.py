"""Tools that are switched off, and what they take: the app, the engine and real servers."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.conftest import World
from tests.fakes.gemini import Step
from tests.fakes.gemini_script import Call, Say
from tests.security.decks import Turncoat, records, tool
from tests.support.waiting import eventually
from tests.ui.engine_deck import EngineDeck, engine_deck
from tui.model.catalog import Off, ToolView
from tui.model.servers import ServerId, ServerStatus
from tui.ui.panes.browser import ToolsPane

SHOP, BANK = ServerId("shop"), ServerId("bank")
HOSTILE: Final = "[bold]${HOME}(all)"


@dataclass
class Shown(EngineDeck):
    """The app with two servers that have a tool of one name."""

    servers: Sequence[Turncoat] = ()

    def tool(self, server: ServerId, name: str) -> ToolView:
        [view] = [one for one in self.store.state.servers if one.id == server]
        return next(one for one in view.catalog.tools if one.name == name)

    async def press_at(self, server: ServerId, name: str, key: str, off: Off | None) -> None:
        """Press a key on a tool, and wait until it is off or on."""
        self.pane.entries.select((server, self.tool(server, name)))
        await self.pilot.press(key)
        await self.until(lambda: self.tool(server, name).off is off)
        await self.pilot.pause()

    @property
    def details(self) -> str:
        return str(self.pane.details.content)

    @property
    def pane(self) -> ToolsPane:
        return self.app.deck.query_one(ToolsPane)

    async def declared(self) -> list[str]:
        """Send a message, and name what was declared to the model with it."""
        before = len(self.fake.requests)
        self.engine.send("go")
        await self.engine.wait_idle()
        assert len(self.fake.requests) > before
        tools = self.fake.requests[before].body.get("tools", [{"functionDeclarations": []}])
        return [one["name"] for one in tools[0]["functionDeclarations"]]


@asynccontextmanager
async def shown(*steps: Step) -> AsyncIterator[Shown]:
    shop, bank = (Turncoat(name, Path.home()) for name in (SHOP, BANK))
    shop.offer(tool("look"), tool("buy", "Buys. " * 500), tool(HOSTILE))
    bank.offer(tool("look"), tool("send_all"))
    entry = json.dumps(shop.entry)[:-1]
    own = f'{{ // mine\n"mcpServers": {{"shop": {entry}, // theirs\n"timeout": 60000,}},'
    settings = f'{own}\n"bank": {json.dumps(bank.entry)}\n}}}}'
    steps = steps or ([Say("1")],)
    async with engine_deck(Shown, settings, *steps, follow_settings=True, allows_all=True) as made:
        made.servers = shop, bank
        await made.are(ServerStatus.READY, ServerStatus.READY)
        await made.press("f3")
        yield made


async def test_x_takes_a_tool_from_the_model_and_gives_it_back(world: World) -> None:
    steps: list[Step] = [
        [Say("1")],
        [Call([("look", {"text": "a"}), ("bank__look", {"text": "b"})])],
        *([Say("2")], [Say("3")], [Say("4")], [Say("5")]),
    ]
    async with shown(*steps) as deck:
        shop, bank = deck.servers
        whole = ["look", "buy", "_bold___HOME__all_", "bank__look", "send_all"]
        assert await deck.declared() == whole
        await deck.press_at(SHOP, "look", "x", Off.SESSION)
        assert "○ off" in deck.text
        assert "5 tools, 1 off" in deck.text
        assert "○ off for this session: hidden from the model" in deck.details
        assert await deck.declared() == whole[1:], "no other tool gets its name"
        parts = deck.fake.requests[2].contents[-1]["parts"]
        [refused, given] = [part["functionResponse"]["response"] for part in parts]
        assert refused == {"error": "The user switched this tool off."}
        assert "output" in given
        assert (shop.calls, bank.calls) == ([], [("look", {"text": "b"})])
        [record] = [one for one in records(world) if one.get("decision") == "deny"]
        assert (record["tool"], record["server"]) == ("look", "shop")
        run = deck.engine.runs.start(SHOP, "look", '{"text": "me"}')
        await eventually(lambda: deck.store.state.runs[run].call.status.is_over)
        assert shop.calls == [("look", {"text": "me"})], "by hand it still runs"
        for server in (SHOP, BANK):
            deck.engine.servers.restart(server)
        usage = deck.engine.servers.usage
        await deck.until(lambda: usage(SHOP).starts == usage(BANK).starts == 2)
        await deck.until(lambda: len(deck.engine.servers.offered_tools()) == 4)
        assert deck.tool(SHOP, "look").off is Off.SESSION, "a restart keeps it"
        await deck.press_at(SHOP, "look", "x", None)
        assert await deck.declared() == whole
        await deck.pilot.press("home", "x")
        await deck.until(lambda: deck.tool(SHOP, "buy").off and deck.tool(SHOP, HOSTILE).off)
        await deck.pilot.pause()
        assert "3 tools, 3 off" in deck.text
        assert await deck.declared() == whole[3:]
        await deck.pilot.press("X")
        await deck.pilot.pause()
        await deck.pilot.press("f2")
        await deck.until(lambda: "3 tools, 3 off" in deck.text)
        await deck.pilot.press("f3", "home", "x")
        await deck.until(lambda: deck.tool(SHOP, "buy").off is None)
        assert await deck.declared() == whole


async def test_a_call_that_was_made_before_the_tool_was_off_does_not_run() -> None:
    async with shown() as deck:

        def meanwhile(_: object) -> Sequence[Any]:
            deck.engine.servers.switch_tools(BANK, "look", off=True)
            return [Call([("bank__look", {"text": "b"})])]

        deck.fake.steps = [meanwhile, [Say("done")]]
        await deck.declared()
        [call] = deck.calls
        assert call.result == "The user switched this tool off."
        assert deck.servers[1].calls == []


async def test_capital_x_saves_it_with_comments_kept_and_says_the_command(home: Path) -> None:
    path = home / ".gemini" / "settings.json"
    async with shown([Say("1")], [Say("2")]) as deck:
        before = path.read_text()
        await deck.press_at(SHOP, "look", "X", Off.SETTINGS)
        added = '60000,\n      "excludeTools": [\n        "look"\n      ]\n    }'
        assert path.read_text() == before.replace("60000,}", added)
        told = [one.text for one in deck.store.state.notices]
        assert "gemdeck mcp disable shop.look" in told
        assert "look is off, in later sessions too: saved to ~/.gemini/settings.json." in told
        assert deck.engine.servers.usage(SHOP).starts == 1, "it was not started again"
        assert "look" not in await deck.declared()
        refused = deck.engine.runs.start(SHOP, "look", "{}")
        await eventually(lambda: deck.store.state.runs[refused].call.status.is_over)
        assert "off in settings" in deck.store.state.runs[refused].call.result
        await deck.until(lambda: "○ off" in deck.text)
        await deck.pilot.press("x")
        await deck.until(lambda: "Press X to turn" in deck.text)
        await deck.press_at(SHOP, "look", "X", None)
        assert deck.store.state.pending == (), "what the user does here needs no question"
        assert "look" in await deck.declared()
        assert "// theirs" in path.read_text()
        kept = path.read_text()
        await deck.press_at(SHOP, HOSTILE, "X", Off.SESSION)
        assert "for this session only" in deck.store.state.notices[-1].text
        assert path.read_text() == kept
        path.write_text(kept.replace('"timeout"', '"includeTools": ["look"], "timeout"'))
        await deck.until(lambda: deck.tool(SHOP, "buy").off is Off.SETTINGS)
        buy = SHOP, deck.tool(SHOP, "buy")
        await deck.until(lambda: buy in [entry.item for entry in deck.pane.entries.shown])
        deck.pane.entries.select(buy)
        await deck.pilot.pause()
        await deck.pilot.press("X")
        stays = "buy stays off: includeTools of shop does not list it."
        await deck.until(lambda: stays in {one.text for one in deck.store.state.notices})
        path.write_text(kept.replace('"bank"', '"bank2"'))
        await deck.until(lambda: "bank2" in {one.id for one in deck.store.state.servers})
        assert deck.tool(SHOP, HOSTILE).off is Off.SESSION, "a reload keeps it"


async def test_what_tools_take_is_counted_when_somebody_looks() -> None:
    async with shown() as deck:
        deck.fake.tokens = 73_400
        checks = len(deck.fake.checks)
        deck.pane.entries.select((SHOP, deck.tool(SHOP, "buy")))
        await deck.until(lambda: "definition  about 760 tokens, estimated" in deck.details)
        await deck.pilot.press("home")
        await deck.until(lambda: "tokens, estimated, including its" in deck.details)
        assert len(deck.fake.checks) == checks, "nothing is asked for it"
        await deck.pilot.press("f2", "enter")
        page = "73,400 tokens, counted by the service · uses 7 % of the context"
        await deck.until(lambda: page in deck.text)
        [asked] = deck.fake.checks[checks:]
        sent = asked.body["generateContentRequest"]
        names = [one["name"] for one in sent["tools"][0]["functionDeclarations"]]
        assert names == ["look", "buy", "_bold___HOME__all_"]
        assert "Hidden orders" in json.dumps(sent["systemInstruction"])
        await deck.pilot.press("escape", "f10")
        await deck.until(lambda: deck.text.count(" 73,400 ") == 2)
        assert len(deck.fake.checks) == checks + 2, "each once"
        await deck.pilot.press("escape")
        deck.fake.tokens = None
        deck.engine.servers.switch_tools(SHOP, "buy", off=True)
        await deck.pilot.press("f10")
        await deck.until(lambda: " ~50 " in deck.text)
        await deck.until(lambda: len(deck.fake.checks) == checks + 3)
