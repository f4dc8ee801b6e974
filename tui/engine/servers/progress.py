"""Reports of progress, thinned out: the newest counts."""

import asyncio
import math
from collections.abc import Callable
from typing import Final

from tui.model.chat import Progress
from tui.text import sanitize_line

REPORT_INTERVAL: Final = 0.1
"""Shortest time between two reports of one call, in seconds."""

MAX_MESSAGE_CHARS: Final = 200
"""Longest message of a report."""


class ProgressReporter:
    """Passes a call's progress on, at most ten times a second, the latest always.

    Use it as a context manager round the call: what arrives after it is dropped.

    Args:
        report: Takes each report that is passed on.
    """

    def __init__(self, report: Callable[[Progress], None]) -> None:
        self._report = report
        self._latest: Progress | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._open = False

    def __enter__(self) -> "ProgressReporter":
        self._open = True
        return self

    def __exit__(self, *exception: object) -> None:
        self._open = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        """Take a report as the SDK gives it; what is no number of progress is dropped."""
        if not self._open or not math.isfinite(progress) or progress < 0:
            return
        known_total = total if total is not None and math.isfinite(total) and total > 0 else None
        self._latest = Progress(
            progress, known_total, sanitize_line(message or "", MAX_MESSAGE_CHARS)
        )
        if self._timer is None:
            self._pass_on()

    def _pass_on(self) -> None:
        self._timer = None
        if self._latest is None:
            return
        self._report(self._latest)
        self._latest = None
        self._timer = asyncio.get_running_loop().call_later(REPORT_INTERVAL, self._pass_on)
