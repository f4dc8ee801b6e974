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
from typing import TYPE_CHECKING, Any, Final

from tui.engine.background import TaskSet
from tui.engine.bus import Publish
from tui.engine.mcp.catalog.offered_tool import (
    CallStoppedError,
    JsonObject,
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
from tui.model.events import Notice, NoticeRaised, TaskKept, ToolCallChanged
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

RETURN_PATIENCE: Final = 300.0
"""Seconds that a task waits for the next connection of its server."""

CANCEL_PATIENCE: Final = 2.0
"""Seconds that the end of gemdeck waits for requests that cancel tasks."""

TICK: Final = 1.0
"""Seconds between two reports on a task that is waited for."""


@dataclass(eq=False)
class RemoteTask:
    """A call that its server runs as a task.

    Attributes:
        tool: The tool.
        state: What the server said of it last.
        cause: The call that became the task.
        key: Its id here.
        began: When, in seconds of `time.monotonic`.
        leaving: Done once nobody waits for it any longer.
        following: Follows it; cancelled with the task, or when nobody follows it any longer.
    """

    tool: OfferedTool
    state: TaskState
    cause: Cause
    key: str = field(default_factory=lambda: secrets.token_hex(4))
    began: float = field(default_factory=time.monotonic)
    leaving: "asyncio.Future[None]" = field(init=False)
    following: "asyncio.Task[ToolResult]" = field(init=False)

    @property
    def place(self) -> str:
        """What stands in the row of its call once nobody waits for it."""
        return f"Runs on as task {self.key}."

    @property
    def left(self) -> float:
        """The seconds until its time to live is over."""
        return self.began + self.state.ttl - time.monotonic()

    def progress(self) -> TaskProgress:
        """Return how it stands, for the row of its call."""
        elapsed, state = time.monotonic() - self.began, self.state
        return TaskProgress(elapsed, None, state.message, state.status, max(0.0, self.left))

    def take(self, state: TaskState, live: "Connection") -> None:
        """Take how it stands now; what is new about that goes into the server's log."""
        if state is self.state or state.words != self.state.words:  # the first over a connection
            live.remark(f"task {self.key} of {self.tool.view.name}: {state.words}")
        self.state = state


class RemoteTasks:
    """Follows the tasks of all servers. Lives on one event loop.

    Args:
        reach: Returns the connection of a tool's very server, or None if it does not come within
            so many seconds.
        publish: Takes `ToolCallChanged` and a notice when a task ends that its turn goes on
            without.
    """

    def __init__(
        self,
        reach: Callable[[OfferedTool, float], Awaitable["Connection | None"]],
        publish: Publish,
    ) -> None:
        self._reach = reach
        self._publish = publish
        self._tasks: dict[str, RemoteTask] = {}
        self._work = TaskSet("a task could not be cancelled")

    async def aclose(self) -> None:
        """Follow nothing any longer; what was left goes on on its server."""
        self._drop([*self._tasks.values()])
        await self._work.wait(CANCEL_PATIENCE)
        await self._work.aclose()

    def let_go(self, conversation: ConversationId) -> None:
        """Follow the tasks of a conversation no longer; they go on on their servers."""
        self._drop([t for t in self._tasks.values() if t.cause.conversation == conversation])

    def _drop(self, tasks: Iterable[RemoteTask]) -> None:
        for task in tasks:
            del self._tasks[task.key]
            task.following.cancel()

    def left_in(self, conversation: ConversationId) -> Iterator[RemoteTask]:
        """Yield the tasks that a conversation goes on without."""
        for task in self._tasks.values():
            if task.leaving.done() and task.cause.conversation == conversation:
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
        task = RemoteTask(tool, state, cause_now() or Cause(BY_HAND, EntryId("")))
        if sum(not known.following.done() for known in self._tasks.values()) >= MAX_TASKS:
            self._work.start(self._cancel(task))
            raise ToolCallError(f"{MAX_TASKS} tasks are running. This one was told to stop.")
        self._begin(task)
        waits: set[asyncio.Future[Any]] = {task.leaving, task.following}
        try:
            while not any(wait.done() for wait in waits):
                on_progress(task.progress())
                await asyncio.wait(waits, timeout=TICK, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._stop(task)
            raise
        if task.following.done():
            return await self.result(task)
        note = (
            f"The user goes on without this call: it runs on as task {task.key}, with no result "
            f'yet. Call check_task(id="{task.key}") when its result is needed.'
        )
        return ToolResult((TextPart(note),), task.place, runs_on=True)

    def restore(self, kept: Iterable[TaskKept], conversation: ConversationId) -> None:
        """Follow the tasks of an earlier run again, which a conversation goes on without."""
        for one in kept:
            if one.key in self._tasks:
                continue
            name, gone = ToolId(sanitize_line(one.tool)), time.time() - one.began
            task = RemoteTask(
                OfferedTool(
                    *(name, one.server, one.tool, ToolView(name, name), {}, {}, ""),
                    fingerprint=one.fingerprint,
                ),
                TaskState(one.task, TaskStatus.WORKING, ttl=min(one.ttl, MAX_TTL)),
                Cause(conversation, one.call),
                one.key,
                time.monotonic() - gone,
            )
            self._begin(task)
            task.leaving.set_result(None)
            row = ToolCallChanged(one.call, ToolCallStatus.RUNS_ON, result=task.place)
            self._publish(replace(row, conversation=conversation))

    def _keep(self, task: RemoteTask, task_id: str) -> None:
        """Let the session know a task, or that it has ended."""
        began = time.time() - (time.monotonic() - task.began)
        to, tool, ttl = task.cause, task.tool, task.state.ttl
        kept = TaskKept(
            *(task.key, to.call, tool.server, tool.fingerprint, tool.name, task_id, began, ttl)
        )
        self._publish(replace(kept, conversation=to.conversation))

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
            self._keep(task, "")
            self._work.start(self._cancel(task))

    def _of(self, conversation: ConversationId, call: EntryId) -> list[RemoteTask]:
        return [
            task
            for task in self._tasks.values()
            if (task.cause.conversation, task.cause.call) == (conversation, call)
        ]

    def _begin(self, task: RemoteTask) -> None:
        """Follow a task; of those that have ended only the newest stay."""
        over = [key for key, known in self._tasks.items() if known.following.done()]
        for key in over[:-MAX_KEPT]:
            del self._tasks[key]
        self._tasks[task.key] = task
        loop = asyncio.get_running_loop()
        task.leaving = loop.create_future()
        task.following = loop.create_task(self._follow(task), name=f"task of {task.tool.server}")
        task.following.add_done_callback(lambda _: self._ended(task))
        self._keep(task, task.state.id)

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
                self._keep(task, "")
                if error:
                    self._work.start(self._cancel(task))
        if task.key not in self._tasks:
            return  # its conversation is gone
        if not task.leaving.done():
            del self._tasks[task.key]  # whoever waits for it has its result
            return
        said = f"Task {task.key} of {task.tool.view.name} ({task.tool.server}) has ended: {status}."
        self._publish(NoticeRaised(Notice(Severity.INFO, said)))
        seconds, to = time.monotonic() - task.began, task.cause
        ended = ToolCallChanged(to.call, status, seconds, result.display, pictures=result.pictures)
        self._publish(replace(ended, conversation=to.conversation))

    async def _follow(self, task: RemoteTask) -> ToolResult:
        """Ask about a task until it has ended, over one connection after the other."""
        failed = 0
        answered = set[str]()
        while True:
            if (live := await self._reach(task.tool, RETURN_PATIENCE)) is None:
                words = f"{task.tool.server} is gone; whether its task goes on is unknown."
                raise TaskUnreachableError(words)
            before = task.state
            task.take(before, live)
            try:
                with live.tasks.following(before.id) as told:
                    return await _follow_over(live, task, answered, told)
            except TaskUnreachableError:
                failed = failed + 1 if task.state is before else 1
                if failed > MAX_FAILED:
                    raise
            await asyncio.sleep(task.state.poll)

    async def _cancel(self, task: RemoteTask) -> None:
        """Tell the server to stop a task, unless it has ended there."""
        if task.state.status.is_over or not (live := await self._reach(task.tool, RETURN_PATIENCE)):
            return
        with suppress(ToolCallError):
            await live.tasks.cancel(task.state.id)


async def _follow_over(
    live: "Connection", task: RemoteTask, answered: set[str], told: asyncio.Event
) -> ToolResult:
    """Ask about a task over one connection until it has ended.

    What it needs is got meanwhile, so that a question goes away with the task.

    Args:
        live: The connection.
        task: The task, which is brought up to date.
        answered: The keys of what the server asked for and got.
        told: Set when the server announces a change.

    Raises:
        TaskUnreachableError: If the server does not answer.
        ToolCallError: If no result comes.
    """
    getting: asyncio.Task[JsonObject | None] | None = None
    try:
        while True:
            state = task.state
            if getting is not None and getting.done():
                raw, getting = getting.result(), None
                if raw is not None:
                    return await live.read_result(task.tool.name, raw)
            if state.status.is_over:
                raw = await live.tasks.outcome(state)
                return await live.read_result(task.tool.name, raw)
            needs_more = not state.inputs or not state.inputs.keys() <= answered
            if getting is None and state.status is TaskStatus.INPUT_REQUIRED and needs_more:
                getting = asyncio.create_task(live.tasks.attend(state, answered))
                getting.add_done_callback(lambda _: told.set())
            await live.tasks.pause(state, told)
            task.take(await live.tasks.get(state.id), live)
            if task.left < 0 and not task.state.status.is_over:
                raise ToolCallError(f"Its time to live of {state.ttl:g} s is over: it is stopped.")
    finally:
        if getting is not None:
            getting.cancel()
            await asyncio.wait({getting})
