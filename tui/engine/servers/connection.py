"""One connection: an `mcp.Client` over one transport, opened and closed by one task.

This module imports the MCP SDK, which takes half a second: it is loaded off the event loop.
"""

import asyncio
import os
from collections.abc import Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Final

import mcp_types as types
from mcp import Client, MCPError
from mcp.client import ClientRequestContext
from pydantic import ValidationError

from tui.engine.servers import sdk
from tui.engine.servers.catalog import ServerOffer, read_offer
from tui.engine.servers.content import convert_result, text_size
from tui.engine.servers.discovery import discover
from tui.engine.servers.environment import (
    resolve_folder,
    resolve_program,
    server_environment,
)
from tui.engine.servers.failures import ServerError
from tui.engine.servers.live import Host
from tui.engine.servers.log import ServerLog
from tui.engine.servers.process import Launch
from tui.engine.servers.progress import ProgressReporter
from tui.engine.servers.stdio import StdioTransport
from tui.engine.servers.transport import ServerTransport
from tui.engine.settings.definitions import ServerDefinition
from tui.engine.tools import JsonObject, ToolCallError, ToolResult
from tui.model.chat import Progress, Severity
from tui.model.servers import ServerInfo, Transport
from tui.text import sanitize, sanitize_line

CLIENT_NAME: Final = "gemdeck"

MAX_INSTRUCTIONS: Final = 20_000
"""Characters of a server's instructions that are kept."""

ENDING_GRACE: Final = 0.5
"""Seconds a failed call waits for the word why the server is gone."""

MAX_TEXT_ON_LOOP: Final = 20_000
"""Characters of a result that are converted at once; a thread costs more than they do."""

_SEVERITIES: Final = {
    "debug": Severity.INFO,
    "info": Severity.INFO,
    "notice": Severity.INFO,
    "warning": Severity.WARNING,
}


class Connection:
    """A connection to one server, as an async context manager and while it lasts.

    Entering it opens the transport, shakes hands and lists what the server offers; it is the
    caller who bounds the time. One task enters and leaves; any task may call.

    Args:
        definition: Which server.
        log: Takes what the server writes.
        host: What the server is told of us.

    Attributes:
        info: What the server says of itself.
        offer: What it offers.
        ended: Set when the server is gone.
    """

    info: ServerInfo
    offer: ServerOffer
    ended: asyncio.Event

    def __init__(self, definition: ServerDefinition, log: ServerLog, host: Host) -> None:
        self._definition = definition
        self._log = log
        self._host = host
        self._stack = AsyncExitStack()
        self._transport: ServerTransport | None = None
        self._client: Client | None = None

    async def __aenter__(self) -> "Connection":
        sdk.silence()
        try:
            async with AsyncExitStack() as stack:
                await self._open(stack)
                self._stack = stack.pop_all()
        except Exception as error:  # whatever the SDK raises, the user wants the reason
            reason = await self._explain(error)
            mask = self._log.mask
            raise ServerError(mask(reason.reason), mask(reason.advice)) from error
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._stack.__aexit__(exc_type, exc, traceback)

    async def _open(self, stack: AsyncExitStack) -> None:
        self._transport = transport = open_transport(self._definition, self._log)
        self.ended = transport.ended
        client = Client(
            transport,
            mode="auto",
            list_roots_callback=self._list_roots,
            logging_callback=self._take_log,
            client_info=types.Implementation(name=CLIENT_NAME, version=self._host.client_version),
            cache=None,
        )
        await stack.enter_async_context(client)
        sdk.adapt(client)
        raw_offer = await discover(client, self._log)
        self.offer = await asyncio.to_thread(read_offer, raw_offer, self._definition)
        self.info = _server_info(client)
        self._client = client

    def ending(self) -> str:
        """Say in one line why the server is gone."""
        return self._transport.ending() if self._transport is not None else "was not started"

    def kill(self) -> None:
        """End the server at once."""
        if self._transport is not None:
            self._transport.kill()

    async def call_tool(
        self, name: str, arguments: JsonObject, on_progress: Callable[[Progress], None]
    ) -> ToolResult:
        """Run a tool by its name on the server.

        Cancelling the caller cancels the call on the server, as does the definition's timeout.

        Raises:
            ToolCallError: If no result came back.
        """
        if self._client is None:
            raise ToolCallError("The server is not connected.")
        timeout = self._definition.timeout
        try:
            with ProgressReporter(on_progress) as report:
                async with asyncio.timeout(timeout):
                    result = await self._client.call_tool(
                        name, dict(arguments), progress_callback=report
                    )
        except TimeoutError:
            raise ToolCallError(
                f"The tool gave no result within {timeout:g} s. It was told to stop; whether it "
                "had any effect is unknown."
            ) from None
        except MCPError as error:
            raise await self._call_error(error) from error
        except ValidationError as error:
            raise ToolCallError("The server answered with what is no result of a tool.") from error
        except RuntimeError as error:
            raise ToolCallError(self._clean(str(error))) from error
        if text_size(result) <= MAX_TEXT_ON_LOOP:
            return convert_result(result)
        return await asyncio.to_thread(convert_result, result)

    async def _call_error(self, error: MCPError) -> ToolCallError:
        if error.code == types.PARSE_ERROR:
            return ToolCallError(
                "The server's reply could not be read; whether the call had any effect is unknown."
            )
        if error.code != types.CONNECTION_CLOSED:
            text = self._clean(error.error.message)
            return ToolCallError(f"The server refused the call: {text} (error {error.code})")
        reason = await self._reason_of_end()
        words = "\n".join(self._log.tail(5))
        return ToolCallError(
            f"The server {reason} during the call; whether it had any effect is unknown."
            + (f" Its last words:\n{words}" if words else "")
        )

    async def _reason_of_end(self) -> str:
        try:
            async with asyncio.timeout(ENDING_GRACE):
                await self.ended.wait()
        except TimeoutError:
            return "was closed"
        return self._log.mask(sanitize_line(self.ending()))

    def _clean(self, text: str) -> str:
        """Make words of the server fit to be shown, without its secrets."""
        clean = sanitize(self._log.mask(text), MAX_INSTRUCTIONS)
        return self._log.mask(clean)

    async def _explain(self, error: Exception) -> ServerError:
        """Say why connecting failed."""
        causes = _leaves(error)
        for cause in causes:
            if isinstance(cause, ServerError):
                return cause
        for cause in causes:
            if isinstance(cause, MCPError) and cause.code == types.CONNECTION_CLOSED:
                return ServerError(
                    f"{await self._reason_of_end()} before it was ready",
                    "Its last words are in its log.",
                )
            if isinstance(cause, MCPError):
                return ServerError(
                    f"refused to connect: {cause.error.message} (error {cause.code})"
                )
            if isinstance(cause, ValidationError):
                return ServerError("answered with what is no MCP", "Is this an MCP server?")
            if isinstance(cause, RuntimeError):
                return ServerError(str(cause))
        return ServerError("; ".join(f"{type(cause).__name__}: {cause}" for cause in causes))

    async def _list_roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        del context
        workspace = self._host.workspace
        root = types.Root(uri=workspace.as_uri(), name=workspace.name or str(workspace))
        return types.ListRootsResult(roots=[root])

    async def _take_log(self, params: types.LoggingMessageNotificationParams) -> None:
        data = params.data if isinstance(params.data, str) else str(params.data)
        text = f"{params.logger}: {data}" if params.logger else data
        self._log.add("log", _SEVERITIES.get(params.level, Severity.ERROR), text)


def open_transport(definition: ServerDefinition, log: ServerLog) -> ServerTransport:
    """Make the transport that a definition asks for; it is not opened yet.

    Raises:
        ServerError: If the definition cannot work on this machine.
    """
    if definition.transport is not Transport.STDIO:
        raise ServerError("streamable HTTP and SSE servers are not supported by this version yet")
    environment = server_environment(definition.env, os.environ)
    folder = resolve_folder(definition.cwd)
    program = resolve_program(definition.command, environment, folder)
    return StdioTransport(Launch((program, *definition.args), environment, folder), log)


def _server_info(client: Client) -> ServerInfo:
    info = client.server_info
    return ServerInfo(
        name=sanitize_line(info.name, 64) if info is not None else "",
        version=sanitize_line(info.version, 64) if info is not None else "",
        protocol_version=sanitize_line(client.protocol_version, 64),
        instructions=sanitize(client.instructions or "", MAX_INSTRUCTIONS),
    )


def _leaves(error: BaseException) -> list[BaseException]:
    """Give the exceptions in a group of groups."""
    if isinstance(error, BaseExceptionGroup):
        return [leaf for nested in error.exceptions for leaf in _leaves(nested)]
    return [error]
