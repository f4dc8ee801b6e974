"""A server on the network as a transport for `mcp.Client`: streamable HTTP, SSE, or either.

In the SDK's own transports one network error ends the connection, and the user never sees an HTTP
status. Here it fails only one request, with a message. The connection ends with a reason if the
server is gone, has lost the session or requires a sign-in.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, nullcontext, suppress
from contextvars import Context
from typing import Final

import anyio
import mcp_types as types
from mcp.shared.jsonrpc_dispatcher import cancelled_request_id_from_params
from mcp.shared.message import SessionMessage

from tui.engine.definitions.definition import ServerDefinition
from tui.engine.mcp.errors import ServerError, SessionLostError, SignInError
from tui.engine.mcp.server_log import ServerLog
from tui.engine.mcp.transports import jsonrpc_lines as rpc
from tui.engine.mcp.transports.http.channels import INITIALIZED, ServerSentEvents, StreamableHttp
from tui.engine.mcp.transports.http.http_client import HttpClient, Pausing
from tui.engine.mcp.transports.http.http_errors import ExchangeError, Outcome
from tui.engine.mcp.transports.http.pacing import CONNECT_TIMEOUT
from tui.engine.sign_in.sign_in_record import AuthError, ServerCredentials
from tui.model.chat import Severity
from tui.model.input.addresses import is_loopback
from tui.model.servers import Transport
from tui.model.wire.refusals import words_of

MAX_REQUESTS: Final = 200
"""Most concurrent requests to one server; further ones fail at once."""

MAX_NOTICES: Final = 100
"""Most concurrent messages without an answer; further ones are dropped."""

NOTICE_TIMEOUT: Final = 10.0
"""Seconds that a server gets to accept a message without an answer."""

MAX_BREAKS: Final = 3
"""Broken exchanges in a row after which the server counts as gone."""

SETTLE_TIMEOUT: Final = 0.5
"""Seconds that the other requests of a lost session still get."""

FAREWELL_TIMEOUT: Final = 1.5
"""Seconds to end the session when the connection closes."""

DISCONNECT_TIMEOUT: Final = 1.0
"""Seconds to close the sockets."""

MAX_REMARKS: Final = 20
"""Most remarks in the server's log; further ones are dropped."""


_SAYS_NOTHING_OF_TRANSPORT: Final = frozenset({401, 403, 407, 408, 429})


class HttpTransport:
    """The transport to a server over HTTP.

    It sends the messages of a session concurrently, and delivers what the server answers. A failed
    exchange gets an error reply and affects no other. The connection ends if the server cannot be
    reached, has lost the session or requires a sign-in, or if three exchanges in a row broke off.

    Args:
        definition: Its address and headers.
        log: Takes remarks.
        credentials: Signs each request, or None.
        pausing: Stops the clocks of calls, such as while somebody signs in.

    Attributes:
        ended: Set when the server is gone or has ended the connection.
        problem: Why the server cannot be used, or None.
        exit_code: None, as no process of ours ends.
        tap: Notes what is sent and received.
        pid: 0, ditto.
    """

    exit_code: Final = None
    pid: Final = 0

    def __init__(
        self,
        definition: ServerDefinition,
        log: ServerLog,
        credentials: ServerCredentials | None = None,
        pausing: Pausing = nullcontext,
    ) -> None:
        self.ended = asyncio.Event()
        self.problem: ServerError | None = None
        self._definition, self._log = definition, log
        self.tap = log.tap
        self._credentials, self._pausing = credentials, pausing
        self._http: HttpClient
        self._channel: StreamableHttp | ServerSentEvents
        self._to_session: rpc.ToSession
        self._flow_control = rpc.FlowControl(log)
        self._flow_control.is_heard = True  # a refusal may say anything
        self._tasks: set[asyncio.Task[None]] = set()
        self._requests: dict[types.RequestId, asyncio.Task[None]] = {}
        self._notices = self._breaks = self._remarks = 0
        self._is_up = self._is_ending = False

    @property
    def kind(self) -> Transport:
        """The transport in use."""
        return Transport.SSE if isinstance(self._channel, ServerSentEvents) else Transport.HTTP

    async def __aenter__(self) -> rpc.Streams:
        definition = self._definition
        headers, tls = definition.endpoint.headers, definition.endpoint.tls
        self._http = http = await HttpClient.make(definition.endpoint.url, headers, tls)
        http.credentials, http.pausing, http.tap = self._credentials, self._pausing, self.tap
        http.learn = self._log.learn
        streams, self._to_session, from_session = rpc.open_streams(self.tap)
        self._channel = StreamableHttp(http, self)
        try:
            await self._log_route(http)
            if definition.transport is Transport.SSE:
                await self._open_sse()
        except BaseException as error:
            for stream in (*streams, from_session):
                stream.close()
            await self._release()
            if isinstance(error, ExchangeError):
                raise connect_error(error) from error
            raise
        self.spawn(self._run(from_session))
        return streams

    async def __aexit__(self, *exception: object) -> None:
        try:
            if not self.ended.is_set():
                with suppress(TimeoutError, ExchangeError):
                    async with asyncio.timeout(FAREWELL_TIMEOUT):
                        await self._channel.close()
        finally:
            await self._release()

    def ending(self) -> str:
        """Return in one line why the server is gone."""
        return self.problem.reason if self.problem is not None else "was closed"

    def kill(self) -> None:
        """Cancel everything at once."""
        self.ended.set()
        for task in self._tasks:
            task.cancel()

    async def _release(self) -> None:
        """Stop all tasks and close the sockets, even if cancelled."""
        with anyio.CancelScope(shield=True):
            try:
                self.kill()
                await asyncio.gather(*self._tasks, return_exceptions=True)
                self._to_session.close()
            finally:
                with suppress(TimeoutError):
                    async with asyncio.timeout(DISCONNECT_TIMEOUT):
                        await self._http.aclose()

    async def _log_route(self, http: HttpClient) -> None:
        """Log a proxy, a missing encryption, and which of two credentials is sent."""
        if http.proxy:
            self._log.remark(f"reached through the proxy {http.proxy}", Severity.INFO)
        if http.url.scheme == "http" and not is_loopback(http.url.host):
            words = "the connection is not encrypted: use https:// in `url` if supported"
            self._log.remark(words)
        names = {name.lower() for name in self._definition.endpoint.headers}
        if self._credentials is None or "authorization" not in names:
            return
        with suppress(AuthError):  # the first request says why
            if (await self._credentials.signature()).token:
                words = "the token of the sign-in is sent instead of the Authorization header in "
                self._log.remark(f"{words}`headers`", Severity.INFO)

    async def _open_sse(self, patience: float | None = None) -> None:
        """Switch to HTTP+SSE; see `ServerSentEvents.open`.

        Raises:
            ExchangeError: If the server has no such stream.
        """
        channel = ServerSentEvents(self._http, self)
        await channel.open(patience)
        self._channel = channel

    async def _run(self, from_session: rpc.FromSession) -> None:
        """Send the session's messages until it closes."""
        async with from_session:
            async for outgoing in from_session:
                self._flow_control.note_sent(outgoing.message)
                match outgoing.message:
                    case types.JSONRPCRequest() as request:
                        await self._begin_request(outgoing, request)
                    case types.JSONRPCNotification(method=method) if method == INITIALIZED:
                        # It ends the handshake: nothing may overtake it.
                        await self._send_notice(outgoing)
                    case types.JSONRPCNotification(method="notifications/cancelled", params=params):
                        self._cancel(outgoing, cancelled_request_id_from_params(params))
                    case _:
                        self._begin_notice(self._send_notice(outgoing))

    async def take(self, data: bytes) -> types.JSONRPCMessage | None:
        """Read what the server sent, within its allowance; None if it is not a message."""
        async with self._ending_floods():
            return await self._flow_control.take(data)

    def words_of(self, body: bytes) -> str:
        """Return what the body of a refusal says; see `tui.model.wire.refusals`."""
        return words_of(body, self._log.mask)

    async def take_lines(self, count: int) -> None:
        """Count lines of a stream against the server's allowance."""
        async with self._ending_floods():
            await self._flow_control.take_lines(count)

    @asynccontextmanager
    async def _ending_floods(self) -> AsyncIterator[None]:
        try:
            yield
        except rpc.FloodError as error:
            await self.end(error)
            raise ExchangeError(error) from error

    def encoded(self, message: types.JSONRPCMessage) -> bytes:
        """Write a message that the running task posts.

        Raises:
            ValueError: If it cannot be written.
        """
        data = rpc.encode(message)
        self.tap.sent(message, data, posts=True)
        return data

    async def deliver(self, message: types.JSONRPCMessage) -> None:
        await rpc.deliver(self._to_session, message)

    def spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Run something while the connection lasts; it is no part of what posts a message now."""
        task = asyncio.get_running_loop().create_task(work, context=Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def end(self, error: ServerError) -> None:
        """End the connection with an error, which fails all pending requests.

        If the session is lost, running requests get a moment to learn whether the server ran them:
        those it did not run may be repeated.
        """
        if self._is_ending:
            return
        self._is_ending = True
        try:
            others = set(self._requests.values()) - {asyncio.current_task()}
            if others and isinstance(error, SessionLostError):
                await asyncio.wait(others, timeout=SETTLE_TIMEOUT)
        finally:
            if not self.ended.is_set():
                self.problem = error
                self.ended.set()
            self._to_session.close()

    def remark(self, text: str) -> None:
        """Add a remark to the server's log, unless there are too many."""
        self._remarks += 1
        if self._remarks <= MAX_REMARKS:
            self._log.remark(text)

    async def _begin_request(self, outgoing: SessionMessage, request: types.JSONRPCRequest) -> None:
        if len(self._requests) >= MAX_REQUESTS:
            error = ServerError("has too many requests in progress")
            await self.deliver(_reply(request, ExchangeError(error, Outcome.NOT_EXECUTED)))
            return
        task = self.spawn(self._run_request(outgoing, request))
        self._requests[request.id] = task
        task.add_done_callback(lambda _: self._requests.pop(request.id, None))

    async def _run_request(self, outgoing: SessionMessage, request: types.JSONRPCRequest) -> None:
        """Send a request and make sure that it gets an answer."""
        try:
            await self._send(outgoing)
        except ExchangeError as fault:
            await self._fail(request, fault)
        except ValueError:
            if (answer := rpc.unsendable(request)) is not None:
                await self.deliver(answer)
        else:
            self._is_up = True
            self._breaks = 0
            if not self.ended.is_set():
                self.problem = None

    async def _send(self, outgoing: SessionMessage) -> None:
        """Send a message; switch to SSE if that is allowed and streamable HTTP was refused.

        The specification prescribes this for servers of 2024-11-05: after a handshake refused with
        a 4xx status, GET a stream. If that fails too, the first error is reported.
        """
        try:
            await self._channel.send(outgoing)
        except ExchangeError as fault:
            if not self._may_be_sse(outgoing.message, fault):
                raise
            try:
                await self._open_sse(CONNECT_TIMEOUT)
            except ExchangeError:
                raise fault from None
            await self._channel.send(outgoing)

    def _may_be_sse(self, message: types.JSONRPCMessage, fault: ExchangeError) -> bool:
        is_handshake = isinstance(message, types.JSONRPCRequest) and message.method == "initialize"
        if not self._definition.endpoint.sse_fallback or not is_handshake or self._is_up:
            return False
        if fault.reply is not None and fault.reply.error.code == types.UNSUPPORTED_PROTOCOL_VERSION:
            return False
        return 400 <= fault.status < 500 and fault.status not in _SAYS_NOTHING_OF_TRANSPORT

    async def _fail(self, request: types.JSONRPCRequest, fault: ExchangeError) -> None:
        """Answer a request whose exchange failed, and end the connection if necessary."""
        fault.error = fault.error.masked(self._log.mask)  # it may quote an address of the server's
        error = fault.error if self._is_up else connect_error(fault)
        if not self._is_up and fault.reply is None:
            self.problem = error
        if fault.reply is None:
            self.tap.word("", fault.error.reason, request.id, fault.told)
        await self.deliver(_reply(request, fault))
        self._breaks = 0 if fault.status else self._breaks + 1
        if _is_final(fault, error) or self._breaks >= MAX_BREAKS:
            await self.end(error)

    def _begin_notice(self, sending: Coroutine[None, None, None]) -> None:
        if self._notices < MAX_NOTICES:
            self.spawn(sending)
        else:
            sending.close()
            self.remark("accepts messages too slowly; one was dropped")

    async def _send_notice(self, outgoing: SessionMessage) -> None:
        """Send a message without an answer; a failure goes to the log."""
        self._notices += 1
        try:
            async with asyncio.timeout(NOTICE_TIMEOUT):
                await self._send(outgoing)
        except ExchangeError as fault:
            if _is_final(fault, fault.error):
                await self.end(fault.error)
            else:
                self.remark(f"a message was not delivered: the server {fault.error.reason}")
        except TimeoutError:
            self.remark("a message was not accepted in time")
        except ValueError:
            self.remark("a message contains text that cannot be sent")
        finally:
            self._notices -= 1

    def _cancel(self, outgoing: SessionMessage, request_id: types.RequestId | None) -> None:
        """Cancel a request in the way of the revision in use."""
        task = self._requests.get(request_id) if request_id is not None else None
        if not self._channel.cancels_by_abort():
            self._begin_notice(self._call_off(outgoing, task))
        elif task is not None:
            task.cancel()

    async def _call_off(self, outgoing: SessionMessage, task: asyncio.Task[None] | None) -> None:
        """Tell the server of a cancellation, then stop waiting for the answer."""
        await self._send_notice(outgoing)
        if task is not None:
            task.cancel()


def connect_error(fault: ExchangeError) -> ServerError:
    """Return the error of a failed connection attempt; then a 403 mostly means a sign-in."""
    if fault.status == 403 and not fault.error.permanent:
        return SignInError(fault.error.reason, fault.error.advice)
    return fault.error


def _is_final(fault: ExchangeError, error: ServerError) -> bool:
    return fault.is_gone or isinstance(error, SessionLostError | SignInError)


def _reply(request: types.JSONRPCRequest, fault: ExchangeError) -> types.JSONRPCError:
    """Return the server's own error reply, or one in its place."""
    if fault.reply is not None:
        return fault.reply
    code = rpc.SESSION_LOST if isinstance(fault.error, SessionLostError) else rpc.EXCHANGE_FAILED
    return rpc.failed(request.id, f"{fault.error.reason}; {fault.outcome.value}", code)
