"""Which lists of a server have changed, and when they are to be listed anew.

Servers announce changes in bursts, some without end. However many announcements come in, one
refresh runs at a time, at most one waits, and the requests they cost are rationed.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from enum import StrEnum
from typing import Final

from tui.engine.servers.backoff import Clock

DEBOUNCE: Final = 0.3
"""Seconds from the first announcement to the refresh; those that come meanwhile share it."""

BURST: Final = 2
"""Refreshes that may follow each other closely."""

SUSTAINED_INTERVAL: Final = 5.0
"""Seconds for each refresh beyond the burst, for as long as a storm lasts."""


class ListKind(StrEnum):
    """A list that servers announce changes of. Resources include their templates."""

    TOOLS = "tools"
    PROMPTS = "prompts"
    RESOURCES = "resources"


class Changes:
    """The lists of one server that have changed and were not listed since.

    Args:
        clock: What time it is.
        sleep: Waits some seconds of that clock.
    """

    def __init__(
        self,
        clock: Clock = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._kinds: set[ListKind] = set()
        self._noted = asyncio.Event()
        self._allowance = float(BURST)
        self._counted_at = clock()

    def note(self, *kinds: ListKind) -> None:
        """Note that lists have changed."""
        if kinds:
            self._kinds.update(kinds)
            self._noted.set()

    async def next(self) -> Iterable[ListKind]:
        """Wait until some lists are to be listed anew, and take them."""
        await self._noted.wait()
        await self._sleep(max(DEBOUNCE, self._wait()))
        self._count()
        self._allowance -= 1
        kinds, self._kinds = self._kinds, set()
        self._noted.clear()
        return sorted(kinds)

    def _wait(self) -> float:
        """Give the seconds until the ration allows another refresh."""
        self._count()
        return max(0.0, 1 - self._allowance) * SUSTAINED_INTERVAL

    def _count(self) -> None:
        """Let the ration grow by the time that has passed."""
        now = self._clock()
        grown = self._allowance + (now - self._counted_at) / SUSTAINED_INTERVAL
        self._allowance, self._counted_at = min(float(BURST), grown), now
