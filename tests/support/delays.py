"""``python3 -m pytest -p tests.support.delays …``: tests on a machine that is late at random.

Delays what threads do, what a file gets after it is there, and what arrives on sockets and pipes,
by up to `DELAY` seconds (0.06) each second time. A test that fails so waits for the wrong thing,
but for the few that want something at once. `DELAY_SEED` changes the luck.
"""

import asyncio.selector_events
import asyncio.unix_events
import os
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial, wraps
from pathlib import Path
from typing import Any, Final

from anyio._backends._asyncio import AsyncIOBackend

LONGEST: Final = float(os.environ.get("DELAY", "0.06"))
SHARE: Final = 0.5
"""Part of the occasions on which anything is delayed."""

_chance = random.Random(os.environ.get("DELAY_SEED"))


def _delay() -> float:
    return _chance.random() * LONGEST if _chance.random() < SHARE else 0.0


def _late(work: Callable[..., Any], *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - any work
    time.sleep(_delay())
    try:
        return work(*arguments, **named)
    finally:
        time.sleep(_delay())


def _delay_threads() -> None:
    submit, run_sync = ThreadPoolExecutor.submit, AsyncIOBackend.run_sync_in_worker_thread

    def submit_late(pool: Any, work: Any, /, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401
        return submit(pool, _late, work, *arguments, **named)

    async def run_late(_: object, work: Any, arguments: Any, *more: Any, **named: Any) -> Any:  # noqa: ANN401
        return await run_sync(partial(_late, work), arguments, *more, **named)

    ThreadPoolExecutor.submit = submit_late  # type: ignore[method-assign]
    AsyncIOBackend.run_sync_in_worker_thread = classmethod(run_late)  # type: ignore[assignment]


def _delay_files() -> None:
    """Let what a thread writes come later than its file, and its file late in its place."""

    def after(work: Any) -> Any:  # noqa: ANN401
        @wraps(work)
        def late(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401
            done = work(*arguments, **named)
            if threading.current_thread() is not threading.main_thread():
                time.sleep(_delay())
            return done

        return late

    for place, name in ((Path, "open"), (os, "fdopen"), (os, "replace")):
        setattr(place, name, after(getattr(place, name)))


def _delay_arrivals(transport: Any, descriptor: str) -> None:  # noqa: ANN401 - asyncio's own
    read = transport._read_ready

    def read_late(self: Any) -> None:  # noqa: ANN401
        if self._closing or self._paused or not (delay := _delay()):
            read(self)
            return
        place = getattr(self, descriptor)
        self._loop._remove_reader(place)
        self._loop.call_later(delay, again, self, place)

    def again(self: Any, place: int) -> None:  # noqa: ANN401
        if not (self._closing or self._paused or self._loop.is_closed()):
            self._loop._add_reader(place, self._read_ready)

    transport._read_ready = read_late


_delay_threads()
_delay_files()
_delay_arrivals(asyncio.selector_events._SelectorSocketTransport, "_sock_fd")  # type: ignore[attr-defined]
_delay_arrivals(asyncio.unix_events._UnixReadPipeTransport, "_fileno")  # type: ignore[attr-defined]
