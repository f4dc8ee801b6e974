"""What is recorded of decisions, and calls beside the conversation: the same consent for both."""

import asyncio
import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import World
from tests.fakes.gemini import FakeGemini
from tests.fakes.gemini_script import Call, Say
from tests.security.decks import (
    Script,
    Turncoat,
    calling,
    deck,
    records,
    shop,
    tool,
)
from tests.support.definitions import define_server
from tests.unit.engine.chats.support import InProcessTools, make_policy, make_tool
from tests.unit.engine.mcp.support import eventually, find_tool
from tui.engine.approval.gate import Gate
from tui.engine.approval.inquiry import Denial, Inquiry, TurnRecord
from tui.engine.chats.calls import CallRunner
from tui.engine.desk import Desk
from tui.engine.engine import Engine, EngineOptions
from tui.engine.mcp.catalog.offered_tool import ToolCallError
from tui.engine.mcp.catalog.permit import Permit
from tui.model.chat import EntryId, ToolCallStatus
from tui.model.consent import Choice, Effect, GrantScope
from tui.model.requests import ConfirmationRequest, Reply, ReplyAction, ToolChangeRequest
from tui.model.servers import Origin, ServerId, ServerStatus, Transport

__all__ = ["shop"]

SHOP = ServerId("shop")


async def test_a_call_of_a_library_asks_and_one_of_a_user_not(shop: Turncoat, world: World) -> None:
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
        await running.engine.call_tool(SHOP, "buy", {"text": "b"}, by_user=True)
        assert len(running.raised(ConfirmationRequest)) == 2
    assert shop.calls == [("look", {"text": "a"}), ("buy", {"text": "b"})]
    decided, ended = records(world)[-2:]
    found = (decided["event"], decided["tool"], decided["decision"], decided["source"])
    assert found == ("decision", "buy", "allow", "you: composed this call")
    told = (ended["event"], ended["outcome"], ended["arguments"])
    assert told == ("call", "ok", decided["arguments"])


async def test_a_server_handed_in_by_a_library_is_not_trusted_by_its_own_word(
    shop: Turncoat, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, arguments = shop.entry["command"], tuple(shop.entry["args"])
    own = define_server(SHOP, Origin.USER, Transport.STDIO, command, arguments, trust=True)
    async with FakeGemini() as fake, deck(fake, monkeypatch, servers=[]) as running:
        running.engine.servers.configure((own,))
        await eventually(lambda: find_tool(running.engine.servers, "look"))
        calling = asyncio.create_task(running.engine.call_tool(SHOP, "look", {"text": "a"}))
        await running.decide(Choice.DENY)
        with pytest.raises(ToolCallError, match="Denied"):
            await calling
    assert shop.calls == []


def test_nothing_public_of_the_engine_leads_to_what_keeps_permissions(tmp_path: Path) -> None:
    found: list[object] = [Engine(EngineOptions(tmp_path))]
    shown = set()
    for thing in found:
        values = [getattr(thing, name) for name in dir(thing) if not name.startswith("_")]
        own = [value for value in values if type(value).__module__.startswith("tui.engine")]
        shown |= {type(value) for value in own if "approval" in type(value).__module__}
        found += [value for value in own if value not in found]
    # The policy shows and revokes rules; that it could allow as well is left to who calls it.
    assert {kind.__name__ for kind in shown} == {"ToolAccess", "Gate", "Policy", "ToolReview"}


async def test_a_rule_that_denies_beats_and_records_every_call(
    shop: Turncoat, world: World
) -> None:
    rules = {"gemdeck": {"alwaysDeny": [{"tool": "look"}]}}
    script: Script = [[Call([("look", {"text": "a"}), ("steal", {})])], [Say("done")]]
    async with shop.deck(script, settings=rules) as running:
        for by_user in (True, False):
            with pytest.raises(ToolCallError, match="alwaysDeny"):
                await running.engine.call_tool(SHOP, "look", {"text": "a"}, by_user=by_user)
        await running.ask("look")
    why = "a rule in the settings (gemdeck.alwaysDeny) denies it"
    names = ("event", "server", "tool", "decision", "source")
    found = [tuple(record[name] for name in names) for record in records(world)]
    assert found == [("decision", "shop", "look", "deny", why)] * 3
    assert all(len(r["fingerprint"]) == len(r["definition"]) == 64 for r in records(world))
    assert shop.calls == []


def is_recorded(world: World, decision: str) -> bool:
    """Tell whether this is the last decision in the audit log, which is written in a thread."""
    log = world.state / "audit.jsonl"
    return log.exists() and f'"{decision}"' in log.read_text("ascii").rstrip().rpartition("\n")[2]


async def test_a_changed_tool_waits_until_that_is_accepted(shop: Turncoat, world: World) -> None:
    async with shop.deck() as running:
        for word, answer in (
            ("refuse change", Reply(ReplyAction.DECLINE)),
            ("accept change", Reply(ReplyAction.ACCEPT)),
        ):
            shop.offer(tool("look", f"Does other things, to {word}."), tool("buy"))
            await running.restart("shop")
            for _ in range(2):
                with pytest.raises(ToolCallError, match="it has changed"):
                    await running.engine.call_tool(SHOP, "look", {"text": "a"})
            request = await running.pending(ToolChangeRequest)
            running.engine.desk.answer(request.id, answer)
            await eventually(partial(is_recorded, world, word))
            told = records(world)[-3:]
            found = [(one["event"], one["tool"], one["decision"]) for one in told]
            assert found == [*[("decision", "look", "deny")] * 2, ("rule", "look", word)]
            assert all(one["source"].startswith("it has changed") for one in told[:2])
            assert len(told[-1]["fingerprint"]) == len(told[-1]["definition"]) == 64
        rows: list[tuple[str, Any, str]] = [
            *(("buy", {"text": 5}, "do not match"), ("steal", {}, "does not offer it")),
            ("buy", [1], "must be an object"),
        ]
        for name, arguments, words in rows:
            with pytest.raises(ToolCallError, match=words):
                await running.engine.call_tool(SHOP, name, arguments, by_user=True)
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


async def test_decisions_and_calls_are_recorded_with_sources(shop: Turncoat, world: World) -> None:
    both = Call([("look", {"text": "2"}), ("buy", {"text": "3"})])
    script: Script = [[Call([("look", {"text": "1"})])], [both], [Say("done")]]
    async with shop.deck(script) as running:
        running.engine.send("look")
        await running.decide(Choice.ALWAYS_TOOL, GrantScope.FOLDER)
        await eventually(lambda: len(running.raised(ConfirmationRequest)) == 2)
        await running.decide(Choice.DENY)
        await running.idle()
    found = records(world)
    decided = [(r["tool"], r["decision"], r["source"]) for r in found if r["event"] == "decision"]
    assert decided[0] == ("look", "allow", "you: always this tool, saved for this folder")
    assert sorted(decided[1:])[0] == ("buy", "deny", "you: deny")
    assert sorted(decided[1:])[1][2].startswith("you chose always this tool, for")
    ended = [(r["tool"], r["outcome"]) for r in found if r["event"] == "call"]
    assert ended == [("look", "ok"), ("look", "ok")]
    assert all(len(r["fingerprint"]) == 64 and len(r["definition"]) == 64 for r in found)


async def test_a_question_that_ends_unanswered_is_recorded(shop: Turncoat, world: World) -> None:
    again = [Call([("look", {"text": "same"})])]
    buying = [Call([("buy", {"text": "1"})])]
    script: Script = [again, again, buying, again, [Say("done")], buying]
    async with shop.deck(script) as running:
        running.engine.send("look")
        await running.decide(Choice.DENY)
        await running.pending(ConfirmationRequest)
        running.engine.servers.stop(SHOP)
        await eventually(lambda: running.status("shop") is ServerStatus.STOPPED)
        await running.idle()
        running.engine.servers.start(SHOP)
        await eventually(lambda: running.status("shop") is ServerStatus.READY)
        running.engine.send("buy")
        await running.pending(ConfirmationRequest)
        running.engine.cancel_turn()
        await running.idle()
    assert shop.calls == []
    found = [(r["tool"], r["decision"], r["source"]) for r in records(world)]
    assert found == [
        ("look", "deny", "you: deny"),
        ("look", "deny", "you: denied the same call before"),
        ("buy", "withdrawn", "The server disconnected before you answered."),
        ("buy", "withdrawn", "the turn was stopped"),
    ]


async def test_a_saved_grant_holds_in_the_next_run_until_it_is_revoked(
    shop: Turncoat, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with FakeGemini(calling("look", 3)) as fake:
        async with deck(fake, monkeypatch, servers=[shop]) as running:
            await running.answered("look", Choice.ALWAYS_TOOL, GrantScope.EVERYWHERE)
        async with deck(fake, monkeypatch, servers=[shop]) as running:
            await running.ask("look")
            assert running.explained("shop", "look").effect is Effect.ALLOW
            [view] = running.store.state.grants
            assert (view.server, view.tool, view.revocable) == ("shop", "look", True)
            running.engine.access.policy.revoke(view.id)
            assert running.store.state.grants == ()
            assert "no rule allows it" in running.explained("shop", "look").words
            await running.answered("look", Choice.DENY)
    assert len(shop.calls) == 2
    [revoked] = [r for r in records(world) if r["event"] == "rule"]
    assert (revoked["server"], revoked["tool"], revoked["decision"]) == ("shop", "look", "revoke")


async def test_every_tool_can_be_explained(shop: Turncoat) -> None:
    broken = {"name": "broken", "inputSchema": 5}
    shop.offer(tool("look"), tool("buy"), tool("hidden"), broken)
    entry = {**shop.entry, "trust": True, "excludeTools": ["hidden"]}
    settings = {"mcpServers": {"shop": entry}, "gemdeck": {"alwaysDeny": [{"tool": "buy"}]}}
    async with shop.deck(settings=settings) as running:
        names = ("look", "buy", "hidden", "broken", "nothing")
        look, buy, hidden, odd, unknown = (running.explained("shop", name) for name in names)
    assert [look.effect, unknown.effect] == [Effect.ALLOW, Effect.DENY]
    for one, words in (
        *((look, "Allowed: its server has trust: true in "), (buy, "gemdeck.alwaysDeny")),
        *((hidden, "off in settings"), (odd, "not an object")),
    ):
        assert words in one.words
