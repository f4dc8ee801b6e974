"""How long tests wait for what has to come."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import anyio
import anyio.lowlevel

PATIENCE: Final = 30.0
"""Seconds after which what has not come is missing; a busy machine may need many of them."""

INTERVAL: Final = 0.01
"""Seconds between two looks."""

STEPS: Final = 500
"""Steps of the event loop that what comes at once may take."""


async def eventually(check: Callable[[], object], patience: float = PATIENCE) -> None:
    """Wait until something holds."""
    with anyio.fail_after(patience):
        while not check():  # noqa: ASYNC110 - nothing tells of it
            await anyio.sleep(INTERVAL)


def whole_lines(path: Path) -> list[str]:
    """Read what another process writes, but for the line that it is just writing."""
    text = path.read_text("utf-8") if path.exists() else ""
    return text.rpartition("\n")[0].splitlines()


async def at_once(condition: Callable[[], object]) -> None:
    """Wait for what needs no time, only steps of the event loop; a timer would come too late."""
    for _ in range(STEPS):
        if condition():
            return
        os.sched_yield()  # what another thread or process does takes no step of ours
        await anyio.lowlevel.checkpoint()
    raise AssertionError("it did not come at once")
