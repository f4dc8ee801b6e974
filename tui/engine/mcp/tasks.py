"""Calls that their servers run as tasks: followed to their end, whatever becomes of connections.

A task outlives its connection, and the turn if the user goes on without it. This module does not
import the MCP SDK.
"""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tui.engine.background import TaskSet
from tui.engine.bus import Publish
from tui.engine.mcp.catalog.offered_tool import (
    CallStoppedError,
    OfferedTool,
    TextPart,
    ToolCallError,
    ToolResult,
)
from tui.engine.mcp.session.task_state import MAX_TTL, TaskState, TaskUnreachableError
from tui.engine.mcp.wire.tap import Cause, cause_now
from tui.model.catalog import ToolId, ToolView
from tui.model.chat import (
    ConversationId,
    EntryId,
    Progress,
    Severity,
    TaskProgress,
    TaskStatus,
    ToolCallStatus,
)
from tui.model.events import Notice, NoticeRaised, TaskKept, ToolCallChanged, ToolCallProgressed
from tui.model.runs import BY_HAND
from tui.text import sanitize, sanitize_line

if TYPE_CHECKING:  # it imports the MCP SDK
    from tui.engine.mcp.session.connection import Connection

MAX_TASKS: Final = 32
"""Most tasks that are followed at once; what else a server begins is cancelled."""

MAX_KEPT: Final = 64
"""Results of tasks that a conversation went on without that are kept; the oldest go first."""

MAX_FAILED: Final = 5
"""Answers about a task in a row that may fail."""

MORE_PATIENCE: Final = 0.5
"""Seconds that each failure in a row makes the wait for the next answer longer, at the least."""

RETURN_PATIENCE: Final = 300.0
"""Seconds that a task waits for the next connection of its server."""

CANCEL_PATIENCE: Final = 2.0
"""Seconds that the end of gemdeck waits for requests that cancel tasks."""

TICK: Final = 1.0
"""Seconds between two reports on a task."""


@dataclass(eq=False)
class RemoteTask:
    """A call that its server runs as a task.

    Attributes:
        tool: The tool.
        state: What the server said of it last.
        kept: How a session keeps it.
        leaving: Done once nobody waits for it any longer.
        following: Follows it; cancelled with the task, or when nobody follows it any longer.
        reported: The last progress report of its call, or None.
    """

    tool: OfferedTool
    state: TaskState
    kept: TaskKept
    leaving: "asyncio.Future[None]" = field(init=False)
    following: "asyncio.Task[ToolResult]" = field(init=False)
    reported: Progress | None = None

    @property
    def place(self) -> str:
        """What stands in the row of its call once nobody waits for it."""
        return f"Continues in the background as task {self.kept.key}."

    @property
    def elapsed(self) -> float:
        """The seconds since it began."""
        return time.time() - self.kept.began

    def progress(self) -> TaskProgress:
        """Return how it stands, for the row of its call."""
        state, left = self.state, max(0.0, self.state.ttl - self.elapsed)
        reported = self.reported.words if self.reported is not None else ""
        said = " · ".join(filter(None, (state.message, reported)))
        return TaskProgress(self.elapsed, None, said, state.status, left)

    def say(self, live: "Connection") -> None:
        """Write how it stands into the server's log."""
        live.remark(f"task {self.kept.key} of {self.tool.view.name}: {self.state.words}")

    def take(self, live: "Connection", state: TaskState) -> None:
        """Take how it stands now.

        Raises:
            ToolCallError: If its time to live is over.
        """
        before, self.state = self.state, state
        if state.status is not before.status:
            self.say(live)
        if self.elapsed > state.ttl and not state.status.is_over:
            raise ToolCallError(f"It exceeded its time to live of {state.ttl:g} s and was stopped.")


class RemoteTasks:
    """Follows the tasks of all servers. Lives on one event loop.

    Args:
        reach: Returns the connection of a tool's very server, or None if it does not come within
            so many seconds.
        publish: Takes what becomes of tasks that their turns go on without, and a notice when one
            ends.
    """

    def __init__(
        self,
        reach: Callable[[OfferedTool, float], Awaitable["Connection | None"]],
        publish: Publish,
    ) -> None:
        self._reach, self._publish = reach, publish
        self._tasks: dict[str, RemoteTask] = {}
        self._work = TaskSet("a task could not be reported or cancelled")

    async def aclose(self) -> None:
        """Follow nothing any longer; what was left goes on on its server."""
        self._drop([*self._tasks.values()])
        await self._work.wait(CANCEL_PATIENCE)
        await self._work.aclose()

    def let_go(self, conversation: ConversationId) -> None:
        """Follow the tasks of a conversation no longer; they go on on their servers."""
        self._drop([t for t in self._tasks.values() if t.kept.conversation == conversation])

    def _drop(self, tasks: Iterable[RemoteTask]) -> None:
        for task in tasks:
            del self._tasks[task.kept.key]
            task.following.cancel()

    def left_in(self, conversation: ConversationId) -> Iterator[RemoteTask]:
        """Yield the tasks that a conversation goes on without."""
        for task in self._tasks.values():
            if task.leaving.done() and task.kept.conversation == conversation:
                yield task

    async def attend(
        self, tool: OfferedTool, state: TaskState, on_progress: Callable[[Progress], None]
    ) -> ToolResult:
        """Wait for the end of a task that a server has begun, unless the user goes on without it.

        Cancelling the caller cancels the task on its server.

        Raises:
            ToolCallError: If no result comes.
            CallStoppedError: If the user cancelled it.
        """
        to, key = cause_now() or Cause(BY_HAND, EntryId("")), secrets.token_hex(4)
        named = (key, to.call, tool.server, tool.fingerprint, tool.name, state.id)
        kept = TaskKept(*named, time.time(), state.ttl, conversation=to.conversation)
        task = RemoteTask(tool, state, kept)
        if sum(not known.following.done() for known in self._tasks.values()) >= MAX_TASKS:
            self._work.start(self._cancel(task))
            raise ToolCallError(f"{MAX_TASKS} tasks are running, so this one was cancelled.")
        self._begin(task, on_progress)
        ends: set[asyncio.Future[Any]] = {task.leaving, task.following}
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._stop(task)
            raise
        if task.following.done():
            return await self.result(task)
        note = (
            f"The user continued without this call: it runs on as task {key}, with no result "
            f'yet. Call check_task(id="{key}") when its result is needed.'
        )
        return ToolResult((TextPart(note),), task.place, runs_on=True)

    def restore(self, kept: Iterable[TaskKept], conversation: ConversationId) -> None:
        """Follow the tasks of an earlier run again, which a conversation goes on without."""
        for one in kept:
            if one.key in self._tasks:
                continue
            name = ToolId(sanitize_line(one.tool))
            named = name, one.server, one.tool, ToolView(name, name)
            task = RemoteTask(
                OfferedTool(*named, {}, {}, "", fingerprint=one.fingerprint),
                TaskState(one.task, TaskStatus.WORKING, ttl=min(one.ttl, MAX_TTL)),
                replace(one, conversation=conversation),
            )
            self._begin(task)
            task.leaving.set_result(None)
            on, place = ToolCallStatus.RUNS_ON, task.place
            self._publish(ToolCallChanged(one.call, on, result=place, conversation=conversation))

    async def result(self, task: RemoteTask, patience: float | None = None) -> ToolResult:
        """Return the result of a task, once it is there.

        Raises:
            ToolCallError: If none comes.
            CallStoppedError: If the user cancelled it.
            TimeoutError: If it is not there in time.
        """
        done, _ = await asyncio.wait({task.following}, timeout=patience)
        if not done:
            raise TimeoutError
        if task.following.cancelled():
            raise CallStoppedError("The user cancelled this task.")
        return task.following.result()

    def leave(self, conversation: ConversationId, call: EntryId) -> None:
        """Let the turn go on without the task of a call, if it waits for one."""
        for task in self._of(conversation, call):
            if not task.leaving.done():
                task.leaving.set_result(None)

    def cancel(self, conversation: ConversationId, call: EntryId) -> None:
        """Cancel the task of a call, on its server too."""
        for task in self._of(conversation, call):
            self._stop(task)

    def _stop(self, task: RemoteTask) -> None:
        """Cancel a task here and on its server, unless it has ended."""
        if task.following.cancel():
            self._publish(replace(task.kept, task=""))
            self._work.start(self._cancel(task))

    def _of(self, conversation: ConversationId, call: EntryId) -> list[RemoteTask]:
        of = conversation, call
        return [t for t in self._tasks.values() if (t.kept.conversation, t.kept.call) == of]

    def _begin(
        self, task: RemoteTask, on_progress: Callable[[Progress], None] = lambda _: None
    ) -> None:
        """Follow a task; of those that have ended only the newest stay."""
        over = [key for key, known in self._tasks.items() if known.following.done()]
        for key in over[:-MAX_KEPT]:
            del self._tasks[key]
        self._tasks[task.kept.key] = task
        loop = asyncio.get_running_loop()
        task.leaving = loop.create_future()
        task.following = loop.create_task(self._follow(task), name=f"task of {task.tool.server}")
        task.following.add_done_callback(lambda _: self._ended(task))
        self._work.start(self._report(task, on_progress))
        self._publish(task.kept)

    async def _report(self, task: RemoteTask, on_progress: Callable[[Progress], None]) -> None:
        """Tell now and then how a task stands: who waits for it, or else its conversation."""
        to = task.kept
        while not task.following.done():
            if task.leaving.done():
                told = ToolCallProgressed(to.call, task.progress(), conversation=to.conversation)
                self._publish(told)
            else:
                on_progress(task.progress())
            await asyncio.wait({task.following}, timeout=TICK)

    def _ended(self, task: RemoteTask) -> None:
        """Tell the end of a task that was left, in the row of its call and in a notice.

        One that cannot be asked about stays with its session: it may go on.
        """
        result, status = ToolResult((), ""), ToolCallStatus.CANCELLED
        if not task.following.cancelled():
            error = task.following.exception()
            result = ToolResult((), sanitize(str(error))) if error else task.following.result()
            status = ToolCallStatus.ERROR if error or result.is_error else ToolCallStatus.OK
            if not isinstance(error, TaskUnreachableError):
                self._publish(replace(task.kept, task=""))
                if error:
                    self._work.start(self._cancel(task))
        key, to = task.kept.key, task.kept
        if key not in self._tasks:
            return  # its conversation is gone
        if not task.leaving.done():
            del self._tasks[key]  # whoever waits for it has its result
            return
        said = f"Task {key} of {task.tool.view.name} ({task.tool.server}) has ended: {status}."
        self._publish(NoticeRaised(Notice(Severity.INFO, said)))
        told = (task.elapsed, result.display, None, result.pictures)
        self._publish(ToolCallChanged(to.call, status, *told, conversation=to.conversation))

    async def _follow(self, task: RemoteTask) -> ToolResult:
        """Ask about a task until it has ended, over one connection after the other."""
        failed = 0
        answered = set[str | int]()
        if (reporter := task.state.reporter) is not None:  # which lives as long as this runs
            reporter.report = partial(setattr, task, "reported")
        while True:
            if (live := await self._reach(task.tool, RETURN_PATIENCE)) is None:
                words = f"{task.tool.server} is not connected; its task may still be running."
                raise TaskUnreachableError(words)
            before = task.state
            task.say(live)
            try:
                with live.calling():
                    raw = await live.tasks.follow(before, answered, partial(task.take, live))
                return await live.read_result(task.tool.name, raw)
            except TaskUnreachableError:
                failed = failed + 1 if task.state is before else 1
                if failed > MAX_FAILED:
                    raise
            await asyncio.sleep(max(task.state.poll, failed * MORE_PATIENCE))

    async def _cancel(self, task: RemoteTask) -> None:
        """Tell the server to stop a task, unless it has ended there."""
        if task.state.status.is_over or not (live := await self._reach(task.tool, RETURN_PATIENCE)):
            return
        with suppress(ToolCallError):
            await live.tasks.cancel(task.state.id)
