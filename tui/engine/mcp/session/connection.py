"""One connection: an `mcp.Client` over one transport, opened and closed by one task.

This module imports the MCP SDK, which takes half a second: it is loaded off the event loop.
"""

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Final

import mcp_types as types
from mcp import Client, InputRequiredRoundsExceededError, MCPError
from pydantic import ValidationError

from tui.engine.servers import sdk
from tui.engine.servers.catalog import ServerOffer, read_offer
from tui.engine.servers.connected_features import ConnectedFeatures, takes_log_level
from tui.engine.servers.content import convert_result, text_size
from tui.engine.servers.discovery import discover
from tui.engine.servers.environment import (
    own_program,
    resolve_folder,
    server_environment,
    shown_program,
)
from tui.engine.servers.era_choice import EraChoice
from tui.engine.servers.failures import ServerError
from tui.engine.servers.features import Features
from tui.engine.servers.following import Follower
from tui.engine.servers.inbound.handler import Inbound
from tui.engine.servers.inbound.sampling import REFUSED
from tui.engine.servers.live import CallNotTakenError, Host
from tui.engine.servers.log import ServerLog
from tui.engine.servers.network.transport import NetworkTransport
from tui.engine.servers.process import Launch
from tui.engine.servers.progress import ProgressReporter
from tui.engine.servers.sparing import restore
from tui.engine.servers.stdio import StdioTransport
from tui.engine.servers.transport import EXCHANGE_FAILED, SESSION_LOST, ServerTransport
from tui.engine.servers.watchdog import CallTimeoutError, Watchdog
from tui.engine.settings.definitions import ServerDefinition
from tui.engine.settings.programs import guarded_folders
from tui.engine.tools import JsonObject, ToolCallError, ToolResult
from tui.model.chat import Progress, Severity
from tui.model.servers import Origin, ServerInfo, Transport
from tui.text import sanitize, sanitize_line

CLIENT_NAME: Final = "gemdeck"

MAX_INSTRUCTIONS: Final = 20_000
"""Characters of a server's instructions that are kept."""

ENDING_GRACE: Final = 0.5
"""Seconds a failed call waits for the word why the server is gone."""

MAX_TEXT_ON_LOOP: Final = 20_000
"""Characters of a result that are converted at once; a thread costs more than they do."""

CLOSED: Final = "Connection closed"
"""What the SDK says to a request whose connection has ended."""

_SAMPLING: Final = types.SamplingCapability(tools=types.SamplingToolsCapability())

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
        outdated: Set when the server needs a connection of the other era.
        features: What it can be asked for beside tools.
    """

    features: Features
    info: ServerInfo
    offer: ServerOffer
    ended: asyncio.Event
    outdated: asyncio.Event

    def __init__(self, definition: ServerDefinition, log: ServerLog, host: Host) -> None:
        self._definition = definition
        self._log = log
        self._host = host
        self._stack = AsyncExitStack()
        self._transport: ServerTransport | None = None
        self._client: Client | None = None
        self._follower = Follower(definition, log)
        self._era = EraChoice(definition, host.eras)
        self.outdated = self._era.outdated
        self._watchdog = Watchdog(definition.timeout)
        self._inbound = Inbound(definition, host.facilities, log, self._watchdog)
        self._features: ConnectedFeatures | None = None

    async def __aenter__(self) -> "Connection":
        sdk.silence()
        try:
            async with AsyncExitStack() as stack:
                await self._open(stack)
                self._stack = stack.pop_all()
        except asyncio.CancelledError:
            self._era.doubt()
            raise
        except Exception as error:  # whatever the SDK raises, the user wants the reason
            self._era.doubt()
            reason = await self._explain(error)
            raise reason.masked(self._log.mask) from error
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._stack.__aexit__(exc_type, exc, traceback)

    async def _open(self, stack: AsyncExitStack) -> None:
        self._transport = transport = open_transport(
            self._definition, self._log, self._host.facilities.workspaces
        )
        self.ended = transport.ended
        client = Client(
            transport,
            mode=await self._era.choose(),
            list_roots_callback=self._inbound.list_roots,
            elicitation_callback=self._inbound.elicit,
            sampling_callback=self._inbound.sample if self._host.facilities.generator else None,
            sampling_capabilities=_SAMPLING,
            logging_callback=self._take_log,
            message_handler=self._hear,
            client_info=types.Implementation(name=CLIENT_NAME, version=self._host.client_version),
            cache=None,
        )
        await stack.enter_async_context(client)
        stack.callback(self._inbound.close)
        self._era.check(client.protocol_version)
        sdk.adapt(client)
        self._follower.offer = raw_offer = await discover(client, self._log)
        self.offer = await asyncio.to_thread(read_offer, raw_offer, self._definition)
        self.info = _server_info(client)
        self.features = self._features = await stack.enter_async_context(self._attach(client))
        self._client = client

    def _attach(self, client: Client) -> ConnectedFeatures:
        facilities = self._host.facilities
        return ConnectedFeatures(
            client, self._definition.id, lambda: self.offer, facilities, self._watchdog
        )

    def ending(self) -> str:
        """Say in one line why the server is gone."""
        return self._transport.ending() if self._transport is not None else "was not started"

    def problem(self) -> ServerError | None:
        """Give the reason why the server is gone, where its transport knows it exactly."""
        return self._transport.problem() if self._transport is not None else None

    def kill(self) -> None:
        """End the server at once."""
        if self._transport is not None:
            self._transport.kill()

    async def follow(self, on_offer: Callable[[ServerOffer], None]) -> None:
        """List anew what the server says has changed, for as long as it is connected."""
        if self._client is None:
            return

        def take(offer: ServerOffer) -> None:
            self.offer = offer
            on_offer(offer)

        await self._era.remember(self.info.era)
        await self._follower.run(self._client, take)

    async def call_tool(
        self, name: str, arguments: JsonObject, on_progress: Callable[[Progress], None]
    ) -> ToolResult:
        """Run a tool by its name on the server.

        Cancelling the caller cancels the call on the server, as does the definition's timeout.

        Raises:
            ToolCallError: If no result came back.
        """
        client = self._client
        if client is None:
            raise ToolCallError("The server is not connected.")
        try:
            with self._era.calling():
                async with self._watchdog.watch() as watch:

                    def take(progress: Progress) -> None:
                        watch.progress()
                        on_progress(progress)

                    with ProgressReporter(take) as report:
                        result = restore(await self._send_call(client, name, arguments, report))
        except CallTimeoutError as error:
            raise ToolCallError(
                f"The tool gave {error}. It was told to stop; whether it had any effect is unknown."
            ) from None
        except MCPError as error:
            raise await self._call_error(error) from error
        except ValidationError as error:
            raise ToolCallError("The server answered with what is no result of a tool.") from error
        except InputRequiredRoundsExceededError as error:
            raise ToolCallError("The server asked for input too often in one call.") from error
        except RuntimeError as error:
            raise ToolCallError(self._clean(str(error))) from error
        limit = self._host.facilities.max_result_size
        if result.structured_content is None and text_size(result) <= MAX_TEXT_ON_LOOP:
            return convert_result(result, limit)
        return await asyncio.to_thread(convert_result, result, limit)

    async def _send_call(
        self, client: Client, name: str, arguments: JsonObject, report: ProgressReporter
    ) -> types.CallToolResult:
        """Send a call; once more where it was not run because an address has to be opened first."""
        try:
            return await client.call_tool(name, dict(arguments), progress_callback=report)
        except MCPError as error:
            if error.code != types.URL_ELICITATION_REQUIRED:
                raise
            if not await self._inbound.open_required(error, sanitize_line(name, 128)):
                raise
        return await client.call_tool(name, dict(arguments), progress_callback=report)

    async def _call_error(self, error: MCPError) -> ToolCallError:
        if (refusal := await self._era.refusal(error)) is not None:
            return refusal
        if error.code in {EXCHANGE_FAILED, SESSION_LOST}:
            kind = CallNotTakenError if error.code == SESSION_LOST else ToolCallError
            return kind(f"The server {sanitize_line(error.error.message)}.")
        if error.code == types.URL_ELICITATION_REQUIRED:
            return ToolCallError(
                "The call was not run: the server needs an address to be opened before it."
            )
        if error.code == REFUSED and self.info.is_stateless:
            return ToolCallError("The call ended because the text it wanted was refused.")
        if error.code != types.CONNECTION_CLOSED or error.error.message != CLOSED:
            # Servers use the code of a closed connection for errors of their own, too.
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
        if (problem := self.problem()) is not None:
            return problem
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
                return ServerError(
                    "answered with what is no MCP", "Is this an MCP server?", permanent=True
                )
            if isinstance(cause, RuntimeError):  # no revision of the protocol in common
                return ServerError(str(cause), permanent=True)
        return ServerError("; ".join(f"{type(cause).__name__}: {cause}" for cause in causes))

    async def _hear(self, message: object) -> None:
        self._follower.hear(message)
        if self._features is not None:
            self._features.hear(message)
        if isinstance(message, types.ElicitCompleteNotification):
            self._inbound.elicitor.complete(message.params.elicitation_id)

    async def _take_log(self, params: types.LoggingMessageNotificationParams) -> None:
        data = params.data if isinstance(params.data, str) else str(params.data)
        text = f"{params.logger}: {data}" if params.logger else data
        self._log.add("log", _SEVERITIES.get(params.level, Severity.ERROR), text)


def open_transport(
    definition: ServerDefinition, log: ServerLog, workspaces: Sequence[Path] = ()
) -> ServerTransport:
    """Make the transport that a definition asks for; it is not opened yet.

    Args:
        definition: Which server.
        log: Takes what it writes.
        workspaces: The opened folders, in which no program is looked up by its name.

    Raises:
        ServerError: If the definition cannot work on this machine.
    """
    if definition.transport is not Transport.STDIO:
        return NetworkTransport(definition, log)
    avoid = guarded_folders(workspaces, Path.home())
    environment = server_environment(definition.env, os.environ, avoid)
    folder = resolve_folder(definition.cwd)
    if definition.origin is Origin.PROJECT:
        program = shown_program(definition)
    else:
        program = own_program(definition, environment, folder, avoid)
    return StdioTransport(Launch((program, *definition.args), environment, folder), log)


def _server_info(client: Client) -> ServerInfo:
    info = client.server_info
    declared = client.server_capabilities
    return ServerInfo(
        name=sanitize_line(info.name, 64) if info is not None else "",
        version=sanitize_line(info.version, 64) if info is not None else "",
        protocol_version=sanitize_line(client.protocol_version, 64),
        instructions=sanitize(client.instructions or "", MAX_INSTRUCTIONS),
        log_levels=takes_log_level(client),
        completions=declared.completions is not None,
        subscriptions=declared.resources is not None and bool(declared.resources.subscribe),
    )


def _leaves(error: BaseException) -> list[BaseException]:
    """Give the exceptions in a group of groups."""
    if isinstance(error, BaseExceptionGroup):
        return [leaf for nested in error.exceptions for leaf in _leaves(nested)]
    return [error]
