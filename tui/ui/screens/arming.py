"""Keeps a question from being answered by keys that were meant for something else."""

from collections.abc import Callable
from enum import Enum, auto
from time import monotonic
from typing import Final

from textual.message_pump import MessagePump
from textual.timer import Timer

from tui.ui.bridge import MIN_WAIT
from tui.ui.widgets.composer import WRITING_SECONDS

ARMING_SECONDS: Final = 0.5
"""Seconds for which a question has stood on the screen, and the keyboard been quiet, before it
takes an answer; where somebody is writing it is `WRITING_SECONDS`."""

GATE_INTERVAL: Final = 0.1
"""Seconds after which the gate is looked at again; keys put its opening off."""


class KeyKind(Enum):
    """What a key means to a question."""

    ANSWER = auto()
    """It answers."""

    REPEAT = auto()
    """It confirms the answer given by the key before it."""

    MOVE = auto()
    """It scrolls, or moves the focus."""

    TEXT = auto()
    """It writes a character, and means nothing here."""

    OTHER = auto()
    """It means nothing here."""


class ArmingGate:
    """Opens once a question has been seen and nobody is typing; closes when somebody types.

    Args:
        clock: Gives seconds that never run backwards.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._seconds = ARMING_SECONDS
        self._quiet_since: float | None = None
        self._wrote_at: float | None = None
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
    def waits_for_drawing(self) -> bool:
        """Whether the question has not been drawn yet."""
        return self._quiet_since is None

    @property
    def armed(self) -> bool:
        """Whether an answer counts now."""
        return self.remaining == 0

    def shown(self, *, writing: bool = False) -> None:
        """A question has just been drawn: begin anew.

        Args:
            writing: Whether the user was writing when it came.
        """
        now = self._clock()
        if self._wrote_at is not None and now - self._wrote_at < WRITING_SECONDS:
            writing = True
        self._seconds = WRITING_SECONDS if writing else ARMING_SECONDS
        self._quiet_since = now
        self._armed = False

    def hidden(self) -> None:
        """Another question comes, which has not been drawn yet."""
        self._quiet_since = None
        self._armed = False

    def typed(self, kind: KeyKind) -> bool:
        """Take note of a key.

        A key that means nothing here closes the gate, and so does an answer that follows another
        key too fast; a character also shows that somebody writes.

        Returns:
            Whether the key counts.
        """
        now, before = self._clock(), self._quiet_since
        armed = self.armed
        if kind is KeyKind.TEXT:
            self._wrote_at, self._seconds = now, WRITING_SECONDS
        if before is None:
            return False
        self._quiet_since = now
        match kind:
            case KeyKind.ANSWER:
                self._armed = armed and now - before >= ARMING_SECONDS
            case KeyKind.REPEAT | KeyKind.MOVE:
                self._armed = armed
            case KeyKind.TEXT | KeyKind.OTHER:
                self._armed = False
        return self._armed


class GateWatch:
    """Looks at a gate until it opens, and tells its screen whether answers count.

    Args:
        owner: The screen, which owns the timer.
        gate: The gate.
        changed: Takes whether answers count, each time that was looked at.
    """

    def __init__(
        self, owner: MessagePump, gate: ArmingGate, changed: Callable[[bool], None]
    ) -> None:
        self._owner = owner
        self._gate = gate
        self._changed = changed
        self._timer: Timer | None = None

    def begin(self, *, writing: bool = False) -> None:
        """Begin the delay: the question has just been drawn.

        Args:
            writing: Whether the user was writing when it came.
        """
        self._gate.shown(writing=writing)
        self.look()

    def end(self) -> None:
        """Take no answers until it begins anew."""
        self._stop()
        self._gate.hidden()
        self._changed(False)

    def look(self) -> None:
        """Tell whether answers count, and come back where they do not yet."""
        self._stop()
        if self._gate.waits_for_drawing:
            return
        remaining = self._gate.remaining
        self._changed(remaining == 0)
        if remaining:
            wait = min(max(remaining, MIN_WAIT), GATE_INTERVAL)
            self._timer = self._owner.set_timer(wait, self.look)

    def _stop(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.stop()
