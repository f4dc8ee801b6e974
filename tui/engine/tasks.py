"""Background tasks of one owner."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

_log: Final = logging.getLogger(__name__)


class TaskSet:
    """Holds tasks until they end, and logs those that fail.

    Args:
        failure: Log message for a failed task.
        on_error: Called with the exception of a failed task.
    """

    def __init__(
        self, failure: str, on_error: Callable[[BaseException], None] | None = None
    ) -> None:
        self._failure = failure
        self._on_error = on_error
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[Any, Any, None], name: str | None = None) -> asyncio.Task[None]:
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

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        _log.error(self._failure, exc_info=error)
        if self._on_error is not None:
            self._on_error(error)
