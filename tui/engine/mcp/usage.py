"""What is measured of one server: starts, calls, processes, and how its offer changes."""

import mmap
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Final

from tui.engine.mcp.catalog.offer import ServerOffer
from tui.engine.mcp.catalog.offered_tool import ToolResult
from tui.model.servers import ServerUsage

if TYPE_CHECKING:  # it imports the MCP SDK, which takes half a second
    from tui.engine.mcp.session.connection import Connection

MAX_TIMED: Final = 60
"""Newest calls whose durations are kept."""

MAX_THREADS: Final = 1_000
"""Threads of a server that are asked for their child processes."""


class UsageMeter:
    """Measures one server for as long as its entry stays as it is. Lives on one event loop.

    Attributes:
        running: How many calls run.
    """

    def __init__(self) -> None:
        self._now = ServerUsage()
        self.running = 0
        self._offer: ServerOffer | None = None
        self._before: dict[str, object] = {}

    def started(self) -> None:
        self._now = replace(self._now, starts=self._now.starts + 1)

    def offered(self, offer: ServerOffer, *, is_first: bool) -> None:
        """Compare a new offer, `is_first` of its connection, with the last of the one before.

        If there was none before, this one takes that place: what was kept, or its own first.
        """
        last, self._offer = self._offer, offer
        if last is None:
            return
        if is_first or not self._before:
            self._before = _digests(last)
        self._now = replace(self._now, change=_difference(self._before, _digests(offer)))

    async def time(
        self, tool: str, call: Awaitable[ToolResult], clock: Callable[[], float]
    ) -> ToolResult:
        """Await a call of a tool; keep when, how long it took by a clock, and whether it failed."""
        begun, failed = clock(), True
        last_calls = {**self._now.last_calls, tool: time()}
        self._now = replace(self._now, last_calls=last_calls)
        self.running += 1
        try:
            result = await call
            failed = result.is_error
            return result
        finally:
            self.running -= 1
            now = replace(self._now, calls=self._now.calls + 1, failed=self._now.failed + failed)
            self._now = replace(now, seconds=(*now.seconds, clock() - begun)[-MAX_TIMED:])

    def read(self, live: "Connection | None") -> ServerUsage:
        """Return what was measured until now, and what is seen of a connection."""
        if live is None:
            return self._now
        processes, memory = process_tree(pid := live.transport.pid)
        seen = replace(self._now, connected=live.connected, listed=live.listed)
        return replace(seen, pid=pid, processes=processes, memory=memory)


def process_tree(pid: int) -> tuple[int, int]:
    """Count a process and its descendants, and the bytes of memory that they have resident.

    Pages that several share count for each. Without ``/proc`` both numbers are 0.
    """
    pending, processes, pages, threads = [str(pid)], 0, 0, MAX_THREADS
    while pending and threads > 0:
        folder = Path("/proc", pending.pop())
        with suppress(OSError):  # it has ended meanwhile
            pages += int((folder / "statm").read_text().split()[1])
            processes += 1
            for thread in islice((folder / "task").iterdir(), threads):
                threads -= 1
                pending += (thread / "children").read_text().split()
    return processes, pages * mmap.PAGESIZE


def _digests(offer: ServerOffer) -> dict[str, object]:
    """Return the kind and name of each thing offered, and what changes with it."""
    return {
        **{f"tool {one.view.name}": one.definition_hash for one in offer.tools},
        **{f"prompt {one.name}": hash(one) for one in offer.prompts},
        **{f"resource {one.uri}": hash(one) for one in offer.resources},
        **{f"template {one.uri_template}": hash(one) for one in offer.templates},
    }


def _difference(before: dict[str, object], now: dict[str, object]) -> dict[str, tuple[str, ...]]:
    found = {
        "gained": tuple(name for name in now if name not in before),
        "lost": tuple(name for name in before if name not in now),
        "changed": tuple(name for name in now if before.get(name, now[name]) != now[name]),
    }
    return {word: names for word, names in found.items() if names}
