"""Tells when an event loop has nothing left to do.

Textual's own `wait_for_idle` sleeps for at least a fiftieth of a second and takes the process for
idle once it used next to no processor time in it. On a busy machine, and beside a screen that
draws a countdown, that takes up to a second for every key. The loop itself knows better.
"""

import asyncio
from typing import Any, Final

from textual.constants import MAX_FPS

FRAME: Final = 1 / MAX_FPS + 0.001
"""Seconds within which what is due belongs to what was set off before: Textual draws in frames."""

MAX_ROUNDS: Final = 10_000
"""Turns of the loop after which one that is never idle is left alone."""


async def wait_for_idle(min_sleep: float = 0.0, max_sleep: float = 1.0) -> None:
    """Wait until no callback is ready to run and none is due within a frame.

    Args:
        min_sleep: Seconds to wait in any case.
        max_sleep: Seconds of frames after which a loop that is never idle is left alone, however
            long a busy machine takes for each.
    """
    loop: Any = asyncio.get_running_loop()
    frames = max_sleep / FRAME
    await asyncio.sleep(min_sleep)
    for _ in range(MAX_ROUNDS):
        await asyncio.sleep(0)
        if loop._ready:
            continue
        due = _next_due(loop)
        if due is None or due > FRAME or frames <= 0:
            return
        frames -= 1
        await asyncio.sleep(max(0.0, due))


async def wait_for_turns(_pilot: object, _timeout: float = 30.0) -> bool:
    """Wait until no callback is ready to run, so that all that was posted has been handled.

    Textual's own `_wait_for_screen` posts a message to each widget and waits for it; that costs
    more than the key that was pressed before.
    """
    loop: Any = asyncio.get_running_loop()
    for _ in range(MAX_ROUNDS):
        await asyncio.sleep(0)
        if not loop._ready:
            return True
    return False


def _next_due(loop: Any) -> float | None:  # noqa: ANN401 - the base loop's own schedule
    """Give the seconds until the next scheduled callback, or None where there is none."""
    whens = (handle.when() for handle in loop._scheduled if not handle.cancelled())
    next_when = min(whens, default=None)
    return None if next_when is None else next_when - loop.time()
