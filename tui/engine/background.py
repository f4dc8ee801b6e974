"""What goes on beside the rest: tasks of one owner, work in threads, and slow imports."""

import asyncio
import gc
import importlib
import logging
import queue
import sys
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final, TypeVar

CLOSE_PATIENCE: Final = 5.0
"""Seconds that the last jobs of a worker get, unless it is told otherwise."""

MAX_JOBS: Final = 1_000
"""Most jobs queued for an `OrderedWorker`; further ones are rejected."""

Result = TypeVar("Result")

_IMPORTING: Final = threading.Lock()

_log: Final = logging.getLogger(__name__)


def in_daemon_thread(function: Callable[[], Result]) -> asyncio.Future[Result]:
    """Run a blocking function. If cancelled, the thread keeps running until it returns."""
    return asyncio.wrap_future(_start(function))


def within(seconds: float, function: Callable[[], Result]) -> Result:
    """Run a function that may hang, and block until it ends or the timeout expires.

    Raises:
        TimeoutError: If it has not ended by then; its thread keeps running.
    """
    return _start(function).result(seconds)


async def wait_within(event: asyncio.Event, seconds: float | None) -> bool:
    """Wait until an event is set, but at most `seconds`; return whether it is."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()


async def run_command(*words: str) -> str:
    """Run a command of gemdeck's as a process of its own, and return what it printed.

    Cancelling it ends the process.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "tui", *words),  # -P: nothing of the folder is imported
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        output, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.terminate()
    return (output or errors).decode(errors="replace").strip()


def import_alone(module: str, load: Callable[[str], object] = importlib.import_module) -> None:
    """Import what takes long, one at a time: two threads could see shared modules half loaded.

    What is imported lives as long as the process, so no garbage is looked for among it. `load`
    does it in a way of its own.
    """
    with _IMPORTING:
        if module not in sys.modules:
            gc.disable()
            try:
                load(module)
            finally:
                gc.freeze()
                gc.enable()


class OrderedWorker:
    """Runs jobs in order in its own thread, which starts with the first job.

    Args:
        on_error: Called when a job fails, in the worker's thread, or is rejected.
    """

    def __init__(self, on_error: Callable[[Exception], None] = lambda _: None) -> None:
        self._on_error = on_error
        self._jobs: queue.Queue[tuple[Callable[[], Any], Future[Any]] | None]
        self._jobs = queue.Queue(MAX_JOBS)
        self._thread: threading.Thread | None = None

    def submit(self, job: Callable[[], Result]) -> Future[Result]:
        """Queue a job; the returned future gets its result. Until it runs it can be cancelled."""
        done: Future[Result] = Future()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="ordered worker", daemon=True)
            self._thread.start()
        try:
            self._jobs.put_nowait((job, done))
        except queue.Full as error:
            _log.warning("a job was rejected: %s are already queued", MAX_JOBS)
            done.set_exception(error)
            self._on_error(error)
        return done

    def close(self, patience: float = CLOSE_PATIENCE) -> None:
        """Wait until all jobs are done, but at most `patience` seconds."""
        if self._thread is None:
            return
        try:
            self._jobs.put(None, timeout=patience)
        except queue.Full:
            return
        self._thread.join(patience)

    def _run(self) -> None:
        while (next_job := self._jobs.get()) is not None:
            job, done = next_job
            if not done.set_running_or_notify_cancel():
                continue
            try:
                result = job()
            except Exception as error:  # noqa: BLE001 - it must not block the next jobs
                _log.exception("a job failed")
                self._on_error(error)
                done.set_exception(error)
            else:
                done.set_result(result)


def _start(function: Callable[[], Result]) -> Future[Result]:
    """Run a function in a daemon thread."""
    future: Future[Result] = Future()
    future.set_running_or_notify_cancel()

    def work() -> None:
        try:
            result = function()
        except BaseException as error:  # noqa: BLE001 - the waiting caller must get it
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=work, name="background call", daemon=True).start()
    return future


class TaskSet:
    """Holds tasks until they end, and logs those that fail.

    Args:
        failure: Log message for a failed task.
        on_error: Called with the exception of a failed task.
    """

    def __init__(
        self, failure: str, on_error: Callable[[BaseException], None] | None = None
    ) -> None:
        self._failure, self._on_error = failure, on_error
        self._tasks: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def start(
        self, work: Coroutine[Any, Any, Result], name: str | None = None
    ) -> asyncio.Task[Result]:
        """Run a coroutine as a task."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def cancel(self) -> None:
        """Cancel all tasks without waiting for them."""
        for task in self._tasks:
            task.cancel()

    async def wait(self, patience: float | None = None) -> None:
        """Wait until all tasks have ended, but at most `patience` seconds."""
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=patience)

    async def aclose(self) -> None:
        """Cancel all tasks and wait until they have ended."""
        self.cancel()
        await self.wait()

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        _log.error(self._failure, exc_info=error)
        if self._on_error is not None:
            self._on_error(error)
