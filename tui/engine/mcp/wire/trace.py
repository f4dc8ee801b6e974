"""A trace: frames as lines of JSON in a private file, written as they happen."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from tui import __version__
from tui.engine.files.atomic import UnfitFileError, read_regular, write_private
from tui.engine.files.line_file import LineFile
from tui.engine.logs.redaction import Redactor
from tui.text import sanitize_line

MAX_TRACE_BYTES: Final = 32_000_000
"""Size at which a trace is rotated."""

MAX_TRACE_FILES: Final = 3
"""Rotated files kept."""

MAX_LINE: Final = 16 * 1024 * 1024
"""Most bytes of a line: those of the longest body, escaped."""

MAX_UNWRITTEN: Final = 100
"""Lines kept in memory while they cannot be written; the oldest go first."""

_LINES: Final = ('{"gemdeck": ', '{"number": ')
"""What the part of a run in a trace begins with, and a frame."""

_BEGINS: Final = tuple(begin.encode() for begin in _LINES)


def parts_of(path: Path) -> list[Path]:
    """Return the files of a trace that are there, oldest first."""
    rotated = [path.with_name(f"{path.name}.{n}") for n in range(MAX_TRACE_FILES, 0, -1)]
    return [one for one in (*rotated, path) if one.exists()]


def begin_trace(path: Path) -> None:
    """Make the file of a trace if there is none. Blocks.

    Raises:
        OSError: If a file is there that is no trace, or that is not the user's alone, or if it
            cannot be written.
    """
    for part in parts_of(path):
        if not part.is_file():
            raise UnfitFileError("it is not a file")
        with part.open("rb") as file:
            _checked(file.read(max(map(len, _BEGINS))))
    LineFile(path, MAX_TRACE_BYTES, MAX_TRACE_FILES).make()


def read_trace(path: Path) -> list[str]:
    """Return the lines of a trace, oldest first, and none that is rubbish. Blocks.

    Raises:
        OSError: If it is none, or cannot be read.
    """
    lines = "".join(map(_read, parts_of(path) or [path])).splitlines()
    return [line for line in lines if line.startswith(_LINES)]


def _read(part: Path) -> str:
    return _checked(read_regular(part, MAX_TRACE_BYTES + MAX_LINE)).decode("ascii", "replace")


def _checked(data: bytes) -> bytes:
    if data and not data.startswith(_BEGINS):
        raise UnfitFileError("it is not a trace")
    return data


class TraceFile:
    """Writes a trace. Whoever asks for one takes it that the event loop waits for the disk.

    Args:
        path: The file; see `begin_trace`.
        redactor: Knows the secrets.
        on_problem: Takes a sentence for the user if it cannot be written.
    """

    def __init__(self, path: Path, redactor: Redactor, on_problem: Callable[[str], None]) -> None:
        self._path, self._redactor, self._on_problem = path, redactor, on_problem
        self._known = redactor.revision
        self._file = LineFile(path, MAX_TRACE_BYTES, MAX_TRACE_FILES, max_unwritten=MAX_UNWRITTEN)
        self.append(f'{{"gemdeck": "{__version__}"}}')

    def append(self, line: str) -> None:
        """Write a line of ASCII."""
        self._file.keep(line.encode("ascii"), self._on_problem)

    def close(self) -> None:
        """Mask what was learnt to be a secret after it was written. Blocks."""
        if self._known == self._redactor.revision:
            return
        later = self._redactor.learnt_since(self._known)
        try:
            for part in parts_of(self._path):
                if later.redact_json(text := _read(part)) != text:
                    masked = "".join(f"{later.redact_json(line)}\n" for line in text.splitlines())
                    write_private(part, masked.encode("ascii", "replace"))
        except OSError as error:
            self._on_problem(sanitize_line(f"{self._path} cannot be masked: {error.strerror}."))
