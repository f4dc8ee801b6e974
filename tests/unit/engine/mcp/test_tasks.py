"""Calls that servers run as tasks, in both eras, with real servers."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.inbound import encode_header_value

from tests.support.waiting import eventually
from tests.unit.engine.mcp.asking import Stage, staged
from tests.unit.engine.mcp.network.support import answering, stateless
from tests.unit.engine.mcp.support import HASTY, call, find_tool, permit, refuses, script
from tui.engine.chats.backends.backend import Asked
from tui.engine.chats.own_tools import KeptResults, ProfiledServers, task_tool
from tui.engine.mcp import tasks as limits
from tui.engine.mcp.catalog.offered_tool import (
    CallStoppedError,
    TextPart,
    ToolCallError,
    ToolResult,
)
from tui.engine.mcp.session import task_state
from tui.engine.mcp.wire.tap import caused_by
from tui.model.chat import MAIN, ConversationId, EntryId, Progress, TaskProgress, TaskStatus
from tui.model.events import NoticeRaised, TaskKept, ToolCallChanged
from tui.model.models import ModelOptions
from tui.model.requests import FormRequest, ReplyAction
from tui.model.servers import ServerId, StartMode
from tui.model.servers import ServerStatus as S
from tui.model.settings import EVERYTHING, Profile

ERAS = ("old", "new")
CALL = EntryId("e1")
SERVER = ServerId("tasking")
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Look often."""
    monkeypatch.setattr(task_state, "LEAST_POLL", 0.02)
    monkeypatch.setattr(limits, "TICK", 0.02)
    return iter(())


def task_requests() -> Any:  # noqa: ANN401
    from tui.engine.mcp.session import task_requests as module  # noqa: PLC0415 - it imports the SDK

    return module


class Tasking(Stage):
    """The server with tasks in an era, and what its folder tells of it."""

    def __init__(self, era: str, folder: Path) -> None:
        super().__init__()
        self.kind, self.folder = era, folder

    def said(self, prefix: str = "t") -> list[str]:
        """Give the methods that the server got."""
        lines = (self.folder / "tasks.said").read_text("utf-8").splitlines()
        return [m for line in lines if (m := json.loads(line).get("method", "")).startswith(prefix)]

    def stand(self) -> list[str]:
        """Give how the server's tasks stand."""
        tasks = json.loads((self.folder / "tasks").read_text())
        return [task["status"] for task in tasks.values()]

    def make(self, tool: str, seen: list[Progress] | None = None) -> "asyncio.Task[ToolResult]":
        """Make a call of the chat."""
        heard = seen if seen is not None else []
        found = find_tool(self.manager, tool)
        assert found is not None
        with caused_by(MAIN, CALL):
            return asyncio.create_task(self.manager.call_tool(permit(found), heard.append))

    async def hold(self, tool: str = "hold") -> "asyncio.Task[ToolResult]":
        """Make a call, and wait until the server was asked about its task."""
        calls, call = self.said().count("tools/call") + 1, self.make(tool)

        def is_asked() -> bool:
            methods = self.said()
            began = [at for at, method in enumerate(methods) if method == "tools/call"]
            return len(began) == calls and "tasks/get" in methods[began[-1] :]

        await eventually(is_asked)
        return call

    async def fill_in(self, who: str) -> None:
        """Answer the form of a task."""
        [field] = (await self.asked(FormRequest)).fields
        await self.answer(FormRequest, content={field.key: who})


@asynccontextmanager
async def tasking(era: str, folder: Path, sleep_after: float = 0) -> AsyncIterator[Tasking]:
    """Run the server."""
    stage = Tasking(era, folder)
    stage.context.sleep_after = sleep_after
    start = StartMode.LAZY if sleep_after else StartMode.EAGER
    place = str(folder / "tasks")
    served = script("tasking", era, place, timeout=5, review_results=True, start=start)
    async with staged(served, stage, retry=HASTY):
        yield stage


@pytest.fixture(params=ERAS)
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Tasking]:
    """Run the server in each era."""
    async with tasking(request.param, tmp_path) as stage:
        yield stage


async def test_a_task_is_waited_for_and_says_how_it_stands(stage: Tasking) -> None:
    seen: list[Progress] = []
    result = await stage.make("steps", seen)
    assert (result.display, result.is_error, result.runs_on) == ("steps is done", False, False)
    assert stage.said() == [
        *("tools/list", "tools/call", "tasks/get", "tasks/get", "tasks/get"),
        *(["tasks/result"] if stage.kind == "old" else []),
    ]
    args = json.loads((stage.folder / "tasks").read_text())["task 1"]["args"]
    assert args.get("task") == ({"ttl": task_requests().ASKED_TTL} if stage.kind == "old" else None)
    reports = [one for one in seen if isinstance(one, TaskProgress)]
    stood = [one.status for one in reports]
    working = stood.count(TaskStatus.WORKING)
    assert working > 0
    assert {*stood[working:]} <= {TaskStatus.COMPLETED}, "only once it has ended"
    said = [one.message.partition(" · ") for one in reports]
    assert {"begun", "look 1"} <= {words for words, _, _ in said}
    assert "1 of 3" in {told for _, _, told in said}, "the call's own progress goes on"
    assert 30 < reports[0].left <= 60
    await eventually(lambda: "completed: done" in "".join(stage.watcher.log("tasking")[-1:]))
    log = stage.watcher.log("tasking")
    said_of = [line.partition(": ")[2] for line in log if line.startswith("task ")]
    assert said_of == ["working: begun", "completed: done"]
    frames = stage.manager.wire.frames()
    assert {one.call for one in frames if one.method.startswith("tasks/")} == {CALL}
    assert {one.attempt for one in frames} == {1}
    assert {one.faults for one in frames} == {()}
    assert (await stage.make("soon")).display == "soon is done"


async def test_input_of_a_task_is_asked_for_as_ever(stage: Tasking) -> None:
    running = stage.make("ask")
    request = await stage.asked(FormRequest)
    assert (request.server, request.message) == ("tasking", "Deploy as whom?")
    [field] = request.fields
    await stage.answer(FormRequest, content={field.key: "ada"})
    assert (await running).display == "deployed as {'who': 'ada'}"
    declined = stage.make("ask")
    await stage.answer(FormRequest, ReplyAction.DECLINE)
    assert "decline" in (await declined).display
    assert stage.raised() == 2


async def test_E47_no_task_asks_for_input_without_end(stage: Tasking) -> None:
    running = stage.make("pester")
    for _ in range(task_requests().MAX_INPUTS):
        await stage.fill_in("ada")
    with pytest.raises(ToolCallError, match="requested input too often in one task"):
        await running
    await eventually(lambda: "tasks/cancel" in stage.said())
    assert stage.raised() == task_requests().MAX_INPUTS
    assert stage.pending() == []


async def test_E47_no_call_asks_for_input_without_end_and_the_next_may(tmp_path: Path) -> None:
    async with tasking("old", tmp_path) as stage:
        for _ in range(2):
            running = stage.make("badger")
            for _ in range(task_requests().MAX_INPUTS):
                await stage.answer(FormRequest, ReplyAction.DECLINE)
            assert (await running).display == "Too many requests"
        assert stage.raised() == 2 * task_requests().MAX_INPUTS
        left = stage.make("pester")
        await stage.asked(FormRequest)
        stage.manager.tasks.leave(MAIN, CALL)
        await left
        for _ in range(task_requests().MAX_INPUTS - 1):
            await stage.answer(FormRequest, ReplyAction.DECLINE)
            assert (await stage.make("soon")).display == "soon is done"
        await stage.answer(FormRequest, ReplyAction.DECLINE)
        [task] = stage.manager.tasks.left_in(MAIN)
        with pytest.raises(ToolCallError, match="too often"):
            await stage.manager.tasks.result(task)
        assert stage.raised() == 3 * task_requests().MAX_INPUTS, "other calls change nothing"


async def test_a_task_that_needs_a_model_is_told_once_that_there_is_none(stage: Tasking) -> None:
    stage.model.model = ""
    if stage.kind == "new":
        words = "The task's request cannot be answered: There is no model."
        await refuses(words, stage.manager, "think")
    else:
        assert (await stage.make("think")).display == "There is no model."
    assert stage.said().count("tools/call") == 1
    assert stage.said().count("tasks/get") <= 4


async def test_who_stops_the_call_stops_the_task_and_its_question(stage: Tasking) -> None:
    running = stage.make("ask")
    await stage.asked(FormRequest)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await eventually(lambda: "tasks/cancel" in stage.said())
    await eventually(lambda: not stage.pending())
    held = await stage.hold()
    stage.manager.tasks.cancel(MAIN, CALL)
    with pytest.raises(CallStoppedError):
        await held
    await eventually(lambda: stage.said().count("tasks/cancel") == 2)
    await eventually(lambda: stage.stand() == ["cancelled", "cancelled"])


async def test_a_task_ends_with_its_time_to_live(stage: Tasking) -> None:
    await refuses("time to live of 0.7 s and was stopped", stage.manager, "brief")
    await eventually(lambda: stage.said()[-1] == "tasks/cancel")


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("other", "sent the state of another task"),
        ("odd", "a task with an unknown status"),
        ("nameless", "whose id cannot be used"),
        ("fail", "no disk"),
        ("quit", "The server cancelled the task. changed my mind"),
    ],
)
async def test_a_task_without_sense_is_an_error(stage: Tasking, tool: str, words: str) -> None:
    await refuses(words, stage.manager, tool)


async def test_no_flood_or_length_hurts(stage: Tasking, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Progress] = []
    assert (await stage.make("loud", seen)).display == "loud is done"
    assert len(seen[0].message) == task_state.MAX_STATUS
    assert "\x1b" not in seen[0].message
    assert isinstance(seen[0], TaskProgress)
    assert task_state.MAX_TTL - 60 < seen[0].left <= task_state.MAX_TTL
    assert (await stage.make("flood")).display == "flood is done"
    assert stage.said().count("tasks/get") <= 12
    monkeypatch.setattr(limits, "MAX_TASKS", 1)
    held = await stage.hold()
    await refuses("1 tasks are running", stage.manager, "hold")
    held.cancel()
    await eventually(lambda: stage.said().count("tasks/cancel") == 2)


async def test_a_task_survives_the_end_of_its_server_if_it_is_known(stage: Tasking) -> None:
    assert (await stage.make("end")).display == "end is done"
    assert stage.watcher.statuses("tasking").count(S.READY) == 2
    asking = stage.make("ask")
    await stage.asked(FormRequest)
    stage.manager.restart(SERVER)
    await eventually(lambda: not stage.pending())
    await stage.fill_in("bob")
    assert (await asking).display == "deployed as {'who': 'bob'}"
    stopped = await stage.hold()
    stage.manager.restart(SERVER)
    stage.manager.tasks.cancel(MAIN, CALL)
    with pytest.raises(CallStoppedError):
        await stopped
    await eventually(lambda: stage.stand()[-1] == "cancelled")
    held = await stage.hold()
    (stage.folder / "tasks").unlink()
    stage.manager.restart(SERVER)
    with pytest.raises(ToolCallError, match="unknown task"):
        await held
    stage.manager.stop(SERVER)
    await stage.watcher.until("tasking", S.STOPPING, S.STOPPED)


async def test_a_server_that_takes_its_time_to_end_is_waited_for(tmp_path: Path) -> None:
    async with tasking("new", tmp_path) as stage:
        assert (await stage.make("linger")).display == "linger is done"
        assert stage.watcher.statuses("tasking").count(S.READY) == 2


async def test_a_server_that_is_stopped_ends_the_wait(stage: Tasking) -> None:
    held = await stage.hold()
    stage.manager.stop(SERVER)
    with pytest.raises(ToolCallError, match="tasking is not connected; its task may"):
        await held


async def test_the_turn_goes_on_without_a_task_whose_result_comes_later(stage: Tasking) -> None:
    running = stage.make("ask")
    await stage.asked(FormRequest)
    stage.manager.tasks.leave(MAIN, CALL)
    left = await running
    assert left.runs_on
    [task] = stage.manager.tasks.left_in(MAIN)
    assert f'check_task(id="{task.kept.key}")' in left.parts[0].text  # type: ignore[union-attr]
    asked = Asked()
    servers = ProfiledServers(stage.manager, {"": EVERYTHING, "bare": Profile(servers=())}, asked)
    [tool] = task_tool(servers, MAIN)
    assert tool.bind is not None
    bound = tool.bind({"id": task.kept.key})
    assert (bound.server, bound.source, bound.is_reviewed) == (SERVER, task.tool, True)
    assert not [*task_tool(servers, ConversationId("chat2"))]
    asked.options = ModelOptions(profile="bare")
    assert not [*task_tool(servers, MAIN)]
    with pytest.raises(ToolCallError, match="no such task"):
        tool.bind({"id": task.kept.key})
    kept = KeptResults(10)
    kept.cut(bound, ToolResult((TextPart("long" * 100),), ""))
    [reading] = kept.declared()
    assert reading.bind is not None
    [key] = kept._kept
    assert reading.bind({"id": key}).source is task.tool, "what denies the one denies the other"
    with pytest.raises(TimeoutError):
        await stage.manager.tasks.result(task, 0)
    await stage.fill_in("eve")
    assert (await stage.manager.tasks.result(task)).display == "deployed as {'who': 'eve'}"
    ends = stage.watcher.of(ToolCallChanged)
    assert [(one.call, one.status) for one in ends] == [(CALL, "ok")]
    notices = stage.watcher.of(NoticeRaised)
    assert f"Task {task.kept.key} of ask (tasking) has ended: ok." in notices[0].notice.text


async def test_a_conversation_that_ends_lets_its_tasks_go_on(stage: Tasking) -> None:
    running = await stage.hold()
    stage.manager.tasks.leave(MAIN, CALL)
    assert (await running).runs_on
    [task] = stage.manager.tasks.left_in(MAIN)
    stage.manager.tasks.let_go(MAIN)
    await asyncio.wait({task.following})
    assert not [*stage.manager.tasks.left_in(MAIN)]
    assert (await stage.make("steps")).display == "steps is done"
    assert stage.stand() == ["working", "completed"]
    assert "tasks/cancel" not in stage.said()
    assert stage.watcher.of(ToolCallChanged) == []
    kept = stage.watcher.of(TaskKept)
    assert [one.task for one in kept if one.key == task.kept.key] == ["task 1"]
    stage.manager.tasks.restore(kept[:1], MAIN)
    [again] = stage.manager.tasks.left_in(MAIN)
    await eventually(lambda: again.state.message.startswith("look"))
    stage.manager.tasks.cancel(MAIN, CALL)
    await eventually(lambda: stage.stand() == ["cancelled", "completed"])


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_does_not_sleep_under_a_task(era: str, tmp_path: Path) -> None:
    async with tasking(era, tmp_path, sleep_after=0.2) as stage:
        held = await stage.hold("late")
        slept, began = stage.watcher.statuses("tasking").count(S.ASLEEP), time.monotonic()
        await eventually(lambda: time.monotonic() - began > 0.6)
        assert stage.watcher.statuses("tasking").count(S.ASLEEP) == slept
        (tmp_path / "tasks.go").touch()
        assert (await held).display == "late is done"
        await eventually(lambda: stage.watcher.statuses("tasking")[-1] is S.ASLEEP)


async def test_over_http_a_header_says_which_task_a_request_is_about() -> None:
    task: dict[str, Any] = {"taskId": "täsk 1", "status": "working", "ttlMs": None}
    task |= {"pollIntervalMs": 1}
    result = {"content": [{"type": "text", "text": "done"}]}
    told = {**task, "status": "completed", "result": result, "resultType": "complete"}
    on = stateless(**{"tools/call": {**task, "resultType": "task"}, "tasks/get": told})
    async with answering(on) as (server, manager, _):
        assert (await call(manager, "echo")).display == "done"
        [asked] = [one for one in server.requests if b"tasks/get" in one.body]
        assert asked.headers["mcp-method"] == "tasks/get"
        assert asked.headers["mcp-name"] == encode_header_value("täsk 1")
        capabilities = asked.message["params"]["_meta"][CAPABILITIES]
        assert "io.modelcontextprotocol/tasks" in capabilities["extensions"]
