"""Pieces of answers of chat completions services, and what the backend makes of them."""

import json
from collections.abc import Sequence
from typing import Any

import anyio

from tests.fakes.completions import FakeCompletions
from tests.fakes.gemini_rules import Json
from tests.servers.web import HttpServer, answer
from tests.support.waiting import PATIENCE
from tests.unit.engine.chats.support import open_completions
from tui.engine.chats.backends.backend import ModelChunk, ModelRequest
from tui.engine.chats.backends.completions import CompletionsBackend

USER: Json = {"role": "user", "parts": [{"text": "hi"}]}
PNG: Json = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}


def request(*contents: Json, tools: Sequence[Json] = (), **more: Any) -> ModelRequest:  # noqa: ANN401
    return ModelRequest(contents or (USER,), tools, **more)


async def read(backend: CompletionsBackend, asked: ModelRequest | None = None) -> list[ModelChunk]:
    with anyio.fail_after(PATIENCE):
        return [chunk async for chunk in backend.stream(asked or request())]


async def collect(fake: FakeCompletions, asked: ModelRequest | None = None) -> list[ModelChunk]:
    """Ask once, and give what came."""
    backend = await open_completions(fake.url)
    try:
        return await read(backend, asked)
    finally:
        await backend.aclose()


def parts(chunks: Sequence[ModelChunk]) -> list[Any]:
    return [part for chunk in chunks for part in chunk.parts]


def event(delta: Json, **choice: object) -> str:
    return f"data: {json.dumps({'choices': [{'delta': delta, **choice}]})}\n\n"


def piece(**more: object) -> str:
    return event({"tool_calls": [more]})


def call(arguments: object, **more: object) -> str:
    return piece(function={"name": "add", "arguments": arguments}, **more)


BEGUN = event({"content": "a"})
END = event({}, finish_reason="stop")
DONE = "data: [DONE]\n\n"


async def whole(
    text: str,
    kind: str = "text/event-stream",
    **more: Any,  # noqa: ANN401 - settings
) -> list[ModelChunk]:
    """Give what becomes of a body."""
    async with HttpServer(handle=answer(200, text.encode(), content_type=kind)) as server:
        backend = await open_completions(server.origin, **more)
        try:
            return await read(backend)
        finally:
            await backend.aclose()
