"""When to start a failed server again, and when to give up."""

import math
import random
import time
from collections.abc import Callable
from typing import Final

from tui.model.frozen import Frozen

AT_ONCE: Final = 20
"""Servers that start by themselves at once; a start by the user never waits."""

START_PAUSE: Final = 0.5
"""Seconds between the starts of more than that, so that many that die leave the machine usable."""

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
    """Spreads the starts of many servers over time, in the order in which they are asked for."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._last = -math.inf

    def seconds(self) -> float:
        """Take the next turn; return the seconds until it comes."""
        now = self._clock()
        self._last = max(self._last, now - AT_ONCE * START_PAUSE) + START_PAUSE
        return max(0.0, self._last - now)
