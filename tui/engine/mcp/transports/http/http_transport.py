"""A server on the network as a transport for `mcp.Client`: streamable HTTP, SSE, or either.

In the SDK's own transports one network error ends the connection, and the user never sees an HTTP
status. Here it fails only one request, with a message. The connection ends with a reason if the
server is gone, has lost the session or requires a sign-in.
"""

import asyncio
from contextlib import nullcontext, suppress
from typing import Final

import anyio

from tui.engine.definitions.definition import ServerDefinition
from tui.engine.mcp.errors import ServerError
from tui.engine.mcp.server_log import ServerLog
from tui.engine.mcp.transports.http.dispatcher import Dispatcher, connect_error
from tui.engine.mcp.transports.http.http_client import HttpClient, Pausing
from tui.engine.mcp.transports.http.http_errors import ExchangeError
from tui.engine.mcp.transports.jsonrpc_lines import Streams, open_streams
from tui.engine.sign_in.sign_in_record import AuthError, ServerCredentials
from tui.model.addresses import is_loopback
from tui.model.chat import Severity
from tui.model.servers import Transport

DISCONNECT_TIMEOUT: Final = 1.0
"""Seconds to close the sockets."""


class HttpTransport:
    """The transport to a server over HTTP.

    Args:
        definition: Its address and headers.
        log: Takes remarks.
        credentials: Signs each request, or None.
        pausing: Stops the clocks of calls, such as while somebody signs in.

    Attributes:
        ended: Set when the server is gone or has ended the connection.
    """

    def __init__(
        self,
        definition: ServerDefinition,
        log: ServerLog,
        credentials: ServerCredentials | None = None,
        pausing: Pausing = nullcontext,
    ) -> None:
        self.ended = asyncio.Event()
        self._definition = definition
        self._log = log
        self._credentials = credentials
        self._pausing = pausing
        self._http: HttpClient | None = None
        self._dispatcher: Dispatcher | None = None

    async def __aenter__(self) -> Streams:
        definition = self._definition
        self._http = http = await HttpClient.make(definition.url, definition.headers)
        http.credentials, http.pausing = self._credentials, self._pausing
        streams, to_session, from_session = open_streams()
        self._dispatcher = dispatcher = Dispatcher(
            http, to_session, self._log, self.ended, tries_sse=definition.sse_fallback
        )
        try:
            await self._log_route(http)
            if definition.transport is Transport.SSE:
                await dispatcher.open_sse()
        except BaseException as error:
            for stream in (*streams, from_session):
                stream.close()
            await self._release()
            if isinstance(error, ExchangeError):
                raise connect_error(error) from error
            raise
        dispatcher.spawn(dispatcher.run(from_session))
        return streams

    async def __aexit__(self, *exception: object) -> None:
        try:
            if self._dispatcher is not None:
                await self._dispatcher.end_session()
        finally:
            await self._release()

    def ending(self) -> str:
        """Return in one line why the server is gone."""
        problem = self.problem()
        return problem.reason if problem is not None else "was closed"

    def problem(self) -> ServerError | None:
        return self._dispatcher.problem if self._dispatcher is not None else None

    def kill(self) -> None:
        """Cancel everything at once."""
        if self._dispatcher is not None:
            self._dispatcher.break_off()

    async def _release(self) -> None:
        """Stop all tasks and close the sockets, even if cancelled."""
        with anyio.CancelScope(shield=True):
            try:
                if self._dispatcher is not None:
                    await self._dispatcher.stop()
            finally:
                if self._http is not None:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(DISCONNECT_TIMEOUT):
                            await self._http.aclose()

    async def _log_route(self, http: HttpClient) -> None:
        """Log a proxy, a missing encryption, and which of two credentials is sent."""
        if http.proxy:
            self._log.add("gemdeck", Severity.INFO, f"reached through the proxy {http.proxy}")
        if http.url.scheme == "http" and not is_loopback(http.url.host):
            words = "the connection is not encrypted: use https:// in `url` if the server can"
            self._log.add("gemdeck", Severity.WARNING, words)
        names = {name.lower() for name in self._definition.headers}
        if self._credentials is None or "authorization" not in names:
            return
        with suppress(AuthError):  # the first request says why
            if (await self._credentials.signature()).token:
                words = (
                    "the token of the sign-in is sent, not the Authorization header of `headers`"
                )
                self._log.add("gemdeck", Severity.INFO, words)
