"""What was said, as exchanges: a request with its answer and with all that belongs to it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from tui.model.frozen import Frozen
from tui.model.servers import ServerId
from tui.model.wire.frames import Direction, FrameKind, WireFrame

MAX_SEARCHED: Final = 20
"""Frames of one exchange in which words are searched."""

LASTING: Final = "subscriptions/listen"
"""A request whose answer nobody waits for."""

DISCOVER: Final = "server/discover"
"""The request that finds out the era of the protocol; servers of the older one refuse it."""

NO_METHOD: Final = "method not found"
"""The detail of an answer by which a server says that it does not know the method."""

_LOG: Final = "notifications/message"


class Exchange(Frozen):
    """A request with what belongs to it, or a frame that stands alone.

    Attributes:
        frames: The request, and in their order its answer, progress, logs and further rounds.
        answer: The answer to the last round, or why there is none; None while it is open.
        is_cancelled: Whether one side called it off.
        waits: Whether its answer is still to come.
        text: What words are searched in, in lower case.
        is_probe: Whether it only found out what the server does not support.
    """

    frames: tuple[WireFrame, ...]
    answer: WireFrame | None
    is_cancelled: bool
    waits: bool
    text: str
    is_probe: bool = False

    @property
    def head(self) -> WireFrame:
        return self.frames[0]

    @property
    def inner(self) -> Sequence[WireFrame]:
        """What folds under it."""
        return [one for one in self.frames[1:] if one is not self.answer]

    @property
    def seconds(self) -> float | None:
        """The time to the answer to its last round, of HTTP to the status."""
        return self.head.seconds if self.answer is None else self.answer.time - self.head.time

    @property
    def is_bad(self) -> bool:
        """Whether it failed, or something is wrong with one of its frames; never of a probe."""
        return not self.is_probe and any(one.is_error or one.faults for one in self.frames)


def exchanges(
    frames: Sequence[WireFrame], before: Mapping[int, Exchange]
) -> Mapping[int, Exchange]:
    """Put together what belongs together.

    A log belongs to the request that its server was busy with, if that was one alone.

    Args:
        frames: The frames of all servers, in the order of what happened.
        before: What this gave before: it is given again where nothing has changed.

    Returns:
        The exchanges by the numbers of their first frames, in the order of what happened.
    """
    members: dict[int, tuple[WireFrame, ...]] = {}
    named: dict[object, int] = {}
    busy: dict[ServerId, list[int]] = {}
    for frame in frames:
        number, server, head = frame.number, frame.server, 0
        is_ours, asked = frame.direction is Direction.SENT, busy.setdefault(server, [])
        match frame.kind:
            case FrameKind.REQUEST:
                same = server, is_ours, frame.method, frame.target, frame.call
                head = named.get(same, 0) if frame.round > 1 else 0
                named[number] = named[same] = first = head or number
                named[server, is_ours, "id", frame.id] = first
                named[server, is_ours, frame.token] = first
                if is_ours and frame.method != LASTING:
                    asked.append(number)
            case FrameKind.ANSWER | FrameKind.LIFECYCLE if frame.pair:
                head = named.get(frame.pair, 0)
                if frame.pair in asked:
                    asked.remove(frame.pair)
            case FrameKind.LIFECYCLE:
                asked.clear()
            case FrameKind.NOTIFICATION if frame.token:
                head = named.get((server, not is_ours, frame.token), 0)
            case FrameKind.NOTIFICATION if frame.id:
                head = named.get((server, is_ours, "id", frame.id), 0)
            case FrameKind.NOTIFICATION if frame.method == _LOG and len(asked) == 1:
                head = named[asked[0]]
        members[head or number] = *members.get(head or number, ()), frame
    found = {
        number: kept if (kept := before.get(number)) and kept.frames == these else exchange(these)
        for number, these in members.items()
    }
    if any(map(_is_refused, found.values())):
        probes = _probes(found)
        for number, one in found.items():
            of = one.head.pair if one.head.kind is FrameKind.HTTP else number
            if of in probes and not one.is_probe:
                found[number] = replace(one, is_probe=True, waits=False)
    return found


def _probes(found: dict[int, Exchange]) -> Collection[int]:
    """Find the refused probes after which the same connection answered another request."""
    works, probes = set[ServerId](), set[int]()
    for number, one in reversed(found.items()):
        server, answer = one.head.server, one.answer
        if one.head.kind is FrameKind.LIFECYCLE:  # before it was another connection
            works.discard(server)
        elif one.head.direction is Direction.SENT and _is_refused(one) and server in works:
            probes.add(number)
        elif one.head.direction is Direction.SENT and answer is not None and not answer.is_error:
            works.add(server)
    return probes


def _is_refused(one: Exchange) -> bool:
    """Tell whether a server does not know what it is asked for, or leaves it unanswered."""
    if one.head.method == DISCOVER:  # older servers refuse it with whatever they have
        return one.answer is None or one.answer.is_error
    return one.head.method == LASTING and all(it.detail == NO_METHOD for it in one.frames[1:2])


def exchange(frames: tuple[WireFrame, ...]) -> Exchange:
    """Take frames for one exchange, the first of them for its head."""
    asked = next((one for one in reversed(frames) if one.kind is FrameKind.REQUEST), None)
    answer = next((one for one in frames if asked and one.number == asked.pair), None)
    called_off = any(one.kind is FrameKind.NOTIFICATION and one.id for one in frames[1:])
    is_open = asked is not None and not asked.pair and asked.method != LASTING
    text = "\n".join(map(_searched, frames[:MAX_SEARCHED])).lower()
    return Exchange(frames, answer, called_off, is_open and not called_off, text)


def _searched(one: WireFrame) -> str:
    names = one.server, one.kind, one.method, one.target, one.session, one.detail, *one.faults
    return f"{' '.join(names)} {one.status or ''}"
