"""What becomes of a server whose definition changes, goes and comes back while it closes."""

import asyncio
import threading
from dataclasses import replace
from typing import cast
from unittest.mock import AsyncMock

import pytest

from tests.support.definitions import altered
from tests.support.waiting import PATIENCE
from tests.unit.engine.mcp.staging import Pretended, definition
from tests.unit.engine.mcp.support import eventually, permit, running
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.mcp.catalog.offered_tool import ToolCallError
from tui.engine.mcp.session.features import Features
from tui.engine.mcp.supervisor import Connect
from tui.model.servers import ServerStatus as S

ONE = definition()
TWO, THREE = altered(ONE, command="two"), altered(ONE, command="three")


class Connections:
    """Makes pretended connections and keeps them, with the definitions they are for."""

    def __init__(self) -> None:
        self.made: list[tuple[ServerDefinition, Pretended]] = []

    def connect(self, given: ServerDefinition, *_: object) -> Pretended:
        """Make one more."""
        one = Pretended()
        one.features = cast("Features", AsyncMock())  # which is told of other roots
        self.made.append((given, one))
        return one

    @property
    def definitions(self) -> list[ServerDefinition]:
        """What was connected to, in order."""
        return [given for given, _ in self.made]


@pytest.mark.parametrize("edits", [[[], [ONE]], [[TWO], [THREE]], [[TWO], [], [THREE]]])
async def test_a_server_starts_again_once_it_let_go(edits: list[list[ServerDefinition]]) -> None:
    connections = Connections()
    async with running(ONE, import_connect=lambda: connections.connect) as (manager, watcher):
        await watcher.until("s", S.READY)
        first = connections.made[0][1]
        first.may_close.clear()
        for edit in edits:
            manager.configure(edit)
            await asyncio.sleep(0)
        for _ in range(20):
            await asyncio.sleep(0)
        assert connections.definitions == [ONE]
        first.may_close.set()
        await eventually(lambda: len(connections.made) == 2)
        await eventually(lambda: watcher.statuses("s")[-1] is S.READY)
        assert connections.definitions == [ONE, edits[-1][0]]
        assert first.closed == 1


async def test_a_server_that_moves_while_it_starts_is_connected_to_as_it_runs_then() -> None:
    connections, may_go_on = Connections(), threading.Event()

    def load() -> Connect:
        may_go_on.wait(PATIENCE)
        return connections.connect

    inside, outside = ONE, replace(ONE, is_outside=True)
    for first, then in ((outside, inside), (inside, outside)):
        async with running(first, import_connect=load) as (manager, watcher):
            await eventually(lambda: not manager._supervisors[ONE.id].is_launching)
            manager.configure([then])
            may_go_on.set()
            await watcher.until("s", S.STARTING, S.READY)
            assert connections.definitions == [then]
        connections.made.clear()
        may_go_on.clear()


async def test_a_call_offered_by_one_server_never_runs_on_another_of_its_name() -> None:
    connections, one = Connections(), replace(ONE, fingerprint="a" * 64)
    async with running(one, import_connect=lambda: connections.connect) as (manager, watcher):
        await watcher.until("s", S.READY)
        [offered] = manager.offered_tools()
        manager.configure([replace(TWO, fingerprint="b" * 64)])
        await eventually(lambda: len(connections.made) == 2)
        await eventually(lambda: watcher.statuses("s")[-1] is S.READY)
        [now] = manager.offered_tools()
        assert now.definition_hash == offered.definition_hash
        with pytest.raises(ToolCallError, match="s is now a different server"):
            await manager.call_tool(permit(offered), lambda _: None)
        with pytest.raises(NotImplementedError):  # it reaches the pretended server
            await manager.call_tool(permit(now), lambda _: None)
