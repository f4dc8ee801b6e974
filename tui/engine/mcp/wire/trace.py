"""A trace: frames as lines of JSON in a private file, written as they happen."""

import json
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tui import __version__
from tui.engine.background import OrderedWorker
from tui.engine.files.atomic import UnfitFileError, read_regular, write_private
from tui.engine.files.line_file import LineFile
from tui.engine.logs.redaction import Redactor
from tui.text import sanitize_line

MAX_TRACE_BYTES: Final = 32_000_000
"""Size at which a trace is rotated."""

MAX_TRACE_FILES: Final = 3
"""Rotated files kept."""

LARGEST: Final = 2 * MAX_TRACE_BYTES
"""Most bytes of a file that are read."""

MAX_UNWRITTEN: Final = 64 * 1024 * 1024
"""Bytes of frames that wait to be written; further ones are left out, which the trace says."""

_BEGIN: Final = b'{"trace": '
"""What each run begins its part of a trace with."""


def trace_problem(path: Path) -> str:
    """Return why a trace cannot be written to a file, or an empty string. Blocks."""
    try:
        if not path.parent.is_dir():
            return "there is no such folder"
        if path.exists() and not (read_regular(path, LARGEST) or _BEGIN).startswith(_BEGIN):
            return "it is there already, and is no trace"
    except UnfitFileError as error:
        return f"it is {error}"
    except OSError as error:
        return error.strerror or type(error).__name__
    return ""


def parts_of(path: Path) -> list[Path]:
    """Return the files of a trace that are there, oldest first."""
    rotated = [path.with_name(f"{path.name}.{n}") for n in range(MAX_TRACE_FILES, 0, -1)]
    return [one for one in (*rotated, path) if one.is_file()]


class TraceFile:
    """Writes a trace, in a thread of its own.

    Args:
        path: The file; see `trace_problem`.
        redactor: Says when a further secret is known, which is masked in what is written, too.
        on_problem: Takes a sentence for the user, once, if it cannot be written; in any thread.
    """

    def __init__(
        self, path: Path, redactor: Redactor, on_problem: Callable[[str], None] = lambda _: None
    ) -> None:
        self._path = path
        self._redactor = redactor
        self._on_problem = on_problem
        self._file = LineFile(path, MAX_TRACE_BYTES, MAX_TRACE_FILES)
        self._worker = OrderedWorker()
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Callable[[], str], int]] = deque()
        self._bytes = self._left_out = 0
        self._is_busy = self._is_broken = False
        self._masked = redactor.revision
        self._append({"trace": 1, "gemdeck": __version__, "time": time.time()})

    def add(self, write: Callable[[], str], size: int) -> None:
        """Queue a frame.

        Args:
            write: Gives its line, in the thread.
            size: The bytes that it holds until then.
        """
        with self._lock:
            if self._bytes + size > MAX_UNWRITTEN or self._is_broken:
                self._left_out += 1
                return
            self._waiting.append((write, size))
            self._bytes += size
            is_busy, self._is_busy = self._is_busy, True
        if not is_busy:
            self._worker.submit(self._write)

    def close(self, patience: float) -> None:
        """Wait until all is written, but at most `patience` seconds. Blocks."""
        self._worker.submit(self._write)
        self._worker.close(patience)

    def _write(self) -> None:
        """Write what waits."""
        while True:
            with self._lock:
                self._is_busy = bool(self._waiting)
                if not self._waiting:
                    break
                write, size = self._waiting.popleft()
                self._bytes -= size
                left_out, self._left_out = self._left_out, 0
            if left_out:
                self._append({"left_out": left_out})
            self._append(write())
        if self._masked != self._redactor.revision:
            self._masked = self._redactor.revision
            for part in parts_of(self._path):
                self._mask(part)

    def _append(self, line: str | dict[str, object]) -> None:
        if self._is_broken:
            return
        text = line if isinstance(line, str) else json.dumps(line)
        try:
            self._file.append(text.encode("ascii"))
        except OSError as error:
            self._is_broken = True
            reason = sanitize_line(error.strerror or type(error).__name__)
            self._on_problem(f"The trace {self._path} cannot be written: {reason}.")

    def _mask(self, part: Path) -> None:
        """Mask in a file what was learnt to be a secret after it was written."""
        try:
            lines = read_regular(part, LARGEST).decode("ascii").splitlines()
            masked = [self._redactor.redact_json(line) for line in lines]
            if masked != lines:
                write_private(part, "".join(f"{line}\n" for line in masked).encode("ascii"))
        except (OSError, ValueError, UnfitFileError) as error:
            self._on_problem(f"The trace {part} may hold a secret that was learnt late: {error}.")
