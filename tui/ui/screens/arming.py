"""Keeps a question from being answered by keys that were meant for something else."""

from collections.abc import Callable
from time import monotonic
from typing import Final

ARMING_SECONDS: Final = 0.5
"""Seconds for which a question has stood on the screen, and the keyboard been quiet, before it
takes an answer."""


class ArmingGate:
    """Opens once a question has been seen and nobody is typing.

    Args:
        clock: Gives seconds that never run backwards.
        seconds: How long both conditions have to hold.
    """

    def __init__(
        self, clock: Callable[[], float] = monotonic, seconds: float = ARMING_SECONDS
    ) -> None:
        self._clock = clock
        self._seconds = seconds
        self._quiet_since: float | None = None
        self._armed = False

    @property
    def remaining(self) -> float:
        """Seconds until the gate opens; 0 once it is open."""
        if self._quiet_since is None:
            return self._seconds
        if not self._armed:
            left = self._quiet_since + self._seconds - self._clock()
            self._armed = left <= 0
            return max(0.0, left)
        return 0.0

    @property
    def armed(self) -> bool:
        """Whether an answer counts now. Once open, the gate stays open for this question."""
        return self.remaining == 0

    def shown(self) -> None:
        """A question has just been drawn: begin anew."""
        self._quiet_since = self._clock()
        self._armed = False

    def hidden(self) -> None:
        """Another question comes, which has not been drawn yet."""
        self._quiet_since = None
        self._armed = False

    def typed(self) -> bool:
        """Take note of a key.

        Returns:
            Whether the key counts. One that does not begins the wait for a pause anew.
        """
        if self.armed:
            return True
        if self._quiet_since is not None:
            self._quiet_since = self._clock()
        return False
