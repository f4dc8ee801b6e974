"""What has to be asked for twice: the first press says what a second one would do."""

from collections.abc import Callable
from time import monotonic
from typing import Final, Generic, TypeVar

T = TypeVar("T")

REPEAT_SECONDS: Final = 3.0
"""Seconds within which a key has to be pressed again."""


class SecondPress(Generic[T]):
    """Remembers what was asked for once, for `REPEAT_SECONDS`.

    Args:
        clock: Gives seconds that never run backwards.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._first: tuple[T, float] | None = None

    @property
    def awaited(self) -> T | None:
        """What would be done if it were asked for again now; None where nothing is."""
        if self._first is None or self._clock() - self._first[1] >= REPEAT_SECONDS:
            return None
        return self._first[0]

    def expect(self, what: T) -> None:
        """Begin to wait for the second press."""
        self._first = (what, self._clock())

    def forget(self) -> None:
        """Wait no longer."""
        self._first = None

    def take(self, what: T | None) -> bool:
        """Tell whether this is the second press of the same; whatever it is, wait no longer."""
        awaited, self._first = self.awaited, None
        return awaited is not None and awaited == what
