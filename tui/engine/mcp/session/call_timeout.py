"""How long a call may take, and its progress reports.

The SDK's timeout does not fit: a form that stays open for long would end the call that asked for
it. Here the clock stops while the server waits for the user.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from time import monotonic
from typing import Final

from tui.model.chat import Progress
from tui.text import sanitize_line

REPORT_INTERVAL: Final = 0.1
"""Shortest time between two progress reports of one call, in seconds."""

MAX_MESSAGE_CHARS: Final = 200
"""Longest message of a progress report."""


class CallTimeoutError(Exception):
    """A call took too long; the text says the limit, as part of a sentence."""


class CallTimeout:
    """The timeout of the requests of one connection: calls, prompts, resources, completions.

    Args:
        limit: Seconds that a call may take in total.

    Attributes:
        asked: What the server has asked of the user in the tasks that are followed, by their ids,
            and under None since no request of ours ran: keys, and numbers of what has none.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self.asked: dict[str | None, set[str | int]] = {}
        self._calls: dict[asyncio.Timeout, float] = {}  # when each has to end, by our clock
        self._pauses = 0
        self._paused_at = self._waited = 0.0
        self._used_at = monotonic()

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[None]:
        """Limit the time of the block.

        Raises:
            CallTimeoutError: If the block took too long and was cancelled.
        """
        timeout = asyncio.timeout(self._limit)
        if not self._calls:
            self.asked[None] = set()
        try:
            async with timeout:
                self._calls[timeout] = self.clock() + self._limit
                if self._pauses:
                    timeout.reschedule(None)
                yield
        except TimeoutError:
            if timeout.expired():
                raise CallTimeoutError(f"no result within {self._limit:g} s") from None
            raise
        finally:
            self._calls.pop(timeout, None)
            self._used_at = monotonic()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Stop the clocks of all calls while the server waits for us."""
        if not self._pauses:
            self._paused_at = asyncio.get_running_loop().time()
        self._pauses += 1
        self._schedule()
        try:
            yield
        finally:
            self._pauses -= 1
            self._used_at = monotonic()
            if not self._pauses:
                self._waited += asyncio.get_running_loop().time() - self._paused_at
                self._schedule()

    def _schedule(self) -> None:
        """Stop the clocks of all calls while there is a pause, else let them run."""
        for timeout, end in self._calls.items():
            if not timeout.expired():
                timeout.reschedule(None if self._pauses else end + self._waited)

    def idle(self) -> float:
        """Return the seconds since a request ended, ours or the server's; 0 while one runs."""
        return 0.0 if self._calls or self._pauses else monotonic() - self._used_at

    def clock(self) -> float:
        """Return the seconds of a clock that stops while the server waits for us."""
        now = self._paused_at if self._pauses else asyncio.get_running_loop().time()
        return now - self._waited


class ProgressReporter:
    """Passes on the progress of a call, at most ten times a second and always the latest.

    Attributes:
        report: Called with each report that is passed on.
    """

    def __init__(self, report: Callable[[Progress], None]) -> None:
        self.report = report
        self._latest: Progress | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        """Take a report of the server; drop it if it is not a finite positive number."""
        if not math.isfinite(progress) or progress < 0:
            return
        known_total = total if total is not None and math.isfinite(total) and total > 0 else None
        shown = sanitize_line(message or "", MAX_MESSAGE_CHARS)
        self._latest = Progress(progress, known_total, shown)
        if self._timer is None:
            self._pass_on()

    def _pass_on(self) -> None:
        self._timer = None
        if self._latest is None:
            return
        self.report(self._latest)
        self._latest = None
        self._timer = asyncio.get_running_loop().call_later(REPORT_INTERVAL, self._pass_on)
