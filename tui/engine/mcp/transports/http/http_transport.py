"""A server on the network as a transport for `mcp.Client`: streamable HTTP, SSE, or either.

The SDK has these too. There, one network error ends the connection, and an HTTP status never
reaches the user; here it fails the one request, in words. A server that is gone, that forgot
the session or that wants a sign-in ends the connection, and says so.
"""

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Final

import anyio
from mcp.shared.message import SessionMessage

from tui.engine.servers.failures import ServerError
from tui.engine.servers.log import ServerLog
from tui.engine.servers.network.client import HttpClient, is_loopback
from tui.engine.servers.network.courier import Courier, refused_at_the_door
from tui.engine.servers.network.errors import ExchangeError
from tui.engine.servers.transport import Streams
from tui.engine.settings.definitions import ServerDefinition
from tui.model.chat import Severity
from tui.model.servers import Transport

OUTGOING_QUEUE: Final = 256
"""Messages that may wait to be sent; then senders wait."""

DISCONNECT_TIMEOUT: Final = 1.0
"""Seconds in which the sockets are closed."""


class NetworkTransport:
    """A server that is reached over HTTP.

    Args:
        definition: Where it is and what to send along.
        log: Takes remarks.

    Attributes:
        ended: Set when the server is gone or will not have us any longer.
    """

    def __init__(self, definition: ServerDefinition, log: ServerLog) -> None:
        self.ended = asyncio.Event()
        self._definition = definition
        self._log = log
        self._http: HttpClient | None = None
        self._courier: Courier | None = None

    async def __aenter__(self) -> Streams:
        definition = self._definition
        self._http = http = await HttpClient.make(definition.url, definition.headers)
        self._announce(http)
        to_session, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        to_server, from_session = anyio.create_memory_object_stream[SessionMessage](OUTGOING_QUEUE)
        self._courier = courier = Courier(
            http, to_session, self._log, self.ended, tries_sse=definition.sse_fallback
        )
        try:
            if definition.transport is Transport.SSE:
                await courier.open_sse()
        except BaseException as error:
            for stream in (from_server, to_server, from_session):
                stream.close()
            await self._let_go()
            if isinstance(error, ExchangeError):
                raise refused_at_the_door(error) from error
            raise
        courier.spawn(courier.run(from_session))
        return from_server, to_server

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if self._courier is not None:
                await self._courier.say_farewell()
        finally:
            await self._let_go()

    def ending(self) -> str:
        """Say in one line why the server is gone."""
        problem = self.problem()
        return problem.reason if problem is not None else "was closed"

    def problem(self) -> ServerError | None:
        """Give the reason why the server cannot be used, or None."""
        return self._courier.problem if self._courier is not None else None

    def kill(self) -> None:
        """Break off whatever is under way."""
        if self._courier is not None:
            self._courier.break_off()

    async def _let_go(self) -> None:
        """Stop what runs and close the sockets, whatever cancels meanwhile."""
        with anyio.CancelScope(shield=True):
            try:
                if self._courier is not None:
                    await self._courier.stop()
            finally:
                if self._http is not None:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(DISCONNECT_TIMEOUT):
                            await self._http.aclose()

    def _announce(self, http: HttpClient) -> None:
        """Say in the log what a user should know of the way to the server."""
        if http.proxy:
            self._log.add("gemdeck", Severity.INFO, f"reached through the proxy {http.proxy}")
        if http.url.scheme == "http" and not is_loopback(http.url.host):
            words = "the connection is not encrypted: use https:// in `url` if the server can"
            self._log.add("gemdeck", Severity.WARNING, words)
