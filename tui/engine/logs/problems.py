"""Problems with files of gemdeck's own, told from the threads that meet them."""

import asyncio
import contextlib
import logging
import threading
from typing import Final

from tui.engine.events import Publish
from tui.engine.redaction import Redactor
from tui.model.chat import Severity
from tui.model.events import Notice, NoticeRaised
from tui.text import sanitize_line

MAX_TOLD: Final = 8
"""Notices in one run: a full disk is one fault, however many files feel it."""

_log: Final = logging.getLogger(__name__)


class Problems:
    """Takes sentences in any thread, and publishes each as a notice on the event loop.

    What comes before `attach` waits for it. All of them are logged.

    Args:
        publish: Takes the notices.
        redactor: Takes secrets out of them.
    """

    def __init__(self, publish: Publish, redactor: Redactor) -> None:
        self._publish = publish
        self._redactor = redactor
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: list[str] = []
        self._told = 0
        self._lock = threading.Lock()

    def attach(self) -> None:
        """Publish on the running event loop from now on."""
        with self._lock:
            self._loop = asyncio.get_running_loop()
            waiting, self._waiting = self._waiting, []
        for text in waiting:
            self._tell(text)

    def __call__(self, text: str) -> None:
        """Tell the user one sentence or two."""
        _log.warning("%s", text)
        with self._lock:
            self._told += 1
            if self._told > MAX_TOLD:
                return
            if self._told == MAX_TOLD:
                text = f"{text} Further ones are in the log."
            if self._loop is None:
                self._waiting.append(text)
                return
            loop = self._loop
        with contextlib.suppress(RuntimeError):  # the loop has ended, and the screen with it
            loop.call_soon_threadsafe(self._tell, text)

    def _tell(self, text: str) -> None:
        words = sanitize_line(self._redactor.redact(text))
        self._publish(NoticeRaised(Notice(Severity.WARNING, words)))
