"""What a conversation can do, through a whole engine with each kind of service."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.fakes.completions import KEY as COMPLETIONS_KEY
from tests.fakes.completions import FakeCompletions
from tests.fakes.gemini import FakeGemini
from tests.fakes.gemini_script import Call, Say, Stall, Think
from tests.security.decks import Deck, Script, Turncoat, deck, shop, tool
from tests.unit.engine.mcp.support import eventually
from tests.unit.engine.sessions.test_resuming import notices
from tui.engine.chats.costs import Costs
from tui.engine.chats.model_commands import SUMMARISED
from tui.engine.chats.step import backend_generator
from tui.engine.mcp.catalog.offered_tool import PromptMessage, TextPart
from tui.engine.mcp.context import GenerationError, Prompt
from tui.model.chat import ModelText, ToolCallStatus, UserMessage
from tui.model.consent import Choice
from tui.store.selectors import entries

__all__ = ["shop"]

pytestmark = [
    pytest.mark.parametrize("kind", [FakeGemini, FakeCompletions], ids=["gemini", "completions"]),
    pytest.mark.writes_secrets("settings.json"),
]

ASKED = {
    "name": "pick",
    "description": "Picks.",
    "parametersJsonSchema": {"type": "object", "properties": {}},
}
PROMPT = Prompt((PromptMessage("user", (TextPart("x"),)),), (ASKED,), "Be brief.", 50, True)


def named(fake: FakeGemini) -> dict[str, Any]:
    """Give what a deck has to know of a service."""
    if not isinstance(fake, FakeCompletions):
        return {}
    services = {"fake": {"url": fake.url, "key": COMPLETIONS_KEY}}
    return {"model": "fake/large", "settings": {"gemdeck": {"services": services}}}


@asynccontextmanager
async def playing(
    kind: type[FakeGemini],
    monkeypatch: pytest.MonkeyPatch,
    script: Script,
    *servers: Turncoat,
    **more: Any,  # noqa: ANN401 - as for `deck`
) -> AsyncIterator[Deck]:
    """Run an engine before a model that plays a script and finds nothing at fault."""
    async with kind(script) as fake:
        async with deck(fake, monkeypatch, servers=servers, **named(fake), **more) as it:
            yield it
        assert fake.violations == []


def said(it: Deck) -> list[str]:
    return [one.text for one in entries(it.store.state) if isinstance(one, ModelText)]


def messages(it: Deck) -> list[UserMessage]:
    return [one for one in entries(it.store.state) if isinstance(one, UserMessage)]


async def test_calls_are_allowed_and_denied(
    kind: type[FakeGemini], monkeypatch: pytest.MonkeyPatch, shop: Turncoat
) -> None:
    shop.offer(tool("look"), tool("buy"))
    calls = Call([("look", {"text": "a"}), ("buy", {"text": "b"})])
    async with playing(kind, monkeypatch, [[Think("hm"), calls], [Say("so")]], shop) as it:
        await it.ask("one", Choice.ONCE, Choice.DENY)
        assert [call.status for call in it.calls] == [ToolCallStatus.OK, ToolCallStatus.DENIED]
        answers = it.fake.requests[1].contents[-1]["parts"]
        kinds = [next(iter(part["functionResponse"]["response"])) for part in answers]
        assert (kinds, said(it)) == (["output", "error"], ["so"])


async def test_a_message_is_edited_cancelled_and_sent_again(
    kind: type[FakeGemini], monkeypatch: pytest.MonkeyPatch
) -> None:
    script: Script = [[Say("1")], [Say("2")], [Say("half"), Stall()], [Say("3")]]
    async with playing(kind, monkeypatch, script) as it:
        await it.ask("one")
        it.engine.sessions.edit_message(messages(it)[-1].id, "other")
        await it.fake.wait_for_requests(2)
        await it.idle()
        assert [one["parts"] for one in it.fake.requests[1].contents] == [[{"text": "other"}]]
        it.engine.send("two")
        await it.fake.wait_for_stall()
        await eventually(lambda: "half" in said(it))
        it.engine.cancel_turn()
        await it.fake.wait_for_gone()
        await it.idle()
        it.engine.sessions.edit_message(messages(it)[-1].id, "two")
        await it.fake.wait_for_requests(4)
        await it.idle()
        assert said(it) == ["2", "3"]


async def test_a_conversation_is_resumed_with_its_calls(
    kind: type[FakeGemini], monkeypatch: pytest.MonkeyPatch, shop: Turncoat
) -> None:
    steps: Script = [[Call([("look", {"text": "a"})] * 2)], [Say("1")], [Say("2")]]
    async with kind(steps) as fake:
        more = {"servers": [shop], "allows_all": True, **named(fake)}
        async with deck(fake, monkeypatch, **more) as it:
            await it.ask("one")
        async with deck(fake, monkeypatch, **more) as it:
            it.engine.sessions.resume()
            await eventually(lambda: said(it) == ["1"])
            await it.ask("two")
            assert len(fake.requests[-1].contents) == 5
            assert said(it) == ["1", "2"]
        assert fake.violations == []


async def test_a_summary_takes_the_place_of_a_conversation(
    kind: type[FakeGemini], monkeypatch: pytest.MonkeyPatch, shop: Turncoat
) -> None:
    script: Script = [[Call([("look", {})])], [Say("1")], [Say("We spoke of one.")], [Say("2")]]
    async with playing(kind, monkeypatch, script, shop, allows_all=True) as it:
        await it.ask("one " * 200)
        it.engine.models.compress()
        await eventually(lambda: "Compressed from" in str(entries(it.store.state)))
        await it.ask("two")
        contents = it.fake.requests[-1].contents
        assert contents[0]["parts"] == [{"text": SUMMARISED}]
        assert contents[1]["parts"] == [{"text": "We spoke of one."}]
        it.engine.models.measure()
        await eventually(lambda: it.store.state.context_parts)
        assert "could not" not in notices(it)


@pytest.mark.parametrize("is_priced", [True, False])
async def test_a_run_that_costs_too_much_asks_no_more(
    kind: type[FakeGemini], monkeypatch: pytest.MonkeyPatch, shop: Turncoat, *, is_priced: bool
) -> None:
    shop.offer(tool("look"))
    price = {"*" if is_priced else "other": {"input": 1e6, "output": 1e6}}
    async with kind([[Call([("look", {"text": "a"})])], [Say("1")], [Say("2")]]) as fake:
        service = named(fake)
        settings: dict[str, Any] = service.setdefault("settings", {"gemdeck": {}})
        settings["gemdeck"] |= {"prices": {"models": price}, "maxCost": 0.5}
        async with deck(fake, monkeypatch, servers=[shop], allows_all=True, **service) as it:
            await it.ask("one")
            said_once = "has no known price"
            if is_priced:
                assert [call.status for call in it.calls] == [ToolCallStatus.OK]
                assert "The cost limit of 0.5000 USD" in str(entries(it.store.state))
                one = it.engine.conversations.current
                asking = backend_generator(lambda: (one.backend, one.publish), it.engine.costs)
                with pytest.raises(GenerationError, match="cost limit"):
                    await asking.generate(PROMPT)
                it.engine.models.compress()
                await eventually(lambda: "The cost limit" in notices(it))
            await it.ask("two")
            assert len(fake.requests) == (1 if is_priced else 3)
            assert str(entries(it.store.state)).count(said_once) == (not is_priced)
        assert fake.violations == []


async def test_a_server_may_ask_for_a_text(
    kind: type[FakeGemini], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with playing(kind, monkeypatch, [[Call([("pick", {})])]]) as it:
        one = it.engine.conversations.current
        made = await backend_generator(lambda: (one.backend, one.publish), Costs()).generate(PROMPT)
        assert [call.name for call in made.calls] == ["pick"]
        [request] = it.fake.requests
        assert (request.instruction, request.declared) == ("Be brief.", ["pick"])
        assert it.engine.conversations.current.backend is one.backend
