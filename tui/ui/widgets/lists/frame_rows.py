"""How the exchanges of the protocol and their frames are drawn, in a row and in words."""

from collections.abc import Iterator, Mapping
from typing import Final

from tui.model.wire.exchanges import Exchange
from tui.model.wire.frames import Direction, WireFrame
from tui.ui.widgets.lists.row_list import Row
from tui.ui.widgets.text.describe import moment
from tui.ui.widgets.text.plain import count, duration, fit, one_line

WIDTHS: Final = (0, 66, 100)
"""Cells from which a row has next to nothing, all but the size, and all columns."""

METHODS: Final = 18
"""Cells of the column of methods; longer ones take from what they are about."""

MAX_SAID: Final = 200
"""Characters in a row of what was no message."""

ARROWS: Final[Mapping[Direction, str]] = {
    Direction.SENT: "→",
    Direction.RECEIVED: "←",
    Direction.OWN: "·",
}

_NOTICE: Final = "notifications/"


def row_of(
    exchange: Exchange, frame: WireFrame, said: str, now: float, width: int, mark: str = " "
) -> Row:
    """Draw an exchange, or one of the frames that fold under it.

    Args:
        exchange: The exchange.
        frame: Its first frame, which stands for all of it, or one that folds under it.
        said: The body of what is no message.
        now: The time, in seconds since the epoch.
        width: One of `WIDTHS`.
        mark: The sign of what is folded or unfolded under it.
    """
    is_head = frame is exchange.head
    is_bad = exchange.is_bad if is_head else bool(frame.is_error or frame.faults)
    answer = exchange.answer if is_head else None
    seconds = exchange.seconds if is_head else frame.seconds
    waits = is_head and exchange.waits
    if waits:
        seconds = max(0.0, now - frame.time)
    took = "" if seconds is None else duration(round(seconds) if waits else seconds)
    state = _state(exchange, frame, is_bad=is_bad, waits=waits)
    size = (answer or frame).size
    method = frame.method or frame.kind.value
    ones = exchange.frames if is_head else (frame,)
    faults = dict.fromkeys(fault.value for one in ones for fault in one.faults)
    details = dict.fromkeys(one.detail for one in (frame, answer) if one is not None)
    about = [*faults, frame.target, *details, said[:MAX_SAID]]
    inner = "" if is_head else "  "
    if not width:
        words = " ".join(filter(None, [method.removeprefix(_NOTICE), *about]))
        tail = state if is_bad or waits or not took else took
        lead = f"{ARROWS[frame.direction]}{mark}"
        return Row(lead, one_line(inner + words), tail, is_bad=is_bad)
    note = " · ".join(filter(None, [frame.server, *about, *_facts(frame, "session", "attempt")]))
    lead = f"{moment(frame.time, '%H:%M:%S', '')} {ARROWS[frame.direction]}{mark}"
    bytes_ = f"{f'{count(size)}B' if size else '':>8}" * (width == WIDTHS[-1])
    tail = f"{took:>8}{bytes_}  {fit(state, 11)}"
    return Row(lead, (inner + method).ljust(METHODS), tail, note=one_line(note), is_bad=is_bad)


def _state(exchange: Exchange, frame: WireFrame, *, is_bad: bool, waits: bool) -> str:
    """Say in a word what became of it, with a sign beside it."""
    if frame.status:
        return f"{'✕' if is_bad else '✓'} {frame.status}"
    is_head = frame is exchange.head
    ones = exchange.frames if is_head else (frame,)
    if is_bad:
        return "✕ error" if any(one.is_error for one in ones) else "! fault"
    if waits:
        return "◐ waits"
    if is_head and exchange.is_cancelled:
        return "■ cancelled"
    return "✓ ok" if is_head and exchange.answer is not None else ""


def heading(frame: WireFrame) -> str:
    """Return all that is known of a frame beside its body, in a line."""
    parts = (
        f"{ARROWS[frame.direction]} {frame.kind} {frame.method}".rstrip(),
        one_line(frame.target),
        moment(frame.time, "%H:%M:%S", ""),
        "" if frame.seconds is None else duration(frame.seconds),
        f"{frame.size:,} bytes",
        *_facts(frame, "id", "status", "session", "attempt", "round"),
        *frame.faults,
        one_line(frame.detail),
    )
    return " · ".join(filter(None, parts))


def _facts(frame: WireFrame, *names: str) -> Iterator[str]:
    """Say what is unusual about a frame."""
    for name in names:
        if (value := getattr(frame, name)) not in ("", 0, 1):
            yield f"{name} {value}"
