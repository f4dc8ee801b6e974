"""Prompts, resources and images of a reference server in the chat, down to the model's request."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.gemini import FakeGemini, Step
from tests.fakes.gemini_script import Call, Say
from tests.security.decks import Deck, deck
from tests.support.node import node_server
from tests.support.waiting import eventually
from tui.model.consent import Choice
from tui.model.events import ArgumentCompleted
from tui.model.servers import ServerId, ServerStatus

SERVER = ServerId("server")
PLAIN: list[Step] = [[Say(f"{number}")] for number in range(8)]


@asynccontextmanager
async def chatting(monkeypatch: pytest.MonkeyPatch, steps: list[Step]) -> AsyncIterator[Deck]:
    command, arguments = node_server("everything", "stdio")
    settings = {"mcpServers": {"server": {"command": command, "args": arguments}}}
    async with FakeGemini(steps) as fake, deck(fake, monkeypatch, settings=settings) as running:
        await eventually(lambda: running.status("server") is ServerStatus.READY)
        yield running
        assert fake.violations == []


def sent(running: Deck) -> list[dict[str, Any]]:
    """Give the parts of the last content that the model got."""
    parts: list[dict[str, Any]] = running.fake.requests[-1].contents[-1]["parts"]
    return parts


def texts(running: Deck) -> list[str]:
    return [part["text"] for part in sent(running) if "text" in part]


async def test_prompts_are_typed_with_arguments_and_bring_resources(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with chatting(monkeypatch, PLAIN) as running:
        await running.ask("/simple-prompt")
        assert texts(running) == ["This is a simple prompt without arguments."]
        await running.ask('/args-prompt --city="San Francisco" --state=California')
        assert texts(running) == ["What's weather in San Francisco, California?"]
        await running.ask('/args-prompt "San Francisco" California')
        assert texts(running) == ["What's weather in San Francisco, California?"]
        running.engine.features.complete(
            "t", SERVER, "completable-prompt", "name", "E", {"department": "Sales"}
        )
        await eventually(lambda: running.store.state.completion)
        assert running.store.state.completion == ArgumentCompleted("t", ("Eve",))
        await running.ask("/completable-prompt Sales Eve")
        assert texts(running) == ["Please promote Eve to the head of the Sales team."]
        await running.ask("/resource-prompt Text 7")
        assert texts(running)[1] == "[Resource demo://resource/dynamic/text/7: text/plain]"
        assert "Resource 7: This is a plaintext resource" in texts(running)[2]


async def test_resources_and_templates_are_mentioned_without_their_scheme(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with chatting(monkeypatch, PLAIN) as running:
        listed = [one.uri for one in running.store.state.servers[0].catalog.resources]
        static = next(uri for uri in listed if uri.endswith("architecture.md"))
        path = static.partition("://")[2]
        await running.ask(f"@server://{path} and @server://resource/dynamic/text/3: compare")
        said = "\n".join(texts(running))
        assert f"[Content of the resource {static} of the server server" in said
        assert "Resource 3: This is a plaintext resource" in said


async def test_images_of_tools_and_resources_by_the_models_own_reading(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps: list[Step] = [
        [Call([("get-tiny-image", {})])],
        [Call([("read_mcp_resource", {"server": "server", "uri": "//resource/dynamic/text/5"})])],
        [Say("done")],
    ]
    async with chatting(monkeypatch, steps) as running:
        running.engine.send("go")
        await running.decide(Choice.ALWAYS_SERVER)
        await running.decide(Choice.ONCE)
        await running.idle()
        [image] = running.fake.requests[1].contents[-1]["parts"]
        [data] = image["functionResponse"]["parts"]
        assert data["inlineData"]["mimeType"] == "image/png"
        assert "Resource 5: This is a plaintext resource" in str(sent(running))


@pytest.mark.parametrize("tool", ["read_text_file", "read_file"])
async def test_a_file_reaches_the_model_byte_for_byte_and_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tool: str
) -> None:
    lines = [f"{number:03} “{'x' * 27}” 🍞 naïve \\u00e9 \t{number}\r\n" for number in range(800)]
    text = "".join(lines)
    assert len(text.encode()) > 46_000
    file = tmp_path / "long.txt"
    file.write_bytes(text.encode())
    command, arguments = node_server("filesystem", str(file.parent))
    settings = {"mcpServers": {"server": {"command": command, "args": arguments}}}
    steps: list[Step] = [
        [Call([(tool, {"path": str(file)})])],
        [Say("done")],
    ]
    async with (
        FakeGemini(steps) as fake,
        deck(fake, monkeypatch, settings=settings, folder=tmp_path) as running,
    ):
        await eventually(lambda: running.status("server") is ServerStatus.READY)
        running.engine.send("go")
        await running.decide(Choice.ONCE)
        await running.idle()
        [part] = sent(running)
        assert part["functionResponse"]["name"] == tool
        assert part["functionResponse"]["response"] == {"output": text}
        assert fake.violations == []
