"""Threads that may be left behind.

`asyncio.to_thread` uses threads that the end of the process waits for. What may hang for longer
than a user would wait, such as a keyring that asks for its password, runs here instead.
"""

import asyncio
import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, TypeVar

MAX_JOBS: Final = 1_000
"""Jobs that may wait for an `OrderedWorker`; further ones are not done."""

Result = TypeVar("Result")

_log: Final = logging.getLogger(__name__)


async def in_daemon_thread(function: Callable[[], Result]) -> Result:
    """Run a function that blocks. Cancelling this leaves the thread behind, to end by itself."""
    return await asyncio.wrap_future(_start(function))


def within(seconds: float, function: Callable[[], Result]) -> Result:
    """Run a function that may hang, and give it up after some time. Blocks for as long.

    Raises:
        TimeoutError: If it has not ended by then; its thread is left behind.
    """
    return _start(function).result(seconds)


class OrderedWorker:
    """Does jobs one after the other in a thread of its own, which begins with the first job."""

    def __init__(self) -> None:
        self._jobs: queue.Queue[Callable[[], None] | None] = queue.Queue(MAX_JOBS)
        self._thread: threading.Thread | None = None

    def submit(self, job: Callable[[], None]) -> None:
        """Do a job after all those before it; returns at once."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="ordered worker", daemon=True)
            self._thread.start()
        try:
            self._jobs.put_nowait(job)
        except queue.Full:
            _log.warning("a job was left out, because %s wait already", MAX_JOBS)

    def close(self, patience: float) -> None:
        """Wait until all jobs are done, at most `patience` seconds."""
        if self._thread is None:
            return
        try:
            self._jobs.put(None, timeout=patience)
        except queue.Full:
            return
        self._thread.join(patience)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                job()
            except Exception:  # noqa: BLE001 - one that fails must not hold up the next ones
                _log.exception("a job failed")


def _start(function: Callable[[], Result]) -> Future[Result]:
    """Run a function in a daemon thread."""
    future: Future[Result] = Future()
    future.set_running_or_notify_cancel()

    def work() -> None:
        try:
            result = function()
        except BaseException as error:  # noqa: BLE001 - whatever it is, who waits has to hear it
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=work, name="left to itself", daemon=True).start()
    return future
