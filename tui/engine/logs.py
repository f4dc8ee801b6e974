"""Logs go to a private file; the terminal belongs to the screen."""

import io
import logging
import os
from logging.handlers import RotatingFileHandler
from typing import Final

from tui.engine.paths import log_dir

MAX_LOG_BYTES: Final = 5_000_000
"""Size at which a log file is rotated."""

MAX_LOG_FILES: Final = 5
"""Rotated files kept."""

LOG_NAME: Final = "gemdeck.log"


class _PrivateFileHandler(RotatingFileHandler):
    """Makes each file it begins, also after a rotation, readable by the user alone (0600)."""

    def _open(self) -> io.TextIOWrapper:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return open(descriptor, "a", encoding=self.encoding, errors=self.errors)  # noqa: PTH123


def log_to_file(*, verbose: bool = False) -> None:
    """Send all logging and all warnings of this process to the log folder.

    Where the folder cannot be written, they are dropped: better no log than a torn screen.
    """
    root = logging.getLogger()
    root.setLevel(logging.DEBUG if verbose else logging.WARNING)
    logging.captureWarnings(capture=True)
    try:
        path = log_dir() / LOG_NAME
        handler: logging.Handler = _PrivateFileHandler(
            path, maxBytes=MAX_LOG_BYTES, backupCount=MAX_LOG_FILES, encoding="utf-8", delay=False
        )
        path.chmod(0o600)
    except OSError:
        handler = logging.NullHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    root.handlers[:] = [handler]
