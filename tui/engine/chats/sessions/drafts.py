"""Drafts of conversations that have no session yet, each in a file of its own.

They lie beside the sessions of the folder, in ``ID.draft``. Whoever holds a file's lock has the
draft in its composer; one that nobody holds was left by a run that ended.
"""

import contextlib
import json
import logging
import time
from pathlib import Path
from typing import Final

from tui.engine.chats.history import without_surrogates
from tui.engine.chats.sessions.library import DRAFT, new_id
from tui.engine.chats.sessions.session_file import SessionLock
from tui.engine.files.atomic import ExposedFileError, UnfitFileError, read_own, write_private
from tui.engine.files.unwritten import make_folder
from tui.engine.logs.redaction import Redactor

MAX_DRAFT: Final = 32 * 1024 * 1024
"""Largest draft that is read, in bytes."""

MAX_TAKEN: Final = 20
"""Most drafts that are taken over at once."""

_log: Final = logging.getLogger(__name__)


class DraftFile:
    """Keeps the draft of one conversation; all methods block and belong to one thread.

    Args:
        place: The folder of its file.
        redactor: Knows the secrets that are masked.
    """

    def __init__(self, place: Path, redactor: Redactor) -> None:
        self._place = place
        self._redactor = redactor
        self._held: dict[Path, SessionLock] = {}

    def take_over(self) -> str:
        """Return the drafts that other runs left; they stay until another is kept."""
        found = []
        for path in sorted(self._place.glob(f"*{DRAFT}"))[-MAX_TAKEN:]:
            with contextlib.suppress(OSError, ValueError, UnfitFileError, ExposedFileError):
                if (lock := SessionLock.take(path)) is not None:
                    self._held[path] = lock
                    text = json.loads(read_own(path, MAX_DRAFT, alone=False))
                    found += [without_surrogates(text)] if isinstance(text, str) else []
        return "\n\n".join(found)

    def keep(self, text: str) -> None:
        """Put a draft in place of the one before, which stays if this one cannot be written."""
        before = dict(self._held)
        try:
            if text.strip():
                self._write(text)
            for path, lock in before.items():
                path.unlink(missing_ok=True)
                lock.release()
                del self._held[path]
        except OSError as error:
            _log.warning("a draft could not be kept: %s", error)

    def _write(self, text: str) -> None:
        path = self._place / f"{new_id(time.time())}{DRAFT}"
        make_folder(path)
        write_private(path, json.dumps(self._redactor.redact_known(text)).encode())
        if (lock := SessionLock.take(path)) is not None:
            self._held[path] = lock

    def let_go(self) -> None:
        """Leave the draft to another run."""
        for lock in self._held.values():
            lock.release()
        self._held.clear()
