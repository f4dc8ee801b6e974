"""What the audit log says of decisions and calls, over a whole engine."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import World
from tests.fakes.gemini import FakeGemini
from tests.fakes.gemini_script import Call, Say
from tests.security.decks import Script, Turncoat, calling, deck, tool
from tests.unit.engine.servers.support import eventually
from tui.engine.consent.policy import Policy
from tui.model.consent import Choice, Effect, GrantScope
from tui.model.requests import ConfirmationRequest


@pytest.fixture
def shop(tmp_path: Path) -> Turncoat:
    server = Turncoat("shop", tmp_path)
    server.offer(tool("look"), tool("buy"))
    return server


def records(world: World) -> list[dict[str, Any]]:
    text = (world.state / "audit.jsonl").read_text(encoding="ascii")
    return [json.loads(line) for line in text.splitlines()]


async def test_decisions_and_calls_are_recorded_with_their_source(
    shop: Turncoat, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    script: Script = [
        [Call([("look", {"text": "1"})])],
        [Call([("look", {"text": "2"}), ("buy", {"text": "3"})])],
        [Say("done")],
    ]
    async with FakeGemini(script) as fake, deck(fake, monkeypatch, servers=[shop]) as running:
        running.engine.send("look")
        await running.decide(Choice.ALWAYS_TOOL, GrantScope.FOLDER)
        await eventually(lambda: len(running.raised(ConfirmationRequest)) == 2)
        await running.decide(Choice.DENY)
        await running.idle()
    found = records(world)
    decided = [(r["tool"], r["decision"], r["source"]) for r in found if r["event"] == "decision"]
    assert decided[0] == ("look", "allow", "you: always this tool, saved for this folder")
    assert sorted(decided[1:])[0] == ("buy", "deny", "you: deny")
    assert sorted(decided[1:])[1][2].startswith("you chose always this tool on")
    ended = [(r["tool"], r["outcome"]) for r in found if r["event"] == "call"]
    assert ended == [("look", "ok"), ("look", "ok")]
    assert all(len(r["fingerprint"]) == 64 and len(r["definition"]) == 64 for r in found)


async def test_a_saved_grant_holds_in_the_next_run_until_it_is_revoked(
    shop: Turncoat, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with FakeGemini(calling("look", 3)) as fake:
        async with deck(fake, monkeypatch, servers=[shop]) as running:
            running.engine.send("look")
            await running.decide(Choice.ALWAYS_TOOL, GrantScope.EVERYWHERE)
            await running.idle()
        async with deck(fake, monkeypatch, servers=[shop]) as running:
            await running.ask("look")
            assert running.explained("shop", "look").effect is Effect.ALLOW
            [view] = running.store.state.grants
            assert (view.server, view.tool, view.revocable) == ("shop", "look", True)
            running.engine.policy.revoke(view.id)
            assert running.store.state.grants == ()
        async with deck(fake, monkeypatch, servers=[shop]) as running:
            assert "no rule allows it" in running.explained("shop", "look").words
            running.engine.send("look")
            await running.decide(Choice.DENY)
            await running.idle()
    assert len(shop.calls) == 2


async def test_every_tool_can_be_explained(shop: Turncoat, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = {"name": "broken", "inputSchema": 5}
    shop.offer(tool("look"), tool("buy"), tool("hidden"), broken)
    entry = {**shop.entry, "trust": True, "excludeTools": ["hidden"]}
    settings = {
        "mcpServers": {"shop": entry},
        "gemdeck": {"alwaysDeny": [{"tool": "buy"}]},
    }
    async with (
        FakeGemini() as fake,
        deck(fake, monkeypatch, servers=[shop], settings=settings) as running,
    ):
        words = {name: running.explained("shop", name) for name in ("look", "buy", "hidden")}
        broken_words = running.explained("shop", "broken").words
        unknown = running.explained("shop", "nothing")
    assert words["look"].effect is Effect.ALLOW
    assert words["look"].words.startswith("Allowed: its server has trust: true in ")
    assert "gemdeck.alwaysDeny" in words["buy"].words
    assert "the settings leave it out" in words["hidden"].words
    assert "no input schema" in broken_words
    assert unknown.effect is Effect.DENY


async def test_yolo_stands_in_the_list_of_rules_and_asks_nobody(
    shop: Turncoat, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        FakeGemini(calling("look")) as fake,
        deck(fake, monkeypatch, servers=[shop], policy=Policy(allows_all=True)) as running,
    ):
        await running.ask("look")
        assert running.raised(ConfirmationRequest) == []
        assert [view.origin for view in running.store.state.grants] == ["--yolo"]
    assert len(shop.calls) == 1
