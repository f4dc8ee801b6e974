"""Append-only files of lines, rotated by size."""

import contextlib
import errno
import os
import stat
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Final

from tui.engine.files.atomic import locked
from tui.engine.files.unwritten import make_folder, true_name, write_later
from tui.model.bounded_json import value_or_none
from tui.text import sanitize_line

MAX_UNWRITTEN: Final = 1_000
"""Lines kept in memory unless an owner says otherwise."""

BLOCK: Final = 64 * 1024
"""Bytes in which the end of the last whole line is looked for."""

_FLAGS: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""Open flags: links are not followed, and a pipe does not block."""


@dataclass(eq=False, repr=False)
class LineFile:
    """A private file (0600) to which several processes can append lines.

    A line is one write at the end, so that lines of two processes never mix. A full file becomes
    ``NAME.1``, the previous one ``NAME.2``, and so on; the last is deleted.

    Attributes:
        path: The file; its folder exists.
        max_bytes: Size at which the file is rotated.
        max_files: Rotated files kept.
        lock_wait: Seconds to wait for another process, if the file is also replaced.
        max_unwritten: Lines kept in memory while they cannot be written; the oldest go first.
        alone: Whether no other process writes it, so that half a line of JSON can be taken out.
        problem: Why lines wait in memory, or an empty string.
    """

    path: Path
    max_bytes: int
    max_files: int
    lock_wait: float | None = None
    max_unwritten: int = MAX_UNWRITTEN
    _: KW_ONLY
    alone: bool = False

    def __post_init__(self) -> None:
        self._unwritten = deque[bytes](maxlen=self.max_unwritten)
        self._lock = threading.Lock()
        self.problem = ""

    def make(self) -> None:
        """Make the file if there is none. Blocks.

        Raises:
            OSError: If no line can be appended to it.
        """
        os.close(self._open_file())

    def keep(self, line: bytes, on_problem: Callable[[str], None]) -> None:
        """Append one line now or as soon as it can be; report once that it cannot. Blocks."""
        with self._lock:
            is_first = not self._unwritten
            self._unwritten.append(line)
            error = self._write_waiting()
            if error is not None and write_later(self._retry, error) and is_first:
                words = f"{true_name(self.path)} cannot be written: {self.problem}."
                on_problem(f"{words} New content stays in memory until it can be.")

    def _retry(self) -> bool:
        with self._lock:
            return self._write_waiting() is None

    def _write_waiting(self) -> OSError | None:
        """Write the lines that wait, oldest first; return why one cannot be written."""
        wait = self.lock_wait
        lock = contextlib.nullcontext() if wait is None else locked(self.path, wait)
        try:
            make_folder(self.path)
            with lock:
                while self._unwritten:
                    self.append(self._unwritten[0])
                    self._unwritten.popleft()
        except OSError as error:
            self.problem = sanitize_line(error.strerror or type(error).__name__)
            return error
        self.problem = ""
        return None

    def append(self, line: bytes) -> None:
        """Append one line and a line break. Blocks.

        If the last writer was stopped within a line, that line is ended or taken out first.

        Raises:
            OSError: If the line cannot be written completely.
        """
        descriptor = self._open()
        try:
            if self.alone:
                _take_out_half_line(descriptor)
            is_within = _ends_within_line(descriptor, os.fstat(descriptor).st_size)
            data = (b"\n" if is_within else b"") + line + b"\n"
            if os.write(descriptor, data) != len(data):
                if self.alone:
                    _take_out_half_line(descriptor)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(descriptor)

    def _open(self) -> int:
        """Open the file, rotating it first if it is full."""
        descriptor = self._open_file()
        if os.fstat(descriptor).st_size < self.max_bytes:
            return descriptor
        os.close(descriptor)
        with contextlib.suppress(OSError), locked(self.path, 0):
            # another process may have rotated it already
            if self.path.stat().st_size >= self.max_bytes:
                self._rotate()
        descriptor = self._open_file()
        if os.fstat(descriptor).st_size >= 2 * self.max_bytes:
            os.close(descriptor)
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        return descriptor

    def _open_file(self) -> int:
        """Open the file if it is a regular file of the user.

        Raises:
            OSError: If it cannot be opened, or is a link, a device or another user's file.
        """
        if self.path.is_symlink():
            raise OSError(errno.ELOOP, "it is a symbolic link")
        descriptor = os.open(self.path, _FLAGS, 0o600)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
                raise OSError(errno.EINVAL, "not a regular file with a single link")
            if status.st_uid != os.geteuid():
                raise OSError(errno.EPERM, "it belongs to another user")
            if status.st_mode & 0o077:
                os.fchmod(descriptor, 0o600)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def _rotate(self) -> None:
        for number in range(self.max_files - 1, 0, -1):
            with contextlib.suppress(FileNotFoundError):
                self._numbered(number).replace(self._numbered(number + 1))
        self.path.replace(self._numbered(1))

    def _numbered(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")


def is_object(line: bytes) -> bool:
    """Tell whether a line is a whole JSON object."""
    return isinstance(value_or_none(line), dict)


def _take_out_half_line(descriptor: int) -> None:
    """Cut off what follows the last line break, unless it is a whole JSON object."""
    size = os.fstat(descriptor).st_size
    if _ends_within_line(descriptor, size):
        end = _last_line_end(descriptor, size)
        if not is_object(os.pread(descriptor, size - end, end)):
            os.ftruncate(descriptor, end)


def _ends_within_line(descriptor: int, size: int) -> bool:
    return size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"


def _last_line_end(descriptor: int, size: int) -> int:
    """Return the number of bytes up to the end of the last whole line."""
    while size > 0:
        length = min(size, BLOCK)
        size -= length
        if (found := os.pread(descriptor, length, size).rfind(b"\n")) >= 0:
            return size + found + 1
    return 0
