"""Other clients at an open deck: what they get, and that nobody gets another one's permissions."""

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import library
from tests.conftest import World
from tests.security.decks import READY, Deck, Script, Turncoat, calling, records, shop
from tests.support.waiting import eventually
from tests.unit.engine.mcp.support import FOLDER
from tui.engine.serving.callers import CallerBook
from tui.engine.serving.deck_socket import DeckLink, Hello, answering, find_deck
from tui.engine.serving.lending import answering_others
from tui.engine.serving.shared_servers import (
    MAX_FOLLOWED,
    MAX_LOGGED,
    RequestRefusedError,
    SharedServers,
)
from tui.engine.trust.folder_identity import identify
from tui.model.catalog import Catalog
from tui.model.chat import Severity
from tui.model.consent import Choice, GrantScope
from tui.model.events import CatalogChanged, LogLine, ServerLogged
from tui.model.requests import (
    ConfirmationRequest,
    FormRequest,
    FormValue,
    Reply,
    ReplyAction,
    ResultReview,
)
from tui.model.servers import ServerId
from tui.store.selectors import pending_here

__all__ = ["shop"]

CAN_FILL_IN: dict[str, Any] = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
ANSWERS: dict[str, FormValue] = {"name": "Ada", "age": 36}
FILLED = {"action": "accept", "content": ANSWERS}
CALL = {"name": "look", "arguments": {"text": "a"}}


@pytest.fixture
def work(world: World) -> Path:
    folder = world.home / "work"
    folder.mkdir()
    return folder


def token(world: World, client: str = "claude-code") -> str:
    return CallerBook(world.state, print).give(client)


@asynccontextmanager
async def open_deck(
    shop: Turncoat,
    work: Path,
    script: Script | None = None,
    **more: Any,  # noqa: ANN401 - as for `deck`
) -> AsyncIterator[Deck]:
    async with shop.deck(script, **more) as running, answering_others(running.engine, work):
        yield running


@asynccontextmanager
async def link(world: World, work: Path, **said: str) -> AsyncIterator[DeckLink]:
    """Connect to the open deck, as a client that says this of itself."""
    found = await find_deck(world.state, identify(work), Hello(**{"name": "somebody", **said}))
    assert found is not None
    try:
        yield found
    finally:
        found.close()


async def call(deck: DeckLink, **more: Any) -> str:  # noqa: ANN401 - any JSON
    """Call the tool; return the text of its result."""
    result = await deck.request("tools/call", CALL | more)
    return str(result["content"][0]["text"])


async def asked(running: Deck, deck: DeckLink, choice: Choice, **scope: GrantScope) -> str:
    """Call the tool and answer the question; return who was shown as the caller."""
    calling = asyncio.create_task(call(deck))
    request = await running.decide(choice, **scope)
    await calling
    return request.caller


async def test_L01_a_call_of_another_client_is_shown_with_its_name(
    shop: Turncoat, world: World, work: Path
) -> None:
    async with (
        open_deck(shop, work) as running,
        link(world, work, token=token(world)) as known,
        link(world, work) as other,
    ):
        assert await asked(running, known, Choice.ONCE) == "claude-code in ~/work"
        assert await asked(running, other, Choice.DENY) == "somebody (unverified) in ~/work"
        listed = (await known.request("tools/list", {}))["tools"]
        assert [one["name"] for one in listed] == ["look", "buy"]
    assert shop.calls == [("look", {"text": "a"})]
    decided = [one for one in records(world) if one["event"] == "decision"]
    assert [one["caller"].split()[0] for one in decided] == ["claude-code", "somebody"]
    assert [one["outcome"] for one in records(world) if one["event"] == "call"] == ["ok"]


async def test_L02_always_is_bound_to_the_token(shop: Turncoat, world: World, work: Path) -> None:
    """Neither the chat, nor a client with another token or with none, gets it; and back."""
    mine, others = token(world), token(world)
    async with (
        open_deck(shop, work, calling("look", 2)) as running,
        link(world, work, token=mine) as first,
        link(world, work, token=others) as second,
    ):
        await asked(running, first, Choice.ALWAYS_SERVER, scope=GrantScope.EVERYWHERE)
        await call(first)
        await asked(running, second, Choice.ONCE)
        await running.answered("go", Choice.ALWAYS_TOOL, GrantScope.EVERYWHERE)
        await running.ask("go")
        await asked(running, second, Choice.ONCE)
        async with link(world, work, name="claude-code") as claiming:
            await asked(running, claiming, Choice.ONCE)
        assert len(running.raised(ConfirmationRequest)) == 5
    kept = json.loads((world.state / "grants.json").read_text("utf-8"))["grants"]
    assert len(kept) == 3  # two tools for one client, one tool for the chat
    assert mine not in json.dumps([kept, (world.state / "callers.json").read_text("utf-8")])


async def test_L03_without_a_token_nothing_lasts(shop: Turncoat, world: World, work: Path) -> None:
    async with open_deck(shop, work) as running, link(world, work, token="invented") as deck:
        calling = asyncio.create_task(call(deck))
        request = await running.decide(Choice.ALWAYS_TOOL)
        await calling
        assert "no token" in request.not_lasting
        await asked(running, deck, Choice.ONCE)


async def test_L04_rules_hold_for_every_client(shop: Turncoat, world: World, work: Path) -> None:
    rules = {
        "alwaysAllow": [{"server": "shop", "tool": "look"}],
        "alwaysDeny": [{"tool": "buy"}],
        "profiles": {"none": {"servers": []}},
    }
    async with shop.deck(settings={"gemdeck": rules}) as running:
        async with answering_others(running.engine, work), link(world, work) as deck:
            await call(deck)
            with pytest.raises(RequestRefusedError, match="no tool buy"):
                await call(deck, name="buy")
            async with link(world, work, profile="none") as narrow:
                assert (await narrow.request("tools/list", {}))["tools"] == []
                with pytest.raises(RequestRefusedError, match="no tool look"):
                    await call(narrow)
            with pytest.raises(ValueError, match="no profile odd"):
                async with link(world, work, profile="odd"):
                    pass
        assert running.raised(ConfirmationRequest) == []


async def test_L04_a_rule_on_a_server_holds_for_its_resources(
    shop: Turncoat, world: World, work: Path
) -> None:
    servers = {one: library(file=one, resources=[f"docs://{one}"]) for one in ("a", "b")}
    settings = {"mcpServers": servers, "gemdeck": {"alwaysDeny": [{"server": "a"}]}}
    async with shop.deck(settings=settings, ready=False) as running:
        await eventually(lambda: running.status("a") is running.status("b") is READY)
        async with answering_others(running.engine, work), link(world, work) as deck:
            listed = (await deck.request("resources/list", {}))["resources"]
            assert [one["uri"] for one in listed] == ["docs://b"]
            with pytest.raises(RequestRefusedError, match="no resource docs://a"):
                await deck.request("resources/read", {"uri": "docs://a"})


async def test_L04_a_result_for_a_client_is_reviewed_wherever_the_user_is(
    shop: Turncoat, world: World, work: Path
) -> None:
    settings = {"mcpServers": {"shop": shop.entry | {"reviewResults": True}}}
    async with (
        open_deck(shop, work, settings=settings) as running,
        link(world, work) as deck,
    ):
        calling = asyncio.create_task(call(deck))
        await running.decide(Choice.ONCE)
        asked = await running.pending(ResultReview)
        assert pending_here(running.store.state) == (asked,)
        assert asked.caller == "somebody (unverified) in ~/work"
        running.engine.desk.answer(asked.id, Reply(ReplyAction.DECLINE))
        assert "withheld" in await calling


async def test_L06_a_cancelled_call_withdraws_its_question(
    shop: Turncoat, world: World, work: Path
) -> None:
    async with open_deck(shop, work) as running, link(world, work) as deck:
        calling = asyncio.create_task(call(deck))
        await running.pending(ConfirmationRequest)
        calling.cancel()
        await eventually(lambda: not running.store.state.pending)
        await asked(running, deck, Choice.ONCE)


async def test_L07_another_user_of_the_machine_gets_nothing(
    shop: Turncoat, world: World, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither end talks to a program of somebody else."""
    async with open_deck(shop, work):
        monkeypatch.setattr(os, "getuid", lambda: 12_345)
        assert await find_deck(world.state, identify(work), Hello("somebody")) is None
        monkeypatch.undo()
        async with link(world, work):
            pass  # who comes later is let in
        [place] = (world.state / "decks").iterdir()
        assert place.stat().st_mode & 0o777 == 0o600
        assert place.parent.stat().st_mode & 0o777 == 0o700


async def test_L08_a_deck_that_was_killed_stops_nobody(
    shop: Turncoat, world: World, work: Path
) -> None:
    stale = socket.socket(socket.AF_UNIX)
    async with shop.deck() as running:
        async with answering_others(running.engine, work):
            [place] = (world.state / "decks").iterdir()
            left = place.with_name(place.name.replace(str(os.getpid()), "0"))
            descriptor = os.open(place.parent, os.O_RDONLY)
            stale.bind(f"/proc/self/fd/{descriptor}/{left.name}")
            os.close(descriptor)
            stale.close()
            async with link(world, work) as deck:
                assert not left.exists()
                answers = asyncio.create_task(call(deck))
                await running.pending(ConfirmationRequest)
                place.unlink()
        with pytest.raises(RequestRefusedError, match="ended before it answered"):
            await answers
        assert await find_deck(world.state, identify(work), Hello("somebody")) is None


async def test_a_deck_that_refuses_leaves_a_client_to_the_other_one(
    shop: Turncoat, world: World, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two decks of one folder, of which one has the profile."""
    async with open_deck(shop, work) as running:
        monkeypatch.setattr(os, "getpid", lambda: 0)  # the first by name
        state, folder = world.state, identify(work)

        async def refuse(_: Hello) -> SharedServers:
            raise ValueError("There is no such profile.")

        async with answering(state, folder, refuse), link(world, work) as deck:
            await asked(running, deck, Choice.ONCE)
    async with answering(state, folder, refuse):
        with pytest.raises(ValueError, match="no such profile"):
            await find_deck(state, folder, Hello("somebody"))


async def test_L14_what_a_client_reads_is_asked_about_and_recorded(
    shop: Turncoat, world: World, work: Path
) -> None:
    """As what the model reads; a prompt, which the client's user chose, is only recorded."""
    settings = {"mcpServers": {"a": library(resources=["docs://a"], prompts={"talk": []})}}
    async with shop.deck(settings=settings, ready=False) as running:
        await eventually(lambda: running.status("a") is READY)
        async with answering_others(running.engine, work), link(world, work) as deck:

            async def read(choice: Choice, uri: str) -> list[dict[str, str]]:
                reading = asyncio.create_task(deck.request("resources/read", {"uri": "docs://a"}))
                given = json.dumps({"server": "a", "uri": uri})
                asked = await running.decide(choice, arguments=given)
                assert (asked.server, asked.tool) == ("a", "read_mcp_resource")
                assert asked.caller.startswith("somebody")
                return [*(await reading)["contents"]]

            [content] = await read(Choice.ONCE, "docs://a")
            assert content["text"] == "content of docs://a"
            with pytest.raises(RequestRefusedError, match="Denied"):
                await read(Choice.DENY, "docs://a")
            with pytest.raises(RequestRefusedError, match="no resource docs://b"):
                await read(Choice.ONCE, "docs://b")
            await deck.request("prompts/get", {"name": "talk"})
    found = [(one["event"], one["tool"]) for one in records(world) if "somebody" in one["caller"]]
    reads = [("decision", "read_mcp_resource"), ("call", "read_mcp_resource")]
    prompts = [("decision", "get_mcp_prompt"), ("call", "get_mcp_prompt")]
    assert found == [*reads, reads[0], *reads, *prompts]


@pytest.mark.parametrize("denied", [{"server": "a"}, {"tool": "get_mcp_prompt"}], ids=str)
async def test_L14_prompts_that_a_rule_denies_are_neither_listed_nor_completed(
    shop: Turncoat, world: World, work: Path, denied: dict[str, str]
) -> None:
    served = library(prompts={"talk": ["mood"]}, completions=["happy"])
    settings = {"mcpServers": {"a": served}, "gemdeck": {"alwaysDeny": [denied]}}
    async with shop.deck(settings=settings, ready=False) as running:
        await eventually(lambda: running.status("a") is READY)
        async with answering_others(running.engine, work), link(world, work) as deck:
            assert (await deck.request("prompts/list", {}))["prompts"] == []
            ref = {"ref": {"type": "ref/prompt", "name": "talk"}, "argument": {"name": "mood"}}
            for method, params in (("prompts/get", ref["ref"]), ("completion/complete", ref)):
                with pytest.raises(RequestRefusedError, match="no prompt talk"):
                    await deck.request(method, params)


async def test_L15_a_client_is_told_what_the_user_changed(
    shop: Turncoat, world: World, work: Path
) -> None:
    structured = {"content": [{"type": "text", "text": "done"}], "structuredContent": {"n": 1}}
    settings = {"mcpServers": {"a": library(tools={"t": ["x"]}, results={"t": structured})}}
    async with shop.deck(settings=settings, ready=False) as running:
        await eventually(lambda: running.status("a") is READY)
        async with answering_others(running.engine, work), link(world, work) as deck:
            params = {"name": "t", "arguments": {"x": "mine"}}
            calling = asyncio.create_task(deck.request("tools/call", params))
            await running.decide(Choice.ONCE, arguments='{"x": "yours"}')
            result = await calling
    told, own = result["content"]
    assert told["text"].startswith("The user changed the arguments before the call:")
    assert '"x" is now "yours"' in told["text"]
    assert own["text"] == "done"
    assert result["structuredContent"] == {"n": 1}


async def test_L15_a_prompt_is_rendered_with_the_arguments_that_the_user_allowed(
    shop: Turncoat, world: World, work: Path
) -> None:
    servers = {"a": library(prompts={"p": ["x"]})}
    settings = {"mcpServers": servers, "tools": {"confirmationRequired": ["get_mcp_prompt"]}}
    async with shop.deck(settings=settings, ready=False) as running:
        await eventually(lambda: running.status("a") is READY)
        async with answering_others(running.engine, work), link(world, work) as deck:
            params = {"name": "p", "arguments": {"x": "mine"}}
            getting = asyncio.create_task(deck.request("prompts/get", params))
            allowed = json.dumps(params | {"arguments": {"x": "yours"}})
            await running.decide(Choice.ONCE, arguments=allowed)
            told, message = (await getting)["messages"]
    assert '"x": "yours"' in told["content"]["text"]
    assert message["content"]["text"] == 'p {"x": "yours"}'


@asynccontextmanager
async def asking(shop: Turncoat, work: Path, era: str = "handshake") -> AsyncIterator[Deck]:
    """Run a deck with a server that logs, changes and asks; its tools need no question."""
    entry = {"command": sys.executable, "args": [str(FOLDER / "asking.py")]}
    tools = [{"server": "asking", "tool": one} for one in ("form", "log", "bump", "wait")]
    settings = {
        "mcpServers": {"asking": entry},
        "gemdeck": {"alwaysAllow": tools, "protocols": {"asking": era}},
    }
    async with shop.deck(settings=settings, ready=False) as running:
        await eventually(lambda: running.status("asking") is READY)
        async with answering_others(running.engine, work):
            yield running


async def test_L16_a_client_gets_messages_of_what_it_uses_and_not_too_many(
    shop: Turncoat, world: World, work: Path
) -> None:
    async with asking(shop, work) as running, link(world, work) as user, link(world, work) as other:
        await user.request("tools/call", {"name": "log", "arguments": {"level": "error"}})
        async with aclosing(user.changes()) as changes:
            said = {"level": "error", "logger": "asking", "data": "a line of error"}
            async for one in changes:
                assert one == {"method": "notifications/message", "params": said}
                break
        denied = asyncio.create_task(other.request("tools/call", {"name": "roots"}))
        await running.decide(Choice.DENY)
        assert (await denied)["isError"]
        lines = tuple(LogLine(0.0, "log", Severity.INFO, f"{n}", "info") for n in range(200))
        running.engine.runs.publish(ServerLogged(ServerId("asking"), lines))
        running.engine.runs.publish(CatalogChanged(ServerId("asking"), Catalog()))
        got = list[Any]()
        async for one in user.changes():
            got += [one["params"]["data"]] if "params" in one else []
            if got[-1:] == ["199"]:
                break
        assert got == [f"{n}" for n in range(200 - MAX_LOGGED, 200)]
        async for one in other.changes():  # what comes first is what came after the messages
            assert one["method"] == "notifications/tools/list_changed"
            break


async def test_L16_what_a_client_follows_ends_with_it(
    shop: Turncoat, world: World, work: Path
) -> None:
    uris = [f"docs://{n}" for n in range(MAX_FOLLOWED + 1)]
    record = work / "record"
    settings = {"mcpServers": {"a": library(resources=uris, record=str(record))}}
    server = ServerId("a")

    def sent(method: str) -> list[str]:
        messages = [json.loads(one) for one in record.read_text("utf-8").splitlines()]
        return [one["params"]["uri"] for one in messages if one.get("method") == method]

    async with shop.deck(settings=settings, ready=False) as running:
        await eventually(lambda: running.status("a") is READY)
        async with answering_others(running.engine, work), link(world, work) as quiet:
            async with link(world, work) as deck:
                following = [deck.request("resources/subscribe", {"uri": uri}) for uri in uris]
                *followed, refused = await asyncio.gather(*following, return_exceptions=True)
                assert followed == [{}] * MAX_FOLLOWED
                assert str(refused) == f"There are already {MAX_FOLLOWED} subscriptions."
                await quiet.request("resources/subscribe", {"uri": uris[0]})
                running.engine.features.subscribe(server, uris[1], subscribed=True)
                users = (server, uris[1])
                await eventually(lambda: users in running.store.state.subscriptions)
                assert len(sent("resources/subscribe")) == MAX_FOLLOWED
            unsubscribed = "resources/unsubscribe"
            await eventually(lambda: {*sent(unsubscribed)} == {*uris[2:-1]})
            await quiet.request(unsubscribed, {"uri": uris[0]})
            assert uris[0] in sent(unsubscribed)
            assert uris[1] not in sent(unsubscribed)


async def test_L17_only_whom_the_user_lets_answers_forms(
    shop: Turncoat, world: World, work: Path
) -> None:
    params = {"name": "form", "arguments": {}, "_meta": CAN_FILL_IN}

    async def answer(running: Deck) -> None:
        asked = await running.pending(FormRequest)
        running.engine.desk.answer(asked.id, Reply(ReplyAction.ACCEPT, ANSWERS))

    async with (
        asking(shop, work) as running,
        link(world, work, token=token(world)) as deck,
        link(world, work) as other,
    ):
        calling = asyncio.create_task(deck.request("tools/call", params))
        question = await running.decide(Choice.ALWAYS_TOOL)
        assert (question.server, question.tool) == ("asking", "answer_form")
        assert question.caller == "claude-code in ~/work"
        assert "Who are you?" in question.arguments
        result = await calling
        for _ in range(2):  # what is always allowed is asked about once
            form = FILLED | {"content": ANSWERS | {"odd": "no field of the form"}}
            state = {"requestState": result["requestState"], "inputResponses": {"form": form}}
            done = await deck.request("tools/call", params | state)
            assert json.loads(done["content"][0]["text"]) == FILLED
            with pytest.raises(RequestRefusedError, match="over"):
                await deck.request("tools/call", params | state)
            result = await deck.request("tools/call", params)

        calling = asyncio.create_task(other.request("tools/call", params))
        await running.pending(FormRequest)  # a call of another client runs, so whose is the form?
        calling.cancel()
        await eventually(lambda: not running.store.state.pending)
        state = {"requestState": result["requestState"], "inputResponses": {"form": {"age": "x"}}}
        done = await deck.request("tools/call", params | state)
        assert '"cancel"' in done["content"][0]["text"]

        calling = asyncio.create_task(other.request("tools/call", params))
        await running.decide(Choice.DENY)
        for _ in range(2):  # a denial is not asked for again
            await answer(running)
            assert '"Ada"' in (await calling)["content"][0]["text"]
            calling = asyncio.create_task(other.request("tools/call", params))
        await answer(running)
        await calling
        assert len(running.raised(ConfirmationRequest)) == 2


async def test_L17_a_form_is_the_users_while_a_prompt_of_the_user_is_rendered(
    shop: Turncoat, world: World, work: Path
) -> None:
    record = work / "record"
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    form = {"message": "Who?", "requestedSchema": schema}
    before = {"p": [{"id": "q", "method": "elicitation/create", "params": form}]}
    offer = {"tools": {"stays": []}, "silent": ["stays"], "prompts": {"p": []}, "before": before}
    rules = {"alwaysAllow": [{"server": "a", "tool": one} for one in ("stays", "answer_form")]}
    servers = {"a": library(**offer, record=str(record))}
    settings = {"mcpServers": servers, "gemdeck": rules}
    async with shop.deck(settings=settings, ready=False) as running:
        await eventually(lambda: running.status("a") is READY)
        async with answering_others(running.engine, work), link(world, work) as deck:
            params = {"name": "stays", "_meta": CAN_FILL_IN}
            calling = asyncio.create_task(deck.request("tools/call", params))
            await eventually(lambda: "tools/call" in record.read_text("utf-8"))
            rendering = running.engine.servers.render_prompt(ServerId("a"), "p", {})
            getting = asyncio.create_task(rendering)
            asked = await running.pending(FormRequest)
            running.engine.desk.answer(asked.id, Reply(ReplyAction.ACCEPT, {"name": "Ada"}))
            await getting
            calling.cancel()
    assert '"Ada"' in record.read_text("utf-8")


async def test_L17_a_client_that_cannot_answer_forms_leaves_them_to_the_deck(
    shop: Turncoat, world: World, work: Path
) -> None:
    async with asking(shop, work, "stateless") as running, link(world, work) as deck:
        call = {"name": "form", "arguments": {}}
        calling = asyncio.create_task(deck.request("tools/call", call))
        asked = await running.pending(FormRequest)
        running.engine.desk.answer(asked.id, Reply(ReplyAction.DECLINE))
        assert '"decline"' in (await calling)["content"][0]["text"]
        assert running.raised(ConfirmationRequest) == []


async def test_L17_no_server_hands_a_client_a_form_in_a_result(
    shop: Turncoat, world: World, work: Path
) -> None:
    form = {"method": "elicitation/create", "params": {"message": "Password?"}}
    odd = {"resultType": "input_required", "inputRequests": {"form": form}, "requestState": "s"}
    said = [{"role": "user", "content": {"type": "text", "text": "hello"}}]
    results = {"t": odd | {"content": []}, "p": odd | {"messages": said}}
    served = library(tools={"t": []}, prompts={"p": []}, results=results)
    rules = {"alwaysAllow": [{"server": "a", "tool": "t"}]}
    settings = {"mcpServers": {"a": served}, "gemdeck": rules}
    async with shop.deck(settings=settings, ready=False) as running:
        await eventually(lambda: running.status("a") is READY)
        async with answering_others(running.engine, work), link(world, work) as deck:
            for method, name in (("tools/call", "t"), ("prompts/get", "p")):
                result = await deck.request(method, {"name": name, "_meta": CAN_FILL_IN})
                assert "resultType" not in result
