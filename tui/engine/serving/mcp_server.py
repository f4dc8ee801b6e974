"""Serves gemdeck's servers over stdio to a client of another program, in both eras of MCP."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import Any, Final, Protocol, cast

import anyio
from mcp.server import NotificationOptions, Server
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import PromptsListChanged, ResourcesListChanged, ToolsListChanged

from tui import __version__
from tui.engine.background import TaskSet, in_daemon_thread
from tui.engine.mcp.session import sdk_patches
from tui.engine.serving.shared_servers import (
    NOT_ANSWERED,
    OnProgress,
    RequestRefusedError,
)
from tui.model.chat import Progress
from tui.text import sanitize_line

INSTRUCTIONS: Final = (
    "These are the tools of the servers in the user's gemdeck, under gemdeck's names. "
    "A call that is denied says how the user can allow it."
)

_LISTS: Final = (ToolsListChanged, PromptsListChanged, ResourcesListChanged)
_HANDLERS: Final = (
    *("list_tools", "call_tool", "list_prompts", "get_prompt", "list_resources"),
    *("list_resource_templates", "read_resource", "completion"),
)

_PLAIN: Final = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
"""What each result of the stateless era has; the SDK leaves it out in the other one."""

STATELESS: Final = "2026-07-28"
"""From this revision on changes are told to who listens."""

_Context = ServerRequestContext[dict[str, Any], Any]


class Sharing(Protocol):
    """What a client gets: an engine's servers, or those of an open deck."""

    async def request(
        self, method: str, params: Mapping[str, Any], on_progress: OnProgress, /
    ) -> Mapping[str, Any]: ...

    def changes(self) -> AsyncIterator[Mapping[str, Any]]: ...


class McpServer:
    """Answers one client on standard input and output.

    Args:
        sources: Gives, for the name that the client has for itself, what it gets; once that has
            ended, the next.
    """

    def __init__(self, sources: Callable[[str], AsyncGenerator[Sharing, None]]) -> None:
        self._sources = sources
        self._source: Sharing | None = None
        self._failure = ""
        self._opened = asyncio.Event()
        self._bus = InMemorySubscriptionBus()
        self._session: ServerSession | None = None
        self._tasks = TaskSet("what a client gets could not be opened")

    async def run(self) -> None:
        """Serve until the client closes our standard input."""
        sdk_patches.silence()
        handlers: dict[str, Any] = {f"on_{name}": self._answer for name in _HANDLERS}
        handlers["on_subscriptions_listen"] = ListenHandler(self._bus)
        server = Server("gemdeck", version=__version__, instructions=INSTRUCTIONS, **handlers)
        changing = NotificationOptions(
            tools_changed=True, prompts_changed=True, resources_changed=True
        )
        options = server.create_initialization_options(changing)
        try:
            # a thread of the SDK's that waits in standard input would outlive SIGTERM
            stdin = cast("anyio.AsyncFile[str]", _lines())
            async with stdio_server(stdin=stdin) as (incoming, outgoing):
                await server.run(incoming, outgoing, options)
        finally:
            await self._tasks.aclose()

    async def _answer(self, context: _Context, _: object) -> dict[str, Any]:
        if self._session is None:
            known = context.session.client_params
            self._tasks.start(self._follow(known.client_info.name if known is not None else ""))
        self._session = session = context.session
        await self._opened.wait()
        if self._source is None:
            raise MCPError(NOT_ANSWERED, self._failure)
        reported = asyncio.Queue[Progress | None]()
        method, params = context.method, context.params or {}
        asking = asyncio.create_task(self._source.request(method, params, reported.put_nowait))
        asking.add_done_callback(lambda _: reported.put_nowait(None))
        try:
            while (one := await reported.get()) is not None:
                await session.report_progress(one.progress, one.total, one.message or None)
            return {**_PLAIN, **await asking}
        except RequestRefusedError as error:
            code, words = error.reply["code"], sanitize_line(str(error.reply["message"]))
            raise MCPError(code, words, error.reply.get("data")) from error
        finally:
            asking.cancel()
            await asyncio.wait({asking})

    async def _follow(self, name: str) -> None:
        """Answer from one source after another, and tell the client of what changes."""
        try:
            async with aclosing(self._sources(name)) as sources:
                async for source in sources:
                    if self._source is not None:
                        await self._tell_changed()
                    self._source = source
                    self._opened.set()
                    async for _ in source.changes():
                        await self._tell_changed()
                    self._opened.clear()
        except Exception as error:
            self._source, self._failure = None, sanitize_line(f"gemdeck cannot serve: {error}")
            raise
        finally:
            self._opened.set()  # whoever waits is told that there is nothing

    async def _tell_changed(self) -> None:
        for change in _LISTS:
            await self._bus.publish(change())
        session = self._session
        if session is not None and not session.protocol_version >= STATELESS:
            await session.send_tool_list_changed()
            await session.send_prompt_list_changed()
            await session.send_resource_list_changed()


async def _lines() -> AsyncIterator[str]:
    source = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    while line := await in_daemon_thread(source.readline):
        yield line.decode("utf-8", "replace")
