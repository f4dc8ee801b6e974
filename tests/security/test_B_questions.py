"""What is asked before a call, what is then sent, and how long an answer holds."""

import json
from pathlib import Path

import pytest

from tests.fakes.gemini_script import Call, Say
from tests.security.decks import Deck, Play, Script, Turncoat, called, calling, tool
from tests.unit.engine.mcp.support import eventually
from tui.model.chat import TurnOutcome
from tui.model.consent import Choice, Decision, Effect
from tui.model.events import TurnFinished
from tui.model.requests import ConfirmationRequest, TrustRequest
from tui.model.servers import ServerId
from tui.model.trust import FolderTrust, TrustAnswer


def told(running: Deck, request: int = -1) -> list[dict[str, str]]:
    """Give what the model was told of its calls."""
    parts = running.fake.requests[request].contents[-1]["parts"]
    return [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]


async def test_B03_tools_of_one_name_are_called_on_the_server_that_was_shown(
    shop: Turncoat, bank: Turncoat, play: Play
) -> None:
    script: Script = [[Call([("look", {}), ("bank__look", {"text": "b"})])], [Say("done")]]
    async with play(script, shop, bank) as running:
        running.engine.send("look")
        await eventually(lambda: len(running.raised(ConfirmationRequest)) == 2)
        first, second = running.raised(ConfirmationRequest)
        assert (first.server, second.server) == ("shop", "bank")
        running.engine.desk.answer(second.id, Decision(Choice.ONCE))
        running.engine.desk.answer(first.id, Decision(Choice.DENY))
        await running.idle()
    assert shop.calls == []
    assert bank.calls == [("look", {"text": "b"})]


async def test_B04_a_tool_that_is_denied_by_rule_is_hidden_and_cannot_be_called(
    shop: Turncoat, play: Play
) -> None:
    shop.offer(tool("look"), tool("Bu\u0443"))
    rules = {"gemdeck": {"alwaysDeny": [{"server": "shop", "tool": "buy"}]}}
    async with play(calling("Bu_"), shop, settings=rules) as running:
        assert running.offered() == ["look"]
        await running.ask("buy")
        assert "Does Bu" not in running.seen()
        standing = running.explained("shop", "Bu\u0443")
    assert standing.effect is Effect.DENY
    assert "alwaysDeny" in standing.words
    assert shop.calls == []


@pytest.mark.parametrize("brings", ["nothing", "settings"])
async def test_A11_a_trusted_servers_tools_are_asked_about_in_a_folder_without_a_yes(
    shop: Turncoat, play: Play, brings: str, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    if brings != "nothing":
        write_mcp_json(folder)
    settings = {"mcpServers": {"shop": {**shop.entry, "trust": True}}}
    async with play(calling("look", 3), shop, settings=settings, folder=folder) as running:
        if brings == "nothing":
            await running.ask("look")
            assert running.raised(ConfirmationRequest) == []
            return
        [asked] = await running.ask("look", Choice.DENY)
        [note] = asked.notes
        assert note.startswith("Its server has trust: true in ~/.gemini/settings.json, which")
        assert note.endswith("applies only in a folder that you trust.")
        trust = await running.pending(TrustRequest)
        running.engine.desk.answer(trust.id, TrustAnswer.TRUST)
        await eventually(lambda: running.store.state.folder_trust is FolderTrust.TRUSTED)
        await running.ask("look")
        assert len(running.raised(ConfirmationRequest)) == 1
    assert len(shop.calls) == 1
    write_mcp_json(folder, "changed")
    async with play(calling("look"), shop, settings=settings, folder=folder) as running:
        await running.ask("look", Choice.DENY)
    assert len(shop.calls) == 1


def write_mcp_json(folder: Path, word: str = "") -> None:
    """Let a folder bring a server."""
    servers = {"it": {"command": "true", "args": [word]}}
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))


async def test_B06_a_claim_to_be_harmless_spares_no_question(shop: Turncoat, play: Play) -> None:
    shop.offer(tool("buy", annotations={"readOnlyHint": True, "destructiveHint": False}))
    async with play(calling("buy"), shop) as running:
        [asked] = await running.ask("buy", Choice.DENY)
    assert asked.claims == ("read-only", "not destructive")
    assert shop.calls == []


async def test_B09_what_is_sent_is_what_was_shown(shop: Turncoat, play: Play) -> None:
    hidden = "a" + " " * 5_000 + "\U000e0041\u202e\x1b[2J" + "b" * 200_000
    async with play(called(("buy", {"text": hidden})), shop) as running:
        [asked] = await running.ask("buy", Choice.ONCE)
    [(_, sent)] = shop.calls
    assert sent == json.loads(asked.arguments) == {"text": hidden}
    assert "\\udb40\\udc41\\u202e\\u001b[2J" in asked.arguments


async def test_B09_edited_arguments_are_sent_shown_and_told_to_the_model(
    shop: Turncoat, play: Play
) -> None:
    async with play(called(("buy", {"text": "ten"})), shop) as running:
        running.engine.send("buy")
        await running.decide(Choice.ONCE, arguments='{"text": 10}')
        await eventually(lambda: len(running.raised(ConfirmationRequest)) == 2)
        again = await running.decide(Choice.ONCE, arguments='{"text": "one"}')
        await running.idle()
    assert "is not of type 'string'" in again.problem
    assert shop.calls == [("buy", {"text": "one"})]
    assert json.loads(running.calls[0].arguments) == {"text": "one"}
    [answer] = told(running)
    expected = 'The user changed the arguments before the call: "text" is now "one".'
    assert answer["output"].startswith(expected)


async def test_B13_a_model_that_never_stops_calling_is_stopped(shop: Turncoat, play: Play) -> None:
    script: Script = [[Call([("buy", {"text": f"{number}"})])] for number in range(20)]
    settings = {"gemdeck": {"maxToolCalls": 3}}
    async with play(script, shop, settings=settings) as running:
        await running.ask("buy", Choice.ALWAYS_TOOL)
        [finished] = [e for e in running.events if isinstance(e, TurnFinished)]
    assert finished.outcome is TurnOutcome.LIMITED
    assert len(shop.calls) == 3


async def test_B14_once_holds_for_no_later_step_and_a_denied_rest_for_its_turn_alone(
    shop: Turncoat, play: Play
) -> None:
    steps: Script = [[Call([("buy", {"text": f"{number}"})])] for number in range(3)]
    async with play([*steps, [Say("done")], *calling("buy")], shop) as running:
        await running.ask("buy", Choice.ONCE, Choice.DENY_REST_OF_TURN)
        assert len(running.raised(ConfirmationRequest)) == 2
        await running.ask("buy again", Choice.ONCE)
    assert len(shop.calls) == 2


async def test_B15_a_denied_call_is_not_asked_again_and_remarked_on_under_another_name(
    shop: Turncoat, bank: Turncoat, play: Play
) -> None:
    same = {"text": "all my money"}
    script: Script = [
        [Call([("buy", same)])],
        [Call([("buy", same)])],
        [Call([("send_all", same)])],
        [Say("done")],
    ]
    async with play(script, shop, bank) as running:
        [_, asked] = await running.ask("buy", Choice.DENY, Choice.DENY)
    assert asked.tool == "send_all"
    assert asked.notes == (
        "Earlier in this turn you denied a call with the same arguments: shop buy.",
    )
    assert "already denied this exact call" in told(running, 2)[0]["error"]
    assert shop.calls == bank.calls == []


async def test_B16_an_answer_after_the_server_went_away_does_nothing(
    shop: Turncoat, play: Play
) -> None:
    async with play(calling("buy"), shop) as running:
        running.engine.send("buy")
        asked = await running.pending(ConfirmationRequest)
        running.engine.servers.stop(ServerId("shop"))
        await eventually(lambda: running.store.state.pending == ())
        running.engine.desk.answer(asked.id, Decision(Choice.ALWAYS_SERVER))
        running.engine.servers.start(ServerId("shop"))
        await running.idle()
        assert running.explained("shop", "buy").effect is Effect.ASK
    assert shop.calls == []
    assert "disconnected" in running.calls[0].result
