"""The tap at the wire of one server: notes each frame as it passes, raw, in a bounded ring.

It costs microseconds: bodies are read only once somebody looks. It needs no MCP SDK.
"""

import time
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from tui.model.chat import ConversationId, EntryId
from tui.model.servers import ServerId
from tui.model.wire import Direction, FrameFault, FrameKind, WireFrame

if TYPE_CHECKING:
    from tui.engine.mcp.wire.wire import Wire

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
        version: The revision of the protocol that it is written in, or empty.
        is_checked: Whether it was checked against the protocol's schema.
        shown: As it was shown last, or None if it has changed since.
    """

    server: ServerId
    direction: Direction
    kind: FrameKind
    method: str = ""
    id: object = None
    target: str = ""
    token: object = None
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


@dataclass(slots=True)
class _Open:
    """What is remembered of one connection.

    Attributes:
        ours: Our requests by their ids, answered ones too, and by the state of their next round.
        theirs: The server's requests by their ids, answered ones too.
        causes: The calls in the chat for which requests are about to be sent, by their ids.
        version: The revision of the protocol that was agreed on last.
    """

    ours: _Requests = field(default_factory=OrderedDict)
    theirs: _Requests = field(default_factory=OrderedDict)
    causes: dict[str, Cause] = field(default_factory=dict)
    version: str = ""


class Tap:
    """The frames of one server, those of earlier connections too. Lives on one event loop.

    Args:
        server: Which server.
        wire: Counts the frames of all servers.

    Attributes:
        ring: The frames by their numbers, oldest first.
    """

    def __init__(self, server: ServerId, wire: "Wire") -> None:
        self.ring: OrderedDict[int, Noted] = OrderedDict()
        self._server = server
        self._wire = wire
        self._bytes = 0
        self._stderr: deque[int] = deque()
        self._open = _Open()

    def begin(self) -> None:
        """Note that a new connection begins, with ids of its own."""
        self._open = _Open()

    def expect(self, message: Any) -> None:  # noqa: ANN401 - a message of the SDK
        """Note, in the task of the sender, which call a request is for that is about to be sent."""
        cause = _CAUSE.get()
        if cause is not None and hasattr(message, "method") and hasattr(message, "id"):
            self._open.causes[str(message.id)] = cause

    def sent(self, message: Any, data: bytes, *, posts: bool = False) -> None:  # noqa: ANN401 - ditto
        """Note a message to the server, as it is written.

        Args:
            message: The message.
            data: The same as bytes.
            posts: Whether the running task posts it, and reads what answers it.
        """
        noted, known = self._read(Direction.SENT, message), self._open
        if noted.kind is FrameKind.REQUEST:
            noted.cause = known.causes.pop(str(noted.id), None)
            self._count(noted, message.params or {})
            _remember(known.ours, str(noted.id), noted)
        elif noted.kind is FrameKind.ANSWER:
            self._pair(noted, known.theirs.get(str(noted.id)))
        if posts:
            _POSTED.set(noted)
        self._add(noted, data)

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
        if message is not None:
            noted = self._read(Direction.RECEIVED, message)
        if fault is not None:
            noted.faults, noted.is_checked = (fault,), True
        known, posted = self._open, _POSTED.get()
        noted.cause = posted.cause if posted is not None else None
        if noted.kind is FrameKind.REQUEST:
            earlier = known.theirs.get(str(noted.id))
            if earlier is not None and not earlier.pair:
                noted.faults += (FrameFault.REPEATED_ID,)
            _remember(known.theirs, str(noted.id), noted)
        elif noted.kind is FrameKind.ANSWER:
            self._take_answer(noted, posted)
            self._learn(noted, getattr(message, "result", None))
        elif asked := known.ours.get(str(noted.token)):
            noted.cause = asked.cause
        self._add(noted, data)

    def http(
        self,
        method: str,
        address: str,
        status: int,
        *,
        seconds: float | None = None,
        attempt: int = 1,
        session: str = "",
        after: str = "",
    ) -> None:
        """Note the status of an HTTP response.

        Args:
            method: The HTTP method, or ``endpoint`` for where a server takes messages.
            address: The address, without the query of a signature.
            status: The status.
            seconds: How long it took, or None.
            attempt: Which attempt it was.
            session: The id of the session.
            after: The last event of the stream that is resumed, or empty.
        """
        noted = Noted(self._server, Direction.RECEIVED, FrameKind.HTTP, method, None, address)
        noted.status, noted.seconds, noted.attempt = status, seconds, attempt
        if session:
            noted.session = sha256(session.encode()).hexdigest()[:SESSION_SHOWN]
        noted.detail = f"resumed after event {after}" if after else ""
        noted.is_error = status >= 400
        posted = _POSTED.get()
        if posted is not None and (method == "POST" or posted.kind is FrameKind.REQUEST):
            noted.pair, noted.cause = posted.number, posted.cause
        self._add(noted)

    def failed(self, request: object, reason: str, fault: FrameFault) -> None:
        """Note why a request gets no answer of the server."""
        noted = Noted(self._server, Direction.OWN, FrameKind.LIFECYCLE, "", request)
        noted.detail, noted.faults, noted.is_error = reason, (fault,), True
        self._pair(noted, self._open.ours.get(str(request)))
        self._add(noted)

    def stderr(self, lines: Sequence[bytes]) -> None:
        """Note what the server wrote to standard error."""
        noted = Noted(self._server, Direction.RECEIVED, FrameKind.STDERR)
        self._add(noted, b"\n".join(lines), MAX_STDERR)
        self._stderr.append(noted.number)
        if len(self._stderr) > MAX_STDERR_FRAMES:
            self._let_go(self._stderr.popleft())

    def word(self, word: str, detail: str) -> None:
        """Note what became of the process or the connection."""
        noted = Noted(self._server, Direction.OWN, FrameKind.LIFECYCLE, word)
        noted.detail = detail
        self._add(noted)

    def _read(self, direction: Direction, message: Any) -> Noted:  # noqa: ANN401 - ditto
        """Read what rows, pairs and filters go by."""
        method, number = getattr(message, "method", ""), getattr(message, "id", None)
        kind = _KINDS[bool(method), not method or hasattr(message, "id")]
        noted = Noted(self._server, direction, kind, method, number)
        if params := getattr(message, "params", None):
            noted.target = _target(params)
            meta = params.get("_meta")
            meta = meta if isinstance(meta, Mapping) else {}
            noted.token = params.get("progressToken", meta.get("progressToken"))
            self._open.version = str(meta.get(VERSION_KEY, self._open.version))
            if kind is FrameKind.NOTIFICATION:
                noted.id = params.get("requestId")
        noted.version = self._open.version
        return noted

    def _count(self, noted: Noted, params: Mapping[str, Any]) -> None:
        """Number a repeated request, and the rounds of one that is answered with questions."""
        earlier = self._open.ours.get(str(noted.id))
        if earlier is not None and not earlier.pair:
            noted.attempt = earlier.attempt + 1
        if "requestState" in params or "inputResponses" in params:
            before = self._open.ours.get(("state", str(params.get("requestState"))))
            noted.round = 1 + (before.round if before is not None else 1)
        elif (cause := noted.cause) is not None:
            cause.attempts += 1
            noted.attempt = max(noted.attempt, cause.attempts)

    def _take_answer(self, answer: Noted, posted: Noted | None) -> None:
        """Pair an answer with our request; over HTTP only the one that was posted can be it."""
        asked = self._open.ours.get(str(answer.id))
        if posted is not None and posted.kind is FrameKind.REQUEST:
            asked = posted if answer.id is None or asked is posted else None
        if asked is None:
            answer.faults += (FrameFault.UNASKED,)
        elif asked.pair:
            answer.faults += (FrameFault.REPEATED_ID,)
        self._pair(answer, asked)

    def _pair(self, answer: Noted, asked: Noted | None) -> None:
        if asked is None:
            return
        answer.method, answer.target, answer.token = asked.method, asked.target, asked.token
        answer.cause, answer.attempt, answer.round = asked.cause, asked.attempt, asked.round
        answer.version, answer.pair = asked.version, asked.number
        answer.seconds = time.time() - asked.time
        if not asked.pair:
            asked.pair, asked.seconds, asked.shown = self._wire.last + 1, answer.seconds, None

    def _learn(self, answer: Noted, result: object) -> None:
        """Take from an answer what it is, and what later frames are read by."""
        answer.is_error = not isinstance(result, Mapping) or result.get("isError") is True
        if not isinstance(result, Mapping):
            return
        if answer.method == "initialize":
            self._open.version = answer.version = str(result.get("protocolVersion", ""))
        if "requestState" in result or "inputRequests" in result:
            _remember(self._open.ours, ("state", str(result.get("requestState"))), answer)

    def _add(self, noted: Noted, data: bytes = b"", most: int = MAX_WHOLE) -> None:
        """Put a frame into the ring, and let go what no longer fits."""
        noted.size, noted.head, noted.time = len(data), data, time.time()
        if noted.size > most:
            noted.head, noted.tail = data[: most // 2], data[-most // 2 :]
        noted.number = self._wire.last + 1
        self.ring[noted.number] = noted
        self._bytes += FRAME_BYTES + len(noted.head) + len(noted.tail)
        while len(self.ring) > MAX_FRAMES or self._bytes > MAX_BYTES:
            self._let_go(next(iter(self.ring)))
        self._wire.note(noted, data)

    def _let_go(self, number: int) -> None:
        if (noted := self.ring.pop(number, None)) is not None:
            self._bytes -= FRAME_BYTES + len(noted.head) + len(noted.tail)
            noted.head = noted.tail = b""  # it may still wait for its answer


def _remember(requests: _Requests, key: object, noted: Noted) -> None:
    requests[key] = noted
    requests.move_to_end(key)
    if len(requests) > MAX_OPEN:
        requests.popitem(last=False)


def _target(params: Mapping[str, Any]) -> str:
    """Return what a request or a notification is about."""
    about = ref if isinstance(ref := params.get("ref"), Mapping) else params
    found = (about.get(name) for name in ("name", "uri", "level"))
    return next((value for value in found if isinstance(value, str)), "")
