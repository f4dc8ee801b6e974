"""How the exchanges of the protocol and their frames are drawn, in a row and in words."""

from collections.abc import Iterator, Mapping
from typing import Final

from tui.model.wire.exchanges import Exchange
from tui.model.wire.frames import Direction, WireFrame
from tui.text import counted
from tui.ui.widgets.lists.row_list import Row
from tui.ui.widgets.text.plain import count, duration, fit, moment, one_line

WIDTHS: Final = (0, 66, 100)
"""Cells from which a row has next to nothing, all but the size, and all columns."""

METHODS: Final = 18
"""Cells of the column of methods; longer ones take from what they are about."""

ARROWS: Final[Mapping[Direction, str]] = {
    Direction.SENT: "→",
    Direction.RECEIVED: "←",
    Direction.OWN: "·",
}

_NOTICE: Final = "notifications/"


def row_of(exchange: Exchange, now: float, width: int, mark: str = "") -> Row:
    """Draw an exchange, or one of the frames that fold under another.

    Args:
        exchange: The exchange.
        now: The time, in seconds since the epoch.
        width: One of `WIDTHS`.
        mark: The sign of what is folded or unfolded under it; empty for what folds itself.
    """
    head, answer, is_bad = exchange.head, exchange.answer, exchange.is_bad
    took = "" if exchange.seconds is None else duration(exchange.seconds)
    if exchange.waits:
        took = duration(max(0, round(now - head.time)))
    state, size = _state(exchange), (answer or head).size
    method = ("" if mark else "  ") + (head.method or head.kind.value)
    faults = (fault.value for one in exchange.frames for fault in one.faults)
    details = (one.detail for one in (head, answer) if one is not None)
    about = [*dict.fromkeys(faults), head.target, *dict.fromkeys(details), head.said]
    lead = f"{ARROWS[head.direction]}{mark or ' '}"
    if not width:
        words = " ".join(filter(None, [method.replace(_NOTICE, ""), *about]))
        tail = state if is_bad or exchange.waits or not took else took
        return Row(lead, one_line(words), tail, tone="bad" * is_bad)
    note = " · ".join(filter(None, [head.server, *about, *_facts(head, "session", "attempt")]))
    bytes_ = f"{f'{count(size)}B' if size else '':>8}" * (width == WIDTHS[-1])
    tail = f"{took:>8}{bytes_}  {fit(state, 11)}"
    lead = f"{moment(head.time, '%H:%M:%S', '')} {lead}"
    return Row(lead, method.ljust(METHODS), tail, note=one_line(note), tone="bad" * is_bad)


def _state(exchange: Exchange) -> str:
    """Say in a word what became of it, with a sign beside it."""
    if status := exchange.head.status:
        return f"{'✕' if exchange.is_bad else '✓'} {status}"
    if exchange.is_bad:
        return "✕ error" if any(one.is_error for one in exchange.frames) else "! fault"
    if exchange.waits:
        return "◐ waiting"
    if exchange.is_cancelled:
        return "■ cancelled"
    return "✓ ok" if exchange.answer is not None else ""


def heading(frame: WireFrame) -> str:
    """Return all that is known of a frame beside its body, in a line."""
    parts = (
        f"{ARROWS[frame.direction]} {frame.kind} {frame.method}".rstrip(),
        one_line(frame.target),
        moment(frame.time, "%H:%M:%S", ""),
        "" if frame.seconds is None else duration(frame.seconds),
        counted(frame.size, "byte") if frame.size else "",
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
