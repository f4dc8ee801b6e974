"""How long tests wait for what has to come."""

from collections.abc import Callable
from typing import Final

import anyio

PATIENCE: Final = 30.0
"""Seconds after which what has not come is missing; a busy machine may need many of them."""

INTERVAL: Final = 0.01
"""Seconds between two looks."""


async def eventually(check: Callable[[], object], patience: float = PATIENCE) -> None:
    """Wait until something holds."""
    with anyio.fail_after(patience):
        while not check():  # noqa: ASYNC110 - nothing tells of it
            await anyio.sleep(INTERVAL)
