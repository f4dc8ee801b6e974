"""Recorded reference servers, played again: what they offer, and what comes of using it."""

import json
import re
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import pytest
from textual.pilot import Pilot

from tests.real.catalogue import REFERENCES, Reference, counts, use
from tests.support.definitions import define_server
from tests.ui.engine_deck import over_an_engine
from tests.ui.harness import until
from tests.unit.engine.mcp.asking import Stage
from tests.unit.engine.mcp.support import call, eventually, ready, running
from tui.engine.demo import model
from tui.engine.engine import Engine, EngineOptions
from tui.engine.mcp.manager import ServerManager
from tui.engine.mcp.wire.trace import TraceFile
from tui.engine.mcp.wire.wire import Wire
from tui.model.chat import ToolCall, TurnEnd
from tui.model.servers import Origin, ServerId, ServerStatus, Transport
from tui.store.selectors import entries
from tui.store.store import Store
from tui.ui.app import GemdeckApp
from tui.ui.panes.browser import BrowserPane, PromptsPane, ResourcesPane, ToolsPane

KEPT: Final = {"everything", "filesystem", "mcp-server-git"}
RECORDED: Final = [one for one in REFERENCES if one.package in KEPT]
LOCAL: Final = [one for one in RECORDED if one.transport is Transport.STDIO]
REMOTE: Final = [one for one in RECORDED if one.transport is not Transport.STDIO]
Panes = Mapping[str, type[BrowserPane[Any]]]
PANES: Final[Panes] = {"f3": ToolsPane, "f4": PromptsPane, "f5": ResourcesPane}


def replay(file: Path, server: str) -> list[str]:
    """Give the arguments that play what a server said."""
    return ["-m", "tui", "mcp", "replay", str(file), "--server", server]


@asynccontextmanager
async def deck(
    folder: Path, servers: Mapping[str, object], trace: Path | None = None
) -> AsyncIterator[tuple[Engine, Store, Pilot[int]]]:
    """Run the app with these servers, the demo as the model, and every call allowed."""
    settings = Path.home() / ".gemini" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps({"mcpServers": servers}))
    options = EngineOptions(
        folder,
        demo=True,
        follow_settings=False,
        trusted_folders=(folder,),
        attended=True,
        allows_all=True,
        private=True,
        trace=trace,
    )
    async with over_an_engine(options) as (engine, store, _, pilot):
        expected = {one.name: one.counts for one in LOCAL}
        await until(pilot, lambda: expected.items() <= offered(store).items())
        yield engine, store, pilot


def offered(store: Store) -> Mapping[str, tuple[int, ...]]:
    """Count what each server offers that is ready."""
    views = [one for one in store.state.servers if one.status is ServerStatus.READY]
    return {one.id: counts(one.catalog) for one in views}


async def shown(store: Store, pilot: Pilot[int]) -> list[Any]:
    """Give what the servers say of themselves, and the panes of what they offer."""
    names, app = {one.name for one in LOCAL}, pilot.app
    assert isinstance(app, GemdeckApp)
    found: list[Any] = [one.info for one in store.state.servers if one.id in names]
    for key, kind in PANES.items():
        await pilot.press(key)
        await until(pilot, lambda: not app.bridge._delay.is_begun)
        listed = app.deck.query_one(kind).entries.shown
        found.append([(one.item, one.row) for one in listed if one.group in names])
    return found


async def by_hand(engine: Engine, store: Store, pilot: Pilot[int], workspace: Path) -> list[Any]:
    """Use what the servers offer from the chat and the panes; give what came of it."""
    found = list[Any]()
    for one in LOCAL:
        arguments = one.call.arguments(workspace).items()
        messages = [" ".join([one.call.tool, *(f"{k}={json.dumps(v)}" for k, v in arguments)])]
        if one.prompt is not None:
            messages.append(" ".join([f"/{one.prompt[0]}", *one.prompt[1].values()]))
        for message in messages:
            engine.send(message)
            await engine.wait_idle()
        if one.complete is not None:
            prompt, argument, begun, _ = one.complete
            engine.features.complete("t", ServerId(one.name), prompt, argument, begun, {})
            await until(pilot, lambda: store.state.completion)
            found.append(store.state.completion)
        if one.read is not None:
            engine.features.read_resource(ServerId(one.name), one.read[0])
            await until(pilot, lambda: store.state.resource)
            assert store.state.resource is not None
            found.append((store.state.resource.content, store.state.resource.raw))
    said = [one for one in entries(store.state) if not isinstance(one, TurnEnd)]
    found += [replace(one, seconds=None) if isinstance(one, ToolCall) else one for one in said]
    return found


async def test_a_recording_in_the_whole_app_is_the_same_servers_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "WORD_PACE", 0)
    workspace, file = tmp_path / "workspace", tmp_path / "trace.jsonl"
    workspace.mkdir()
    servers = dict[str, Mapping[str, object]]()
    async with AsyncExitStack() as stack:
        for one in LOCAL:
            real = await stack.enter_async_context(one.started(workspace))
            servers[one.name] = {"command": real.launch.command, "args": real.launch.args}
        running = await stack.enter_async_context(deck(workspace, servers, file))
        panes = await shown(*running[1:])
        came = await by_hand(*running, workspace)
    (workspace / "notes.txt").write_text("what is recorded counts\n")
    again = {one.name: {"command": sys.executable, "args": replay(file, one.name)} for one in LOCAL}
    async with deck(workspace, again) as (engine, store, pilot):
        assert await shown(store, pilot) == panes
        assert await by_hand(engine, store, pilot, workspace) == came
    results = [one.result for one in came if isinstance(one, ToolCall)]
    assert [*map(len, panes[len(LOCAL) :])] == [43, 4, 9]
    assert all(re.search(of.call.gives, said) for of, said in zip(LOCAL, results, strict=True))


async def used(manager: ServerManager, reference: Reference, workspace: Path) -> list[Any]:
    """Use what a server offers without a screen; give what came of it."""
    [tool] = [one for one in manager.offered_tools() if one.name == reference.call.tool]
    arguments: Mapping[str, Any] = reference.call.arguments(workspace)
    features = manager.features(ServerId(reference.name))
    return [await call(manager, tool.id, dict(arguments)), *await use(features, reference)]


@pytest.mark.parametrize("reference", REMOTE, ids=attrgetter("name"))
async def test_a_recording_over_http_is_the_server(reference: Reference, tmp_path: Path) -> None:
    server, file = ServerId(reference.name), tmp_path / "trace.jsonl"
    stage, other = Stage(), Stage()
    context = stage.context
    context.wire = Wire(trace=TraceFile(file, context.redactor, pytest.fail))
    async with (
        reference.started(tmp_path) as definition,
        running(definition, workspace=tmp_path, context=context) as (manager, watcher),
    ):
        await manager.wait_discovered(20)
        await eventually(lambda: counts(manager.catalogs[server]) == reference.counts)
        results = await used(manager, reference, tmp_path)
        catalog, info = manager.catalogs[server], watcher.last(server).info
    command, args = sys.executable, tuple(replay(file, server))
    again = define_server(server, Origin.USER, Transport.STDIO, command=command, args=args)
    async with ready(again, workspace=tmp_path, context=other.context) as (manager, watcher):
        await eventually(lambda: manager.catalogs[server] == catalog)
        assert watcher.last(server).info == info
        assert await used(manager, reference, tmp_path) == results
