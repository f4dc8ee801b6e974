"""A service of chat completions on loopback: plays steps, and checks what it is asked."""

import asyncio
import contextlib
import json
from collections.abc import Sequence
from typing import Any, Self

KEY = "s3cr3t-fixture-completions-key"

Step = Sequence[dict[str, Any]] | int | None
"""The pieces of an answer, an HTTP status, or None to say nothing."""


def text(words: str) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": words}}]}


def thought(words: str) -> dict[str, Any]:
    return {"choices": [{"delta": {"reasoning_content": words}}]}


def call(index: int, **pieces: Any) -> dict[str, Any]:  # noqa: ANN401 - as the wire has them
    return {"choices": [{"delta": {"tool_calls": [{"index": index, **pieces}]}}]}


def end(reason: str = "stop", **usage: int) -> dict[str, Any]:
    return {"choices": [{"delta": {}, "finish_reason": reason}], "usage": usage}


class FakeCompletions:
    """Serves `steps`, one a request.

    Attributes:
        bodies: What was asked.
        violations: What was wrong with it.
        gone: Set when a client went away before the end.
        stalled: Set when an answer stalls.
    """

    def __init__(self, steps: Sequence[Step] = ()) -> None:
        self._steps = list(steps)
        self.bodies: list[dict[str, Any]] = []
        self.violations: list[str] = []
        self.gone, self.stalled = asyncio.Event(), asyncio.Event()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
            sizes = [line.split(":")[1] for line in head if line.startswith("content-length")]
            body = await reader.readexactly(int(sizes[0]) if sizes else 0)
            if f"authorization: bearer {KEY}" not in head:
                self._answer(writer, 401, b"wrong key")
            elif head[0].startswith("get /models"):
                self._answer(writer, 200, json.dumps({"data": [{"id": "large"}]}).encode())
            else:
                await self._chat(json.loads(body), reader, writer)
            await writer.drain()
        writer.close()

    def _answer(self, writer: asyncio.StreamWriter, status: int, body: bytes) -> None:
        head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + body)

    async def _chat(
        self, body: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.bodies.append(body)
        self.violations += _violations(body["messages"])
        step = self._steps.pop(0)
        if isinstance(step, int):
            self._answer(writer, step, b"not now")
            return
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n")
        writer.write(b"Connection: close\r\n\r\n")
        for piece in step or ():
            writer.write(f"data: {json.dumps(piece)}\n\n".encode())
            await writer.drain()
        if step is None:
            writer.write(f"data: {json.dumps(text('half'))}\n\n".encode())
            await writer.drain()
            self.stalled.set()
            await reader.read()
            self.gone.set()
        writer.write(b"data: [DONE]\n\n")


def _violations(messages: list[dict[str, Any]]) -> list[str]:
    """Say which results answer no call, and which calls have no result."""
    found: list[str] = []
    open_calls: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                found.append(f"no call {message['tool_call_id']}")
            open_calls.discard(message["tool_call_id"])
        elif open_calls:
            found.append(f"no result of {open_calls}")
        open_calls |= {one["id"] for one in message.get("tool_calls", ())}
    return found
