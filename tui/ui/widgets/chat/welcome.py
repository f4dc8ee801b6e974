"""The line that says what a running turn is busy with. It ticks only while one runs."""

from collections.abc import Callable
from time import monotonic
from typing import Final

from textual.content import Content
from textual.timer import Timer
from textual.widgets import Static

from tui.model.chat import TurnState

QUIET_SECONDS: Final = 2
"""Seconds after which the line says how long the turn has been running."""


class WorkingLine(Static):
    """One row that is always there, so that nothing jumps; empty while no turn runs.

    Args:
        clock: Gives seconds, as `TurnState.started_at` counts them.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = monotonic,
        id: str | None = None,  # noqa: A002 - Textual's name
    ) -> None:
        super().__init__("", markup=False, id=id)
        self._clock = clock
        self._turn: TurnState | None = None
        self._queued = 0
        self._timer: Timer | None = None

    def show(self, turn: TurnState | None, queued: int) -> None:
        """Show what runs, and how many messages wait for its end."""
        self._turn = turn
        self._queued = queued
        if turn is not None and self._timer is None:
            self._timer = self.set_interval(1, self._draw)
        elif turn is None and self._timer is not None:
            self._timer.stop()
            self._timer = None
        self._draw()

    def _draw(self) -> None:
        if self._turn is None:
            self.update("")
            return
        seconds = int(self._clock() - self._turn.started_at)
        parts = [Content.styled(f"◐ {self._turn.phase.value}", "$text-primary")]
        if seconds >= QUIET_SECONDS:
            parts.append(Content.styled(f"{seconds} s", "$foreground 60%"))
        if self._queued:
            parts.append(Content.styled(f"{self._queued} queued", "$text-warning"))
        parts.append(Content.styled("Esc stops", "$foreground 60%"))
        self.update(Content("   ").join(parts))
