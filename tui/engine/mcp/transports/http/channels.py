"""The two ways to speak over HTTP: streamable HTTP, and HTTP+SSE of 2024-11-05.

Streamable HTTP posts each message, and the body or an event stream answers it. Sessions, the GET
stream and resumed streams, which revision 2026-07-28 dropped, are used only with servers of earlier
revisions. HTTP+SSE has one event stream to us, and a POST for each message.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import httpx2
import mcp_types as types
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from tui.engine.mcp.errors import ServerError, SessionLostError, SignInError
from tui.engine.mcp.transports.handshake import lower_revision
from tui.engine.mcp.transports.http.http_client import (
    EVENT_STREAM,
    HttpClient,
    discard,
    read_body,
    read_events,
    read_words,
)
from tui.engine.mcp.transports.http.http_errors import (
    ExchangeError,
    Outcome,
    content_error,
    cut_error,
    media_type,
    session_error,
    status_error,
)
from tui.engine.mcp.transports.jsonrpc_lines import overdue, split_batch
from tui.engine.mcp.wire.tap import LAST_EVENT_ID, SESSION_HEADER
from tui.model.wire.refusals import MAX_BODY, words_of

if TYPE_CHECKING:
    from tui.engine.mcp.transports.http.http_transport import HttpTransport

INITIALIZED: Final = "notifications/initialized"

MAX_SESSION_ID: Final = 1_024
"""Longest session id that is accepted."""

MAX_ATTEMPTS: Final = 5
"""Failed attempts in a row to resume a broken stream before it is given up."""

SHORT_LIFE: Final = 5.0
"""Seconds within which the end of a stream counts as a failed attempt."""

FIRST_PAUSE: Final = 0.1
"""Seconds before a broken stream is resumed; each further pause is four times as long."""

LINGER: Final = 1.0
"""Seconds that an answered stream gets to end, so that its connection can be reused."""

_JSON: Final = "application/json"

_WITHOUT_SESSION: Final = frozenset({400, 401, 410, 422})
"""Statuses with which servers refuse a session that they do not know."""

_BUSY: Final = frozenset({400, 408, 409, 423, 425, 429})
"""Statuses that a stream which was open may get while the server still holds the old one."""

MAX_EVENT_ID: Final = 1_024
"""Longest event id that is sent back to resume a stream."""

MIN_RETRY: Final = 0.5
"""Shortest pause before a stream is resumed, in seconds."""

MAX_RETRY: Final = 60.0
"""Longest such pause, in seconds."""

PROBE_PATIENCE: Final = 5.0
"""Seconds for the question of the newer era; a command waits ten for a server to be ready."""

MAX_WAIT: Final = 8.0
"""Longest pause before a request is sent again because the server asks for it, in seconds."""

_QUESTION: Final = re.compile("initialize|ping|.*/(list|read|get)")
"""Methods of requests that change nothing, so that they may be sent again."""

_UNTYPED: Final = frozenset({"", "text/plain", "application/octet-stream"})
"""Media types of JSON where a server does not say what it sends."""

MAX_ENDPOINT: Final = 8_192
"""Longest endpoint address, in characters."""


@dataclass(slots=True)
class StreamPosition:
    """How far a stream was read.

    Attributes:
        event_id: The id of the last event, for ``Last-Event-ID``; empty if there is none.
        retry: Seconds that the server wants us to wait before resuming, or None.
        last: The beginning of the last event that has any content.
    """

    event_id: str = ""
    retry: float | None = None
    last: bytes = b""

    def note(self, event: httpx2.ServerSentEvent) -> None:
        """Update the position after an event."""
        if 0 < len(event.id) <= MAX_EVENT_ID and event.id.isascii() and event.id.isprintable():
            self.event_id = event.id
        self.last = event.data[:MAX_BODY].encode() or self.last
        if event.retry is not None:
            self.retry = min(max(event.retry / 1000, MIN_RETRY), MAX_RETRY)


def message_in(event: httpx2.ServerSentEvent) -> str:
    """Return what may be a message in an event, as some give their events names of their own."""
    return event.data if event.event == "message" or '"jsonrpc"' in event.data else ""


class StreamableHttp:
    """The channel of a server that speaks streamable HTTP.

    Args:
        http: The client.
        transport: Takes what the server sends.
    """

    def __init__(self, http: HttpClient, transport: "HttpTransport") -> None:
        self._http = http
        self._url = http.url
        self._transport = transport
        self._session_id = self._protocol_version = ""

    async def send(self, outgoing: SessionMessage) -> None:
        """Post a message and deliver what answers it.

        Raises:
            ExchangeError: If that failed.
        """
        method, is_repeated = getattr(outgoing.message, "method", ""), False
        asks = _QUESTION.fullmatch(method) is not None
        while True:
            try:
                async with asyncio.timeout(PROBE_PATIENCE if method == "server/discover" else None):
                    return await self._post(outgoing)
            except TimeoutError:
                reply = overdue(getattr(outgoing.message, "id", None), types.REQUEST_TIMEOUT)
                raise ExchangeError(ServerError("does not respond"), reply=reply) from None
            except ExchangeError as fault:
                # A server may close a connection just as it is used again (RFC 9112, 9.5).
                is_lost = fault.is_cut and not fault.status and asks
                is_due = 0 < fault.pause <= MAX_WAIT and (asks or fault.status == 429)
                if not is_repeated and (is_lost or is_due):
                    is_repeated = True
                    await asyncio.sleep(fault.pause)
                    continue
                words = fault.reply.error.message if fault.reply is not None else fault.error.reason
                is_refused = fault.status == HTTPStatus.BAD_REQUEST
                lower = lower_revision(outgoing.message, words) if is_refused else None
                if lower is None:
                    raise
                outgoing = replace(outgoing, message=lower)

    async def _post(self, outgoing: SessionMessage) -> None:
        message = outgoing.message
        headers = self._headers_for(outgoing)
        data = self._transport.encoded(message)
        async with self._http.exchange("POST", self._url, headers, data) as response:
            if response.status_code >= 400:
                raise await self._refusal(response, message)
            if isinstance(message, types.JSONRPCRequest):
                await self._answer(message, response)
            else:
                with suppress(TimeoutError):  # some never end what nobody needs
                    async with asyncio.timeout(LINGER):
                        await discard(response)
        if self._session_id and getattr(message, "method", "") == INITIALIZED:
            self._transport.spawn(self._listen())

    def cancels_by_abort(self) -> bool:
        return self._protocol_version in MODERN_PROTOCOL_VERSIONS

    async def close(self) -> None:
        """End the session, where there is one.

        Raises:
            ExchangeError: If the server cannot be told.
        """
        if self._session_id:
            async with self._http.exchange("DELETE", self._url, self._headers()):
                self._session_id = ""

    def _headers(self) -> dict[str, str]:
        headers = {"accept": f"{_JSON}, {EVENT_STREAM}"}
        if self._session_id:
            headers[SESSION_HEADER] = self._session_id
        if self._protocol_version:
            headers[MCP_PROTOCOL_VERSION_HEADER] = self._protocol_version
        return headers

    def _headers_for(self, outgoing: SessionMessage) -> dict[str, str]:
        """Return the headers of a message, and remember its protocol revision."""
        message, metadata = outgoing.message, outgoing.metadata
        stamped = metadata.headers if isinstance(metadata, ClientMessageMetadata) else None
        if isinstance(message, types.JSONRPCRequest) and message.method == "initialize":
            # It negotiates the revision, so that it must not carry an earlier one.
            self._protocol_version = self._session_id = ""
        elif stamped and (version := stamped.get(MCP_PROTOCOL_VERSION_HEADER)):
            self._protocol_version = version
        return {**self._headers(), "content-type": _JSON, **(stamped or {})}

    async def _refusal(
        self, response: httpx2.Response, message: types.JSONRPCMessage | None
    ) -> ExchangeError:
        """Return the error of a failure status."""
        status, body = response.status_code, b""
        reply: types.JSONRPCError | None = None
        if "json" in media_type(response) and status != HTTPStatus.UNAUTHORIZED:
            with suppress(ExchangeError):  # the status tells more
                body = await read_body(response)
                decoded = await self._transport.take(body)
                if isinstance(decoded, types.JSONRPCError):
                    reply = decoded.model_copy(update={"id": getattr(message, "id", decoded.id)})
        else:
            body = await read_words(response)
        if SESSION_HEADER in response.request.headers and _is_session_lost(status, reply, body):
            return session_error(status)
        fault = status_error(response).quoting(self._transport.words_of(body))
        fault.reply = reply
        return fault

    async def _answer(self, request: types.JSONRPCRequest, response: httpx2.Response) -> None:
        """Deliver the answer to a request from the response to its POST."""
        if request.method == "initialize":
            session_id = ", ".join(dict.fromkeys(response.headers.get_list(SESSION_HEADER)))
            if len(session_id) > MAX_SESSION_ID or not all("!" <= c <= "~" for c in session_id):
                raise ExchangeError(ServerError("sent an invalid session id"))
            self._session_id = session_id
        kind, is_late = media_type(response), response.status_code == 202
        if kind == EVENT_STREAM:
            return await self._answer_from_stream(request, response)
        fault, body = content_error(response), b""
        if "json" in kind or (kind in _UNTYPED and not is_late):
            body = await read_body(response)
            if kind not in _UNTYPED or body.lstrip()[:1] in {b"{", b"["}:
                if await self._take(body, request.id):
                    return None
                fault.error = ServerError("sent a response that does not answer the request")
        if is_late:
            error = ServerError("accepted the request but will send no response (HTTP 202)")
            raise ExchangeError(error, status=202)
        raise fault.quoting(self._transport.words_of(body or await read_words(response)))

    async def _answer_from_stream(
        self, request: types.JSONRPCRequest, response: httpx2.Response
    ) -> None:
        position = StreamPosition()
        try:
            if await self._read_answer(request.id, response, position):
                return
            cut = cut_error(response.status_code).quoting(self._transport.words_of(position.last))
        except ExchangeError as fault:
            if not fault.is_cut:
                raise
            cut = fault
        if not position.event_id or self.cancels_by_abort():
            raise cut
        await self._resume(request.id, position)

    async def _read_answer(
        self,
        request_id: types.RequestId | None,
        response: httpx2.Response,
        position: StreamPosition,
    ) -> bool:
        """Deliver the events of a stream up to the answer; return whether the answer came."""
        async with aclosing(read_events(response, self._transport.take_lines)) as events:
            async for event in events:
                position.note(event)
                data = message_in(event)
                if data and await self._take(data.encode(), request_id):
                    break
            else:
                return False
            with suppress(TimeoutError, ExchangeError):
                async with asyncio.timeout(LINGER):
                    async for _ in events:
                        pass
            return True

    async def _resume(self, request_id: types.RequestId, position: StreamPosition) -> None:
        """Resume a broken stream as long as that makes progress."""
        attempts = 0
        while attempts < MAX_ATTEMPTS:
            await asyncio.sleep(position.retry or _pause(attempts))
            before = position.event_id
            try:
                async with self._open_stream(position) as response:
                    if await self._read_answer(request_id, response, position):
                        return
            except ExchangeError as fault:
                if isinstance(fault.error, SessionLostError | SignInError):
                    # The server accepted the request before: it must not be repeated.
                    await self._transport.end(fault.error)
                    return
                if not (fault.is_cut or fault.is_gone or fault.status >= 500):
                    words = "ended its stream before its response and did not resume it"
                    fault.error.reason = f"{words}: it {fault.error.reason}"
                    raise ExchangeError(fault.error, Outcome.UNKNOWN) from fault
            attempts = 0 if position.event_id != before else attempts + 1
        raise cut_error().quoting(self._transport.words_of(position.last))

    async def _listen(self) -> None:
        """Keep the stream for messages of the server open, if it offers one."""
        position = StreamPosition()
        loop = asyncio.get_running_loop()
        attempts = 0
        was_open = False
        while attempts < MAX_ATTEMPTS:
            began = loop.time()
            try:
                async with self._open_stream(position) as response:
                    was_open = True
                    await self._read_answer(None, response, position)
            except ExchangeError as fault:
                is_over = was_open and isinstance(fault.error, SessionLostError | SignInError)
                if fault.is_gone or is_over:
                    await self._transport.end(fault.error)
                    return
                is_refused = 0 < fault.status < 500 and not fault.is_cut
                if is_refused and not (was_open and fault.status in _BUSY):
                    # Many servers have no such stream, and some answer with odd statuses.
                    break
            if loop.time() - began > SHORT_LIFE:
                attempts = 0
            await asyncio.sleep(position.retry or _pause(attempts))
            attempts += 1
        if was_open:
            self._transport.remark("lost its stream of change notices; restart it to see changes")

    @asynccontextmanager
    async def _open_stream(self, position: StreamPosition) -> AsyncIterator[httpx2.Response]:
        headers = self._headers() | {"accept": EVENT_STREAM}
        if position.event_id:
            headers[LAST_EVENT_ID] = position.event_id
        async with self._http.exchange("GET", self._url, headers) as response:
            if response.status_code != 200:
                raise await self._refusal(response, None)
            if media_type(response) != EVENT_STREAM:
                raise content_error(response)
            yield response

    async def _take(self, data: bytes, request_id: types.RequestId | None) -> bool:
        """Deliver a message or a batch; return whether it answers this request."""
        return any([await self._take_one(part, request_id) for part in await split_batch(data)])

    async def _take_one(self, data: bytes, request_id: types.RequestId | None) -> bool:
        match await self._transport.take(data):
            case None:
                return False
            case types.JSONRPCError(id=None) if request_id is None:
                self._transport.remark("ignored an error that belongs to no request")
                return False
            case types.JSONRPCResponse() | types.JSONRPCError() as reply if request_id is not None:
                if reply.id is not None and str(reply.id) != str(request_id):
                    self._transport.remark("ignored a response to a different request")
                    return False
                await self._transport.deliver(reply.model_copy(update={"id": request_id}))
                return True
            case message:
                await self._transport.deliver(message)
                return False


def _is_session_lost(status: int, reply: types.JSONRPCError | None, body: bytes) -> bool:
    """Return whether a failure status means that the session is lost.

    The protocol uses 404. Others use another status with words about the session, in any form.
    """
    if reply is not None and reply.error.code == types.METHOD_NOT_FOUND:
        return False
    if status in _WITHOUT_SESSION:
        words = (reply.error.message if reply is not None else words_of(body)).lower()
        return "session" in words or "not initialized" in words
    return status == HTTPStatus.NOT_FOUND


def _pause(attempts: int) -> float:
    return FIRST_PAUSE * 4.0**attempts


class ServerSentEvents:
    """The channel of a server that speaks HTTP+SSE.

    Args:
        http: The client.
        transport: Takes what the server sends.
    """

    def __init__(self, http: HttpClient, transport: "HttpTransport") -> None:
        self._http, self._transport = http, transport
        self._endpoint: asyncio.Future[httpx2.URL] = asyncio.get_running_loop().create_future()
        self._was_heard = False

    async def open(self, patience: float | None = None) -> None:
        """Open the stream and wait for the endpoint, at most `patience` seconds if that is given.

        Raises:
            ExchangeError: If the server has no such stream.
        """
        reading = self._transport.spawn(self._read())
        try:
            async with asyncio.timeout(patience):
                await asyncio.shield(self._endpoint)
        except TimeoutError:
            reading.cancel()
            reason = f"did not name its address for messages within {patience:g} s"
            raise ExchangeError(ServerError(reason), Outcome.NOT_EXECUTED) from None

    async def send(self, outgoing: SessionMessage) -> None:
        """Post a message; its answer comes through the stream.

        Raises:
            ExchangeError: If the server did not accept it.
        """
        headers = {"content-type": "application/json"}
        endpoint = await self._endpoint
        body = self._transport.encoded(outgoing.message)
        async with self._http.exchange("POST", endpoint, headers, body) as response:
            is_question = isinstance(outgoing.message, types.JSONRPCRequest)
            is_json = "json" in media_type(response) and response.status_code < 300
            body = await (read_body if is_question and is_json else read_words)(response)
            said = self._transport.words_of(body)
            if response.status_code == 404 and not self._was_heard:
                place = endpoint.copy_with(userinfo=b"", query=None)
                error = ServerError(f"wants messages at {place}, where nothing is (HTTP 404)")
                raise ExchangeError(error, Outcome.NOT_EXECUTED, status=404).quoting(said)
            if response.status_code == 404:
                raise session_error(404)
            if response.status_code >= 300:
                raise status_error(response).quoting(said)
            self._was_heard = True
            if is_question and b'"jsonrpc"' in body:  # some answer here, not on the stream
                await self._deliver(body)

    def cancels_by_abort(self) -> bool:
        return False

    async def close(self) -> None:
        """Do nothing: closing the stream ends the session."""

    async def _read(self) -> None:
        """Read the stream, whose end ends the connection."""
        headers = {"accept": EVENT_STREAM, "cache-control": "no-store"}
        try:
            async with self._http.exchange("GET", self._http.url, headers) as response:
                is_refused, position = response.status_code >= 300, StreamPosition()
                if is_refused or media_type(response) != EVENT_STREAM:
                    said = self._transport.words_of(await read_words(response))
                    fault = status_error if is_refused else content_error
                    raise fault(response).quoting(said)
                async with aclosing(read_events(response, self._transport.take_lines)) as events:
                    async for event in events:
                        position.note(event)
                        await self._take(event, response.url)
            raise cut_error().quoting(self._transport.words_of(position.last))
        except ExchangeError as fault:
            if not self._endpoint.done():
                self._endpoint.set_exception(fault)
            elif fault.is_cut:
                await self._transport.end(ServerError("closed its event stream"))
            else:
                await self._transport.end(fault.error)

    async def _take(self, event: httpx2.ServerSentEvent, base: httpx2.URL) -> None:
        if event.event == "endpoint" and not self._endpoint.done():
            self._endpoint.set_result(endpoint := _resolve(event.data, base))
            self._transport.tap.http("endpoint", str(endpoint), {})
        elif (data := message_in(event)) and self._endpoint.done():
            await self._deliver(data.encode())
        elif data:
            self._transport.remark("ignored an event before the address for messages")

    async def _deliver(self, data: bytes) -> None:
        for part in await split_batch(data):
            if (message := await self._transport.take(part)) is not None:
                await self._transport.deliver(message)


def _resolve(place: str, base: httpx2.URL) -> httpx2.URL:
    """Return the endpoint of a server, which must be within its origin."""
    address = None
    with suppress(httpx2.InvalidURL):
        address = base.join(place.strip()) if len(place) <= MAX_ENDPOINT else None
    if address is None:
        raise ExchangeError(ServerError("named an invalid address for messages"))
    if address.scheme == "http" and address.netloc == base.netloc:
        address = address.copy_with(scheme=base.scheme)  # a proxy speaks TLS for the server
    if (address.scheme, address.host, address.port) != (base.scheme, base.host, base.port):
        place = f"{address.scheme}://{address.netloc.decode()}"
        reason = f"wants messages sent to another origin, {place}, which is refused"
        advice = "If you trust that server, put its address into `url`."
        raise ExchangeError(ServerError(reason, advice))
    return address
