"""Report problems with gemdeck's own files from any thread."""

import asyncio
import contextlib
import logging
import threading
from typing import Final

from tui.engine.bus import Publish
from tui.engine.logs.redaction import Redactor
from tui.model.chat import Severity
from tui.model.events import Notice, NoticeRaised
from tui.text import sanitize_line

MAX_NOTICES: Final = 8
"""Most notices in one run: a full disk affects many files at once."""

_log: Final = logging.getLogger(__name__)


class Problems:
    """Takes messages in any thread and publishes each as a notice on the event loop.

    Messages before `attach` wait for it. All of them are logged.

    Args:
        publish: Publishes the notices.
        redactor: Removes secrets from them.
    """

    def __init__(self, publish: Publish, redactor: Redactor) -> None:
        self._publish, self._redactor = publish, redactor
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: list[str] = []
        self._count = 0
        self._lock = threading.Lock()

    def attach(self) -> None:
        """Publish on the running event loop, waiting messages first."""
        with self._lock:
            self._loop = asyncio.get_running_loop()
            waiting, self._waiting = self._waiting, []
        for text in waiting:
            self._publish_notice(text)

    def __call__(self, text: str) -> None:
        """Report a problem in one or two sentences."""
        _log.warning("%s", text)
        with self._lock:
            self._count += 1
            if self._count > MAX_NOTICES:
                return
            if self._count == MAX_NOTICES:
                text = f"{text} Further problems are in the log."
            if self._loop is None:
                self._waiting.append(text)
                return
            loop = self._loop
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(self._publish_notice, text)

    def _publish_notice(self, text: str) -> None:
        shown = sanitize_line(self._redactor.redact(text))
        self._publish(NoticeRaised(Notice(Severity.WARNING, shown)))
