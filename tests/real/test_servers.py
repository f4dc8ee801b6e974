"""The reference servers by the real engine: each is connected and everything of it is used."""

import asyncio
import re
import time
from operator import attrgetter
from pathlib import Path

import pytest

from tests.conformance.stubs import fill_in
from tests.real.catalogue import REFERENCES, Call, Reference, counts, use
from tests.support.measures import Measure
from tests.unit.engine.mcp.asking import Stage
from tests.unit.engine.mcp.support import eventually, permit, running
from tui.engine.mcp.catalog.offered_tool import ToolResult
from tui.engine.mcp.manager import ServerManager
from tui.model.chat import Progress, TaskProgress
from tui.model.requests import FieldKind, FormRequest, SamplingRequest, SamplingReview, UrlRequest
from tui.model.servers import ServerId
from tui.model.servers import ServerStatus as S

START_SECONDS = 20.0
"""Longest time for a server to be ready on a busy machine."""


async def call_tool(
    manager: ServerManager, call: Call, workspace: Path, seen: list[Progress] | None = None
) -> ToolResult:
    """Make a call and look at what it gave."""
    [tool] = [tool for tool in manager.offered_tools() if tool.name == call.tool]
    heard = seen if seen is not None else []
    result = await manager.call_tool(permit(tool, call.arguments(workspace)), heard.append)
    assert not result.is_error, result.display
    assert re.search(call.gives, result.display), result.display
    return result


@pytest.mark.parametrize("reference", REFERENCES, ids=attrgetter("name"))
async def test_a_reference_server_can_be_used_for_all_it_offers(
    reference: Reference, tmp_path: Path, measure: Measure
) -> None:
    began = time.monotonic()
    stage = Stage()
    async with (
        reference.started(tmp_path) as definition,
        running(definition, workspace=tmp_path, context=stage.context) as (manager, watcher),
    ):
        stage.manager, stage.watcher = manager, watcher
        await manager.wait_discovered(START_SECONDS)
        assert watcher.last(reference.name).status is S.READY, watcher.log(reference.name)
        ready = time.monotonic() - began
        info = watcher.last(reference.name).info
        assert info is not None
        assert info.protocol_version == reference.protocol
        # Some list all tools only once they have heard of the roots.
        await eventually(lambda: counts(watcher.catalog(reference.name)) == reference.counts)
        assert not [one.problem for one in watcher.catalog(reference.name).tools if one.problem]
        await call_tool(manager, reference.call, tmp_path)
        features = stage.features(reference.name)
        await use(features, reference)
        assert info.completions is (reference.complete is not None)
        assert info.subscriptions is (reference.watch is not None)
        await hear_of_changes(stage, reference, tmp_path)
        if reference.package == "everything":
            roots = Call("get-roots-list", re.escape(tmp_path.as_uri()))
            await call_tool(manager, roots, tmp_path)
            await answer_a_form(stage, tmp_path)
            if reference.protocol == "2025-11-25":
                await wait_for_a_task(stage, reference, tmp_path)
            await open_an_address(stage, tmp_path)
            await generate(stage, tmp_path)
            await report_progress_and_logs(stage, reference, tmp_path)
    assert watcher.statuses(reference.name) == [S.STARTING, S.READY, S.STOPPING, S.STOPPED]
    measure(f"{reference.name} ({info.protocol_version}): ready in {ready:.2f} s")


async def hear_of_changes(stage: Stage, reference: Reference, workspace: Path) -> None:
    """Subscribe to a resource and change it, where the server announces changes."""
    if reference.watch is None:
        return
    uri, changing = reference.watch
    heard: list[tuple[ServerId, str]] = []
    stage.context.resource_updated = lambda *change: heard.append(change)
    features = stage.features(reference.name)
    await features.subscribe(uri)
    await call_tool(stage.manager, changing, workspace)
    await eventually(lambda: (ServerId(reference.name), uri) in heard)
    await features.unsubscribe(uri)


async def wait_for_a_task(stage: Stage, reference: Reference, workspace: Path) -> None:
    """Let a tool run that runs only as a task, and give what it asks for."""
    seen: list[Progress] = []
    given = {"topic": "python", "ambiguous": True}
    query = Call("simulate-research-query", r"python \(snake\)", lambda _: given)
    running = asyncio.create_task(call_tool(stage.manager, query, workspace, seen))
    [field] = (await stage.asked(FormRequest)).fields
    assert [option.label for option in field.options][1] == "Python snake species"
    await stage.answer(FormRequest, content={field.key: field.options[1].value})
    await running
    messages = {one.message for one in seen if isinstance(one, TaskProgress)}
    assert "Gathering sources..." in messages
    assert len(messages) > 1, "a slow machine misses one of its seconds, but not all"
    methods = {one.method for one in stage.manager.wire.frames() if one.server == reference.name}
    assert {"tasks/get", "tasks/result"} <= methods


async def answer_a_form(stage: Stage, workspace: Path) -> None:
    """Let the server ask for structured input, and fill in what it needs."""
    asking = Call("trigger-elicitation-request", r"- Name: stub\n")
    calling = asyncio.create_task(call_tool(stage.manager, asking, workspace))
    form = await stage.asked(FormRequest)
    assert {field.kind for field in form.fields} == {*FieldKind} - {FieldKind.JSON, FieldKind.ROWS}
    content = {field.key: fill_in(field) for field in form.fields}
    await stage.answer(FormRequest, content=content)
    given = await calling
    for default in ("Favorite Integer: 42", '"titledSingleSelectEnum": "hero-1"'):
        assert default in given.display


async def open_an_address(stage: Stage, workspace: Path) -> None:
    """Let the server ask for an address to be opened, and open it."""
    url = "https://example.com/consent?id=1"
    asking = Call("trigger-url-elicitation", "accept", lambda _: {"url": url})
    calling = asyncio.create_task(call_tool(stage.manager, asking, workspace))
    request = await stage.answer(UrlRequest)
    assert (request.url, request.host) == (url, "example.com")
    await calling
    assert stage.opened == [url]


async def generate(stage: Stage, workspace: Path) -> None:
    """Let the server ask for generated text, and let the model answer."""
    asking = Call("trigger-sampling-request", '"text": "hello"', lambda _: {"prompt": "Sing."})
    calling = asyncio.create_task(call_tool(stage.manager, asking, workspace))
    request = await stage.answer(SamplingRequest)
    assert (request.system, request.max_tokens) == ("You are a helpful test server.", 100)
    assert request.messages[0].text.endswith("context: Sing.")
    await stage.answer(SamplingReview)
    await calling
    assert len(stage.model.asked) == 1


async def report_progress_and_logs(stage: Stage, reference: Reference, workspace: Path) -> None:
    """Make a call that takes steps, and let the server log."""
    seen: list[Progress] = []
    steps = Call("trigger-long-running-operation", "", lambda _: {"duration": 0.2, "steps": 2})
    await call_tool(stage.manager, steps, workspace, seen)
    await eventually(lambda: [step.progress for step in seen][:1] == [1.0])
    await stage.features(reference.name).set_log_level("debug")
    logging = Call("toggle-simulated-logging", "Started simulated")
    await call_tool(stage.manager, logging, workspace)
    written = re.compile(r"level[ -]message")
    await eventually(lambda: any(map(written.search, stage.watcher.log(reference.name))))
