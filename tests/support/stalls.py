"""Watches for callbacks that hold the event loop up, at next to no cost."""

import asyncio
import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

STALL_SECONDS: Final = 0.1
"""How long one callback may hold the event loop."""

HANG_SECONDS: Final = 1.0
"""What hostile text must never cost. Unbounded, it costs tens of seconds: far from any noise."""

CPU_AGE: Final = 0.001
"""Most seconds from a look at a thread's processor time to the callback that it is taken for.

Such a look is a system call: one for each callback took a fifteenth of the tests of the screen.
"""


class CpuReading(threading.local):
    """A thread's processor time, in seconds, and when it was read."""

    at = -math.inf
    seconds = 0.0


@dataclass(frozen=True, slots=True)
class Stall:
    """One callback that held the loop: for how long, and how much of that it computed.

    On a busy machine a callback may wait for a processor; `cpu_seconds` leaves that out, and may
    have up to `CPU_AGE` of what ran just before.
    """

    callback: str
    seconds: float
    cpu_seconds: float

    def __str__(self) -> str:
        spent = f"{self.seconds * 1000:.0f} ms ({self.cpu_seconds * 1000:.0f} ms of CPU)"
        return f"{spent} in {self.callback}"


@dataclass
class LoopWatch:
    """The stalls seen so far."""

    stalls: list[Stall] = field(default_factory=list)

    def clear(self) -> None:
        """Forget what happened until now, such as a start-up that is not under test."""
        self.stalls.clear()

    def assert_smooth(self, limit: float = STALL_SECONDS) -> None:
        """Fail if a callback computed longer than `limit` seconds."""
        slow = [str(stall) for stall in self.stalls if stall.cpu_seconds > limit]
        assert not slow, "The event loop was held up: " + "; ".join(slow)


@contextmanager
def watch_loop() -> Iterator[LoopWatch]:
    """Record the stalls of every event loop of this process."""
    watch = LoopWatch()
    run: Any = asyncio.Handle._run
    cpu_before, now = CpuReading(), time.monotonic

    def timed(handle: asyncio.Handle) -> None:
        started = now()
        if started - cpu_before.at > CPU_AGE:
            cpu_before.at, cpu_before.seconds = started, time.thread_time()
        run(handle)
        seconds = now() - started
        if seconds > STALL_SECONDS:
            cpu = time.thread_time() - cpu_before.seconds
            watch.stalls.append(Stall(_name(handle), seconds, cpu))

    asyncio.Handle._run = timed  # type: ignore[assignment,method-assign]
    try:
        yield watch
    finally:
        asyncio.Handle._run = run  # type: ignore[method-assign]


def _name(handle: asyncio.Handle) -> str:
    """Name what a handle runs: the task where it is a step of one."""
    callback = getattr(handle, "_callback", None)
    task = getattr(callback, "__self__", None)
    if isinstance(task, asyncio.Task):
        coroutine = task.get_coro()
        return str(getattr(coroutine, "__qualname__", coroutine))
    return str(getattr(callback, "__qualname__", callback))
