"""What the audit log says of decisions and calls, over a whole engine."""

import pytest

from tests.conftest import World
from tests.fakes.gemini import FakeGemini
from tests.fakes.gemini_script import Call, Say
from tests.security.decks import Script, Turncoat, calling, deck, records, shop, tool
from tests.unit.engine.mcp.support import eventually
from tui.model.consent import Choice, Effect, GrantScope
from tui.model.requests import ConfirmationRequest
from tui.model.servers import ServerId, ServerStatus
from tui.model.trust import ToolChangeAnswer, ToolChangeRequest

__all__ = ["shop"]


async def test_decisions_and_calls_are_recorded_with_their_source(
    shop: Turncoat, world: World
) -> None:
    script: Script = [
        [Call([("look", {"text": "1"})])],
        [Call([("look", {"text": "2"}), ("buy", {"text": "3"})])],
        [Say("done")],
    ]
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
    assert sorted(decided[1:])[1][2].startswith("you chose always this tool on")
    ended = [(r["tool"], r["outcome"]) for r in found if r["event"] == "call"]
    assert ended == [("look", "ok"), ("look", "ok")]
    assert all(len(r["fingerprint"]) == 64 and len(r["definition"]) == 64 for r in found)


async def test_a_question_that_ends_without_an_answer_is_recorded_too(
    shop: Turncoat, world: World
) -> None:
    again = [Call([("look", {"text": "same"})])]
    script: Script = [again, again, [Call([("buy", {"text": "1"})])], again, [Say("done")]]
    async with shop.deck(script) as running:
        running.engine.send("look")
        await running.decide(Choice.DENY)
        await running.pending(ConfirmationRequest)
        running.engine.servers.stop(ServerId("shop"))
        await eventually(lambda: running.status("shop") is ServerStatus.STOPPED)
        await running.idle()
        running.engine.servers.start(ServerId("shop"))
        await eventually(lambda: running.status("shop") is ServerStatus.READY)
    assert shop.calls == []
    found = [(r["tool"], r["decision"], r["source"]) for r in records(world)]
    assert found == [
        ("look", "deny", "you: deny"),
        ("look", "deny", "you: denied the same call before"),
        ("buy", "withdrawn", "The server disconnected before you answered."),
    ]


async def test_a_stopped_turn_leaves_a_record_of_what_was_asked(
    shop: Turncoat, world: World
) -> None:
    async with shop.deck(calling("look")) as running:
        running.engine.send("look")
        await running.pending(ConfirmationRequest)
        running.engine.cancel_turn()
        await running.idle()
    assert [(r["decision"], r["source"]) for r in records(world)] == [
        ("withdrawn", "the turn was stopped")
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
        async with deck(fake, monkeypatch, servers=[shop]) as running:
            assert "no rule allows it" in running.explained("shop", "look").words
            await running.answered("look", Choice.DENY)
    assert len(shop.calls) == 2
    [revoked] = [r for r in records(world) if r["event"] == "rule"]
    assert (revoked["server"], revoked["tool"], revoked["decision"]) == ("shop", "look", "revoke")


@pytest.mark.parametrize("accept", [True, False])
async def test_an_answer_about_a_changed_tool_is_recorded(
    shop: Turncoat, world: World, *, accept: bool
) -> None:
    async with shop.deck() as running:
        shop.offer(tool("look", "Does other things."), tool("buy"))
        await running.restart("shop")
        request = await running.pending(ToolChangeRequest)
        answer = ToolChangeAnswer.ACCEPT if accept else ToolChangeAnswer.KEEP_AWAY
        running.engine.desk.answer(request.id, answer)
        await eventually(lambda: not running.store.state.pending)
    [record] = records(world)
    word = "accept change" if accept else "refuse change"
    assert (record["event"], record["tool"], record["decision"]) == ("rule", "look", word)
    assert len(record["fingerprint"]) == len(record["definition"]) == 64


async def test_every_tool_can_be_explained(shop: Turncoat) -> None:
    broken = {"name": "broken", "inputSchema": 5}
    shop.offer(tool("look"), tool("buy"), tool("hidden"), broken)
    entry = {**shop.entry, "trust": True, "excludeTools": ["hidden"]}
    settings = {
        "mcpServers": {"shop": entry},
        "gemdeck": {"alwaysDeny": [{"tool": "buy"}]},
    }
    async with shop.deck(settings=settings) as running:
        words = {name: running.explained("shop", name) for name in ("look", "buy", "hidden")}
        broken_words = running.explained("shop", "broken").words
        unknown = running.explained("shop", "nothing")
    assert words["look"].effect is Effect.ALLOW
    assert words["look"].words.startswith("Allowed: its server has trust: true in ")
    assert "gemdeck.alwaysDeny" in words["buy"].words
    assert "the settings leave it out" in words["hidden"].words
    assert "no input schema" in broken_words
    assert unknown.effect is Effect.DENY


async def test_yolo_stands_in_the_list_of_rules_and_asks_nobody(shop: Turncoat) -> None:
    async with shop.deck(calling("look"), allows_all=True) as running:
        await running.ask("look")
        assert running.raised(ConfirmationRequest) == []
        assert [view.origin for view in running.store.state.grants] == ["--yolo"]
    assert len(shop.calls) == 1
