"""Calls beside the conversation: the same consent as a call of the model, and no way around it."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from tests.conftest import World
from tests.fakes.gemini import KEY, FakeGemini
from tests.fakes.gemini_script import Call, Say
from tests.security.decks import Script, Turncoat, deck, records, shop, tool, write_settings
from tests.unit.engine.chats.support import InProcessTools, make_policy, make_tool
from tests.unit.engine.mcp.support import eventually, find_tool
from tui.engine.approval.gate import Gate
from tui.engine.approval.inquiry import Denial, Inquiry, TurnRecord
from tui.engine.chats.calls import CallRunner
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.desk import Desk
from tui.engine.engine import Engine, EngineOptions
from tui.engine.mcp.catalog.offered_tool import JsonObject, Permit, ToolCallError
from tui.model.chat import EntryId, ToolCallStatus
from tui.model.consent import Choice
from tui.model.requests import ConfirmationRequest
from tui.model.servers import Origin, ServerId, Transport

__all__ = ["shop"]

SHOP = ServerId("shop")


async def test_a_call_of_a_library_asks_like_a_call_of_the_model(shop: Turncoat) -> None:
    async with shop.deck() as running:
        for choice in (Choice.DENY, Choice.ONCE):
            calling = asyncio.create_task(running.engine.call_tool(SHOP, "look", {"text": "a"}))
            asked = await running.decide(choice)
            assert (asked.tool, json.loads(asked.arguments)) == ("look", {"text": "a"})
            if choice is Choice.DENY:
                with pytest.raises(ToolCallError, match="Denied"):
                    await calling
        assert not (await calling).is_error
        assert [call.status for call in running.calls] == [ToolCallStatus.DENIED, ToolCallStatus.OK]
    assert shop.calls == [("look", {"text": "a"})]


async def test_a_server_handed_in_by_a_library_is_not_trusted_by_its_own_word(
    shop: Turncoat, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, arguments = shop.entry["command"], tuple(shop.entry["args"])
    own = ServerDefinition(SHOP, Origin.USER, Transport.STDIO, command, arguments, trust=True)
    async with FakeGemini() as fake, deck(fake, monkeypatch, servers=[]) as running:
        running.engine.servers.configure((own,))
        await eventually(lambda: find_tool(running.engine.servers, "look"))
        calling = asyncio.create_task(running.engine.call_tool(SHOP, "look", {"text": "a"}))
        await running.decide(Choice.DENY)
        with pytest.raises(ToolCallError, match="Denied"):
            await calling
    assert shop.calls == []


def test_nothing_public_of_the_engine_leads_to_what_gives_permissions(tmp_path: Path) -> None:
    found: list[object] = [Engine(EngineOptions(tmp_path))]
    for thing in found:
        values = [getattr(thing, name) for name in dir(thing) if not name.startswith("_")]
        own = [value for value in values if type(value).__module__.startswith("tui.engine")]
        assert [value for value in own if "consent" in type(value).__module__] == []
        found += [value for value in own if value not in found]
    assert len(found) > 3


async def test_without_a_user_a_call_of_a_library_is_denied(
    shop: Turncoat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    write_settings({"mcpServers": {"shop": shop.entry}})
    (folder := tmp_path / "opened").mkdir()  # its files do not stand among the arguments
    options = EngineOptions(folder, follow_settings=False)
    async with Engine(options, lambda _: None) as engine:
        await engine.start()
        await eventually(lambda: find_tool(engine.servers, "look"))
        with pytest.raises(ToolCallError, match="no user to ask"):
            await engine.call_tool(SHOP, "look", {"text": "a"})
    assert shop.calls == []


async def test_a_call_that_the_user_composed_runs_unasked_and_is_recorded(
    shop: Turncoat, world: World
) -> None:
    async with shop.deck() as running:
        await running.engine.call_tool(SHOP, "look", {"text": "a"}, by_user=True)
        assert running.raised(ConfirmationRequest) == []
    assert shop.calls == [("look", {"text": "a"})]
    decided, ended = records(world)
    assert (decided["event"], decided["tool"], decided["decision"], decided["source"]) == (
        "decision",
        "look",
        "allow",
        "you: composed this call",
    )
    assert (ended["event"], ended["outcome"]) == ("call", "ok")
    assert ended["arguments"] == decided["arguments"]


@pytest.mark.parametrize("by_user", [True, False])
async def test_a_rule_that_denies_beats_a_call_that_the_user_composed(
    shop: Turncoat, *, by_user: bool
) -> None:
    rules = {"gemdeck": {"alwaysDeny": [{"tool": "look"}]}}
    async with shop.deck(settings=rules) as running:
        with pytest.raises(ToolCallError, match="alwaysDeny"):
            await running.engine.call_tool(SHOP, "look", {"text": "a"}, by_user=by_user)
    assert shop.calls == []


@pytest.mark.parametrize("by_user", [True, False])
async def test_a_call_of_a_tool_that_a_rule_hides_is_recorded(
    shop: Turncoat, world: World, *, by_user: bool
) -> None:
    rules = {"gemdeck": {"alwaysDeny": [{"tool": "look"}]}}
    script: Script = [[Call([("look", {"text": "a"}), ("steal", {})])], [Say("done")]]
    async with shop.deck(script, settings=rules) as running:
        if by_user:
            with pytest.raises(ToolCallError, match="alwaysDeny"):
                await running.engine.call_tool(SHOP, "look", {"text": "a"}, by_user=True)
        else:
            running.engine.send("look")
            await running.idle()
    [record] = records(world)
    assert (record["event"], record["server"], record["tool"]) == ("decision", "shop", "look")
    assert record["decision"] == "deny"
    assert record["source"] == "a rule in the settings (gemdeck.alwaysDeny) denies it"
    assert len(record["fingerprint"]) == len(record["definition"]) == 64
    assert shop.calls == []


async def test_a_call_of_a_tool_that_changed_is_recorded(shop: Turncoat, world: World) -> None:
    async with shop.deck() as running:
        shop.offer(tool("look", "Does other things."), tool("buy"))
        await running.restart("shop")
        with pytest.raises(ToolCallError, match="it has changed"):
            await running.engine.call_tool(SHOP, "look", {"text": "a"})
    [record] = [found for found in records(world) if found["event"] == "decision"]
    assert (record["tool"], record["decision"]) == ("look", "deny")
    assert record["source"].startswith("it has changed")


async def test_a_changed_tool_is_not_called_for_the_user_either(shop: Turncoat) -> None:
    async with shop.deck() as running:
        shop.offer(tool("look", "Does other things."), tool("buy"))
        await running.restart("shop")
        with pytest.raises(ToolCallError, match="it has changed"):
            await running.engine.call_tool(SHOP, "look", {"text": "a"}, by_user=True)
        with pytest.raises(ToolCallError, match="do not fit"):
            await running.engine.call_tool(SHOP, "buy", {"text": 5}, by_user=True)
        with pytest.raises(ToolCallError, match="does not offer it"):
            await running.engine.call_tool(SHOP, "steal", {}, by_user=True)
        odd = cast("JsonObject", [1])
        with pytest.raises(ToolCallError, match="must be an object"):
            await running.engine.call_tool(SHOP, "buy", odd, by_user=True)
    assert shop.calls == []


async def test_what_a_caller_changes_while_the_user_decides_is_not_sent() -> None:
    tools = InProcessTools([replace(make_tool("go"), schema={"type": "object"})])
    arguments: dict[str, Any] = {"other": {"path": "/tmp"}}

    class Slow(Gate):
        async def decide(self, inquiry: Inquiry) -> Permit | Denial:
            arguments["other"]["path"] = "/etc"
            assert '"/tmp"' in inquiry.shown
            return await super().decide(inquiry)

    gate = Slow(Desk(lambda _: None), lambda _: None, make_policy(allows_all=True))
    runner = CallRunner(tools, gate, lambda _: None, TurnRecord())
    await runner.run_alone(tools.tools[0], arguments, EntryId("c1"), by_user=True)
    assert tools.called == [("go", {"other": {"path": "/tmp"}})]
