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

_BEGIN: Final = '{"gemdeck": '
"""What each run begins its part of a trace with."""


def parts_of(path: Path) -> list[Path]:
    """Return the files of a trace that are there, oldest first."""
    rotated = [path.with_name(f"{path.name}.{n}") for n in range(MAX_TRACE_FILES, 0, -1)]
    return [one for one in (*rotated, path) if one.exists()]


def read_trace(path: Path) -> list[str]:
    """Return the lines of a trace, oldest first; none if there is no file. Blocks.

    Raises:
        OSError: If it cannot be read.
        UnfitFileError: If it is no trace; the message continues "it is".
    """
    lines = []
    for part in parts_of(path):
        data = read_regular(part, MAX_TRACE_BYTES + MAX_LINE)
        if data and not data.startswith((_BEGIN.encode(), b'{"number": ')):
            raise UnfitFileError("no trace")
        lines += data.decode("ascii", "replace").splitlines()
    return lines


class TraceFile:
    """Writes a trace. Whoever asks for one takes it that the event loop waits for the disk.

    Args:
        path: The file; one that is there must be a trace, see `read_trace`.
        redactor: Says when a further secret is known.
        on_problem: Takes a sentence for the user, once, if it cannot be written.
    """

    def __init__(self, path: Path, redactor: Redactor, on_problem: Callable[[str], None]) -> None:
        self._path = path
        self._redactor = redactor
        self._on_problem = on_problem
        self._file = LineFile(path, MAX_TRACE_BYTES, MAX_TRACE_FILES)
        self._is_broken = False
        self._known = redactor.revision
        self.append(f'{_BEGIN}"{__version__}"}}')

    def append(self, line: str) -> None:
        """Write a line of ASCII."""
        if self._is_broken:
            return
        try:
            self._file.append(line.encode("ascii"))
        except OSError as error:
            self._is_broken = True
            self._fail(error)

    def close(self) -> None:
        """Mask what was learnt to be a secret after it was written. Blocks."""
        if self._known == self._redactor.revision:
            return
        try:
            for part in parts_of(self._path):
                lines = read_regular(part, MAX_TRACE_BYTES + MAX_LINE).decode("ascii").splitlines()
                masked = [self._redactor.redact_json(line) for line in lines]
                if masked != lines:
                    write_private(part, "".join(f"{line}\n" for line in masked).encode("ascii"))
        except (OSError, ValueError, UnfitFileError) as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self._on_problem(sanitize_line(f"The trace {self._path} cannot be written: {error}."))
