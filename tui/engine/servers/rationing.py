"""Rations how much of a server's standard error is read: a flood of it slows its writer down."""

import asyncio
from collections.abc import Callable
from typing import Final

WINDOW: Final = 0.05
"""Length of the window in which standard error is rationed, in seconds."""

WINDOW_BYTES: Final = 512 * 1024
"""Standard error read in one window; what is read beyond it is a debt of the next ones."""


class Ration:
    """The ration of one pipe.

    Args:
        pause: Stops reading.
        resume: Goes on reading.
    """

    def __init__(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        self._pause = pause
        self._resume = resume
        self._left = WINDOW_BYTES
        self._timer: asyncio.TimerHandle | None = None

    def spend(self, size: int) -> None:
        """Count what was read."""
        self._left -= size
        if self._left <= 0:
            self._pause()
        if self._timer is None:
            self._renew_later()

    def stop(self) -> None:
        """Renew nothing any longer."""
        if self._timer is not None:
            self._timer.cancel()

    def _renew_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(WINDOW, self._renew)

    def _renew(self) -> None:
        was_spent = self._left <= 0
        self._left = min(WINDOW_BYTES, self._left + WINDOW_BYTES)
        if was_spent and self._left > 0:
            self._resume()
        if self._left < WINDOW_BYTES:
            self._renew_later()
        else:
            self._timer = None
