"""A service of chat completions on loopback: plays steps, and checks what it is asked."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from tests.servers.web import Exchange, HttpServer

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


class FakeCompletions(HttpServer):
    """Serves `steps`, one a request.

    Attributes:
        bodies: What was asked.
        violations: What was wrong with it.
        gone: Set when a client went away before the end.
        stalled: Set when an answer stalls.
    """

    def __init__(self, steps: Sequence[Step] = ()) -> None:
        super().__init__()
        self._steps = list(steps)
        self.bodies: list[dict[str, Any]] = []
        self.violations: list[str] = []
        self.gone, self.stalled = asyncio.Event(), asyncio.Event()

    async def _answer(self, exchange: Exchange) -> None:
        request = exchange.request
        if request.headers.get("authorization") != f"Bearer {KEY}":
            await exchange.respond(401, b"wrong key")
        elif request.method == "GET":
            await exchange.json({"data": [{"id": "large"}]})
        else:
            await self._chat(exchange)

    async def _chat(self, exchange: Exchange) -> None:
        self.bodies.append(exchange.request.message)
        self.violations += _violations(self.bodies[-1]["messages"])
        step = self._steps.pop(0)
        if isinstance(step, int):
            await exchange.respond(step, b"not now")
            return
        await exchange.begin(200, content_type="text/event-stream")
        for piece in [text("half")] if step is None else step:
            await exchange.write(f"data: {json.dumps(piece)}\n\n".encode())
        if step is None:
            self.stalled.set()
            await exchange.hang()
            self.gone.set()
        await exchange.write(b"data: [DONE]\n\n")


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
