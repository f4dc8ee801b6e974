"""Prompts, resources and images of a reference server in the chat, down to the model's request."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.fakes.gemini import Step
from tests.fakes.gemini_script import Call, Say
from tests.security.decks import Deck, Play, play
from tests.support.node import node_server
from tests.support.waiting import eventually
from tui.model.consent import Choice
from tui.model.events import ArgumentCompleted
from tui.model.servers import ServerId, ServerStatus

__all__ = ["play"]

SERVER = ServerId("server")
PLAIN: list[Step] = [[Say(f"{number}")] for number in range(6)]


@asynccontextmanager
async def chatting(play: Play, steps: list[Step], *server: str, **more: Any) -> AsyncIterator[Deck]:  # noqa: ANN401
    command, arguments = node_server(*server)
    settings = {"mcpServers": {"server": {"command": command, "args": arguments}}}
    async with play(steps, settings=settings, **more) as running:
        await eventually(lambda: running.status("server") is ServerStatus.READY)
        yield running
        assert running.fake.violations == []


def sent(running: Deck, request: int = -1) -> list[dict[str, Any]]:
    """Give the parts of the last content that the model got in a request."""
    parts: list[dict[str, Any]] = running.fake.requests[request].contents[-1]["parts"]
    return parts


async def texts(running: Deck, message: str) -> list[str]:
    """Give the texts that the model gets for a message."""
    await running.ask(message)
    return [part["text"] for part in sent(running) if "text" in part]


async def test_prompts_resources_and_images_come_as_typed_or_read(play: Play) -> None:
    reading = {"server": "server", "uri": "//resource/dynamic/text/5"}
    calls: list[Step] = [
        [Call([("get-tiny-image", {})])],
        [Call([("read_mcp_resource", reading)])],
        [Say("done")],
    ]
    city = "What's weather in San Francisco, California?"
    async with chatting(play, [*PLAIN, *calls], "everything", "stdio") as running:
        without = await texts(running, "/simple-prompt")
        assert without == ["This is a simple prompt without arguments."]
        named = await texts(running, '/args-prompt --city="San Francisco" --state=California')
        assert [city] == named == await texts(running, '/args-prompt "San Francisco" California')
        running.engine.features.complete(
            "t", SERVER, "completable-prompt", "name", "E", {"department": "Sales"}
        )
        await eventually(lambda: running.store.state.completion)
        assert running.store.state.completion == ArgumentCompleted("t", ("Eve",))
        completed = await texts(running, "/completable-prompt Sales Eve")
        assert completed == ["Please promote Eve to the head of the Sales team."]
        embedded = await texts(running, "/resource-prompt Text 7")
        assert embedded[1] == "[Resource demo://resource/dynamic/text/7: text/plain]"
        assert "Resource 7: This is a plaintext resource" in embedded[2]

        listed = [one.uri for one in running.store.state.servers[0].catalog.resources]
        static = next(uri for uri in listed if uri.endswith("architecture.md"))
        mentions = f"@server://{static.partition('://')[2]} and @server://resource/dynamic/text/3:"
        said = "\n".join(await texts(running, mentions))
        assert f"[Content of the resource {static} of the server server" in said
        assert "Resource 3: This is a plaintext resource" in said

        await running.ask("go", Choice.ALWAYS_SERVER, Choice.ONCE)
        [image] = sent(running, -2)
        [data] = image["functionResponse"]["parts"]
        assert data["inlineData"]["mimeType"] == "image/png"
        assert "Resource 5: This is a plaintext resource" in str(sent(running))
