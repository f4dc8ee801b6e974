"""What could not be written: kept in memory, and tried again until it is, at the latest on leaving.

A full disk fails every file at once, so only the first problem of that kind is for the user.
"""

import errno
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tui.text import sanitize_line

RETRY: Final = 5.0
"""Seconds between two attempts."""

WRITE_PATIENCE: Final = 2.0
"""Seconds that what still waits gets to be written at the end."""

NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
"""The errors of a full disk."""

MAX_PATH: Final = 200
"""Longest path in a message, in characters."""

Attempt = Callable[[], bool]
"""Writes something that waits; returns whether nothing is left to be written. Blocks."""

_log: Final = logging.getLogger(__name__)
_lock: Final = threading.Lock()
_writing: Final = threading.Lock()
_waiting: Final = dict[Attempt, int | None]()
_timers: Final = list[threading.Timer]()


def write_later(attempt: Attempt, error: OSError) -> bool:
    """Try again to write something that failed.

    Returns:
        Whether the user is to be told: not if the disk is full and something else waits for room.
    """
    with _lock:
        others = {number for known, number in _waiting.items() if known != attempt}
        _waiting[attempt] = error.errno
        _start_timer()
    return error.errno not in NO_ROOM or not others & NO_ROOM


def write_now() -> None:
    """Try to write everything that waits, in order, after what is being written. Blocks."""
    with _writing:
        with _lock:
            waiting = dict(_waiting)
        for attempt, number in waiting.items():
            with _lock:
                _waiting.pop(attempt, None)
            try:
                is_done = attempt()
            except Exception:  # noqa: BLE001 - whatever it is, the others must be written
                _log.exception("what could not be written is lost")
                continue
            if not is_done:
                with _lock:
                    _waiting[attempt] = number


def true_name(path: Path) -> str:
    """Return a path as the user finds the file, behind any links."""
    return sanitize_line(os.path.realpath(path), MAX_PATH)


def make_folder(path: Path) -> None:
    """Make the private folder of a file, and the one around it.

    On a full disk at the start it could not be made.

    Raises:
        OSError: If it cannot be made.
    """
    for folder in (path.parent.parent, path.parent):  # `parents` lets everybody read what it makes
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _start_timer() -> None:
    """Start the next attempt's timer, if none runs; the lock is held."""
    if not _timers:
        timer = threading.Timer(RETRY, _try_again)
        timer.daemon = True
        _timers.append(timer)
        timer.start()


def _try_again() -> None:
    write_now()
    with _lock:
        _timers.clear()
        if _waiting:
            _start_timer()
