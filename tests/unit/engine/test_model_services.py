"""Services of chat completions beside Gemini, through a whole engine."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.fakes.completions import KEY, FakeCompletions
from tests.fakes.gemini import KEY as GEMINI_KEY
from tests.fakes.gemini import FakeGemini, Step
from tests.fakes.gemini_script import Call, Fail, Say, Think
from tests.security.decks import Deck, Turncoat, deck, play, shop, tool
from tests.unit.engine.mcp.support import eventually
from tests.unit.engine.sessions.test_model_commands import FLASH, uses
from tests.unit.engine.sessions.test_resuming import notices
from tui.model.chat import ModelText
from tui.store.selectors import entries

__all__ = ["play", "shop"]

pytestmark = pytest.mark.writes_secrets("settings.json", "credentials.json")

LARGE = "fake/large"


def entry(fake: FakeCompletions, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """Write a service into the settings."""
    service = {"url": fake.url, "key": KEY, **more}
    return {"gemdeck": {"services": {"fake": service}}}


@asynccontextmanager
async def beside(
    monkeypatch: pytest.MonkeyPatch,
    gemini: list[Step],
    completions: list[Step],
    *servers: Turncoat,
    **more: Any,  # noqa: ANN401 - as for `deck`
) -> AsyncIterator[tuple[Deck, FakeCompletions]]:
    """Run an engine with Gemini and a service, which find nothing at fault."""
    async with FakeGemini(gemini) as fake, FakeCompletions(completions) as other:
        more = {"settings": entry(other), "servers": servers, "allows_all": True, **more}
        async with deck(fake, monkeypatch, **more) as it:
            yield it, other
        assert (fake.violations, other.violations) == ([], [])


def said(it: Deck) -> list[str]:
    return [one.text for one in entries(it.store.state) if isinstance(one, ModelText)]


async def test_a_conversation_goes_from_one_service_to_another_and_back(
    monkeypatch: pytest.MonkeyPatch, shop: Turncoat
) -> None:
    looks = (Think("hm"), Call([("look", {})]))
    unnamed = (Call([("look", {}), ("look", {})], has_ids=False, signed=False),)
    gemini: list[Step] = [looks, [Say("1", signed=True)], looks, [Say("3", signed=True)]]
    other: list[Step] = [looks, [Say("2")], unnamed, [Say("4")]]
    async with beside(monkeypatch, gemini, other, shop) as (it, completions):
        await it.ask("one")
        await uses(it, LARGE)
        await it.ask("two")
        assert "thoughtSignature" not in str(completions.requests[0].body)
        assert completions.requests[0].contents[0] == {"role": "user", "parts": [{"text": "one"}]}
        it.engine.models.use_model(FLASH)
        await eventually(lambda: it.store.state.model.name == FLASH)
        await it.ask("three")
        await uses(it, LARGE)
        await it.ask("four")
        assert said(it) == ["1", "2", "3", "4"]
        roles = [one["role"] for one in completions.requests[-1].contents]
        assert roles == ["user", "model"] * (len(roles) // 2) + ["user"]
        names = {one.headers.get("x-goog-api-key") for one in completions.requests}
        assert names == {None}
        assert {one.headers.get("authorization") for one in it.fake.requests} == {None}


async def test_a_session_is_resumed_with_its_service(monkeypatch: pytest.MonkeyPatch) -> None:
    async with FakeGemini() as fake, FakeCompletions([[Say("1")], [Say("2")]]) as other:
        async with deck(fake, monkeypatch, settings=entry(other)) as it:
            await uses(it, LARGE)
            await it.ask("one")
        async with deck(fake, monkeypatch, settings=entry(other)) as it:
            assert it.store.state.model.name == FLASH
            it.engine.sessions.resume()
            await eventually(lambda: it.store.state.model.name == LARGE)
            it.engine.send("two")
            await other.wait_for_requests(2)
            await it.idle()
        assert len(other.requests[-1].contents) == 3
        assert fake.requests == []


async def test_a_model_of_the_command_line_needs_no_key_of_gemini(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its key comes from a variable that the entry names."""
    monkeypatch.setenv("FAKE_KEY", KEY)
    async with FakeGemini() as fake, FakeCompletions([[Say("1")]]) as other:
        settings = entry(other, key="$FAKE_KEY")
        async with deck(fake, monkeypatch, settings=settings, model=LARGE) as it:
            await it.ask("one")
            assert said(it) == ["1"]
            model = it.store.state.model
            found = model.name, model.backend, model.address, model.source
            assert found == (LARGE, "fake", other.url, "its entry in your settings")
        assert fake.requests == fake.checks == []


async def test_a_choice_is_kept_with_its_key_until_the_address_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with FakeGemini() as fake, FakeCompletions([[Say("1")], [Say("2")]]) as other:
        services = {"fake": {"url": other.url}}
        async with deck(fake, monkeypatch, settings={"gemdeck": {"services": services}}) as it:
            it.engine.choice.use_service("nobody/x")
            await eventually(lambda: "nobody/x does not name a service" in notices(it))
            it.engine.choice.use_service(LARGE, "wrong")
            await eventually(lambda: "no access" in notices(it))
            assert it.store.state.model.name == FLASH
            it.engine.choice.use_service(LARGE, KEY)
            await eventually(lambda: it.store.state.model.name == LARGE)
            assert "GEMINI_API_KEY overrides" in it.store.state.notices[-1].advice
            await it.ask("one")
        monkeypatch.setattr("tests.security.decks.KEY", "")
        async with deck(fake, monkeypatch, settings={"gemdeck": {"services": services}}) as it:
            assert it.store.state.model.name == LARGE
            assert it.store.state.model.is_kept
            await it.ask("two")
        services["fake"]["url"] = "https://elsewhere.invalid/v1"
        async with deck(fake, monkeypatch, settings={"gemdeck": {"services": services}}) as it:
            await eventually(lambda: "There is no key for fake at https://else" in notices(it))
        services["fake"]["url"] = other.url
        async with deck(fake, monkeypatch, settings={"gemdeck": {"services": services}}) as it:
            assert it.store.state.model.name == LARGE
            it.engine.choice.forget_key()
            await eventually(lambda: "was forgotten" in notices(it))


async def test_a_model_that_takes_no_tools_is_said_and_gets_none(
    monkeypatch: pytest.MonkeyPatch, shop: Turncoat
) -> None:
    shop.offer(tool("look"))
    refused = (Fail(400, "small does not support tools"),)
    steps: list[Step] = [[Say("1")], refused, [Say("2")], [Say("3")]]
    async with beside(monkeypatch, [], steps, shop) as (it, other):
        other.offers = [{"id": "small"}, {"id": "large"}]
        other.pages = {  # Ollama's
            "/api/show small": {"model_info": {"llama.context_length": 4_096}},
            "/api/show large": {"capabilities": ["completion"]},
        }
        await uses(it, LARGE)
        assert f"{LARGE} does not support tools" in notices(it)
        await it.ask("one")
        await uses(it, "fake/small")
        await it.ask("two")
        await it.ask("three")
        assert [bool(one.declared) for one in other.requests] == [False, True, False, False]
        assert said(it) == ["1", "2", "3"]


async def test_a_bare_name_and_what_is_no_service_are_geminis(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with beside(monkeypatch, [[Say("1")]], [], model=LARGE) as (it, other):
        await uses(it, "models/gemini-2.5-pro")
        await it.ask("one")
        assert it.fake.requests[0].headers["x-goog-api-key"] == GEMINI_KEY
        assert other.requests == []
