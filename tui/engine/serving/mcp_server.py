"""Serves gemdeck's servers over stdio to a client of another program, in both eras of MCP."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, Final, cast

import anyio
from mcp.server import NotificationOptions, Server
from mcp.server.context import ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import PromptsListChanged, ResourcesListChanged, ToolsListChanged

from tui import __version__
from tui.engine.background import in_daemon_thread
from tui.engine.mcp.session import sdk_patches
from tui.engine.serving.shared_servers import RequestRefusedError, SharedServers
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

_Context = ServerRequestContext[dict[str, Any], Any]


class McpServer:
    """Answers one client on standard input and output.

    Args:
        servers: What the client gets.
    """

    def __init__(self, servers: SharedServers) -> None:
        self._servers = servers
        self._bus = InMemorySubscriptionBus()
        self._session: Any = None

    async def run(self) -> None:
        """Serve until the client closes our standard input."""
        sdk_patches.silence()
        handlers: dict[str, Any] = {f"on_{name}": self._answer for name in _HANDLERS}
        handlers["on_subscriptions_listen"] = ListenHandler(self._bus)
        server = Server("gemdeck", version=__version__, instructions=INSTRUCTIONS, **handlers)
        changing = asyncio.create_task(self._tell_changes())
        options = server.create_initialization_options(
            NotificationOptions(tools_changed=True, prompts_changed=True, resources_changed=True)
        )
        try:
            # a thread of the SDK's that waits in standard input would outlive SIGTERM
            stdin = cast("anyio.AsyncFile[str]", _lines())
            async with stdio_server(stdin=stdin) as (incoming, outgoing):
                await server.run(incoming, outgoing, options)
        finally:
            changing.cancel()

    async def _answer(self, context: _Context, _: object) -> dict[str, Any]:
        self._session = context.session
        method, params = context.method, context.params or {}
        reported = asyncio.Queue[Progress | None]()
        asking = asyncio.create_task(self._servers.request(method, params, reported.put_nowait))
        asking.add_done_callback(lambda _: reported.put_nowait(None))
        try:
            while (one := await reported.get()) is not None:
                await self._session.report_progress(one.progress, one.total, one.message or None)
            return {**_PLAIN, **await asking}
        except RequestRefusedError as error:
            code, words = error.reply["code"], sanitize_line(str(error.reply["message"]))
            raise MCPError(code, words, error.reply.get("data")) from error
        finally:
            asking.cancel()
            await asyncio.wait({asking})

    async def _tell_changes(self) -> None:
        async for _ in self._servers.changes():
            for change in _LISTS:
                await self._bus.publish(change())
            with suppress(Exception):  # the client has gone, or has not begun
                await self._session.send_tool_list_changed()
                await self._session.send_prompt_list_changed()
                await self._session.send_resource_list_changed()


async def _lines() -> AsyncIterator[str]:
    source = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    while line := await in_daemon_thread(source.readline):
        yield line.decode("utf-8", "replace")
