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
from types import MappingProxyType
from typing import Any, Final, Protocol

from tui.model.chat import ConversationId, EntryId
from tui.model.servers import ServerId
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

MAX_UNREAD_BYTES: Final = 256 * 1024
"""Bytes of frames that wait to be read."""

MAX_LABEL: Final = 4 * MAX_LINE
"""Characters that are kept of a name, an id or a token: more than is shown."""

SESSION_HEADER: Final = "mcp-session-id"
LAST_EVENT_ID: Final = "last-event-id"

SESSION_SHOWN: Final = 8
"""Characters of a session's digest: who knows its id is in the session."""

VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
"""Where a request of the stateless protocol names its revision."""

_KINDS: Final = {
    (True, True): FrameKind.REQUEST,
    (True, False): FrameKind.NOTIFICATION,
    (False, True): FrameKind.ANSWER,
}
"""By whether a message has a method, and an id."""


@dataclass(slots=True)
class Cause:
    """The call in the chat for which something is sent, and the attempts at it so far."""

    conversation: ConversationId
    call: EntryId
    attempts: int = 0


@dataclass(slots=True)
class Noted:
    """A frame as it is kept, raw: neither masked nor sanitized; see `WireFrame`.

    Attributes:
        head: The body, or the first half of what is kept of it.
        tail: The other half, or empty.
        posted: The message that was being posted over HTTP, which it may answer; or None.
        version: The revision of the protocol that it is written in, or empty.
        is_checked: Whether it was checked against the protocol's schema.
        shown: As it was shown last, or None if it has changed since.
    """

    server: ServerId
    direction: Direction
    kind: FrameKind
    method: str = ""
    id: str = ""
    target: str = ""
    token: str = ""
    detail: str = ""
    faults: tuple[FrameFault, ...] = ()
    is_error: bool = False
    cause: Cause | None = None
    version: str = ""
    status: int = 0
    session: str = ""
    attempt: int = 1
    round: int = 1
    number: int = 0
    time: float = 0.0
    pair: int = 0
    seconds: float | None = None
    size: int = 0
    head: bytes = b""
    tail: bytes = b""
    posted: "Noted | None" = None
    is_checked: bool = False
    shown: WireFrame | None = None


_CAUSE: ContextVar[Cause | None] = ContextVar("cause", default=None)
_POSTED: ContextVar[Noted | None] = ContextVar("posted", default=None)
"""The message that the running task posts over HTTP: what comes meanwhile is an answer to it."""

_Requests = OrderedDict[object, Noted]


@contextmanager
def caused_by(conversation: ConversationId, call: EntryId) -> Iterator[None]:
    """Say which call in the chat the requests are for that are sent in a block."""
    token = _CAUSE.set(Cause(conversation, call))
    try:
        yield
    finally:
        _CAUSE.reset(token)


class FrameCounter(Protocol):
    """What the taps of all servers share."""

    @property
    def is_traced(self) -> bool:
        """Whether each frame is written as it happens."""

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
        self._server = server
        self._wire = wire
        self._ring: OrderedDict[int, Noted] = OrderedDict()
        self._bytes = self._unread_bytes = 0
        self._unread: list[tuple[Noted, Any]] = []
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
        self._ours: _Requests = OrderedDict()
        self._theirs: _Requests = OrderedDict()
        self._causes: dict[str, Cause] = {}
        self._version = ""

    def expect(self, message: Any) -> None:  # noqa: ANN401 - a message of the SDK
        """Note, in the task of the sender, which call a request is for that is about to be sent."""
        if (cause := _CAUSE.get()) is not None and {"method", "id"} <= vars(message).keys():
            self._causes[label(message.id)] = cause

    def sent(self, message: Any, data: bytes, *, posts: bool = False) -> None:  # noqa: ANN401 - ditto
        """Note a message to the server, as it is written.

        Args:
            message: The message.
            data: The same as bytes.
            posts: Whether the running task posts it, and reads what answers it.
        """
        noted = Noted(self._server, Direction.SENT, FrameKind.NOISE)
        if posts:
            _POSTED.set(noted)
        self._note(noted, data, message)

    def received(
        self,
        data: bytes,
        message: Any = None,  # noqa: ANN401 - a message of the SDK
        fault: FrameFault | None = None,
    ) -> None:
        """Note what the server sent.

        Args:
            data: What it sent.
            message: The same as a message, or what the session gets instead; None for neither.
            fault: What is wrong with it, or None.
        """
        noted = Noted(self._server, Direction.RECEIVED, FrameKind.NOISE)
        if fault is not None:
            noted.faults, noted.is_checked = (fault,), True
        self._note(noted, data, message)

    def http(
        self,
        method: str,
        address: str,
        status: int = 0,
        attempt: int = 1,
        began: float | None = None,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Note the status of an HTTP response.

        Args:
            method: The HTTP method, or ``endpoint`` for where a server takes messages.
            address: The address, without the query of a signature.
            status: The status.
            attempt: Which attempt it was.
            began: When it was asked for, in seconds since the epoch, or None.
            headers: Those of the request and of the response, in lower case.
        """
        noted = Noted(self._server, Direction.RECEIVED, FrameKind.HTTP, method, "", address)
        noted.status, noted.attempt, noted.is_error = status, attempt, status >= 400
        noted.seconds = time.time() - began if began is not None else None
        if session := headers.get(SESSION_HEADER):
            noted.session = sha256(session.encode()).hexdigest()[:SESSION_SHOWN]
        if after := headers.get(LAST_EVENT_ID):
            noted.detail = f"resumed after event {after}"
        self._note(noted)

    def word(
        self, word: str, detail: str, request: object = None, fault: FrameFault | None = None
    ) -> None:
        """Note what became of the connection, or with `fault` why a request gets no answer."""
        noted = Noted(self._server, Direction.OWN, FrameKind.LIFECYCLE, word, label(request))
        noted.detail = detail
        if fault is not None:
            noted.faults, noted.is_error = (fault,), True
        self._note(noted)

    def stderr(self, lines: Sequence[bytes]) -> None:
        """Note what the server wrote to standard error."""
        noted = Noted(self._server, Direction.RECEIVED, FrameKind.STDERR)
        self._note(noted, b"\n".join(lines), most=MAX_STDERR)
        self._stderr.append(noted.number)
        if len(self._stderr) > MAX_STDERR_FRAMES:
            self._let_go(self._stderr.popleft())

    def _note(
        self,
        noted: Noted,
        data: bytes = b"",
        message: Any = None,  # noqa: ANN401 - a message of the SDK
        most: int = MAX_WHOLE,
    ) -> None:
        noted.size, noted.head, noted.time = len(data), data, time.time()
        if noted.size > most:
            noted.head, noted.tail = data[: most // 2], data[-most // 2 :]
        noted.posted = _POSTED.get()
        noted.number = self._wire.count()
        self._unread.append((noted, message))
        self._unread_bytes += noted.size
        if len(self._unread) >= MAX_UNREAD or self._unread_bytes >= MAX_UNREAD_BYTES:
            self._read_all()
        if self._wire.is_traced:
            self._read_all()
            self._wire.trace(noted, data)

    def _read_all(self) -> None:
        """Read what was noted, put it into the ring, and let go what no longer fits."""
        unread, self._unread, self._unread_bytes = self._unread, [], 0
        for noted, message in unread:
            if message is not None:
                self._read(noted, vars(message))
            elif noted.kind is FrameKind.LIFECYCLE:
                self._pair(noted, self._ours.get(noted.id))
            elif (posted := noted.posted) is not None and noted.kind is FrameKind.HTTP:
                noted.cause = posted.cause
                if noted.method == "POST" or posted.kind is FrameKind.REQUEST:
                    noted.pair = posted.number
            self._ring[noted.number] = noted
            self._bytes += FRAME_BYTES + len(noted.head) + len(noted.tail)
        while len(self._ring) > MAX_FRAMES or self._bytes > MAX_BYTES:
            self._let_go(next(iter(self._ring)))

    def _let_go(self, number: int) -> None:
        if (noted := self._ring.pop(number, None)) is not None:
            self._bytes -= FRAME_BYTES + len(noted.head) + len(noted.tail)
            noted.head = noted.tail = b""  # it may still wait for its answer

    def _read(self, noted: Noted, message: Mapping[str, Any]) -> None:
        """Read what rows, pairs and filters go by."""
        noted.method, noted.id = label(message.get("method")), label(message.get("id"))
        noted.kind = _KINDS[bool(noted.method), not noted.method or "id" in message]
        if params := message.get("params"):
            noted.target = _target(params)
            meta = params.get("_meta")
            meta = meta if isinstance(meta, Mapping) else {}
            noted.token = label(params.get("progressToken", meta.get("progressToken")))
            self._version = label(meta.get(VERSION_KEY, self._version))
            if noted.kind is FrameKind.NOTIFICATION:
                noted.id = label(params.get("requestId"))
        noted.version = self._version
        if noted.direction is Direction.SENT:
            self._read_ours(noted, params or {})
        else:
            self._read_theirs(noted, message.get("result"))

    def _read_ours(self, noted: Noted, params: Mapping[str, Any]) -> None:
        """Number a repeated request and the rounds of one; pair an answer."""
        key = noted.id
        if noted.kind is FrameKind.ANSWER:
            self._pair(noted, self._theirs.get(key))
        if noted.kind is not FrameKind.REQUEST:
            return
        noted.cause = cause = self._causes.pop(key, None)
        earlier = self._ours.get(key)
        if earlier is not None and not earlier.pair:
            noted.attempt = earlier.attempt + 1
        if "requestState" in params or "inputResponses" in params:
            before = self._ours.get(hash(label(params.get("requestState"))))
            noted.round = 1 + (before.round if before is not None else 1)
        elif cause is not None:
            cause.attempts += 1
            noted.attempt = max(noted.attempt, cause.attempts)
        _remember(self._ours, key, noted)

    def _read_theirs(self, noted: Noted, result: object) -> None:
        key, posted = noted.id, noted.posted
        noted.cause = posted.cause if posted is not None else None
        if noted.kind is FrameKind.ANSWER:
            self._read_answer(noted, result)
        elif noted.kind is FrameKind.REQUEST:
            earlier = self._theirs.get(key)
            if earlier is not None and not earlier.pair:
                noted.faults += (FrameFault.REPEATED_ID,)
            _remember(self._theirs, key, noted)
        elif asked := self._ours.get(noted.token):
            noted.cause = asked.cause

    def _read_answer(self, answer: Noted, result: object) -> None:
        """Pair an answer with our request; over HTTP only the one that was posted can be it."""
        asked, posted = self._ours.get(answer.id), answer.posted
        if posted is not None and posted.kind is FrameKind.REQUEST:
            asked = posted if not answer.id or asked is posted else None
        if asked is None:
            answer.faults += (FrameFault.UNASKED,)
        elif asked.pair:
            answer.faults += (FrameFault.REPEATED_ID,)
        self._pair(answer, asked)
        answer.is_error = not isinstance(result, Mapping) or result.get("isError") is True
        if not isinstance(result, Mapping):
            return
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


def _remember(requests: _Requests, key: object, noted: Noted) -> None:
    requests[key] = noted
    requests.move_to_end(key)
    if len(requests) > MAX_OPEN:
        requests.popitem(last=False)


def _target(params: Mapping[str, Any]) -> str:
    """Return what a request or a notification is about."""
    about = ref if isinstance(ref := params.get("ref"), Mapping) else params
    found = (about.get(name) for name in ("name", "uri", "level"))
    return next((label(value) for value in found if isinstance(value, str)), "")


def label(value: object) -> str:
    """Return what a server may have written at any length and of any type."""
    match value:
        case str():
            return value[:MAX_LABEL]
        case int() if value.bit_length() <= 64:
            return str(value)
        case _:
            return "" if value is None else type(value).__name__
