"""What servers are told, what the model holds of many offers, reconfiguration and the close."""

import asyncio
import json
import time
from pathlib import Path

import pytest

from tests.support.waiting import PATIENCE, whole_lines
from tests.unit.engine.mcp.support import (
    Watcher,
    call,
    children,
    eventually,
    ready,
    script,
    server_processes,
)
from tui.engine.late import import_connection
from tui.engine.mcp.context import ClientContext
from tui.engine.mcp.manager import ServerManager
from tui.engine.mcp.transports.stdio import process as process_module
from tui.model.events import NoticeRaised, ServersConfigured, ServerStatusChanged
from tui.model.servers import ServerId
from tui.model.servers import ServerStatus as S


def held(manager: ServerManager, server: str) -> int:
    return sum(tool.server == server for tool in manager.held_tools())


async def test_of_more_tools_than_fit_the_model_holds_a_share_and_loads_others() -> None:
    many, few = script("raw", "many"), script("raw", server="few")
    async with ready(many, few) as (manager, watcher):
        own = len(watcher.catalog("few").tools)
        assert (held(manager, "raw"), held(manager, "few")) == (64 - own, own)
        catalog = watcher.catalog("raw")
        assert (len(catalog.tools), len(catalog.excess)) == (1_200, 1_200 - 64 + own)
        assert watcher.catalog("few").excess == frozenset()
        assert len(manager.offered_tools()) == 1_200 + own
        told = watcher.of(NoticeRaised)
        words = "Too many tools: the model gets at most 128 or 5 % of its context."
        assert told[-1].notice.text == words
        every = {tool.name: tool for tool in manager.offered_tools()}
        manager.load_tools([every[f"tool_{number}"] for number in range(1_000, 1_064)])
        assert "tool_1000" not in watcher.catalog("raw").excess
        assert held(manager, "raw") + own == 128
        manager.stop(ServerId("few"))
        await watcher.until("few", S.STOPPED)
        await eventually(lambda: held(manager, "raw") == 128)
        assert watcher.of(NoticeRaised) == told


async def test_a_server_is_told_no_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "key")
    monkeypatch.setenv("LC_TIME", "C")
    record = tmp_path / "record"
    definition = script("raw", env={"EXTRA": "1", "RAW_RECORD": str(record)}, cwd=tmp_path)
    async with ready(definition, workspace=tmp_path) as (manager, _):
        messages = [json.loads(line) for line in whole_lines(record)]
        [hello] = [m["params"] for m in messages if m["method"] == "initialize"]
        assert hello["capabilities"]["roots"] == {"listChanged": True}
        assert hello["clientInfo"] == {"name": "gemdeck", "version": "0.1"}
        told = json.loads((await call(manager, "environment")).display)
        assert "GEMINI_API_KEY" not in told["env"]
        assert (told["env"]["LC_TIME"], told["env"]["EXTRA"]) == ("C", "1")
        assert told["cwd"] == str(tmp_path)


async def test_servers_that_ignore_every_courtesy_are_killed_together(hasty_ends: float) -> None:
    names = [ServerId(f"s{number}") for number in range(4)]
    stubborn = [script("raw", "ignore_eof", "ignore_term", server=name) for name in names]
    async with ready(*stubborn) as (_, watcher):
        assert len(server_processes()) == len(names)
        began = time.monotonic()
    del hasty_ends
    least = process_module.EOF_GRACE + process_module.TERMINATE_GRACE
    assert time.monotonic() - began > least * 0.95, "each courtesy has its time"
    ends = [event.status for event in watcher.of(ServerStatusChanged)][-2 * len(names) :]
    assert ends == [S.STOPPING] * len(names) + [S.STOPPED] * len(names)
    await eventually(lambda: children() == [])


async def test_a_second_cancellation_during_the_close_leaves_nothing() -> None:
    watcher = Watcher()

    async def run() -> None:
        context = ClientContext(watcher, workspaces=(Path("/"),))
        async with ServerManager(watcher, context, import_connect=import_connection) as manager:
            manager.configure([script("raw", "ignore_eof", "ignore_term")])
            await asyncio.Event().wait()

    task = asyncio.create_task(run())
    await watcher.until("raw", S.READY)
    task.cancel()
    await watcher.until("raw", S.STOPPING)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(PATIENCE):
            await task
    await eventually(lambda: children() == [])


async def test_a_new_configuration_adds_removes_replaces_and_leaves_servers() -> None:
    old = (script("raw", server="stays"), script("raw", server="goes"), script("raw", server="new"))
    async with ready(*old) as (manager, watcher):
        assert type(watcher.events[0]) is ServersConfigured
        staying = {child.pid for child in server_processes()}
        manager.configure(old)
        assert all(watcher.statuses(one.id) == [S.STARTING, S.READY] for one in old)
        changed = script("raw", "paging", server="new")
        manager.configure([old[0], changed, script("raw", server="added")])
        await watcher.until("added", S.STARTING, S.READY)
        await watcher.until("new", S.STARTING, S.READY)
        assert watcher.statuses("stays") == [S.STARTING, S.READY]
        assert watcher.statuses("goes") == [S.STARTING, S.READY]
        await eventually(lambda: len(server_processes()) == 3)
        assert len(staying & {child.pid for child in server_processes()}) == 1
        configured = watcher.of(ServersConfigured)[-1].servers
        expected = [("stays", S.READY), ("new", S.STOPPED), ("added", S.STOPPED)]
        assert [(view.id, view.status) for view in configured] == expected
        assert configured[0].info is not None
        assert configured[0].target.endswith("tests/servers/raw.py")
        assert configured[0].catalog.tools[0].id == "echo"
        assert "echo_0_0" in [tool.id for tool in manager.offered_tools()]
