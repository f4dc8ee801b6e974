"""When to start a server, when to start a failed one again, and when to give up."""

import asyncio
import math
import os
import random
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from tui.model.frozen import Frozen

AT_ONCE: Final = 4
"""Servers that start by themselves at a time, and how many more each time the machine keeps up."""

MOST_BUSY: Final = 4 * (os.cpu_count() or 1)
"""Most at a time while no processor is idle: a loop that does little wakes on time even then."""

IDLE: Final = 0.1
"""Share of one processor's time that processors have to be idle before more may start."""

NAPS: Final = 5
"""Times in a row that the event loop has to wake on time for that."""

NAP: Final = 0.05
"""Seconds between two of them."""

LATE: Final = 0.01
"""Seconds by which it wakes late when too much runs; typing feels the same delay."""

LONGEST_TURN: Final = 10.0
"""Seconds after which a server that is still starting, or starts again, no longer counts."""

Clock = Callable[[], float]
"""A clock in seconds that never goes back, such as `time.monotonic`."""

Random = Callable[[], float]
"""Returns a number from 0 up to 1, such as `random.random`."""


class RetryPolicy(Frozen):
    """How patient gemdeck is with a server; all times in seconds.

    Attributes:
        first_delay: The wait before the first retry, which fixes most one-time failures.
        least_delay: The wait before the second retry; it doubles with each further one.
        most_delay: The longest wait.
        jitter: The fraction by which a wait varies, so that servers that failed together do not
            all come back at the same moment.
        max_failures: Failures in a row after which a program is given up.
        stable: A connection that was ready for this long resets the count of failures.
    """

    first_delay: float = 0.25
    least_delay: float = 1.0
    most_delay: float = 60.0
    jitter: float = 0.2
    max_failures: int = 5
    stable: float = 30.0


PATIENT: Final = RetryPolicy()
"""The policy for servers and for their announcements of changes."""

LISTENING: Final = RetryPolicy(first_delay=1.0, stable=0.0)
"""The policy for subscriptions: a proxy may end each stream after a while."""


class Backoff:
    """Counts the failures of one server.

    Args:
        policy: The delays and limits.
        clock: The current time.
        rng: The source of the jitter.
        gives_up: Whether there is an end; what is away on the network may come back any time.

    Attributes:
        policy: The delays and limits.
    """

    def __init__(
        self,
        policy: RetryPolicy = PATIENT,
        clock: Clock = time.monotonic,
        rng: Random | None = None,
        *,
        gives_up: bool = True,
    ) -> None:
        self.policy, self._clock = policy, clock
        self._rng = rng or random.random
        self._gives_up = gives_up
        self._failures = 0
        self._ready_since: float | None = None

    @property
    def is_exhausted(self) -> bool:
        """Whether the server failed too often in a row."""
        return self._gives_up and self._failures >= self.policy.max_failures

    def reset(self) -> None:
        """Forget all failures, as when the user starts the server."""
        self._failures = 0
        self._ready_since = None

    def succeeded(self) -> None:
        self._ready_since = self._clock()

    def failed(self) -> float:
        """Count a failure and return the time, by the clock, of the next attempt."""
        now = self._clock()
        if self._ready_since is not None and now - self._ready_since > self.policy.stable:
            self.reset()
        self._ready_since = None
        delay = self.policy.first_delay
        if self._failures:
            grown = self.policy.least_delay * 2.0 ** min(self._failures - 1, 30)
            delay = min(self.policy.most_delay, grown)
        self._failures += 1
        varied = delay * (1 + self.policy.jitter * (2 * self._rng() - 1))
        return now + min(varied, self.policy.most_delay)

    def seconds_until(self, moment: float) -> float:
        """Return the seconds from now until a moment of the clock; 0 if it has passed."""
        return max(0.0, moment - self._clock())


class StartQueue:
    """Lets servers start in order: a few at a time, and more while the machine keeps up.

    A start by the user waits for no turn.
    """

    def __init__(self) -> None:
        self._line = asyncio.Lock()
        self._starting, self._room = 0, float(AT_ONCE)

    async def turn(self) -> Callable[[], None]:
        """Wait for a turn; return a function that ends it early, which may be called twice."""
        async with self._line:
            while self._starting >= self._room:
                most = await _most()
                self._room = max(self._room, min(self._room + AT_ONCE, most))
        self._starting += 1
        held = ExitStack()
        held.callback(self._end)
        asyncio.get_running_loop().call_later(LONGEST_TURN, held.close)
        return held.close

    def _end(self) -> None:
        self._starting -= 1
        self._room = max(AT_ONCE, self._room - 1)


async def _most() -> float:
    """Nap a few times; return how many may start by how the machine kept up meanwhile."""
    before = _idle_seconds()
    for _ in range(NAPS):
        due = time.monotonic() + NAP
        await asyncio.sleep(NAP)
        if time.monotonic() > due + LATE:
            return AT_ONCE
    return math.inf if _idle_seconds() >= before + IDLE * NAPS * NAP else MOST_BUSY


def _idle_seconds() -> float:
    """Return the seconds that processors have been idle, all together; infinite if unknown."""
    try:
        return int(Path("/proc/stat").read_text("ascii").split()[4]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return math.inf
