"""What could not be written: kept in memory, and tried again until it is, at the latest on leaving.

A disk that is full or read-only fails every file, so only the first of these problems is told.
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

UNWRITABLE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM})
"""The errors of a disk that is full and of a folder that is read-only: they meet every file."""

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
        Whether the user is to be told: not if the disk takes nothing and something else waits.
    """
    with _lock:
        others = {number for known, number in _waiting.items() if known != attempt}
        _waiting[attempt] = error.errno
        _start_timer()
    return error.errno not in UNWRITABLE or not others & UNWRITABLE


def check_folder(folder: Path, on_problem: Callable[[str], None]) -> None:
    """Tell of a folder that takes no files; then nothing more is told of the files in it."""

    def takes_files() -> bool:
        return os.access(next(filter(Path.exists, (folder, *folder.parents))), os.W_OK)

    if not takes_files():
        write_later(takes_files, OSError(errno.EROFS, ""))
        on_problem(
            f"{true_name(folder)} cannot be written: messages, sessions, grants and other "
            "changes of this run are not saved. Make it writable, or set GEMDECK_HOME."
        )


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
