"""The log of a server: its output and our remarks, in order and rate limited."""

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import islice
from typing import Final

from tui.engine.bus import Publish
from tui.engine.logs.redaction import MIN_ENVIRONMENT_SECRET, Redactor, mask_of, named_secrets
from tui.engine.mcp.wire.tap import Tap
from tui.engine.mcp.wire.wire import Wire
from tui.model.chat import Severity
from tui.model.events import OWN_SOURCE, LogLine, ServerLogged
from tui.model.servers import Failure, ServerId
from tui.text import sanitize

MAX_LOG_LINES: Final = 1_000
"""Lines of standard error that are kept for a server."""

MAX_LINE_CHARS: Final = 2_000
"""Longest line that is kept, in characters."""

MAX_BATCH: Final = 200
"""Most lines in one event; the newest are kept."""

EVENT_INTERVAL: Final = 0.05
"""Shortest time between two events of one server, in seconds."""

FAILURE_TAIL: Final = 20
"""Lines of standard error that a failure shows."""

logger = logging.getLogger(__name__)


class ServerLog:
    """The log of one server.

    Lines are kept raw and sanitized only when they are published or shown, which keeps a flood
    cheap. Lives on one event loop.

    Args:
        server: Whose log it is.
        publish: Takes `ServerLogged`, at most twenty a second.
        secrets: Values that are masked in every line.
        redactor: Masks all other secrets of the run.
        tap: Notes what is said on the server's wire; None for a log alone.

    Attributes:
        tap: The same.
        own: Masks the secrets that the server itself was given, each by its name.
        printed: That the server began its output with text and not with a message, or "".
        on_words: Takes the server's own lines as they are published; None for nobody.
    """

    def __init__(
        self,
        server: ServerId,
        publish: Publish,
        secrets: Iterable[str] = (),
        redactor: Redactor | None = None,
        tap: Tap | None = None,
    ) -> None:
        self._server, self._publish = server, publish
        self._redactor = redactor or Redactor()
        self._secrets, self.own = Redactor(), Redactor()
        self._secrets.register(*secrets)
        self.tap = tap or Wire(redactor=redactor).tap(server)
        self._stderr: deque[bytes] = deque(maxlen=MAX_LOG_LINES)
        self._pending = deque[tuple[float, str, Severity, bytes | str, str]](maxlen=MAX_BATCH)
        self._dropped = 0
        self._flush_at = 0.0
        self.printed = ""
        self.on_words: Callable[[str], None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        self._stderr.clear()
        self.printed = ""
        self.tap.begin()

    def learn(self, given: Iterable[tuple[str, str]], kept: Collection[str] = ()) -> None:
        """Mask from now on, in all that the server says, the secrets that it was given.

        Args:
            given: Values by the names under which they were given.
            kept: Those that are secret whatever they look like, alone or in one of the values.
        """
        kept = [one for one in kept if len(one) >= MIN_ENVIRONMENT_SECRET]
        for name, text in given:
            if secrets := [one for one in kept if one in text] + named_secrets(name, text):
                self.own.register(*secrets, mask=mask_of(name))
                self._redactor.register(*secrets)
                self._redactor.know_masks([name])

    def write_stderr(self, lines: Sequence[bytes]) -> None:
        """Add lines of the server's standard error."""
        self._stderr.extend(lines)
        self.tap.stderr(lines)
        for line in lines[-MAX_BATCH:]:
            self._append("stderr", Severity.INFO, line)
        self._dropped += max(0, len(lines) - MAX_BATCH)

    def add(self, source: str, severity: Severity, text: str, level: str = "") -> None:
        self._append(source, severity, text[: MAX_LINE_CHARS * 2], level)

    def remark(self, text: str, severity: Severity = Severity.WARNING) -> None:
        """Add a remark of our own."""
        self.add("gemdeck", severity, text)

    def tail(self, count: int = FAILURE_TAIL) -> tuple[str, ...]:
        """Return the last non-blank lines of standard error, oldest first."""
        shown = (text for raw in reversed(self._stderr) if (text := self._present(raw)).strip())
        return tuple(islice(shown, count))[::-1]

    def mask(self, text: str) -> str:
        return self._redactor.redact_known(self._secrets.redact_known(text))

    def mask_failure(self, failure: Failure) -> Failure:
        """Return a failure with secrets masked, and what looks like one in its reason."""
        tail = tuple(map(self.mask, failure.stderr_tail))
        reason = self._redactor.redact(self.mask(failure.reason))
        return Failure(reason, self.mask(failure.advice), tail)

    def flush(self) -> None:
        """Publish the pending lines."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._pending:
            return
        lines = [
            LogLine(moment, source, severity, self._present(text), level)
            for moment, source, severity, text, level in self._pending
        ]
        if self._dropped:
            note = f"{self._dropped} earlier lines were dropped: too many at once"
            lines.insert(0, LogLine(lines[0].time, "gemdeck", Severity.WARNING, note))
        self._pending.clear()
        self._dropped = 0
        if logger.isEnabledFor(logging.DEBUG):
            for line in lines:
                logger.debug("%s · %s: %s", self._server, line.source, line.text)
        self._flush_at = asyncio.get_running_loop().time() + EVENT_INTERVAL
        self._publish(ServerLogged(self._server, tuple(lines)))
        if self.on_words is not None:
            self.on_words("\n".join(line.text for line in lines if line.source != OWN_SOURCE))

    def _append(self, source: str, severity: Severity, text: bytes | str, level: str = "") -> None:
        if len(self._pending) == MAX_BATCH:
            self._dropped += 1
        self._pending.append((time.time(), source, severity, text, level))
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(max(self._flush_at, loop.time()), self.flush)

    def _present(self, text: bytes | str) -> str:
        """Sanitize one line; of a line redrawn with carriage returns, keep the last state."""
        # Mask before cutting, which could leave a part of a secret, and again after sanitizing,
        # as control characters may have split one.
        if isinstance(text, bytes):
            text = text[: MAX_LINE_CHARS * 4].decode("utf-8", "replace")
        last = self.mask(text).rstrip("\r\n").rsplit("\r", 1)[-1]
        clean = sanitize(last, MAX_LINE_CHARS * 4).replace("\n", " ")
        return sanitize(self.mask(clean), MAX_LINE_CHARS)


def json_text(value: object) -> str:
    """Write what a server logged, up to what a log keeps."""
    pieces, length = [], 0
    for piece in json.JSONEncoder(ensure_ascii=False).iterencode(value):
        pieces.append(piece)
        length += len(piece)
        if length > MAX_LINE_CHARS * 2:
            break
    return "".join(pieces)
