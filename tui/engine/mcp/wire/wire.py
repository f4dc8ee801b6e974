"""The wires of all servers: their taps, and what may be seen of the frames.

Frames are kept raw and masked whenever they are shown or written, so that a secret that is learnt
later is masked in earlier frames too.
"""

import asyncio
import json
import shlex
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from tui.engine.background import TaskSet
from tui.engine.bus import Publish
from tui.engine.logs.redaction import Redactor, masked_address
from tui.engine.mcp.catalog.offered_tool import JsonObject, MediaPart, TextPart
from tui.engine.mcp.wire.tap import Noted, Tap
from tui.engine.mcp.wire.trace import TraceFile
from tui.model.bounded_json import JsonError, read_value, writable
from tui.model.chat import ConversationId, EntryId
from tui.model.events import FramesNoted
from tui.model.servers import ServerId
from tui.model.wire.frames import Direction, FrameBody, FrameKind, WireFrame
from tui.text import MAX_LINE, clip_middle, sanitize, sanitize_line

MAX_TAPS: Final = 500
"""Servers of a run whose frames are kept; the first go first."""

INTERVAL: Final = 0.1
"""Shortest time between two `FramesNoted`, in seconds."""

CHECKED_AT_ONCE: Final = 200
"""Messages that are checked in an interval, the newest first: a flood leaves time for the rest."""

MAX_ANSWERS: Final = 100
"""Answers to the model that are kept to be compared."""

MAX_ANSWER: Final = 64 * 1024
"""Longest of those that is kept whole, in characters."""

MAX_TRACED: Final = 2 * 1024 * 1024
"""Longest body that a trace holds whole, in bytes; of longer ones it holds both ends."""

_DEFAULTS: Final = {field.name: field.default for field in fields(WireFrame)}
_TEXTS: Final = ("method", "id", "target", "token", "session", "detail")
_COPIED: Final = tuple(
    name for name in _DEFAULTS if name not in {*_TEXTS, "conversation", "call", "is_cut"}
)
_COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "tools/call": ("call", "name"),
    "resources/read": ("read", "uri"),
    "prompts/get": ("prompt", "name"),
}
"""The command that is equal to a method, and what it names."""


class Wire:
    """What was said between gemdeck and all its servers. Lives on one event loop.

    Args:
        publish: Takes `FramesNoted` while somebody watches.
        redactor: Masks the secrets of the run.
        trace: Gets each frame as it happens, or None.

    Attributes:
        last: The number of the newest frame; 0 before the first.
        revision: Grows with each frame and each change of one.
    """

    def __init__(
        self,
        publish: Publish = lambda _: None,
        redactor: Redactor | None = None,
        trace: TraceFile | None = None,
    ) -> None:
        self.last = self.revision = 0
        self._publish = publish
        self._redactor = redactor or Redactor()
        self._trace = trace
        self._taps: dict[ServerId, Tap] = {}
        self._answers: OrderedDict[tuple[ConversationId, EntryId], str] = OrderedDict()
        self._is_watched = False
        self._timer: asyncio.TimerHandle | None = None
        self._masked = 0
        self._tasks = TaskSet("frames could not be checked")

    async def aclose(self) -> None:
        """End what goes on, and mask in the trace what was learnt to be a secret since."""
        self.watch(is_watched=False)
        await self._tasks.aclose()
        if self._trace is not None:
            await asyncio.to_thread(self._trace.close)

    def tap(self, server: ServerId) -> Tap:
        """Return the tap of a server, the same for all its connections."""
        if server not in self._taps:
            if len(self._taps) >= MAX_TAPS:
                del self._taps[next(iter(self._taps))]
            self._taps[server] = Tap(server, self)
        return self._taps[server]

    def count(self) -> int:
        self.last += 1
        self.revision += 1
        self._tell_soon()
        return self.last

    @property
    def is_traced(self) -> bool:
        return self._trace is not None

    def trace(self, noted: Noted, data: bytes) -> None:
        if self._trace is not None:
            self._trace.append(self._line(noted, data if len(data) <= MAX_TRACED else noted.head))

    def watch(self, *, is_watched: bool) -> None:
        """Say whether somebody watches: then changes are told, and messages are checked."""
        self._is_watched = is_watched
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if is_watched:
            self._tell()

    def _tell_soon(self) -> None:
        if self._is_watched and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(INTERVAL, self._tell)

    def _tell(self) -> None:
        self._timer = None
        self._tasks.start(self._check())

    async def _check(self) -> None:
        """Check what was not checked yet, in a thread, and tell that there is more to see."""
        unchecked = [one for one in self._all() if not one.is_checked]
        if unchecked:
            await asyncio.to_thread(_check, unchecked[-CHECKED_AT_ONCE:])
            self.revision += 1
        if len(unchecked) > CHECKED_AT_ONCE:
            self._tell_soon()
        self._publish(FramesNoted(self.revision))

    def frames(self) -> list[WireFrame]:
        """Return the frames of all servers, in the order of what happened.

        A frame is the same object as long as it has not changed.
        """
        if self._masked != self._redactor.revision:  # what was shown may hold what is secret now
            self._masked = self._redactor.revision
            for one in self._all():
                one.shown = None
        return [self._shown(one) for one in self._all()]

    def body(self, number: int) -> FrameBody | None:
        """Return the body of a frame, or None if the frame is not kept."""
        if (noted := self._find(number)) is None:
            return None
        text, value = self._body(noted, noted.head)
        return FrameBody(sanitize(text), _sanitized(value))

    def gave(
        self, conversation: ConversationId, call: EntryId, parts: Sequence[TextPart | MediaPart]
    ) -> None:
        """Keep what the model gets for a call, to be compared with what the server sent."""
        texts = (one.text if isinstance(one, TextPart) else f"[{one.mime_type}]" for one in parts)
        half = MAX_ANSWER // 2
        self._answers[conversation, call] = clip_middle("\n".join(texts), half, half)
        if len(self._answers) > MAX_ANSWERS:
            self._answers.popitem(last=False)

    def model_got(self, conversation: ConversationId, call: EntryId) -> str:
        """Return what the model got for a call, or an empty string if that is not kept."""
        return sanitize(self._redactor.redact_json(self._answers.get((conversation, call), "")))

    def export(self, numbers: Iterable[int]) -> str:
        """Return frames as lines of JSON, as a trace holds them."""
        found = (self._find(number) for number in numbers)
        return "\n".join(self._line(one, one.head) for one in found if one is not None)

    def request(self, number: int) -> tuple[ServerId, str, JsonObject] | None:
        """Return a request of ours with its parameters, unmasked, to be sent again."""
        noted = self._find(number)
        if noted is None or (noted.direction, noted.kind) != (Direction.SENT, FrameKind.REQUEST):
            return None
        if noted.method == "initialize":  # the session would begin anew
            return None
        message = None if noted.tail else read_value(noted.head)
        if not isinstance(message, dict):
            return None
        params = message.get("params", {})
        return noted.server, noted.method, {k: v for k, v in params.items() if k != "_meta"}

    def command(self, number: int) -> str:
        """Return the command line that repeats a request, masked; empty if there is none."""
        if (found := self.request(number)) is None:
            return ""
        server, method, params = found
        verb, name = _COMMANDS.get(method, ("request", ""))
        words = ["gemdeck", "mcp", verb, server, str(params.get(name, method))]
        arguments = params.get("arguments", {}) if name else params
        if verb == "prompt":
            words += [f"{key}={value}" for key, value in arguments.items()]
        elif arguments:
            option = "--args" if name else "--params"
            words += [option, json.dumps(arguments, ensure_ascii=False)]
        return sanitize(shlex.join(map(self._redactor.redact_json, words)))

    def _all(self) -> list[Noted]:
        found = [one for tap in self._taps.values() for one in tap.ring.values()]
        return found if len(self._taps) == 1 else sorted(found, key=lambda one: one.number)

    def _find(self, number: int) -> Noted | None:
        found = (tap.ring.get(number) for tap in self._taps.values())
        return next((one for one in found if one is not None), None)

    def _shown(self, noted: Noted) -> WireFrame:
        if noted.shown is None:
            noted.shown = self._frame(noted)
        return noted.shown

    def _frame(self, noted: Noted) -> WireFrame:
        values: dict[str, Any] = {name: getattr(noted, name) for name in _COPIED}
        texts: dict[str, str] = {name: getattr(noted, name) for name in _TEXTS}
        if noted.kind is FrameKind.HTTP:
            texts["target"] = masked_address(texts["target"])
        whole, mask = " ".join(texts.values()), self._redactor.redact_json
        is_plain = len(whole) <= MAX_LINE and whole.isascii() and whole.isprintable()
        if not is_plain or mask(whole) != whole:  # control characters may have split a secret
            texts = {name: mask(sanitize_line(mask(text))) for name, text in texts.items()}
        if noted.cause is not None:
            values |= {"conversation": noted.cause.conversation, "call": noted.cause.call}
        return WireFrame(**(values | texts), is_cut=bool(noted.tail))

    def _body(self, noted: Noted, data: bytes) -> tuple[str, Any]:
        """Mask the body of a frame: as text, and as a value if it is whole and JSON."""
        text = data.decode("utf-8", "replace")
        if len(data) < noted.size:
            head, tail = self._redactor.redact_ends(text, noted.tail.decode("utf-8", "replace"))
            left = noted.size - len(noted.head) - len(noted.tail)
            return f"{head}\n[… {left:,} bytes are not kept …]\n{tail}", None
        text = self._redactor.redact_json(text)
        try:
            is_message = noted.kind is not FrameKind.STDERR
            return text, writable(read_value(text.encode())) if is_message else None
        except JsonError:
            return text, None

    def _line(self, noted: Noted, data: bytes) -> str:
        """Write a frame as a line of a trace, in ASCII."""
        frame = self._frame(noted)
        said = ((name, getattr(frame, name), default) for name, default in _DEFAULTS.items())
        line = {name: value for name, value, default in said if value != default}
        text, value = self._body(noted, data)
        body = {"message": value} if value is not None else {"text": text} if text else {}
        return json.dumps(line | body)


def _sanitized(value: Any) -> Any:  # noqa: ANN401 - any JSON
    match value:
        case str():
            return sanitize(value)
        case dict():
            return {sanitize(name): _sanitized(item) for name, item in value.items()}
        case list():
            return [_sanitized(item) for item in value]
        case _:
            return value


def _check(unchecked: Iterable[Noted]) -> None:
    from tui.engine.mcp.wire import schema_check  # noqa: PLC0415 - it imports the MCP SDK

    for noted in unchecked:
        schema_check.check(noted)
