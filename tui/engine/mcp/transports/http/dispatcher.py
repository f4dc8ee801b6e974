"""Carries the messages of one session over HTTP, side by side, and answers for what fails."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.jsonrpc_dispatcher import cancelled_request_id_from_params
from mcp.shared.message import SessionMessage
from mcp_types import (
    UNSUPPORTED_PROTOCOL_VERSION,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    RequestId,
)

from tui.engine.servers.failures import ServerError, SessionLostError, SignInError
from tui.engine.servers.framing import unsendable
from tui.engine.servers.intake import FloodError, Intake
from tui.engine.servers.log import ServerLog
from tui.engine.servers.network.channel import CANCELLED, INITIALIZED, Channel
from tui.engine.servers.network.client import HttpClient
from tui.engine.servers.network.errors import ExchangeError, Fate
from tui.engine.servers.network.sse import ServerSentEvents
from tui.engine.servers.network.streamable import StreamableHttp
from tui.engine.servers.transport import EXCHANGE_FAILED, SESSION_LOST
from tui.model.chat import Severity

MAX_REQUESTS: Final = 200
"""Requests to one server that may be under way; further ones fail at once."""

MAX_NOTICES: Final = 100
"""Messages without an answer that may be under way; further ones are dropped."""

NOTICE_TIMEOUT: Final = 10.0
"""Seconds a server gets to take a message that needs no answer."""

MAX_BREAKS: Final = 3
"""Exchanges in a row that may break off before the server counts as gone."""

SETTLE_TIMEOUT: Final = 0.5
"""Seconds in which the other requests of a lost session are still answered."""

FAREWELL_TIMEOUT: Final = 1.5
"""Seconds in which the session is ended when the connection is closed."""

MAX_REMARKS: Final = 20
"""Remarks on what a server does that go to its log; further ones are dropped."""

ToSession = MemoryObjectSendStream[SessionMessage | Exception]
FromSession = MemoryObjectReceiveStream[SessionMessage]

_SAYS_NOTHING_OF_TRANSPORT: Final = frozenset({401, 403, 407, 408, 429})


class Courier:
    """Carries messages to one server and hands on what comes back.

    An exchange that fails is answered in words and ends nothing else. The connection ends where
    the server cannot be reached, has forgotten the session or wants a sign-in, and where three
    exchanges in a row broke off.

    Args:
        http: How the server is reached.
        to_session: Takes messages for the session.
        log: Takes remarks.
        ended: Set when the connection is of no use any longer.
        tries_sse: Whether SSE is to be tried where streamable HTTP is refused.

    Attributes:
        problem: Why the server cannot be used, or None.
    """

    def __init__(
        self,
        http: HttpClient,
        to_session: ToSession,
        log: ServerLog,
        ended: asyncio.Event,
        *,
        tries_sse: bool,
    ) -> None:
        self.problem: ServerError | None = None
        self._ended = ended
        self._http = http
        self._to_session = to_session
        self._log = log
        self._intake = Intake(log)
        self._tries_sse = tries_sse
        self._channel: Channel = StreamableHttp(http, self)
        self._tasks: set[asyncio.Task[None]] = set()
        self._requests: dict[RequestId, asyncio.Task[None]] = {}
        self._notices = 0
        self._breaks = 0
        self._remarks = 0
        self._is_up = False
        self._is_ending = False

    async def open_sse(self) -> None:
        """Carry over HTTP+SSE from now on.

        Raises:
            ExchangeError: If the server offers no stream.
        """
        channel = ServerSentEvents(self._http, self)
        await channel.open()
        self._channel = channel

    async def run(self, from_session: FromSession) -> None:
        """Send what the session says until it closes; answers come as they come."""
        async with from_session:
            async for outgoing in from_session:
                self._intake.note_sent(outgoing.message)
                match outgoing.message:
                    case JSONRPCRequest() as request:
                        await self._begin_request(outgoing, request)
                    case JSONRPCNotification(method=method) if method == INITIALIZED:
                        # Nothing may overtake it: it ends the handshake.
                        await self._send_notice(outgoing)
                    case JSONRPCNotification(method=method, params=params) if method == CANCELLED:
                        self._cancel(outgoing, cancelled_request_id_from_params(params))
                    case _:
                        self._begin_notice(self._send_notice(outgoing))

    async def say_farewell(self) -> None:
        """Tell the server that the session is over, within bounds."""
        if not self._ended.is_set():
            with suppress(TimeoutError, ExchangeError):
                async with asyncio.timeout(FAREWELL_TIMEOUT):
                    await self._channel.close()

    async def stop(self) -> None:
        """Stop all tasks."""
        self.break_off()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._to_session.close()

    def break_off(self) -> None:
        """Break off whatever is under way, at once."""
        self._ended.set()
        for task in self._tasks:
            task.cancel()

    async def take(self, data: bytes) -> JSONRPCMessage | None:
        """Read what the server sent as a message, at a bearable pace; None if it is none."""
        try:
            return await self._intake.take(data)
        except FloodError as error:
            await self.end(error)
            raise ExchangeError(error) from error

    async def take_lines(self, count: int) -> None:
        """Count lines of a stream, so that one that only keeps us busy is slowed down."""
        try:
            await self._intake.take_lines(count)
        except FloodError as error:
            await self.end(error)
            raise ExchangeError(error) from error

    async def deliver(self, message: JSONRPCMessage) -> None:
        """Hand on a message of the server."""
        await self._hand_on(message)

    def spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Let something run for as long as the connection lasts."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def end(self, error: ServerError) -> None:
        """End the connection for a reason; whoever waits for an answer hears of it.

        Where the session is lost, each request under way gets a moment to learn whether the
        server took it in before: those it did not may be repeated.
        """
        if self._is_ending:
            return
        self._is_ending = True
        try:
            others = set(self._requests.values()) - {asyncio.current_task()}
            if others and isinstance(error, SessionLostError):
                await asyncio.wait(others, timeout=SETTLE_TIMEOUT)
        finally:
            if not self._ended.is_set():
                self.problem = error
                self._ended.set()
            self._to_session.close()

    def remark(self, text: str) -> None:
        """Put a word into the server's log, if there are not too many."""
        self._remarks += 1
        if self._remarks <= MAX_REMARKS:
            self._log.add("gemdeck", Severity.WARNING, text)

    async def _begin_request(self, outgoing: SessionMessage, request: JSONRPCRequest) -> None:
        if len(self._requests) >= MAX_REQUESTS:
            error = ServerError("has too many requests under way")
            await self._hand_on(_reply(request, ExchangeError(error, Fate.NOT_EXECUTED)))
            return
        task = self.spawn(self._run_request(outgoing, request))
        self._requests[request.id] = task
        task.add_done_callback(lambda _: self._requests.pop(request.id, None))

    async def _run_request(self, outgoing: SessionMessage, request: JSONRPCRequest) -> None:
        """Carry a request and see to it that it is answered, by us if need be."""
        try:
            await self._carry(outgoing)
        except ExchangeError as fault:
            await self._fail(request, fault)
        except ValueError:
            if (answer := unsendable(request)) is not None:
                await self._hand_on(answer)
        else:
            self._is_up = True
            self._breaks = 0
            if not self._ended.is_set():
                self.problem = None

    async def _carry(self, outgoing: SessionMessage) -> None:
        """Carry a message, over SSE where that is allowed and streamable HTTP was refused.

        This is how clients support servers of 2024-11-05, by the transport chapter of the
        specification: a handshake refused with a 4xx status leads to a GET for a stream. Where
        that fails too, the first refusal is the one to tell.
        """
        try:
            await self._channel.carry(outgoing)
        except ExchangeError as fault:
            if not self._may_be_sse(outgoing.message, fault):
                raise
            try:
                await self.open_sse()
            except ExchangeError:
                raise fault from None
            await self._channel.carry(outgoing)

    def _may_be_sse(self, message: JSONRPCMessage, fault: ExchangeError) -> bool:
        is_handshake = isinstance(message, JSONRPCRequest) and message.method == "initialize"
        if not self._tries_sse or not is_handshake or self._is_up:
            return False
        if fault.reply is not None and fault.reply.error.code == UNSUPPORTED_PROTOCOL_VERSION:
            return False
        return 400 <= fault.status < 500 and fault.status not in _SAYS_NOTHING_OF_TRANSPORT

    async def _fail(self, request: JSONRPCRequest, fault: ExchangeError) -> None:
        """Answer a request whose exchange failed, and judge what that means for the rest."""
        error = fault.error if self._is_up else refused_at_the_door(fault)
        if not self._is_up and fault.reply is None:
            self.problem = error
        await self._hand_on(_reply(request, fault))
        self._breaks = 0 if fault.status else self._breaks + 1
        if _is_final(fault, error) or self._breaks >= MAX_BREAKS:
            await self.end(error)

    def _begin_notice(self, sending: Coroutine[None, None, None]) -> None:
        if self._notices < MAX_NOTICES:
            self.spawn(sending)
        else:
            sending.close()
            self.remark("is too slow to take messages; one was dropped")

    async def _send_notice(self, outgoing: SessionMessage) -> None:
        """Send a message that has no answer; that it fails is said in the log."""
        self._notices += 1
        try:
            async with asyncio.timeout(NOTICE_TIMEOUT):
                await self._carry(outgoing)
        except ExchangeError as fault:
            if _is_final(fault, fault.error):
                await self.end(fault.error)
            else:
                self.remark(f"a message did not get through: the server {fault.error.reason}")
        except TimeoutError:
            self.remark("a message was not taken in time")
        except ValueError:
            self.remark("a message holds text that cannot be sent")
        finally:
            self._notices -= 1

    def _cancel(self, outgoing: SessionMessage, request_id: RequestId | None) -> None:
        """Call a request off, in the way of the revision in use."""
        task = self._requests.get(request_id) if request_id is not None else None
        if not self._channel.cancels_by_abort():
            self._begin_notice(self._call_off(outgoing, task))
        elif task is not None:
            task.cancel()

    async def _call_off(self, outgoing: SessionMessage, task: asyncio.Task[None] | None) -> None:
        """Tell the server of a cancellation, then wait no longer for the answer."""
        await self._send_notice(outgoing)
        if task is not None:
            task.cancel()

    async def _hand_on(self, message: JSONRPCMessage) -> None:
        """Give a message to the session; where that has closed, nobody waits for it."""
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._to_session.send(SessionMessage(message))


def refused_at_the_door(fault: ExchangeError) -> ServerError:
    """Give the error of a connection that failed from the start; a 403 then asks for a sign-in."""
    if fault.status == 403:
        return SignInError(fault.error.reason, fault.error.advice)
    return fault.error


def _is_final(fault: ExchangeError, error: ServerError) -> bool:
    return fault.is_gone or isinstance(error, SessionLostError | SignInError)


def _reply(request: JSONRPCRequest, fault: ExchangeError) -> JSONRPCError:
    """Answer a request in the server's stead, unless the server gave an error of its own."""
    if fault.reply is not None:
        return fault.reply
    is_lost = isinstance(fault.error, SessionLostError)
    error = ErrorData(
        code=SESSION_LOST if is_lost else EXCHANGE_FAILED,
        message=f"{fault.error.reason}; {fault.fate.value}",
    )
    return JSONRPCError(jsonrpc="2.0", id=request.id, error=error)
