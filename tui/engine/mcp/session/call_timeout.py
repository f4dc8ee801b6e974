"""How long a call may take: counted in the server's own time, not in that of the user it asks.

The SDK's timeout is of no use for it: it does not hear of progress, and a form that stays open
for long would end the very call that asked for it.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

IDLE_TIMEOUT: Final = 120.0
"""Seconds that a call may be silent once it has begun to report its progress."""


class CallTimeoutError(Exception):
    """A call took too long; the text says in which way, as a part of a sentence."""


class CallWatch:
    """The time of one call; see `Watchdog.watch`."""

    def __init__(self, timeout: asyncio.Timeout, limit: float) -> None:
        self._timeout = timeout
        self._limit = limit
        self._left = limit
        self._since = asyncio.get_running_loop().time()
        self._heard: float | None = None
        self._is_paused = False

    def progress(self) -> None:
        """Note that the server reported progress."""
        self._heard = asyncio.get_running_loop().time()
        self._schedule()

    def pause(self) -> None:
        """Let the time stand still."""
        if not self._is_paused:
            self._left -= asyncio.get_running_loop().time() - self._since
            self._is_paused = True
            self._schedule()

    def resume(self) -> None:
        """Let the time go on; the silence of the pause is forgotten."""
        self._is_paused = False
        self._since = asyncio.get_running_loop().time()
        if self._heard is not None:
            self._heard = self._since
        self._schedule()

    def explain(self) -> str:
        """Say which limit was exceeded."""
        if self._heard is not None and self._end_of_silence() < self._end():
            return f"no further progress within {IDLE_TIMEOUT:g} s"
        return f"no result within {self._limit:g} s"

    def _schedule(self) -> None:
        if self._timeout.expired():
            return
        if self._is_paused:
            self._timeout.reschedule(None)
        else:
            self._timeout.reschedule(min(self._end(), self._end_of_silence()))

    def _end(self) -> float:
        return self._since + self._left

    def _end_of_silence(self) -> float:
        return self._heard + IDLE_TIMEOUT if self._heard is not None else float("inf")


class Watchdog:
    """Ends calls of one connection that take too long.

    Args:
        limit: Seconds a call may take in all.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._calls: set[CallWatch] = set()
        self._pauses = 0

    @asynccontextmanager
    async def watch(self, limit: float | None = None) -> AsyncIterator[CallWatch]:
        """Bound the time of the block.

        Args:
            limit: Seconds it may take where that is less than what a call may.

        Raises:
            CallTimeoutError: If the block took too long; it was cancelled then.
        """
        seconds = self._limit if limit is None else min(limit, self._limit)
        timeout = asyncio.timeout(seconds)
        call = CallWatch(timeout, seconds)
        try:
            async with timeout:
                if self._pauses:
                    call.pause()
                self._calls.add(call)
                yield call
        except TimeoutError:
            if timeout.expired():
                raise CallTimeoutError(call.explain()) from None
            raise
        finally:
            self._calls.discard(call)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Let the time of all calls stand still while the server waits for us."""
        self._pauses += 1
        for call in self._calls:
            call.pause()
        try:
            yield
        finally:
            self._pauses -= 1
            if not self._pauses:
                for call in self._calls:
                    call.resume()
