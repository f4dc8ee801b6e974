"""Recorded reference servers, played again: what they offer, and what comes of using it."""

import sys
from collections.abc import Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import pytest

from tests.real.catalogue import REFERENCES, Reference, counts, use
from tests.support.definitions import define_server
from tests.unit.engine.mcp.asking import Stage
from tests.unit.engine.mcp.support import call, eventually, ready, running
from tui.engine.mcp.manager import ServerManager
from tui.engine.mcp.wire.trace import TraceFile
from tui.engine.mcp.wire.wire import Wire
from tui.model.servers import Origin, ServerId, Transport

KEPT: Final = {"everything", "filesystem", "mcp-server-git"}
RECORDED: Final = [one for one in REFERENCES if one.package in KEPT]


async def used(manager: ServerManager, reference: Reference, workspace: Path) -> list[Any]:
    """Use what a server offers; give what came of it."""
    [tool] = [one for one in manager.offered_tools() if one.name == reference.call.tool]
    arguments: Mapping[str, Any] = reference.call.arguments(workspace)
    features = manager.features(ServerId(reference.name))
    return [await call(manager, tool.id, dict(arguments)), *await use(features, reference)]


@pytest.mark.parametrize("reference", RECORDED, ids=attrgetter("name"))
async def test_a_recording_is_the_server_once_more(reference: Reference, tmp_path: Path) -> None:
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
    (tmp_path / "notes.txt").write_text("what is recorded counts\n")
    command, args = sys.executable, ("-m", "tui", "mcp", "replay", str(file), "--server", server)
    again = define_server(server, Origin.USER, Transport.STDIO, command=command, args=args)
    async with ready(again, workspace=tmp_path, context=other.context) as (manager, watcher):
        await eventually(lambda: manager.catalogs[server] == catalog)
        assert watcher.last(server).info == info
        assert await used(manager, reference, tmp_path) == results
