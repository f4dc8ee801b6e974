"""Write logs to a private file.

A record is one line of ASCII JSON without secrets, so that `cat` shows no escape sequence and no
external text can pass for a record.
"""

import contextlib
import json
import logging
import os
import resource
import time
from datetime import UTC, datetime
from typing import Final

from tui.engine.files.atomic import remove_stale
from tui.engine.files.line_file import LineFile
from tui.engine.files.paths import LOG_NAME, log_dir, state_dir
from tui.engine.logs.redaction import Redactor, environment_secrets

MAX_LOG_BYTES: Final = 5_000_000
"""Size at which a log file is rotated."""

MAX_LOG_FILES: Final = 5
"""Rotated files kept."""

OWN: Final = "tui"
"""The logger of gemdeck; those of libraries write addresses, headers and bodies below warnings."""


class JsonFormatter(logging.Formatter):
    """Formats a record as JSON: time, level, logger, message and, for errors, the traceback.

    Args:
        redactor: Masks secrets in the message and the traceback.
    """

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        """Return the line without a line break."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": self._redactor.redact(record.name),
            "message": self._redactor.redact(_message(record)),
        }
        trace = self.formatException(record.exc_info) if record.exc_info else ""
        if stack := "\n".join(filter(None, (trace, record.stack_info))):
            line["stack"] = self._redactor.redact(stack)
        return json.dumps(line)


class _FileHandler(logging.Handler):
    """Appends records to a file; records that cannot be written are dropped."""

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
    """Send all log records and warnings of this process to the log folder.

    If the folder is not writable they are dropped, since writing to the terminal would corrupt it.

    Args:
        redactor: Masks secrets; more can be registered later.
        verbose: Whether to write what gemdeck does, such as handshakes and servers' output.
    """
    root = logging.getLogger()
    root.setLevel(logging.WARNING)
    logging.getLogger(OWN).setLevel(logging.DEBUG if verbose else logging.NOTSET)
    logging.captureWarnings(capture=True)
    try:
        file = LineFile(log_dir() / LOG_NAME, MAX_LOG_BYTES, MAX_LOG_FILES)
        handler: logging.Handler = _FileHandler(file)
    except OSError:
        handler = logging.NullHandler()
    handler.setFormatter(JsonFormatter(redactor or Redactor()))
    root.handlers[:] = [handler]


def forbid_core_dumps() -> None:
    """Disable core dumps, which would write secrets to the disk."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001 - what was logged may be hostile or wrongly spelled
        return str(record.msg)


def prepare_process(*, verbose: bool = False) -> Redactor:
    """Send logs to their file, disable core dumps, and remove stale temporary files.

    Args:
        verbose: Whether to log more than warnings.

    Returns:
        The log's redactor, to which further secrets must be registered.
    """
    forbid_core_dumps()
    redactor = Redactor()
    redactor.register(*environment_secrets(os.environ))
    log_to_file(redactor, verbose=verbose)
    with contextlib.suppress(OSError):
        remove_stale(state_dir(), time.time())
    return redactor
