"""Recorded reference servers, played again through the engine: the same catalog and results."""

import sys
from collections.abc import Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import pytest

from tests.real.catalogue import REFERENCES, Reference
from tests.unit.engine.mcp.asking import Stage
from tests.unit.engine.mcp.support import call, eventually, ready, running
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.mcp.manager import ServerManager
from tui.engine.mcp.wire.trace import TraceFile
from tui.engine.mcp.wire.wire import Wire
from tui.model.servers import Origin, ServerId, Transport

RECORDED: Final = [
    one for one in REFERENCES if one.package in {"everything", "filesystem", "mcp-server-git"}
]


async def used(manager: ServerManager, reference: Reference, workspace: Path) -> list[Any]:
    """Use what a server offers; give what came of it."""
    [tool] = [one for one in manager.offered_tools() if one.name == reference.call.tool]
    arguments: Mapping[str, Any] = reference.call.arguments(workspace)
    found: list[Any] = [await call(manager, tool.id, dict(arguments))]
    features = manager.features(ServerId(reference.name))
    if reference.read is not None:
        reading = await features.read_resource(reference.read[0])
        found += [reading.content.text, reading.raw]
    if reference.prompt is not None:
        prompt, given, _ = reference.prompt
        found.append(await features.get_prompt(prompt, dict(given)))
    if reference.complete is not None:
        prompt, argument, begun, _ = reference.complete
        found.append(await features.complete(prompt, argument, begun, {}))
    return found


def counts(manager: ServerManager, server: str) -> tuple[int, ...]:
    """Count what a server offers."""
    found = manager.catalogs[ServerId(server)]
    kinds = (found.tools, found.prompts, found.resources, found.templates)
    return tuple(map(len, kinds))


@pytest.mark.parametrize("reference", RECORDED, ids=attrgetter("name"))
async def test_a_recording_is_the_same_server_once_more(
    reference: Reference, tmp_path: Path
) -> None:
    workspace, file = tmp_path / "workspace", tmp_path / "trace.jsonl"
    workspace.mkdir()
    stage, other = Stage(), Stage()
    context = stage.context
    context.wire = Wire(trace=TraceFile(file, context.redactor, pytest.fail))
    async with (
        reference.started(workspace) as definition,
        running(definition, workspace=workspace, context=context) as (manager, watcher),
    ):
        await manager.wait_discovered(20)
        await eventually(lambda: counts(manager, reference.name) == reference.counts)
        results = await used(manager, reference, workspace)
        catalog, info = (
            manager.catalogs[ServerId(reference.name)],
            watcher.last(reference.name).info,
        )
    again = ServerDefinition(
        ServerId(reference.name),
        Origin.USER,
        Transport.STDIO,
        command=sys.executable,
        args=("-m", "tui", "mcp", "replay", str(file)),
    )
    async with ready(again, workspace=workspace, context=other.context) as (manager, watcher):
        await eventually(lambda: manager.catalogs[ServerId(reference.name)] == catalog)
        assert watcher.last(reference.name).info == info
        assert await used(manager, reference, workspace) == results
