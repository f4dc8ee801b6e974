"""The tap at the wire of one server: notes each frame as it passes, raw, in a bounded ring.

It costs microseconds: what a frame says is read only once somebody looks. It needs no MCP SDK.
"""

import time
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
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
"""Most characters of a session's id that are kept: who knows all of it is in the session."""

VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
"""Where a request of the stateless protocol names its revision."""

_PROGRESS: Final = "notifications/progress"
_CANCELLED: Final = "notifications/cancelled"


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
        head: The body, or of a long one its first half of `MAX_WHOLE`.
        tail: The other half, or empty.
        began: When it was noted, in seconds of `time.monotonic`.
        version: The revision of the protocol that it is written in, or empty.
        is_checked: Whether it was checked against the protocol's schema.
        shown: As it was shown last, or None if it has changed since.
    """

    server: ServerId
    direction: Direction
    kind: FrameKind
    head: bytes = b""
    size: int = 0
    method: str = ""
    id: object = None
    target: str = ""
    faults: tuple[FrameFault, ...] = ()
    detail: str = ""
    tail: bytes = b""
    number: int = 0
    time: float = 0.0
    began: float = 0.0
    pair: int = 0
    seconds: float | None = None
    token: object = None
    status: int = 0
    session: str = ""
    attempt: int = 1
    round: int = 1
    cause: Cause | None = None
    is_error: bool = False
    version: str = ""
    is_checked: bool = False
    shown: WireFrame | None = None


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


class Tap:
    """The frames of one server, those of earlier connections too. Lives on one event loop.

    Args:
        server: Which server.
        wire: Counts the frames of all servers.

    Attributes:
        ring: The frames by their numbers, oldest first.
        lost: How many have left the ring.
    """

    def __init__(self, server: ServerId, wire: "Wire") -> None:
        self.server = server
        self.ring: OrderedDict[int, Noted] = OrderedDict()
        self.lost = 0
        self._wire = wire
        self._bytes = 0
        self._stderr: deque[int] = deque()
        self._version = ""
        self._causes: dict[str, Cause] = {}
        self._rounds: dict[int, int] = {}
        self._open: dict[Direction, OrderedDict[str, Noted]] = {}
        self.begin()

    def begin(self) -> None:
        """Note that a new connection begins, with ids of its own."""
        self._version = ""
        self._causes.clear()
        self._rounds.clear()
        self._open = {Direction.SENT: OrderedDict(), Direction.RECEIVED: OrderedDict()}

    def expect(self, message: Any) -> None:  # noqa: ANN401 - a message of the SDK
        """Note, in the task of the sender, which call a request is for that is about to be sent."""
        cause = _CAUSE.get()
        if cause is not None and hasattr(message, "method") and hasattr(message, "id"):
            self._causes[str(message.id)] = cause

    def sent(self, message: Any, data: bytes, *, posts: bool = False) -> None:  # noqa: ANN401 - ditto
        """Note a message to the server, as it is written.

        Args:
            message: The message.
            data: The same as bytes.
            posts: Whether the running task posts it, and reads what answers it.
        """
        noted = self._read(Direction.SENT, message, data)
        noted.cause = self._causes.pop(str(noted.id), None)
        if noted.kind is FrameKind.REQUEST:
            self._count_attempts(noted, message.params or {})
            self._opened(noted)
        elif noted.kind is FrameKind.ANSWER:
            self._answer(noted, self._open[Direction.RECEIVED].get(str(noted.id)))
        if posts:
            _POSTED.set(noted)
        self._add(noted, data)

    def received(
        self,
        data: bytes,
        message: Any = None,  # noqa: ANN401 - a message of the SDK
        fault: FrameFault | None = None,
        detail: str = "",
    ) -> None:
        """Note what the server sent.

        Args:
            data: What it sent.
            message: The same as a message; None if it is none.
            fault: What is wrong with it, or None; then a message is what the session got instead.
            detail: More about that.
        """
        if message is None:
            noted = Noted(self.server, Direction.RECEIVED, FrameKind.NOISE)
        else:
            noted = self._read(Direction.RECEIVED, message, data)
        posted = _POSTED.get()
        noted.cause = posted.cause if posted is not None else None
        if fault is not None:
            noted.faults, noted.detail, noted.is_checked = (fault,), detail, True
        if noted.kind is FrameKind.REQUEST:
            earlier = self._open[Direction.RECEIVED].get(str(noted.id))
            if earlier is not None and not earlier.pair:
                noted.faults += (FrameFault.REPEATED_ID,)
            self._opened(noted)
        elif noted.kind is FrameKind.ANSWER:
            self._answer(noted, self._asked(noted, posted))
            self._learn(noted, message)
        elif noted.method == _PROGRESS:
            asked = self._open[Direction.SENT].get(str(noted.token))
            noted.cause = asked.cause if asked is not None else noted.cause
        self._add(noted, data)

    def http(
        self,
        method: str,
        address: str,
        status: int,
        *,
        began: float = 0.0,
        attempt: int = 1,
        session: str = "",
        after: str = "",
    ) -> None:
        """Note the status of an HTTP response.

        Args:
            method: The HTTP method.
            address: The address, without the query of a signature.
            status: The status.
            began: When it was asked for, in seconds of `time.monotonic`.
            attempt: Which attempt it was.
            session: The id of the session.
            after: The last event of the stream that was to be resumed, or empty.
        """
        noted = Noted(self.server, Direction.RECEIVED, FrameKind.HTTP, method=method)
        noted.target, noted.status, noted.attempt = address, status, attempt
        noted.detail = f"resumed after event {after}" if after else ""
        noted.session = session[: min(SESSION_SHOWN, len(session) // 2)]
        noted.seconds = time.monotonic() - began if began else None
        noted.is_error = status >= 400
        posted = _POSTED.get()
        if posted is not None and (method == "POST" or posted.kind is FrameKind.REQUEST):
            noted.pair, noted.cause = posted.number, posted.cause
        self._add(noted)

    def failed(self, request: object, reason: str, *, is_too_large: bool = False) -> None:
        """Note why a request gets no answer of the server."""
        noted = Noted(self.server, Direction.OWN, FrameKind.LIFECYCLE, id=request, detail=reason)
        noted.faults = (FrameFault.TOO_LARGE if is_too_large else FrameFault.FAILED,)
        noted.is_error = True
        if asked := self._open[Direction.SENT].get(str(request)):
            self._answer(noted, asked)
        self._add(noted)

    def stderr(self, lines: Sequence[bytes]) -> None:
        """Note what the server wrote to standard error."""
        noted = Noted(self.server, Direction.RECEIVED, FrameKind.STDERR)
        self._add(noted, b"\n".join(lines), MAX_STDERR)
        self._stderr.append(noted.number)
        if len(self._stderr) > MAX_STDERR_FRAMES:
            self._let_go(self._stderr.popleft())

    def word(self, word: str, detail: str = "") -> None:
        """Note what became of the process or the connection."""
        noted = Noted(self.server, Direction.OWN, FrameKind.LIFECYCLE, method=word, detail=detail)
        self._add(noted)

    def _read(self, direction: Direction, message: Any, data: bytes) -> Noted:  # noqa: ANN401 - ditto
        """Read what rows, pairs and filters go by."""
        method, number = getattr(message, "method", ""), getattr(message, "id", None)
        params = getattr(message, "params", None) or {}
        kind = FrameKind.ANSWER if not method else FrameKind.NOTIFICATION
        if method and hasattr(message, "id"):
            kind = FrameKind.REQUEST
        noted = Noted(self.server, direction, kind, data, method=method, id=number)
        if params:
            noted.target = _target(params)
            meta = params.get("_meta")
            meta = meta if isinstance(meta, Mapping) else {}
            noted.token = params.get("progressToken", meta.get("progressToken"))
            if version := meta.get(VERSION_KEY):
                self._version = str(version)
            if method == _CANCELLED:
                noted.id = params.get("requestId")
        noted.version = self._version
        return noted

    def _count_attempts(self, noted: Noted, params: Mapping[str, Any]) -> None:
        """Number a repeated request, and the rounds of one that is answered with questions."""
        if "requestState" in params or "inputResponses" in params:
            state = params.get("requestState")
            noted.round = self._rounds.pop(hash(str(state)), 1) + 1
        elif noted.cause is not None:
            noted.cause.attempts += 1
        earlier = self._open[Direction.SENT].get(str(noted.id))
        again = earlier.attempt + 1 if earlier is not None and not earlier.pair else 1
        noted.attempt = max(again, noted.cause.attempts if noted.cause is not None else 1)

    def _opened(self, noted: Noted) -> None:
        """Take note of a request that waits for its answer."""
        requests = self._open[noted.direction]
        requests[str(noted.id)] = noted
        requests.move_to_end(str(noted.id))
        if len(requests) > MAX_OPEN:
            requests.popitem(last=False)

    def _asked(self, answer: Noted, posted: Noted | None) -> Noted | None:
        """Find the request of an answer; over HTTP only the one that was posted can be."""
        asked = self._open[Direction.SENT].get(str(answer.id))
        if posted is not None and posted.kind is FrameKind.REQUEST:
            asked = posted if answer.id in {None, posted.id} or asked is posted else None
        if asked is None:
            answer.faults += (FrameFault.UNASKED,)
        elif asked.pair:
            answer.faults += (FrameFault.REPEATED_ID,)
        return asked

    def _answer(self, answer: Noted, asked: Noted | None) -> None:
        """Pair an answer with its request."""
        if asked is None:
            return
        answer.method, answer.target, answer.token = asked.method, asked.target, asked.token
        answer.cause, answer.attempt, answer.round = asked.cause, asked.attempt, asked.round
        answer.version = asked.version
        answer.pair = asked.number
        answer.seconds = time.monotonic() - asked.began
        if not asked.pair:
            asked.pair, asked.seconds, asked.shown = self._wire.last + 1, answer.seconds, None

    def _learn(self, answer: Noted, message: Any) -> None:  # noqa: ANN401 - a message of the SDK
        """Take from an answer what later frames are read by."""
        result = getattr(message, "result", None)
        answer.is_error = result is None
        if not isinstance(result, Mapping):
            return
        if answer.method == "initialize":
            self._version = answer.version = str(result.get("protocolVersion", ""))
        elif answer.method == "tools/call":
            answer.is_error = result.get("isError") is True
        if "requestState" in result or "inputRequests" in result:
            if len(self._rounds) >= MAX_OPEN:
                self._rounds.clear()
            self._rounds[hash(str(result.get("requestState")))] = answer.round

    def _add(self, noted: Noted, data: bytes = b"", most: int = MAX_WHOLE) -> None:
        """Put a frame into the ring, and let go what no longer fits."""
        noted.size, noted.head = len(data), data
        if noted.size > most:
            noted.head, noted.tail = data[: most // 2], data[-most // 2 :]
        noted.time, noted.began = time.time(), time.monotonic()
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
            self.lost += 1


def _target(params: Mapping[str, Any]) -> str:
    """Return what a request or a notification is about."""
    about = params
    if isinstance(ref := params.get("ref"), Mapping):
        about = ref
    for name in ("name", "uri", "level"):
        if isinstance(value := about.get(name), str):
            return value
    return ""
