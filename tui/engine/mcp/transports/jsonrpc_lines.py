"""JSON-RPC messages as lines of text, how fast they are read, and the streams to the session.

Every message has a cost, and a server has an allowance that grows with time. A server that
overdraws it is read only as fast as the allowance grows, so that it blocks on its own full pipe;
if it keeps that up, it is given up. Progress reports and log messages are dropped first, so that
a result behind thousands of them arrives soon.
"""

import asyncio
import json
import re
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple, NewType, get_args

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from tui.engine.logs.redaction import Redactor
from tui.engine.mcp.backoff import Clock
from tui.engine.mcp.errors import ServerError
from tui.engine.mcp.server_log import ServerLog
from tui.engine.mcp.transports.handshake import is_handshake, repair_handshake
from tui.engine.mcp.wire.tap import Tap
from tui.model.bounded_json import MAX_STRUCTURE, JsonError, read_value, structure, value_or_none
from tui.model.chat import Severity
from tui.model.wire.frames import FrameFault
from tui.text import sanitize_line

EXCHANGE_FAILED: Final = -31_001
"""Code of an error reply that a transport gives in place of the server, for one request.

Its message continues "The server" and says what became of the request.
"""

SESSION_LOST: Final = -31_002
"""The same, for a server that has lost the session: it did not run the request."""

OWN_CODES: Final = frozenset({EXCHANGE_FAILED, SESSION_LOST})
"""Codes that only we use: a server must not be able to say that a call was not run."""

SERVERS_CLOSED: Final = -31_003
"""Stands for the code of a closed connection where a server uses it for an error of its own."""

_STAND_INS: Final = {
    types.CONNECTION_CLOSED: SERVERS_CLOSED,
    **dict.fromkeys((*OWN_CODES, SERVERS_CLOSED), types.INTERNAL_ERROR),
}
"""What takes the place of a code in a server's error, so that it cannot speak for us."""

OUTGOING_QUEUE: Final = 256
"""Messages that may wait to be sent; then senders wait."""

ToSession = MemoryObjectSendStream[SessionMessage | Exception]
FromSession = MemoryObjectReceiveStream[SessionMessage]
Streams = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
]
"""The two ends of a connection as `mcp.Client` takes them."""

Noise = NewType("Noise", str)
"""A line that is not a message."""

UNKNOWN: Final = "whether the request had any effect is unknown"
PROGRESS: Final = "notifications/progress"
LOG: Final = "notifications/message"
_LEVELS: Final = frozenset(get_args(types.LoggingLevel))

HEAD: Final = 300
"""Bytes at each end of an unreadable line that are searched for its id."""

MAX_UNASKED: Final = 50_000
"""Most structural characters of a request or notification, as the SDK validates it on the loop."""

MAX_ON_LOOP: Final = 32 * 1024
"""Longest line, in bytes, that is read on the event loop; longer ones go to a thread."""

MAX_MASKED_ON_LOOP: Final = 2 * 1024
"""The same of a server with secrets, which every line is searched for."""

_ID: Final = rb'"id"\s*:\s*(\d{1,18}|"[^"\\]{1,100}")'
_VERSION: Final = rb'"jsonrpc"\s*:\s*"2\.0"'
_ID_FIRST: Final = re.compile(rb"\s*\{\s*(?:" + _VERSION + rb"\s*,\s*)?" + _ID + rb"\s*,")
_ID_LAST: Final = re.compile(rb"[}\]]\s*,\s*" + _ID + rb"(?:\s*,\s*" + _VERSION + rb")?\s*\}\s*\Z")
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

RATE: Final = 1_000.0
"""Growth of the allowance per second; a short message costs 1."""

BURST: Final = 5_000.0
"""The largest and the initial allowance."""

PIECE: Final = 16 * 1024
"""Bytes that cost as much as a message: a server may send 16 MiB a second, and 80 MiB at once."""

SEARCHED: Final = 4 * 1024
"""Characters searched for hidden secrets that cost as much as a message."""

STRUCTURE: Final = 500
"""Structural characters of JSON that cost as much as a message."""

REQUEST_COST: Final = 10.0
"""Cost of a request, which is validated, answered by a task of its own, and perhaps shown."""

MAX_OPEN: Final = 100
"""Requests of a server under way at once; then it is not read until some are answered."""

DROPPED_COST: Final = 0.05
"""Cost of noise and of dropped reports."""

LINE_COST: Final = 0.02
"""Cost of one line of an event stream."""

LINES_PER_TURN: Final = 500
"""Lines of an event stream that are read before it rests."""

LINES_REST: Final = 0.02
"""Seconds that it rests then."""

MAX_EXCESS: Final = 30.0
"""Seconds that a server may overdraw its allowance without a rest."""

REST: Final = BURST / 10
"""An allowance that counts as a rest: the server did not use all of it."""

PAUSE: Final = 0.05
"""Shortest pause in reading from a server that overdraws its allowance, in seconds."""

SLICE: Final = 0.01
"""Seconds of reading one server before other tasks get a turn."""

MAX_NOISE_LINES: Final = 20
"""Invalid lines that are shown in the server's log; further ones are dropped."""

_NONE: Final = Redactor()
"""Masks nothing."""

HANDSHAKE: Final = frozenset({"initialize", "server/discover"})
"""Requests whose answers the SDK validates on the loop before `sdk_patches` applies."""


def open_streams(tap: Tap) -> tuple[Streams, ToSession, FromSession]:
    """Open the streams between a session and its transport: the session's ends, then ours.

    Which call in the chat a message is for is known only to the task that hands it over.
    """
    to_session, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_server, from_session = anyio.create_memory_object_stream[SessionMessage](OUTGOING_QUEUE)
    send = to_server.send

    async def send_of_call(outgoing: SessionMessage) -> None:
        tap.expect(outgoing.message)
        await send(outgoing)

    to_server.send = send_of_call  # type: ignore[assignment, method-assign]  # in place of a whole class
    return (from_server, to_server), to_session, from_session


async def deliver(to_session: ToSession, message: types.JSONRPCMessage) -> None:
    """Hand a message to the session, unless that has closed."""
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        await to_session.send(SessionMessage(message))


async def split_batch(line: bytes) -> list[bytes]:
    """Take a JSON-RPC batch apart, in a thread if it is long; any other line stays as it is."""
    if not line.lstrip().startswith(b"["):
        return [line]
    return _split(line) if len(line) <= MAX_ON_LOOP else await asyncio.to_thread(_split, line)


def _split(line: bytes) -> list[bytes]:
    batch = value_or_none(line)
    messages = batch if isinstance(batch, list) else []
    return [json.dumps(message).encode() for message in messages] or [line]


class DecodedLine(NamedTuple):
    """A decoded line, what is in it, and what is wrong with it.

    Attributes:
        message: The message; or the start of the line if it is none; or None for a blank line.
        structure: The number of its structural characters.
        fault: What is wrong with it.
        searched: How many of its characters were searched for secrets; see `redact_message`.
    """

    message: types.JSONRPCMessage | Noise | None
    structure: int
    fault: FrameFault | None = None
    searched: int = 0


async def read(line: bytes, most: int = MAX_STRUCTURE, secrets: Redactor = _NONE) -> DecodedLine:
    """Read one line as `decode` does, in a thread if it is long."""
    if len(line) <= (MAX_MASKED_ON_LOOP if secrets.knows_any else MAX_ON_LOOP):
        return decode(line, most, secrets)
    return await asyncio.to_thread(decode, line, most, secrets)


def decode(line: bytes, most: int = MAX_STRUCTURE, secrets: Redactor = _NONE) -> DecodedLine:
    """Read one line.

    An unreadable reply becomes an error reply, so that its caller fails at once. A server cannot
    use the error codes of such replies itself.

    Args:
        line: The line.
        most: Most structural characters that a reply may have.
        secrets: Masks the secrets of the server.

    Returns:
        The message; or the start of the line if it is not a message; or None for a blank line.
    """
    count = structure(line)
    line = line.removeprefix(_BYTE_ORDER_MARK).strip()
    if not line:
        return DecodedLine(None, count)
    if not line.startswith(b"{"):
        return DecodedLine(_noise(line, secrets), count, FrameFault.NOT_JSON)
    if count > most:
        found = _unreadable(line, secrets, "is too complex to be read")
        return DecodedLine(found, count, FrameFault.TOO_LARGE)
    # Parsing first and validating then costs a sixth of what validating the text would.
    try:
        value, searched = secrets.redact_message(read_value(line, count), line)
    except JsonError as error:
        found = _unreadable(line, secrets, str(error))
        return DecodedLine(found, count, FrameFault.NOT_JSON)
    try:
        message = _validated(value)
    except ValidationError:
        found = _unreadable(line, secrets, "breaks the protocol")
        return DecodedLine(found, count, FrameFault.INVALID, searched)
    if isinstance(message, types.JSONRPCError) and message.error.code in _STAND_INS:
        own = message.error.model_copy(update={"code": _STAND_INS[message.error.code]})
        message = message.model_copy(update={"error": own})
    elif isinstance(message, types.JSONRPCResponse) and is_handshake(message.result):
        message = message.model_copy(update={"result": repair_handshake(message.result)})
    elif isinstance(message, types.JSONRPCRequest | types.JSONRPCNotification):
        if count > MAX_UNASKED:
            return DecodedLine(_noise(line, secrets), count, FrameFault.TOO_LARGE, searched)
        if message.method == LOG:
            message = message.model_copy(update={"params": _log_params(message.params or {})})
    return DecodedLine(message, count, searched=searched)


def _validated(value: dict[str, object]) -> types.JSONRPCMessage:
    """Validate a message; what does not matter in it keeps none of the server's words out.

    Such are an error that is a text or lacks a part, a result that is no object, parameters that
    are none, as PHP's empty list, and a missing version.
    """
    with suppress(ValidationError):
        return types.jsonrpc_message_adapter.validate_python(value, by_name=False)
    given = {**value, "jsonrpc": value.get("jsonrpc") or "2.0"}
    error, result = given.get("error"), given.get("result")
    if given.get("method") is not None:
        given["params"] = given.get("params") if isinstance(given.get("params"), dict) else None
    elif error is not None:
        told = error if isinstance(error, dict) else {"message": error}
        code, words = told.get("code"), told.get("message", "no message")
        words = words if isinstance(words, str) else json.dumps(words)
        if type(code) is not int:
            words, code = f"{words} ({code})" if code else words, types.INTERNAL_ERROR
        given["error"] = {**told, "code": code, "message": words}
    elif ("jsonrpc" in value or "result" in value) and isinstance(result, str | list | None):
        given["result"] = {"content": result} if result else {}
    return types.jsonrpc_message_adapter.validate_python(given, by_name=False)


def code_of(error: types.ErrorData) -> int:
    """Return the code of an error as the server sent it."""
    return types.CONNECTION_CLOSED if error.code == SERVERS_CLOSED else error.code


def encode(message: types.JSONRPCMessage) -> bytes:
    """Write one message as a line.

    Raises:
        ValueError: If it contains something that JSON or UTF-8 cannot express.
    """
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"


def overdue(request: types.RequestId | None, code: int, data: object = None) -> types.JSONRPCError:
    """Return what the session gets in place of an answer to the question of the newer era."""
    error = types.ErrorData(code=code, message="The probe was not answered in time", data=data)
    return types.JSONRPCError(jsonrpc="2.0", id=request, error=error)


def failed(request: types.RequestId, words: str, code: int = EXCHANGE_FAILED) -> types.JSONRPCError:
    """Return an error reply in place of the server's answer."""
    error = types.ErrorData(code=code, message=words)
    return types.JSONRPCError(jsonrpc="2.0", id=request, error=error)


def unsendable(message: types.JSONRPCMessage) -> types.JSONRPCError | None:
    """Return an error reply to a request that cannot be written; None for other messages."""
    if not isinstance(message, types.JSONRPCRequest):
        return None
    return failed(message.id, "the request contains text that cannot be sent", types.INVALID_PARAMS)


def _log_params(params: dict[str, Any]) -> dict[str, Any]:
    """Return what is logged, with a level that the protocol knows, and whatever was said."""
    level = str(params.get("level")).lower()
    level = "warning" if level == "warn" else level if level in _LEVELS else "info"
    return {**params, "level": level, "data": params.get("data", params.get("message", params))}


def _noise(line: bytes, secrets: Redactor) -> Noise:
    """Return the start of a line, without what may be a part of a secret where it is cut."""
    start = line[:HEAD].decode("utf-8", "replace").rstrip("\ufffd")
    return Noise(start if len(line) <= HEAD else start[: secrets.settled(start)])


def _unreadable(line: bytes, secrets: Redactor, reason: str) -> types.JSONRPCError | Noise:
    """Return an error reply for an unreadable reply, and noise for anything else."""
    if (reply_id := _id_by_pattern(line)) is None:
        return _noise(line, secrets)
    return failed(reply_id, f"sent a response that {reason}; {UNKNOWN}")


def _id_by_pattern(line: bytes) -> int | str | None:
    """Find the id at either end of a reply; an id in the middle may be another one."""
    if b'"result"' not in line and b'"error"' not in line:
        return None
    found = _ID_FIRST.match(line[:HEAD]) or _ID_LAST.search(line[-HEAD:])
    if found is None:
        return None
    value = found[1].decode("utf-8", "replace")
    return value.strip('"') if value.startswith('"') else int(value)


LOSSY: Final = frozenset({PROGRESS, LOG})
"""Notifications that are dropped while the allowance is low."""


class FloodError(ServerError):
    """A server overdrew its allowance for too long."""


class FlowControl:
    """Reads the messages of one connection within an allowance.

    Args:
        log: Takes remarks.
        clock: The current time.
        sleep: Waits for some seconds of that clock.

    Attributes:
        is_heard: Whether a message has come, or what comes first need be none.
    """

    def __init__(
        self,
        log: ServerLog,
        clock: Clock = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._log = log
        self._tap = log.tap
        self._clock, self._sleep = clock, sleep
        self._allowance = BURST
        self._counted_at = self._turn_began = clock()
        self._exceeds_since: float | None = None
        self._most = MAX_UNASKED
        self._noise = self._lines = 0
        self._drops = self.is_heard = False
        self._open = Counter[types.RequestId | None]()
        self._theirs = deque[types.RequestId](maxlen=10 * MAX_OPEN)  # a late end is of these
        self._asked: set[str] = set()

    def note_sent(self, message: types.JSONRPCMessage) -> None:
        """Note a message to the server; after the handshake its messages may be larger."""
        match message:
            case types.JSONRPCRequest(method=method, id=asked):
                self._asked.add(str(asked))
                self._most = self._most if method in HANDSHAKE else MAX_STRUCTURE
            case types.JSONRPCResponse(id=answered) | types.JSONRPCError(id=answered):
                self._note_end(answered)

    async def take(self, line: bytes) -> types.JSONRPCMessage | None:
        """Read one message; return None for invalid lines and dropped reports.

        Raises:
            FloodError: If the server has overdrawn its allowance for too long.
        """
        await self._wait()  # for earlier messages: a message does not wait for its own cost
        while self._open.total() >= MAX_OPEN:
            await self._sleep(PAUSE)
        found, structure, fault, searched = await read(line, self._most, self._log.own)
        message = None if isinstance(found, str) else found
        self.is_heard |= message is not None
        if found is not None:
            self._tap.received(line, message, fault)
        self._grow()
        cost = 1.0
        match message:
            case None:
                if isinstance(found, str):
                    self._note_noise(found)
                cost = DROPPED_COST
            case types.JSONRPCNotification(method=method) if (
                method in LOSSY and self._allowance < BURST / 2
            ):
                if not self._drops:
                    self._drops = True
                    self._log.remark("sends reports too fast to be read; some are dropped")
                message, cost = None, DROPPED_COST
            case types.JSONRPCRequest(id=request):
                self._open[request] += 1
                self._theirs.append(request)
                cost = REQUEST_COST
            case types.JSONRPCResponse(id=answered) | types.JSONRPCError(id=answered):
                if answered is not None and str(answered) not in self._asked:
                    self._note_noise(f"id {answered!r}", "a response to no request")
                self._asked.discard(str(answered))
            case types.JSONRPCNotification(
                method="notifications/cancelled",
                params={"requestId": int() | str() as request, **more},
            ):
                if request not in self._theirs and str(request) in self._asked:
                    self._asked.discard(str(request))
                    reason = sanitize_line(str(more.get("reason") or "it gives no reason"))
                    message = failed(request, f"cancelled the request: {reason}; {UNKNOWN}")
                self._note_end(request)
        cost += len(line) / PIECE + structure / STRUCTURE + searched / SEARCHED
        self._spend(cost)
        return message

    def _note_end(self, request: types.RequestId | None) -> None:
        """Note that a request of the server is answered, or needs no answer any more."""
        if self._open[request] > 1:
            self._open[request] -= 1
        else:
            del self._open[request]

    async def take_lines(self, count: int) -> None:
        """Charge for lines of an event stream, which may contain no message at all.

        Raises:
            FloodError: If the server has overdrawn its allowance for too long.
        """
        self._spend(LINE_COST * count)
        self._lines += count
        if self._lines > LINES_PER_TURN:
            self._lines = 0
            await self._sleep(LINES_REST)
        await self._wait()

    def _grow(self) -> None:
        now = self._clock()
        grown = self._allowance + (now - self._counted_at) * RATE
        self._allowance, self._counted_at = min(BURST, grown), now

    def _spend(self, cost: float) -> None:
        self._grow()
        self._allowance -= cost

    async def _wait(self) -> None:
        """Wait if the allowance is overdrawn, and yield to other tasks now and then."""
        self._grow()
        now = self._counted_at
        if self._allowance >= REST:
            self._exceeds_since = None
        if self._allowance < 0:
            if self._exceeds_since is None:
                self._exceeds_since = now
            elif now - self._exceeds_since > MAX_EXCESS:
                size = f"{RATE * PIECE / 2**20:.0f} MiB"
                much = f"{RATE:,.0f} messages or {size} a second for {MAX_EXCESS:.0f} s"
                advice = "Its log may show why; press r to restart it."
                raise FloodError(f"sent more than {much}", advice, permanent=True)
            await self._sleep(max(PAUSE, -self._allowance / RATE))
        elif now - self._turn_began > SLICE:
            await self._sleep(0)
        else:
            return
        self._turn_began = self._clock()

    def note_rest(self, rest: bytes) -> None:
        """Note what came without a line end; all that a server printed, it may say what it is."""
        if rest.strip() and not self.is_heard:
            self._note_noise(_noise(rest, self._log.own))

    def _note_noise(self, noise: str, what: str = "not a message, ignored") -> None:
        self._noise += 1
        if self._noise == 1 and not self.is_heard:
            self._log.printed = f"its first line was not a message: {noise}"
            self._log.remark(self._log.printed)
        elif self._noise <= MAX_NOISE_LINES:
            self._log.remark(f"{what}: {noise}", Severity.INFO)
        if self._noise == MAX_NOISE_LINES:
            self._log.remark("further lines like this are not listed", Severity.INFO)
