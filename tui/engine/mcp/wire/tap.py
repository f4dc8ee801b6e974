"""The tap at the wire of one server: notes each frame as it passes, raw, in a bounded ring.

On the way of a message it only appends to a list. What a frame says, and which is its pair, is
read once somebody looks or some have come together. It needs no MCP SDK.
"""

import time
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, Protocol

from tui.model.chat import ConversationId, EntryId
from tui.model.servers import ServerId, ServerStatus
from tui.model.wire.exchanges import LASTING, NO_METHOD
from tui.model.wire.frames import Direction, FrameFault, FrameKind, WireFrame
from tui.text import MAX_LINE

MAX_FRAMES: Final = 2_000
"""Frames that are kept of a server; the oldest go first."""

MAX_BYTES: Final = 8 * 1024 * 1024
"""Bytes that are kept of a server."""

FRAME_BYTES: Final = 512
"""Bytes that a frame counts for beside its body."""

MAX_WHOLE: Final = 64 * 1024
"""Longest body that is kept whole, in bytes; of a longer one both ends are, half of that each."""

MAX_STDERR: Final = 8 * 1024
"""The same for what is read from standard error at once."""

MAX_STDERR_FRAMES: Final = 100
"""Frames of standard error that are kept, so that a flood of it leaves the messages."""

MAX_OPEN: Final = 2_000
"""Requests of either side whose answers are told; beyond that the oldest are forgotten."""

MAX_UNREAD: Final = 128
"""Frames that wait to be read."""

MAX_WAITING: Final = 2 * 1024
"""Longest body of a frame that waits to be read, in bytes."""

MAX_LABEL: Final = 4 * MAX_LINE
"""Characters that are kept of a name, an id or a token: more than is shown."""

SESSION_HEADER: Final = "mcp-session-id"
LAST_EVENT_ID: Final = "last-event-id"

SESSION_SHOWN: Final = 8
"""Characters of a session's digest: who knows its id is in the session."""

VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
"""Where a request of the stateless protocol names its revision."""

_CONNECTED: Final = ("", ServerStatus.STARTING, ServerStatus.READY, ServerStatus.STOPPING)
"""Words of the lifecycle after which an answer may still come."""

METHOD_NOT_FOUND: Final = -32601
"""The code of JSON-RPC for it."""

SdkMessage = Any
"""A message of the SDK, which is not imported here."""


@dataclass(slots=True)
class Cause:
    """The call in the chat for which something is sent, and the attempts at it so far."""

    conversation: ConversationId
    call: EntryId
    attempts: int = 0


class Noted:
    """A frame as it is kept, raw: neither masked nor sanitized; see `WireFrame`.

    Attributes:
        cost: The bytes that it counts for.
        head: The body, or the first half of what is kept of it.
        tail: The other half, or empty.
        version: The revision of the protocol that it is written in, or empty.
        is_checked: Whether it was checked against the protocol's schema.
        is_called_off: Whether it is a request that was cancelled.
        shown: As it was shown last, or None if it has changed since.
    """

    method = id = target = token = detail = session = version = ""
    faults: tuple[FrameFault, ...] = ()
    is_error = is_checked = is_called_off = False
    cause: Cause | None = None
    number = pair = status = 0
    attempt = round = 1
    seconds: float | None = None
    tail = b""
    shown: WireFrame | None = None

    def __init__(
        self, server: ServerId, direction: Direction, kind: FrameKind, data: bytes = b""
    ) -> None:
        self.server, self.direction, self.kind = server, direction, kind
        self.head, self.size, self.time = data, len(data), time.time()
        most = MAX_STDERR if kind is FrameKind.STDERR else MAX_WHOLE
        self.cost = FRAME_BYTES + min(self.size, most)
        if self.size > most:
            self.head, self.tail = data[: most // 2], data[-most // 2 :]


_CAUSE: ContextVar[Cause | None] = ContextVar("cause", default=None)
_POSTED: ContextVar[Noted | None] = ContextVar("posted", default=None)
"""The message that the running task posts over HTTP: what comes meanwhile is an answer to it."""


@contextmanager
def caused_by(conversation: ConversationId, call: EntryId) -> Iterator[None]:
    """Say which call in the chat the requests are for that are sent in a block."""
    token = _CAUSE.set(Cause(conversation, call))
    try:
        yield
    finally:
        _CAUSE.reset(token)


def cause_now() -> Cause | None:
    """Return the call in the chat for which something is done now."""
    return _CAUSE.get()


class FrameCounter(Protocol):
    """What the taps of all servers share.

    Attributes:
        is_traced: Whether each frame is written as it happens.
    """

    is_traced: bool

    def count(self) -> int:
        """Give a frame its number."""

    def trace(self, noted: Noted, data: bytes) -> None:
        """Write a frame; `data` is its whole body."""


class Tap:
    """The frames of one server, those of earlier connections too. Lives on one event loop.

    Args:
        server: Which server.
        wire: Counts the frames of all servers, and writes them.
    """

    def __init__(self, server: ServerId, wire: FrameCounter) -> None:
        self._server, self._wire = server, wire
        self._ring: OrderedDict[int, Noted] = OrderedDict()
        self._bytes = 0
        self._unread: list[tuple[Noted, Any, Noted | None]] = []
        self._stderr: deque[int] = deque()
        self.begin()

    @property
    def ring(self) -> Mapping[int, Noted]:
        """The frames by their numbers, oldest first."""
        self._read_all()
        return self._ring

    def begin(self) -> None:
        """Note that a new connection begins, with ids of its own."""
        self._read_all()
        self._ours: OrderedDict[object, Noted] = OrderedDict()
        self._theirs: OrderedDict[object, Noted] = OrderedDict()
        self._causes: dict[str, Cause] = {}
        self._version = ""

    def expect(self, message: SdkMessage) -> None:
        """Note, in the task of the sender, which call a request is for that is about to be sent."""
        if (cause := _CAUSE.get()) is not None and {"method", "id"} <= vars(message).keys():
            self._causes[label(message.id)] = cause

    def sent(self, message: SdkMessage, data: bytes, *, posts: bool = False) -> None:
        """Note a message to the server, as it is written.

        Args:
            message: The message.
            data: The same as bytes.
            posts: Whether the running task posts it, and reads what answers it.
        """
        noted = Noted(self._server, Direction.SENT, FrameKind.NOISE, data)
        if posts:
            _POSTED.set(noted)
        self._note(noted, data, message)

    def received(
        self, data: bytes, message: SdkMessage = None, fault: FrameFault | None = None
    ) -> None:
        """Note what the server sent.

        Args:
            data: What it sent.
            message: The same as a message, or what the session gets instead; None for neither.
            fault: What is wrong with it, or None.
        """
        noted = Noted(self._server, Direction.RECEIVED, FrameKind.NOISE, data)
        noted.faults = (fault,) if fault is not None else ()
        self._note(noted, data, message)

    def http(
        self,
        method: str,
        address: str,
        headers: Mapping[str, str],
        status: int = 0,
        attempt: int = 1,
        seconds: float | None = None,
    ) -> None:
        """Note the status of an HTTP response.

        Args:
            method: The HTTP method, or ``endpoint`` for where a server takes messages.
            address: The address, without the query of a signature.
            headers: Those of the request and of the response, in lower case.
            status: The status.
            attempt: Which attempt it was.
            seconds: The time from the request to the status, or None.
        """
        noted = Noted(self._server, Direction.RECEIVED, FrameKind.HTTP)
        noted.method, noted.target, noted.status = method, address, status
        noted.attempt, noted.seconds, noted.is_error = attempt, seconds, status >= 400
        if session := headers.get(SESSION_HEADER):
            noted.session = sha256(session.encode()).hexdigest()[:SESSION_SHOWN]
        if after := headers.get(LAST_EVENT_ID):
            noted.detail = f"resumed after event {after}"
        self._note(noted)

    def word(
        self, word: str, detail: str, request: object = None, fault: FrameFault | None = None
    ) -> None:
        """Note what became of the connection, or with `fault` why a request gets no answer."""
        noted = Noted(self._server, Direction.OWN, FrameKind.LIFECYCLE)
        noted.method, noted.id, noted.detail = word, label(request), detail
        noted.faults, noted.is_error = (fault,) if fault else (), fault is not None
        self._note(noted)

    def stderr(self, lines: Sequence[bytes]) -> None:
        """Note what the server wrote to standard error."""
        data = b"\n".join(lines)
        self._note(Noted(self._server, Direction.RECEIVED, FrameKind.STDERR, data), data)

    def _note(self, noted: Noted, data: bytes = b"", message: SdkMessage = None) -> None:
        noted.number = self._wire.count()
        self._unread.append((noted, message, _POSTED.get()))
        if noted.size > MAX_WAITING or len(self._unread) >= MAX_UNREAD or self._wire.is_traced:
            self._read_all()
        self._wire.trace(noted, data)

    def _read_all(self) -> None:
        """Read what was noted, put it into the ring, and let go what no longer fits."""
        unread, self._unread = self._unread, []
        for noted, message, posted in unread:
            if message is not None:
                self._read(noted, vars(message), posted)
            elif noted.kind is FrameKind.LIFECYCLE:
                self._pair(noted, self._ours.get(noted.id))
                if noted.method not in _CONNECTED:
                    self._give_up(noted)
            elif noted.kind is FrameKind.HTTP and posted is not None:
                noted.pair, noted.cause = posted.number, posted.cause
            elif noted.kind is FrameKind.STDERR:
                self._stderr.append(noted.number)
            self._ring[noted.number] = noted
            self._bytes += noted.cost
        while len(self._stderr) > MAX_STDERR_FRAMES:
            self._let_go(self._stderr.popleft())
        while len(self._ring) > MAX_FRAMES or self._bytes > MAX_BYTES:
            self._let_go(next(iter(self._ring)))

    def _let_go(self, number: int) -> None:
        if (noted := self._ring.pop(number, None)) is not None:
            self._bytes -= noted.cost
            noted.head = noted.tail = b""  # it may still wait for its answer

    def _read(self, noted: Noted, message: Mapping[str, Any], posted: Noted | None) -> None:
        """Read what rows, pairs and filters go by."""
        noted.method, noted.id = label(message.get("method")), label(message.get("id"))
        params = message.get("params") or {}
        if params:
            noted.target = _target(params)
            meta = params.get("_meta")
            meta = meta if isinstance(meta, Mapping) else {}
            noted.token = label(params.get("progressToken", meta.get("progressToken")))
            self._version = label(meta.get(VERSION_KEY, self._version))
        noted.version = self._version
        if not noted.method:
            noted.kind = FrameKind.ANSWER
        elif "id" in message:
            noted.kind = FrameKind.REQUEST
        else:
            noted.kind, noted.id = FrameKind.NOTIFICATION, label(params.get("requestId"))
        is_ours = noted.direction is Direction.SENT
        if posted is not None and not is_ours:
            noted.cause = posted.cause
        of_id = (self._ours if is_ours else self._theirs).get(noted.id)
        if noted.kind is FrameKind.NOTIFICATION and of_id is not None:
            of_id.is_called_off = True
        if noted.kind is FrameKind.REQUEST:
            self._read_request(noted, params, is_ours=is_ours)
        elif noted.kind is FrameKind.ANSWER and is_ours:
            self._pair(noted, self._theirs.get(noted.id))
        elif noted.kind is FrameKind.ANSWER:
            self._read_answer(noted, message.get("result"), posted)
            is_unknown = getattr(message.get("error"), "code", 0) == METHOD_NOT_FOUND
            noted.detail = NO_METHOD * is_unknown
        elif not is_ours and (asked := self._ours.get(noted.token)) is not None:
            noted.cause = asked.cause

    def _give_up(self, word: Noted) -> None:
        """Tell of each open request that the connection ended before its answer."""
        for asked in (*self._ours.values(), *self._theirs.values()):
            if asked.kind is FrameKind.REQUEST and not asked.pair and asked.method != LASTING:
                asked.pair, asked.seconds, asked.shown = word.number, word.time - asked.time, None
                asked.faults += (FrameFault.FAILED,) * (not asked.is_called_off)

    def _read_request(self, noted: Noted, params: Mapping[str, Any], *, is_ours: bool) -> None:
        """Find an id that is in use, number a repeated request and the rounds of one."""
        requests = self._ours if is_ours else self._theirs
        before = requests.get(noted.id)
        is_again = before is not None and not before.pair
        if not is_ours:
            noted.faults = (FrameFault.REPEATED_ID,) * is_again
        elif noted.method.startswith("tasks/"):  # about a call, and no other attempt at it
            noted.cause = self._causes.pop(noted.id, None)
        elif "requestState" in params or "inputResponses" in params:
            noted.cause = self._causes.pop(noted.id, None)
            before = self._ours.get(hash(label(params.get("requestState"))))
            noted.round = 1 + (before.round if before is not None else 1)
        elif (cause := self._causes.pop(noted.id, None)) is not None:
            cause.attempts += 1
            noted.cause, noted.attempt = cause, cause.attempts
        elif before is not None and is_again:
            noted.attempt = before.attempt + 1
        _remember(requests, noted.id, noted)

    def _read_answer(self, answer: Noted, result: object, posted: Noted | None) -> None:
        """Pair an answer with our request; over HTTP only the one that was posted can be it."""
        asked = self._ours.get(answer.id)
        if posted is not None and posted.kind is FrameKind.REQUEST:
            asked = posted if not answer.id or asked is posted else None
        if asked is None or asked.pair:
            answer.faults += (FrameFault.REPEATED_ID if asked else FrameFault.UNASKED,)
        self._pair(answer, asked)
        answer.is_error = not isinstance(result, Mapping) or result.get("isError") is True
        if isinstance(result, Mapping):
            if answer.method == "initialize":
                self._version = answer.version = label(result.get("protocolVersion"))
            if "requestState" in result or "inputRequests" in result:
                _remember(self._ours, hash(label(result.get("requestState"))), answer)

    def _pair(self, answer: Noted, asked: Noted | None) -> None:
        if asked is None:
            return
        if answer.kind is FrameKind.ANSWER:
            answer.method = asked.method
        answer.target, answer.token, answer.version = asked.target, asked.token, asked.version
        answer.cause, answer.attempt, answer.round = asked.cause, asked.attempt, asked.round
        answer.pair, answer.seconds = asked.number, answer.time - asked.time
        if not asked.pair:
            asked.pair, asked.seconds, asked.shown = answer.number, answer.seconds, None


def _remember(requests: OrderedDict[object, Noted], key: object, noted: Noted) -> None:
    requests[key] = noted
    if len(requests) > MAX_OPEN:
        requests.popitem(last=False)


def _target(params: Mapping[str, Any]) -> str:
    """Return what a request or a notification is about."""
    about = ref if isinstance(ref := params.get("ref"), Mapping) else params
    found = (about.get(name) for name in ("name", "uri", "level"))
    return next((label(value) for value in found if isinstance(value, str)), "")


def label(value: object) -> str:
    """Return what a server may have written at any length and of any type."""
    if isinstance(value, str):
        return value[:MAX_LABEL]
    if isinstance(value, int) and value.bit_length() <= 64:
        return str(value)
    return type(value).__name__ if value is not None else ""
