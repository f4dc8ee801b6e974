"""The wires of all servers: their taps, and what may be seen of the frames.

Frames are kept raw and masked whenever they are shown or written, so that a secret that is learnt
later is masked in earlier frames too.
"""

import asyncio
import json
import shlex
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, Final

from tui.engine.background import TaskSet
from tui.engine.bus import Publish
from tui.engine.logs.redaction import Redactor, masked_address
from tui.engine.mcp.catalog.offered_tool import JsonObject, MediaPart, TextPart
from tui.engine.mcp.errors import ServerCallError
from tui.engine.mcp.wire.tap import MAX_FRAMES, Noted, Tap
from tui.engine.mcp.wire.trace import TraceFile
from tui.model.bounded_json import mapped, read_value, value_or_none, writable
from tui.model.chat import ConversationId, EntryId
from tui.model.events import FramesNoted
from tui.model.servers import ServerId
from tui.model.wire.frames import Direction, FrameBody, FrameFault, FrameKind, WireFrame
from tui.text import sanitize, sanitize_line

MAX_TAPS: Final = 500
"""Servers of a run whose frames are kept; the first go first."""

INTERVAL: Final = 0.1
"""Shortest time between two `FramesNoted`, in seconds."""

NOT_AGAIN: Final = "Only a request that gemdeck sent and kept in full can be sent again."

CHECKED_AT_ONCE: Final = 200
"""Frames that are checked in an interval, the newest first: a flood leaves time for the rest."""

MAX_ANSWERS: Final = 100
"""Answers to the model that are kept to be compared."""

MAX_SAID: Final = 200
"""Characters of what is no message that are shown without its body."""

MAX_TRACED: Final = 2 * 1024 * 1024
"""Longest body that a trace holds whole, in bytes; of longer ones it holds both ends."""

_DEFAULTS: Final = {one.name: one.default for one in fields(WireFrame) if one.name != "said"}
_TEXTS: Final = ("method", "id", "target", "token", "session", "detail")
_COPIED: Final = _DEFAULTS.keys() - {"conversation", "call", "is_cut"}


class Wire:
    """What was said between gemdeck and all its servers. Lives on one event loop.

    Args:
        publish: Takes `FramesNoted` while somebody watches.
        redactor: Masks the secrets of the run.
        trace: Gets each frame as it happens, or None.

    Attributes:
        last: The number of the newest frame; 0 before the first.
        revision: Grows with each frame and each check that found something.
    """

    def __init__(
        self,
        publish: Publish = lambda _: None,
        redactor: Redactor | None = None,
        trace: TraceFile | None = None,
    ) -> None:
        self.last = self.revision = 0
        self._publish, self._trace = publish, trace
        self._redactor = redactor or Redactor()
        self.is_traced = trace is not None
        self._taps: dict[ServerId, Tap] = {}
        self._answers: OrderedDict[tuple[ConversationId, EntryId], Noted] = OrderedDict()
        self._tasks = TaskSet("messages could not be checked")
        self._is_watched = False
        self._timer: asyncio.TimerHandle | None = None
        self._masked = 0

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
        self._publish(FramesNoted(self.revision))
        self._tasks.start(self._check())

    async def _check(self) -> None:
        """Check in a thread what was not checked yet."""
        unchecked = [one for one in self._all() if not one.is_checked]
        now = unchecked[-CHECKED_AT_ONCE:]
        found = await asyncio.to_thread(_check, now) if now else []
        for noted in now:
            noted.is_checked = True
        for noted, fault, detail in found:
            noted.faults, noted.detail, noted.shown = (fault,), detail, None
            self.revision += 1
        if found or len(unchecked) > len(now):
            self._tell_soon()

    @property
    def gone(self) -> int:
        """How many frames are kept no more."""
        return self.last - sum(len(tap.ring) for tap in self._taps.values())

    def frames(self, most: int = MAX_TAPS * MAX_FRAMES) -> list[WireFrame]:
        """Return the frames of all servers, in the order of what happened.

        A frame is the same object as long as it has not changed.

        Args:
            most: How many may be new. With more, only the last are returned up to here, and a
                change is told, so that who watches asks for the rest.
        """
        if self._masked != self._redactor.revision:  # what was shown may hold what is secret now
            self._masked = self._redactor.revision
            for one in self._all():
                one.shown = None
        found = self._all()
        new = [at for at, one in enumerate(found) if one.shown is None]
        if len(new) > most:
            found = found[new[-most] :]
            self.revision += 1
            self._tell_soon()
        return [one.shown or self._frame(one) for one in found]

    def body(self, number: int) -> FrameBody | None:
        """Return the body of a frame, or None if the frame is not kept."""
        if (noted := self._find(number)) is None:
            return None
        text = self._body(noted, noted.head)
        value = _parsed(noted, text)
        if value is not None:  # masked again, as what is dropped may have split a secret
            said = json.dumps(mapped(value, str, sanitize, sanitize))
            value = _parsed(noted, self._redactor.redact_json(said))
        return FrameBody(self._clean(text), value)

    def gave(
        self, conversation: ConversationId, call: EntryId, parts: Sequence[TextPart | MediaPart]
    ) -> None:
        """Keep what the model gets for a call, to be compared with what the server sent."""
        texts = (one.text if isinstance(one, TextPart) else f"[{one.mime_type}]" for one in parts)
        said = "\n".join(texts).encode("utf-8", "replace")
        noted = Noted(ServerId(""), Direction.OWN, FrameKind.NOISE, said)
        self._answers[conversation, call] = noted
        if len(self._answers) > MAX_ANSWERS:
            self._answers.popitem(last=False)

    def model_got(self, conversation: ConversationId, call: EntryId) -> str:
        """Return what the model got for a call, or an empty string if that is not kept."""
        noted = self._answers.get((conversation, call))
        return self._clean(self._body(noted, noted.head)) if noted is not None else ""

    def export(self, numbers: Iterable[int]) -> str:
        """Return frames as lines of JSON, as a trace holds them."""
        found = (self._find(number) for number in numbers)
        return "\n".join(self._line(one, one.head) for one in found if one is not None)

    def request(self, number: int) -> tuple[ServerId, str, JsonObject]:
        """Return a request of ours with its parameters, unmasked, to be sent again.

        Raises:
            ServerCallError: If it cannot be sent again.
        """
        noted = self._find(number)
        is_ours = noted and (noted.direction, noted.kind) == (Direction.SENT, FrameKind.REQUEST)
        if noted is None or not is_ours or noted.tail or noted.method == "initialize":
            raise ServerCallError(NOT_AGAIN)
        message: Any = read_value(noted.head)
        params = {k: v for k, v in (message.get("params") or {}).items() if k != "_meta"}
        return noted.server, noted.method, params

    def command(self, number: int) -> str:
        """Return the command line that repeats a request, masked; empty if there is none."""
        try:
            server, method, params = self.request(number)
        except ServerCallError:
            return ""
        verb, option, words = "request", "--params", [server, method]
        if method == "tools/call":
            verb, option, words = "call", "--args", [server, str(params.get("name"))]
            params = params.get("arguments", {})
        options = [option, json.dumps(params, ensure_ascii=False)] if params else []
        is_option = any(word.startswith("-") for word in words)
        words = [*options, "--", *words] if is_option else [*words, *options]
        # cleaned before they are quoted, or what is dropped could be a quote
        return shlex.join(map(self._clean, ["gemdeck", "mcp", verb, *words]))

    def _all(self) -> list[Noted]:
        found = [one for tap in self._taps.values() for one in tap.ring.values()]
        return sorted(found, key=attrgetter("number"))

    def _find(self, number: int) -> Noted | None:
        found = (tap.ring.get(number) for tap in self._taps.values())
        return next((one for one in found if one is not None), None)

    def _frame(self, noted: Noted) -> WireFrame:
        values: dict[str, Any] = {name: getattr(noted, name) for name in _COPIED}
        for name in _TEXTS:
            if text := getattr(noted, name):
                values[name] = sanitize_line(self._clean(text))
        if noted.kind is FrameKind.HTTP:
            values["target"] = masked_address(values["target"])
        if noted.kind in {FrameKind.NOISE, FrameKind.STDERR}:
            values["said"] = self._clean(self._body(noted, noted.head))[:MAX_SAID]
        if noted.cause is not None:
            values |= {"conversation": noted.cause.conversation, "call": noted.cause.call}
        noted.shown = WireFrame(**values, is_cut=bool(noted.tail))
        return noted.shown

    def _clean(self, text: str) -> str:
        """Mask and sanitize a text; what is dropped of it may have split a secret."""
        masked = self._redactor.redact_json(text)
        clean = sanitize(masked)
        return clean if clean == masked else self._redactor.redact_json(clean)

    def _body(self, noted: Noted, data: bytes) -> str:
        """Mask the body of a frame."""
        text = data.decode("utf-8", "replace")
        if len(data) == noted.size:
            return self._redactor.redact_json(text)
        head, tail = self._redactor.redact_ends(text, noted.tail.decode("utf-8", "replace"))
        left = noted.size - len(noted.head) - len(noted.tail)
        return f"{head}\n[… {left:,} bytes not kept …]\n{tail}"

    def _line(self, noted: Noted, data: bytes) -> str:
        """Write a frame as a line of a trace, in ASCII."""
        frame = self._frame(noted)
        said = ((name, getattr(frame, name), default) for name, default in _DEFAULTS.items())
        line = {name: value for name, value, default in said if value != default}
        text = self._body(noted, data)
        value = _parsed(noted, text)
        body = {"message": value} if value is not None else {"text": text} if text else {}
        return json.dumps(line | body)


def _parsed(noted: Noted, text: str) -> Any:  # noqa: ANN401 - any JSON
    return writable(value_or_none(text.encode())) if noted.kind is not FrameKind.STDERR else None


def _check(unchecked: Iterable[Noted]) -> list[tuple[Noted, FrameFault, str]]:
    from tui.engine.mcp.wire.schema_check import check  # noqa: PLC0415 - it imports the MCP SDK

    return [(noted, *fault) for noted in unchecked if (fault := check(noted)) is not None]
