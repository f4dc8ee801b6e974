"""HTTP in front of a server over stdio, for the suite.

The SDK's half of the transport for servers does all that belongs to HTTP. Where it would answer a
message, the message goes to a process of the command instead: one for each session, and one for
all requests of the era without sessions.
"""

import asyncio
import itertools
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import anyio
import mcp_types as types
from mcp.server import Server, _streamable_http_modern, streamable_http_manager
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from sse_starlette import sse

from tests.servers.web import serving

LONGEST: Final = 1_000_000
"""Longest message, in bytes."""

Start = Callable[[], AbstractAsyncContextManager[Process]]
"""Runs a process within a block."""


@asynccontextmanager
async def run(command: Sequence[str], folder: Path) -> AsyncIterator[Process]:
    """Run a command within the block; it ends with its input."""
    pipes: Any = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
    process = await asyncio.create_subprocess_exec(*command, cwd=folder, limit=LONGEST, **pipes)
    assert process.stdin is not None
    try:
        yield process
    finally:
        process.stdin.close()
        with anyio.CancelScope(shield=True):
            await process.wait()


def send(process: Process, message: types.JSONRPCMessage) -> None:
    """Write a message."""
    assert process.stdin is not None
    process.stdin.write(message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")


async def messages(process: Process) -> AsyncIterator[types.JSONRPCMessage]:
    """Give what a process writes."""
    assert process.stdout is not None
    async for line in process.stdout:
        yield types.jsonrpc_message_adapter.validate_json(line)


async def serve_session(
    start: Start,
    _: object,
    incoming: Any,  # noqa: ANN401
    outgoing: Any,  # noqa: ANN401
    **_more: object,
) -> None:
    """Let a process of its own answer a session.

    What it says on its own goes to the response that is open, the last of several.
    """
    waiting: dict[object, None] = {}

    async def answer() -> None:
        with suppress(anyio.ClosedResourceError):  # the session has ended
            async for message in messages(process):
                metadata = None
                if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
                    waiting.pop(message.id, None)
                elif waiting:
                    last: Any = next(reversed(waiting))
                    metadata = ServerMessageMetadata(related_request_id=last)
                await outgoing.send(SessionMessage(message, metadata))

    async with start() as process, anyio.create_task_group() as group:
        group.start_soon(answer)
        with suppress(anyio.ClosedResourceError):
            async for one in incoming:
                if isinstance(one, SessionMessage):
                    if isinstance(one.message, types.JSONRPCRequest):
                        waiting[one.message.id] = None
                    send(process, one.message)
        group.cancel_scope.cancel()


class Exchanges:
    """One process for requests of many clients, under numbers of our own."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._numbers = itertools.count(1)
        self._open: dict[object, tuple[Any, Mapping[str, Any], asyncio.Future[dict[str, Any]]]] = {}

    async def read(self) -> None:
        """Give each message to whom it belongs; notifications to the last request, if to any."""
        async for message in messages(self._process):
            if isinstance(message, types.JSONRPCNotification):
                await self._pass_on(message)
            elif isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
                _, _, answer = self._open.get(message.id, (None, None, None))
                if answer is None or answer.done():
                    continue  # it was cancelled meanwhile
                if isinstance(message, types.JSONRPCResponse):
                    answer.set_result(message.result)
                else:
                    answer.set_exception(MCPError.from_error_data(message.error))

    async def request(
        self,
        _: object,
        context: Any,  # noqa: ANN401
        method: str,
        params: Mapping[str, Any] | None,
        **_more: object,
    ) -> dict[str, Any]:
        """Answer a request in the stead of the SDK's `serve_one`."""
        number = next(self._numbers)
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._open[number] = context, params or {}, answer
        body = None if params is None else dict(params)
        send(
            self._process,
            types.JSONRPCRequest(jsonrpc="2.0", id=number, method=method, params=body),
        )
        try:
            return await answer
        except asyncio.CancelledError:
            gone = {"requestId": number}
            method = "notifications/cancelled"
            send(
                self._process, types.JSONRPCNotification(jsonrpc="2.0", method=method, params=gone)
            )
            raise
        finally:
            del self._open[number]

    async def _pass_on(self, message: types.JSONRPCNotification) -> None:
        params = dict(message.params or {})
        meta = dict(params.get("_meta") or {})
        number = meta.get(SUBSCRIPTION_ID_META_KEY)
        token = params.get("progressToken")
        for key, (context, asked, _) in reversed(self._open.items()):
            own = (asked.get("_meta") or {}).get("progressToken")
            if (number, token) in {(key, None), (str(key), None), (None, own)}:
                if number is not None:
                    meta[SUBSCRIPTION_ID_META_KEY] = context.request_id
                    params["_meta"] = meta
                await context.notify(message.method, params)
                return


@asynccontextmanager
async def bridged(command: Sequence[str], folder: Path) -> AsyncIterator[str]:
    """Serve over HTTP within the block what a command serves over stdio; give the address.

    Args:
        command: The command and its arguments.
        folder: Its working directory.
    """
    start = partial(run, command, folder)
    local = TransportSecuritySettings(
        allowed_hosts=["127.0.0.1:*"], allowed_origins=["http://127.0.0.1:*"]
    )
    manager = StreamableHTTPSessionManager(Server("bridge"), security_settings=local)

    async def application(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401
        if scope["type"] == "http":
            await manager.handle_request(scope, receive, send)

    async with start() as process, anyio.create_task_group() as group:
        exchanges = Exchanges(process)
        group.start_soon(exchanges.read)
        with (
            patch.object(streamable_http_manager, "serve_loop", partial(serve_session, start)),
            patch.object(_streamable_http_modern, "serve_one", exchanges.request),
            patch.object(sse, "_ensure_watcher_started_on_this_loop"),  # it outlives the server
        ):
            async with manager.run(), serving(application) as address:
                yield f"{address}/mcp"
        group.cancel_scope.cancel()
