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
from tests.unit.engine.mcp.asking import Stage
from tests.unit.engine.mcp.network.support import answering, stateless
from tests.unit.engine.mcp.support import HASTY, call, find_tool, permit, ready, refuses, script
from tui.engine.chats.backends.backend import Asked
from tui.engine.chats.own_tools import KeptResults, ProfiledServers, task_tool
from tui.engine.mcp import tasks as limits
from tui.engine.mcp.catalog.offered_tool import (
    CallStoppedError,
    TextPart,
    ToolCallError,
    ToolResult,
)
from tui.engine.mcp.manager import ServerManager
from tui.engine.mcp.session import task_state
from tui.engine.mcp.wire.tap import caused_by
from tui.model.chat import (
    MAIN,
    ConversationId,
    EntryId,
    Progress,
    TaskProgress,
    TaskStatus,
    ToolCallStatus,
)
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

eras = pytest.mark.parametrize("era", ERAS)


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Look often."""
    monkeypatch.setattr(task_state, "LEAST_POLL", 0.02)
    monkeypatch.setattr(limits, "TICK", 0.02)
    return iter(())


def task_requests() -> Any:  # noqa: ANN401
    from tui.engine.mcp.session import task_requests as module  # noqa: PLC0415 - it imports the SDK

    return module


@asynccontextmanager
async def tasking(
    era: str,
    folder: Path,
    sleep_after: float = 0,
    **more: Any,  # noqa: ANN401
) -> AsyncIterator[tuple[ServerManager, Stage]]:
    """Run the server."""
    stage = Stage()
    stage.context.sleep_after = sleep_after
    start = StartMode.LAZY if sleep_after else StartMode.EAGER
    place = str(folder / "tasks")
    served = script("tasking", era, place, timeout=5, review_results=True, start=start)
    async with ready(served, context=stage.context, **more) as (manager, watcher):
        stage.manager, stage.watcher = manager, watcher
        yield manager, stage


def said(folder: Path, prefix: str = "t") -> list[str]:
    """Give the methods that the server got."""
    lines = (folder / "tasks.said").read_text("utf-8").splitlines()
    return [m for line in lines if (m := json.loads(line).get("method", "")).startswith(prefix)]


def statuses(folder: Path) -> list[str]:
    """Give how the server's tasks stand."""
    return [task["status"] for task in json.loads((folder / "tasks").read_text()).values()]


async def looked_at(folder: Path) -> None:
    """Wait until the server was asked about its last task."""
    calls = said(folder).count("tools/call") + 1

    def is_asked() -> bool:
        methods = said(folder)
        began = [at for at, method in enumerate(methods) if method == "tools/call"]
        return len(began) == calls and "tasks/get" in methods[began[-1] :]

    await eventually(is_asked)


def begin(
    manager: ServerManager, tool: str, seen: list[Progress] | None = None, of: EntryId = CALL
) -> "asyncio.Task[ToolResult]":
    """Make a call of the chat."""
    heard = seen if seen is not None else []
    found = find_tool(manager, tool)
    assert found is not None
    with caused_by(MAIN, of):
        return asyncio.create_task(manager.call_tool(permit(found), heard.append))


@eras
async def test_a_task_is_waited_for_and_says_how_it_stands(era: str, tmp_path: Path) -> None:
    seen: list[Progress] = []
    async with tasking(era, tmp_path) as (manager, stage):
        result = await begin(manager, "steps", seen)
        assert (result.display, result.is_error, result.runs_on) == ("steps is done", False, False)
        assert said(tmp_path) == [
            *("tools/list", "tools/call", "tasks/get", "tasks/get", "tasks/get"),
            *(["tasks/result"] if era == "old" else []),
        ]
        asked = json.loads((tmp_path / "tasks").read_text())["task 1"]["args"]
        assert asked.get("task") == ({"ttl": task_requests().ASKED_TTL} if era == "old" else None)
        reports = [one for one in seen if isinstance(one, TaskProgress)]
        stood = [one.status for one in reports]
        working = stood.count(TaskStatus.WORKING)
        assert working > 0
        assert {*stood[working:]} <= {TaskStatus.COMPLETED}, "only once it has ended"
        assert {"begun", "look 1"} <= {one.message for one in reports}
        assert 59 < reports[0].left <= 60
        await eventually(lambda: "completed: done" in stage.watcher.log("tasking")[-1])
        log = stage.watcher.log("tasking")
        said_of = [line.partition(": ")[2] for line in log if line.startswith("task ")]
        assert said_of == ["working: begun", "completed: done"]
        frames = manager.wire.frames()
        assert {one.call for one in frames if one.method.startswith("tasks/")} == {CALL}
        assert {one.attempt for one in frames} == {1}
        assert {one.faults for one in frames} == {()}
        assert (await begin(manager, "soon")).display == "soon is done"


@eras
async def test_input_of_a_task_is_asked_for_as_ever(era: str, tmp_path: Path) -> None:
    async with tasking(era, tmp_path) as (manager, stage):
        running = begin(manager, "ask")
        request = await stage.asked(FormRequest)
        assert (request.server, request.message) == ("tasking", "Deploy as whom?")
        [field] = request.fields
        await stage.answer(FormRequest, content={field.key: "ada"})
        assert (await running).display == "deployed as {'who': 'ada'}"
        declined = begin(manager, "ask")
        await stage.answer(FormRequest, ReplyAction.DECLINE)
        assert "decline" in (await declined).display
        assert stage.raised() == 2


@eras
async def test_E47_no_task_asks_for_input_without_end(era: str, tmp_path: Path) -> None:
    async with tasking(era, tmp_path) as (manager, stage):
        running = begin(manager, "pester")
        for _ in range(task_requests().MAX_INPUTS):
            [field] = (await stage.asked(FormRequest)).fields
            await stage.answer(FormRequest, content={field.key: "ada"})
        with pytest.raises(ToolCallError, match="asked for input too often in one task"):
            await running
        await eventually(lambda: "tasks/cancel" in said(tmp_path))
        assert stage.raised() == task_requests().MAX_INPUTS
        assert stage.pending() == []


async def test_E47_no_call_asks_for_input_without_end_and_the_next_one_may_ask_again(
    tmp_path: Path,
) -> None:
    async with tasking("old", tmp_path) as (manager, stage):
        for _ in range(2):
            running = begin(manager, "badger")
            for _ in range(task_requests().MAX_INPUTS):
                await stage.answer(FormRequest, ReplyAction.DECLINE)
            assert (await running).display == "Too many requests"
        assert stage.raised() == 2 * task_requests().MAX_INPUTS
        left = begin(manager, "pester")
        await stage.asked(FormRequest)
        manager.tasks.leave(MAIN, CALL)
        await left
        for _ in range(task_requests().MAX_INPUTS - 1):
            await stage.answer(FormRequest, ReplyAction.DECLINE)
            assert (await begin(manager, "soon")).display == "soon is done"
        await stage.answer(FormRequest, ReplyAction.DECLINE)
        [task] = manager.tasks.left_in(MAIN)
        with pytest.raises(ToolCallError, match="too often"):
            await manager.tasks.result(task)
        assert stage.raised() == 3 * task_requests().MAX_INPUTS, "other calls change nothing"


@eras
async def test_a_task_that_needs_a_model_is_told_once_that_there_is_none(
    era: str, tmp_path: Path
) -> None:
    async with tasking(era, tmp_path) as (manager, stage):
        stage.model.model = ""
        if era == "new":
            words = "What the task asks for cannot be given: There is no model."
            await refuses(words, manager, "think")
        else:
            assert (await begin(manager, "think")).display == "There is no model."
        assert said(tmp_path).count("tools/call") == 1
        assert said(tmp_path).count("tasks/get") <= 4


@eras
async def test_who_stops_the_call_stops_the_task_and_its_question(era: str, tmp_path: Path) -> None:
    async with tasking(era, tmp_path) as (manager, stage):
        running = begin(manager, "ask")
        await stage.asked(FormRequest)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await eventually(lambda: "tasks/cancel" in said(tmp_path))
        await eventually(lambda: not stage.pending())
        held = begin(manager, "hold")
        await looked_at(tmp_path)
        manager.tasks.cancel(MAIN, CALL)
        with pytest.raises(CallStoppedError):
            await held
        await eventually(lambda: said(tmp_path).count("tasks/cancel") == 2)
        await eventually(lambda: statuses(tmp_path) == ["cancelled", "cancelled"])


@eras
async def test_a_task_ends_with_its_time_to_live(era: str, tmp_path: Path) -> None:
    async with tasking(era, tmp_path) as (manager, _):
        await refuses("time to live of 0.7 s is over", manager, "brief")
        await eventually(lambda: said(tmp_path)[-1] == "tasks/cancel")


@eras
@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("other", "answered about another task"),
        ("odd", "a task of an unknown status"),
        ("nameless", "whose id cannot be used"),
        ("fail", "no disk"),
        ("quit", "The server cancelled the task. changed my mind"),
    ],
)
async def test_a_task_that_fails_or_makes_no_sense_gives_an_error(
    era: str, tool: str, words: str, tmp_path: Path
) -> None:
    async with tasking(era, tmp_path) as (manager, _):
        await refuses(words, manager, tool)


@eras
async def test_no_flood_and_no_length_of_what_a_server_says_hurts(
    era: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Progress] = []
    async with tasking(era, tmp_path) as (manager, _):
        assert (await begin(manager, "loud", seen)).display == "loud is done"
        assert len(seen[0].message) == task_state.MAX_STATUS
        assert "\x1b" not in seen[0].message
        assert isinstance(seen[0], TaskProgress)
        assert task_state.MAX_TTL - 60 < seen[0].left <= task_state.MAX_TTL
        assert (await begin(manager, "flood")).display == "flood is done"
        assert said(tmp_path).count("tasks/get") <= 12
        monkeypatch.setattr(limits, "MAX_TASKS", 1)
        held = begin(manager, "hold")
        await looked_at(tmp_path)
        await refuses("1 tasks are running", manager, "hold")
        held.cancel()
        await eventually(lambda: said(tmp_path).count("tasks/cancel") == 2)


@eras
async def test_a_task_survives_the_end_of_its_server_if_the_next_one_knows_it(
    era: str, tmp_path: Path
) -> None:
    async with tasking(era, tmp_path, retry=HASTY) as (manager, stage):
        assert (await begin(manager, "end")).display == "end is done"
        assert stage.watcher.statuses("tasking").count(S.READY) == 2
        asking = begin(manager, "ask")
        await stage.asked(FormRequest)
        manager.restart(SERVER)
        await eventually(lambda: not stage.pending())
        [field] = (await stage.asked(FormRequest)).fields
        await stage.answer(FormRequest, content={field.key: "bob"})
        assert (await asking).display == "deployed as {'who': 'bob'}"
        stopped = begin(manager, "hold")
        await looked_at(tmp_path)
        manager.restart(SERVER)
        manager.tasks.cancel(MAIN, CALL)
        with pytest.raises(CallStoppedError):
            await stopped
        await eventually(lambda: statuses(tmp_path)[-1] == "cancelled")
        held = begin(manager, "hold")
        await looked_at(tmp_path)
        (tmp_path / "tasks").unlink()
        manager.restart(SERVER)
        with pytest.raises(ToolCallError, match="unknown task"):
            await held


@eras
async def test_a_server_that_is_stopped_ends_the_wait(era: str, tmp_path: Path) -> None:
    async with tasking(era, tmp_path) as (manager, _):
        held = begin(manager, "hold")
        await looked_at(tmp_path)
        manager.stop(SERVER)
        with pytest.raises(ToolCallError, match="tasking is gone; whether its task goes on"):
            await held


@eras
async def test_the_turn_goes_on_without_a_task_whose_result_comes_later(
    era: str, tmp_path: Path
) -> None:
    async with tasking(era, tmp_path) as (manager, stage):
        running = begin(manager, "ask")
        await stage.asked(FormRequest)
        manager.tasks.leave(MAIN, CALL)
        left = await running
        assert left.runs_on
        [task] = manager.tasks.left_in(MAIN)
        assert f'check_task(id="{task.kept.key}")' in left.parts[0].text  # type: ignore[union-attr]
        asked = Asked()
        servers = ProfiledServers(manager, {"": EVERYTHING, "bare": Profile(servers=())}, asked)
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
            await manager.tasks.result(task, 0)
        [field] = (await stage.asked(FormRequest)).fields
        await stage.answer(FormRequest, content={field.key: "eve"})
        assert (await manager.tasks.result(task)).display == "deployed as {'who': 'eve'}"
        ends = [one for one in stage.watcher.events if isinstance(one, ToolCallChanged)]
        assert [(one.call, one.status) for one in ends] == [(CALL, ToolCallStatus.OK)]
        notices = [one for one in stage.watcher.events if isinstance(one, NoticeRaised)]
        assert f"Task {task.kept.key} of ask (tasking) has ended: ok." in notices[0].notice.text


@eras
async def test_a_conversation_that_ends_lets_its_tasks_go_on(era: str, tmp_path: Path) -> None:
    async with tasking(era, tmp_path) as (manager, stage):
        running = begin(manager, "hold")
        await looked_at(tmp_path)
        manager.tasks.leave(MAIN, CALL)
        assert (await running).runs_on
        [task] = manager.tasks.left_in(MAIN)
        manager.tasks.let_go(MAIN)
        await asyncio.wait({task.following})
        assert not [*manager.tasks.left_in(MAIN)]
        assert (await begin(manager, "steps")).display == "steps is done"
        assert statuses(tmp_path) == ["working", "completed"]
        assert "tasks/cancel" not in said(tmp_path)
        heard = [one for one in stage.watcher.events if isinstance(one, ToolCallChanged)]
        assert heard == []
        kept = [one for one in stage.watcher.events if isinstance(one, TaskKept)]
        assert [one.task for one in kept if one.key == task.kept.key] == ["task 1"]
        manager.tasks.restore(kept[:1], MAIN)
        [again] = manager.tasks.left_in(MAIN)
        await eventually(lambda: again.state.message.startswith("look"))
        manager.tasks.cancel(MAIN, CALL)
        await eventually(lambda: statuses(tmp_path) == ["cancelled", "completed"])


@eras
async def test_a_server_does_not_sleep_under_a_task(era: str, tmp_path: Path) -> None:
    async with tasking(era, tmp_path, sleep_after=0.2) as (manager, stage):
        held = begin(manager, "late")
        await looked_at(tmp_path)
        slept, began = stage.watcher.statuses("tasking").count(S.ASLEEP), time.monotonic()
        await eventually(lambda: time.monotonic() - began > 0.6)
        assert stage.watcher.statuses("tasking").count(S.ASLEEP) == slept
        (tmp_path / "tasks.go").touch()
        assert (await held).display == "late is done"
        await eventually(lambda: stage.watcher.statuses("tasking")[-1] is S.ASLEEP)


async def test_over_http_a_header_says_which_task_a_request_is_about() -> None:
    task: dict[str, Any] = {
        "taskId": "täsk 1",
        "status": "working",
        "ttlMs": None,
        "pollIntervalMs": 1,
    }
    result = {"content": [{"type": "text", "text": "done"}]}
    told: dict[str, Any] = {
        **task,
        "status": "completed",
        "result": result,
        "resultType": "complete",
    }
    on = stateless(**{"tools/call": {**task, "resultType": "task"}, "tasks/get": told})
    async with answering(on) as (server, manager, _):
        assert (await call(manager, "echo")).display == "done"
        [asked] = [one for one in server.requests if b"tasks/get" in one.body]
        assert asked.headers["mcp-method"] == "tasks/get"
        assert asked.headers["mcp-name"] == encode_header_value("täsk 1")
        capabilities = asked.message["params"]["_meta"][CAPABILITIES]
        assert "io.modelcontextprotocol/tasks" in capabilities["extensions"]
