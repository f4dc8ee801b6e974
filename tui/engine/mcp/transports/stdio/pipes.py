"""Reads a server's pipes: splits lines, and limits the rate of standard error."""

import asyncio
from collections.abc import Callable
from typing import Final

WINDOW: Final = 0.05
"""Length of the rate limit's window, in seconds."""

WINDOW_BYTES: Final = 512 * 1024
"""Bytes of standard error per window; any excess counts against the next ones."""


class LineTooLongError(Exception):
    """A line exceeds its limit."""


class LineSplitter:
    """Splits chunks of bytes into lines.

    The pieces of an unfinished line are joined once at its end, so that a line of many chunks
    takes linear time.

    Args:
        limit: Longest line in bytes, without its newline.
        cut: Whether to cut longer lines; otherwise they are an error.
    """

    def __init__(self, limit: int, *, cut: bool = False) -> None:
        self._limit = limit
        self._cut = cut
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Add a chunk; return the lines that it completes, without newlines.

        Raises:
            LineTooLongError: If a line exceeds the limit and must not be cut.
        """
        if b"\n" not in data:
            self._keep(data)
            return []
        first, *complete, rest = data.split(b"\n")
        self._keep(first)
        lines = [self._take()]
        if len(data) <= self._limit:
            lines += complete
        else:
            lines += map(self._fit, complete)
        self._keep(rest)
        return lines

    def finish(self) -> bytes:
        return self._take()

    def _keep(self, piece: bytes) -> None:
        piece = self._fit(piece, self._limit - self._size)
        if piece:
            self._pieces.append(piece)
            self._size += len(piece)

    def _fit(self, piece: bytes, room: int | None = None) -> bytes:
        """Cut a piece to the given room, by default that of a whole line."""
        room = self._limit if room is None else room
        if len(piece) > room and not self._cut:
            raise LineTooLongError
        return piece[:room]

    def _take(self) -> bytes:
        line = b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        return line


class StderrQuota:
    """The rate limit of one pipe.

    Args:
        pause: Stops reading.
        resume: Continues reading.
    """

    def __init__(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        self._pause = pause
        self._resume = resume
        self._left = WINDOW_BYTES
        self._timer: asyncio.TimerHandle | None = None

    def spend(self, size: int) -> None:
        """Count bytes that were read."""
        self._left -= size
        if self._left <= 0:
            self._pause()
        if self._timer is None:
            self._renew_later()

    def stop(self) -> None:
        """Stop the timer."""
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
