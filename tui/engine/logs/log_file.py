"""Logs go to a private file; the terminal belongs to the screen.

A record is one line of JSON in ASCII, without secrets: whoever reads the file with `cat` sees
no escape sequence, and no text from outside can look like a record of its own.
"""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Final

from tui.engine.line_file import LineFile
from tui.engine.paths import log_dir
from tui.engine.redaction import Redactor

MAX_LOG_BYTES: Final = 5_000_000
"""Size at which a log file is rotated."""

MAX_LOG_FILES: Final = 5
"""Rotated files kept."""

LOG_NAME: Final = "gemdeck.log"

TALKATIVE: Final = (
    "mcp",
    "httpx",
    "httpx2",
    "httpcore",
    "httpcore2",
    "google",
    "google_genai",
    "urllib3",
)
"""Loggers of libraries that name addresses, headers and bodies below the level of warnings."""


class JsonLines(logging.Formatter):
    """Makes one line of JSON of a record: time, level, logger, message and, for errors, the stack.

    Args:
        redactor: Takes the secrets out of the message and of the stack.
    """

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        """Give the line, without its end."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": self._redactor.redact(record.name),
            "message": self._redactor.redact(_message(record)),
        }
        stack = self._stack(record)
        if stack:
            line["stack"] = self._redactor.redact(stack)
        return json.dumps(line)

    def _stack(self, record: logging.LogRecord) -> str:
        parts = [record.stack_info or ""]
        if record.exc_info:
            parts.insert(0, self.formatException(record.exc_info))
        return "\n".join(part for part in parts if part)


class _FileHandler(logging.Handler):
    """Appends records to a file; what cannot be written is dropped, for want of a better place."""

    def __init__(self, file: LineFile) -> None:
        super().__init__()
        self._file = file

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        try:
            self._file.append(self.format(record).encode("ascii"))
        except Exception:  # noqa: BLE001 - logging never harms; the usual way prints the record
            return


def log_to_file(redactor: Redactor | None = None, *, verbose: bool = False) -> None:
    """Send all logging and all warnings of this process to the log folder.

    Where the folder cannot be written, they are dropped: better no log than a torn screen.

    Args:
        redactor: Knows what must not be written; it may learn more later.
        verbose: Whether to write what is below warnings too.
    """
    root = logging.getLogger()
    root.setLevel(logging.DEBUG if verbose else logging.WARNING)
    for name in TALKATIVE:
        logging.getLogger(name).setLevel(logging.NOTSET if verbose else logging.WARNING)
    logging.captureWarnings(capture=True)
    try:
        file = LineFile(log_dir() / LOG_NAME, MAX_LOG_BYTES, MAX_LOG_FILES)
        handler: logging.Handler = _FileHandler(file)
    except OSError:
        handler = logging.NullHandler()
    handler.setFormatter(JsonLines(redactor or Redactor()))
    root.handlers[:] = [handler]


def forbid_core_dumps() -> None:
    """Let no crash write the memory of this process, and the secrets in it, to the disk."""
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415 - not on every platform

    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001 - what was logged may be hostile or wrongly spelled
        return str(record.msg)
