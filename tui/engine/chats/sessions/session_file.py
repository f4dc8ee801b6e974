"""One session's file: who may write it, and how its lines are written."""

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tui.engine.chats.sessions.records import Record, masked
from tui.engine.chats.sessions.replay import MAX_SESSION
from tui.engine.files.line_file import LineFile
from tui.engine.files.unwritten import make_folder
from tui.engine.logs.redaction import Redactor

if sys.platform != "win32":
    import fcntl

MAX_UNWRITTEN: Final = 200_000
"""Lines kept in memory while the disk is full."""

_FLAGS: Final[int] = os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


class SessionLock:
    """Holds the only right to write a session; the end of the process gives it back."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def take(cls, path: Path, *, make: bool = False) -> "SessionLock | None":
        """Take the lock of a file; None if another process has it.

        Raises:
            OSError: If the file cannot be opened.
        """
        descriptor = os.open(path, _FLAGS | (os.O_CREAT if make else 0), 0o600)
        if sys.platform != "win32":
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                return None
            except OSError:
                os.close(descriptor)
                raise
        return cls(descriptor)

    def release(self) -> None:
        """Give the lock back. A second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


@dataclass
class SessionFile:
    """Appends records to a session; all methods block and belong to one thread.

    A text that streams is held back where it may be the beginning of a secret.

    Attributes:
        path: The file; it is made with the first line.
        redactor: Knows the secrets that are masked.
        on_problem: Told once if the file cannot be written.
        lock: The right to write it; taken with the first line unless it is given.
    """

    path: Path
    redactor: Redactor
    on_problem: Callable[[str], None]
    lock: SessionLock | None = None
    _held: dict[str, Record] = field(default_factory=dict)
    _is_full: bool = False

    def __post_init__(self) -> None:
        self._lines = LineFile(
            self.path, 2 * MAX_SESSION, 1, max_unwritten=MAX_UNWRITTEN, alone=True
        )

    def write(self, records: Iterable[Record]) -> None:
        """Append records now, or as soon as they can be."""
        self._take_lock()
        for record in records:
            if self._is_full:
                return
            for line in self._settled(record):
                self._lines.keep(_encoded(line), self.on_problem)
        self._check_size()

    def close(self) -> None:
        """Write what was held back, and let others have the file."""
        for record in self._held.values():
            self._lines.keep(_encoded(masked(record, self.redactor)), self.on_problem)
        self._held.clear()
        if self.lock is not None:
            self.lock.release()

    def _take_lock(self) -> None:
        if self.lock is None:
            with contextlib.suppress(OSError):  # no room: it is taken with a later line
                make_folder(self.path)
                self.lock = SessionLock.take(self.path, make=True)

    def _settled(self, record: Record) -> Iterable[Record]:
        """Give what of a record can be written now."""
        key = record.get("id")
        if record["t"] == "done":
            held = self._held.pop(str(key), None)
            return [masked(held, self.redactor)] if held is not None else []
        if record["t"] not in {"text", "thought"}:
            return [masked(record, self.redactor)]
        before = self._held.pop(str(key), record | {"text": ""})["text"]
        text = self.redactor.redact_known(before + record["text"])
        end = self.redactor.settled(text)
        if end < len(text):
            self._held[str(key)] = record | {"text": text[end:]}
        return [record | {"text": text[:end]}] if end else []

    def _check_size(self) -> None:
        with contextlib.suppress(OSError):
            if self.path.stat().st_size > MAX_SESSION:
                self._is_full = True
                size = MAX_SESSION // 1024 // 1024
                self.on_problem(
                    f"This conversation takes over {size} MiB, so the rest of it is not saved. "
                    "Begin a new one, or let /compress do it."
                )


def _encoded(record: Record) -> bytes:
    """Return a line of ASCII, so that no text can end it or control a terminal."""
    return json.dumps(record, separators=(",", ":")).encode("ascii")
