"""The glyph, word and tone of a server's status."""

from collections.abc import Mapping
from enum import StrEnum
from math import ceil
from typing import Final

from tui.model.servers import ServerStatus, ServerView
from tui.text import counted

_S = ServerStatus

RECOVERY_SHOWN: Final = 60.0
"""Seconds for which a server that came back says so."""


class Tone(StrEnum):
    """What a status means for the user; the value is the suffix of a component class."""

    GOOD = "good"
    BUSY = "busy"
    OFF = "off"
    BAD = "bad"


LOOKS: Final[Mapping[ServerStatus, tuple[str, Tone]]] = {
    _S.READY: ("●", Tone.GOOD),
    _S.STARTING: ("◐", Tone.BUSY),
    _S.RETRYING: ("◐", Tone.BUSY),
    _S.STOPPING: ("◐", Tone.BUSY),
    _S.DISABLED: ("○", Tone.OFF),
    _S.STOPPED: ("○", Tone.OFF),
    _S.ASLEEP: ("◌", Tone.OFF),
    _S.FAILED: ("✕", Tone.BAD),
    _S.INVALID: ("✕", Tone.BAD),
    _S.UNTRUSTED: ("◌", Tone.BUSY),
    _S.NEEDS_SIGN_IN: ("◌", Tone.BUSY),
}
"""The glyph, one cell wide in every terminal, and the tone of each status."""

STOPPABLE: Final = frozenset({_S.READY, _S.STARTING, _S.RETRYING, _S.NEEDS_SIGN_IN})
"""Statuses in which a server can be stopped."""

STARTABLE: Final = frozenset({_S.ASLEEP, _S.STOPPED, _S.FAILED})
"""Statuses in which a server can be started."""

TIMED: Final = frozenset({_S.RETRYING, _S.STARTING})
"""Statuses whose words change with time."""


def recovery(view: ServerView, now: float) -> str:
    """Return how a server came back, for a minute; else an empty string."""
    is_new = view.status is _S.READY and now - view.since < RECOVERY_SHOWN
    return view.restarted if is_new else ""


def status_word(view: ServerView, now: float) -> str:
    """Return the word for a server's status; a retry counts down, a start counts up.

    Args:
        view: The server.
        now: The time in seconds of `time.monotonic`.
    """
    if view.status is _S.RETRYING and view.retry_at is not None:
        return f"retry {max(0, ceil(view.retry_at - now))} s"
    seconds = int(now - view.since)
    if view.status is _S.STARTING and view.since and seconds > 0:
        return f"starting {seconds} s"
    return view.status.value


def status_or_count(view: ServerView, now: float) -> str:
    """Return the number of a ready server's tools, or else the word for its status."""
    if view.status is not _S.READY or not view.catalog.tools:
        return status_word(view, now)
    number = counted(len(view.catalog.tools), "tool") + view.catalog.off_words
    return "restarted" if recovery(view, now) else number
