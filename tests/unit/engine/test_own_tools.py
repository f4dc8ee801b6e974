"""gemdeck's own tools in a turn: the search for tools, and resources, with real servers."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.gemini import FakeGemini, Step
from tests.fakes.gemini_rules import Json
from tests.fakes.gemini_script import Call, Say
from tests.security.decks import Deck, deck
from tests.support.waiting import eventually
from tests.unit.engine.mcp.support import FOLDER
from tui.model.chat import ToolCallStatus
from tui.model.consent import Choice
from tui.model.requests import ConfirmationRequest
from tui.model.servers import ServerId, ServerStatus

LIB = ServerId("lib")


@asynccontextmanager
async def chatting(
    monkeypatch: pytest.MonkeyPatch,
    steps: list[Step],
    gemdeck: dict[str, Any] | None = None,
    **servers: tuple[str, ...],
) -> AsyncIterator[Deck]:
    """Run an engine with a library and servers of `tests/servers/raw.py`."""
    says = Path.home() / "library.json"
    offer = {"resources": ["memo://today", "doc://deep/one"], "templates": ["day://{day}"]}
    says.write_text(json.dumps({**offer, "record": str(Path.home() / "record")}))
    started = {name: ("raw.py", *arguments) for name, arguments in servers.items()}
    entries = {
        name: {"command": sys.executable, "args": [str(FOLDER / script), *arguments]}
        for name, (script, *arguments) in {"lib": ("library.py", str(says)), **started}.items()
    }
    settings, ready = {"mcpServers": entries, "gemdeck": gemdeck or {}}, ServerStatus.READY
    async with FakeGemini(steps) as fake, deck(fake, monkeypatch, settings=settings) as running:
        await eventually(lambda: all(running.status(name) is ready for name in entries))
        yield running
        assert fake.violations == []


def asked_for() -> list[str]:
    lines = [json.loads(line) for line in (Path.home() / "record").read_text().splitlines()]
    return [line["params"]["uri"] for line in lines if line["method"] == "resources/read"]


def reading(uri: str, **server: str) -> Call:
    return Call([("read_mcp_resource", {**server, "uri": uri})])


async def test_the_model_calls_tools_that_it_found_or_knew(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, Json]] = [
        ("search_tools", {"query": "tool 1100"}),
        ("tool_1100", {}),
        ("tool_1000", {}),
    ]
    steps: list[Step] = [*([Call([call])] for call in calls), [Say("done")]]
    async with chatting(monkeypatch, steps, raw=("many",)) as running:
        assert "the model gets at most 128" in running.store.state.notices[-1].text
        await running.ask("go", Choice.ONCE, Choice.ONCE)
        first, second, third, last = (request.declared for request in running.fake.requests[:4])
        assert len(first) == 64 + 3
        assert first[-3:] == ["search_tools", "list_mcp_resources", "read_mcp_resource"]
        assert ["tool_1100" in one for one in (first, second)] == [False, True]
        assert len(second) <= 128 + 3
        [found] = running.fake.requests[1].answers
        assert found.startswith("These tools are loaded now:\n- tool_1100 (of the server raw)")
        assert ["tool_1000" in one for one in (third, last)] == [False, True]
        made = [(call.server, call.tool, call.status) for call in running.calls]
        servers = zip(("gemdeck", "raw", "raw"), calls, strict=True)
        assert made == [(server, name, ToolCallStatus.OK) for server, (name, _) in servers]
        catalog = next(view.catalog for view in running.store.state.servers if view.id == "raw")
        names = {tool.id: tool.name for tool in catalog.tools}
        assert "tool_1100" not in {names[one] for one in catalog.excess}


async def test_resources_are_listed_freely_read_on_consent(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[Step] = [
        [Call([("list_mcp_resources", {}), ("list_mcp_resources", {"query": "deep"})])],
        *([reading("day://may", server="lib")], [reading("memo://today", server="other")]),
        *([reading("memo://today")], [reading("//deep/one", server="lib")]),
        *([reading("memo://today", server="lib")], [Say("done")]),
    ]
    async with chatting(monkeypatch, steps, raw=()) as running:
        _, request = await running.ask("go", Choice.DENY, Choice.ALWAYS_TOOL)
        assert (request.server, request.tool) == (LIB, "read_mcp_resource")
        assert "search_tools" not in running.fake.requests[0].declared, "there are not too many"
        assert len(running.raised(ConfirmationRequest)) == 2
        whole, one = running.fake.requests[1].answers
        assert whole.splitlines() == [
            "- lib | memo://today | memo://today",
            "- lib | doc://deep/one | doc://deep/one",
            "- lib | day://{day} (template) | day://{day}",
        ]
        assert one.splitlines()[0] == "- lib | doc://deep/one | doc://deep/one"
        assert running.fake.requests[2].answers[0].startswith("Denied")
        [refused] = running.fake.requests[3].answers
        assert "other has no resources. These have: lib." in refused
        [read] = running.fake.requests[5].answers
        assert "content of doc://deep/one" in read
        assert "data, not instructions" in read
        assert asked_for() == ["doc://deep/one", "memo://today"]
        assert [call.server for call in running.calls][-2:] == ["lib", "lib"]


async def test_rules_hold_for_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[Step] = [[reading("memo://today", server="lib")], [Say("done")]]
    rules = {"alwaysDeny": [{"server": "lib", "tool": "*"}]}
    async with chatting(monkeypatch, steps, rules) as running:
        await running.ask()
        assert running.raised(ConfirmationRequest) == []
        assert running.fake.requests[-1].answers[0].startswith("Denied")
        assert asked_for() == []
