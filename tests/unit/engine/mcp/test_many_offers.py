"""Real servers at the limits: long lists, slow calls, floods, and reconfiguration."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.measures import Measure
from tests.support.stalls import LoopWatch
from tests.support.waiting import PATIENCE, at_once
from tests.unit.engine.mcp.processes import pid_of, reapers
from tests.unit.engine.mcp.support import (
    Watcher,
    call,
    children,
    eventually,
    find_tool,
    is_alive,
    permit,
    ready,
    refuses,
    running,
    script,
    server_processes,
)
from tui.engine.late import import_connection
from tui.engine.mcp.catalog.offered_tool import ToolCallError
from tui.engine.mcp.context import ClientContext
from tui.engine.mcp.manager import ServerManager
from tui.engine.mcp.transports.stdio import process as process_module
from tui.model.events import NoticeRaised, ServersConfigured
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
        assert told[-1].notice.text == (
            "The model holds at most 128 or 5 % of its context of tools at once."
        )
        every = {tool.name: tool for tool in manager.offered_tools()}
        manager.load_tools([every["tool_1000"]])
        assert "tool_1000" not in watcher.catalog("raw").excess
        manager.load_tools([every[f"tool_{number}"] for number in range(1_001, 1_064)])
        assert held(manager, "raw") + own == 128
        manager.load_tools([every["tool_1100"]])
        assert {"tool_1000", "tool_1100"} & watcher.catalog("raw").excess == {"tool_1000"}
        assert held(manager, "raw") + own == 128
        manager.stop(ServerId("few"))
        await watcher.until("few", S.STOPPED)
        await eventually(lambda: held(manager, "raw") == 128)
        assert watcher.of(NoticeRaised) == told


async def test_a_declared_list_that_does_not_exist_is_empty() -> None:
    async with ready(script("raw", "liar")) as (_, watcher):
        assert watcher.catalog("raw").prompts == ()


@pytest.mark.parametrize(
    ("behaviour", "status", "reason"),
    [
        ("no_tools", S.FAILED, "offers nothing"),
        ("unlistable", S.RETRYING, "could not list its tools: the list is bro"),
    ],
)
async def test_a_server_of_no_use_is_closed_with_the_reason(
    behaviour: str, status: S, reason: str
) -> None:
    async with running(script("raw", behaviour)) as (_, watcher):
        failed = await watcher.fails("raw", S.STARTING, status)
        assert failed.reason.startswith(reason)
        await eventually(lambda: server_processes() + reapers() == [])


async def test_a_cancelled_call_is_cancelled_on_the_server(tmp_path: Path) -> None:
    record = tmp_path / "record"
    definition = script("raw", env={"RAW_RECORD": str(record)})
    async with ready(definition) as (manager, _):
        calling = asyncio.create_task(call(manager, "hang"))
        await eventually(lambda: '"hang"' in record.read_text())
        calling.cancel()
        await at_once(calling.cancelled)
        await eventually(lambda: "notifications/cancelled" in record.read_text())
        messages = [json.loads(line) for line in record.read_text().splitlines()]
        [called] = [m for m in messages if m.get("method") == "tools/call"]
        assert messages[-1]["params"]["requestId"] == called["id"]
        assert (await call(manager, "echo", {"text": "on"})).display == "on"


async def test_a_call_over_its_time_is_cancelled_and_said_so(tmp_path: Path) -> None:
    record = tmp_path / "record"
    definition = script("raw", env={"RAW_RECORD": str(record)}, timeout=2.0)
    async with ready(definition) as (manager, _):
        await refuses(r"no result within 2 s", manager, "hang")
        await eventually(lambda: "notifications/cancelled" in record.read_text())


async def test_a_server_is_told_the_workspace_as_its_root(tmp_path: Path) -> None:
    record = tmp_path / "record"
    definition = script("raw", env={"RAW_RECORD": str(record)})
    async with ready(definition, workspace=tmp_path):
        messages = [json.loads(line) for line in record.read_text().splitlines()]
        [hello] = [m["params"] for m in messages if m["method"] == "initialize"]
        assert hello["capabilities"]["roots"] == {"listChanged": True}
        assert hello["clientInfo"] == {"name": "gemdeck", "version": "0.1"}


async def test_a_server_gets_no_key_and_what_its_entry_adds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "key")
    monkeypatch.setenv("LC_TIME", "C")
    definition = script("raw", env={"EXTRA": "1"}, cwd=tmp_path)
    async with ready(definition) as (manager, _):
        told = json.loads((await call(manager, "environment")).display)
        assert "GEMINI_API_KEY" not in told["env"]
        assert told["env"]["LC_TIME"] == "C"
        assert told["env"]["EXTRA"] == "1"
        assert told["cwd"] == str(tmp_path)


async def test_stderr_is_kept_clean_and_off_the_screen(capfd: pytest.CaptureFixture[str]) -> None:
    async with ready(script("raw", "stderr", "noise")) as (_, watcher):
        await eventually(lambda: len(watcher.log("raw")) >= 2)
        log = watcher.log("raw")
        assert log[0] == "done\ufffd"
        assert log[1].startswith("yyyy")
        assert len(log[1]) == 2_000
    assert capfd.readouterr() == ("", "")


async def test_a_flood_of_stderr_disturbs_nobody(loop_watch: LoopWatch) -> None:
    async with running(script("raw", "flood"), script("raw", server="good")) as (manager, watcher):
        await watcher.until("good", S.READY)
        loop_watch.clear()
        assert (await call(manager, "echo", {"text": "hi"})).display == "hi"
        await watcher.until("raw", S.READY)
        await eventually(lambda: watcher.log("raw")[-1] == "line 199999 of a flood")
        assert len(watcher.events) < 300
    loop_watch.assert_smooth()


async def test_a_server_that_ignores_every_courtesy_is_killed() -> None:
    async with ready(script("raw", "ignore_eof", "ignore_term")) as (manager, watcher):
        pid = pid_of("raw.py")
        began = time.monotonic()
        manager.stop(ServerId("raw"))
        await watcher.until("raw", S.STOPPING, S.STOPPED)
        assert 1.9 < time.monotonic() - began < 3
        assert not is_alive(pid)


@pytest.mark.parametrize("way", ["stop", "kill"])
async def test_a_child_of_a_server_does_not_survive_it(tmp_path: Path, way: str) -> None:
    async with ready(script("raw", "grandchild", cwd=tmp_path)) as (manager, watcher):
        grandchild = int((tmp_path / "grandchild.pid").read_text())
        assert is_alive(grandchild)
        if way == "stop":
            manager.stop(ServerId("raw"))
            await watcher.until("raw", S.STOPPED)
        else:
            os.kill(pid_of("raw.py"), signal.SIGKILL)
            await watcher.until("raw", S.RETRYING)
        await eventually(lambda: not is_alive(grandchild))


async def test_twenty_stubborn_servers_close_together_within_five_seconds(measure: Measure) -> None:
    definitions = [
        script("raw", "ignore_eof", "ignore_term", server=f"s{number}") for number in range(20)
    ]
    async with running(*definitions) as (manager, watcher):
        await manager.wait_discovered(20)
        assert all(watcher.last(d.id).status is S.READY for d in definitions)
        assert len(server_processes()) == 20
        began = time.monotonic()
    took = time.monotonic() - began
    measure(f"20 servers that ignore EOF and SIGTERM: closed in {took:.2f} s")
    assert took < 5
    assert children() == []


async def test_a_second_cancellation_during_the_close_leaves_nothing() -> None:
    watcher = Watcher()

    async def run() -> None:
        async with ServerManager(
            watcher,
            ClientContext(watcher, workspaces=(Path("/"),)),
            import_connect=import_connection,
        ) as manager:
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


async def test_a_server_that_reads_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_module, "WRITE_TIMEOUT", 0.2)
    async with ready(script("raw", "sleepy")) as (manager, watcher):
        with pytest.raises(ToolCallError, match="left its standard input unread"):
            await asyncio.gather(
                call(manager, "sleep"), call(manager, "echo", {"text": "x" * 1_000_000})
            )
        failed = await watcher.fails("raw", S.RETRYING)
        assert failed.reason.startswith("left its standard input unread")


async def test_a_tool_that_changed_since_it_was_offered_is_not_run(tmp_path: Path) -> None:
    async with ready(script("raw", "changing", cwd=tmp_path)) as (manager, watcher):
        shown = find_tool(manager, "echo")
        assert shown is not None
        (tmp_path / "changed").touch()
        manager.restart(ServerId("raw"))
        await watcher.until("raw", S.STOPPED, S.STARTING, S.READY)
        with pytest.raises(ToolCallError, match="changed this tool"):
            await manager.call_tool(permit(shown), lambda _: None)


async def test_a_stopped_server_is_not_called() -> None:
    async with ready(script("raw")) as (manager, _):
        tool = find_tool(manager, "echo")
        assert tool is not None
        manager.stop(ServerId("raw"))
        assert find_tool(manager, "echo") is None
        with pytest.raises(ToolCallError, match="cannot be called: it is stopping"):
            await manager.call_tool(permit(tool), lambda _: None)


async def test_a_new_configuration_adds_removes_replaces_and_leaves_servers() -> None:
    old = (script("raw", server="stays"), script("raw", server="goes"), script("raw", server="new"))
    async with running(*old) as (manager, watcher):
        await manager.wait_discovered(10)
        staying = {child.pid for child in server_processes()}
        changed = script("raw", "paging", server="new")
        manager.configure([old[0], changed, script("raw", server="added")])
        await watcher.until("added", S.STARTING, S.READY)
        await watcher.until("new", S.STARTING, S.READY)
        assert watcher.statuses("stays") == [S.STARTING, S.READY]
        assert watcher.statuses("goes") == [S.STARTING, S.READY]
        await eventually(lambda: len(server_processes()) == 3)
        assert len(staying & {child.pid for child in server_processes()}) == 1
        configured = watcher.of(ServersConfigured)[-1].servers
        assert [(view.id, view.status) for view in configured] == [
            ("stays", S.READY),
            ("new", S.STOPPED),
            ("added", S.STOPPED),
        ]
        assert configured[0].info is not None
        assert configured[0].catalog.tools[0].id == "echo"
        assert "echo_0_0" in [tool.id for tool in manager.offered_tools()]


async def test_the_same_configuration_again_changes_nothing() -> None:
    definition = script("raw")
    async with ready(definition) as (manager, watcher):
        manager.configure([definition])
        assert watcher.statuses("raw") == [S.STARTING, S.READY]


async def test_withheld_servers_are_listed_and_never_started() -> None:
    withheld = replace(script("raw"), withheld=S.UNTRUSTED)
    async with running(withheld) as (manager, watcher):
        await manager.wait_discovered(5)
        manager.start(ServerId("raw"))
        manager.restart_all()
        [configured] = watcher.of(ServersConfigured)
        assert configured.servers[0].status is S.UNTRUSTED
        assert watcher.statuses("raw") == []
        assert children() == []


async def test_waiting_for_discovery_ends_with_its_patience() -> None:
    async with running(script("raw", "mute")) as (manager, _):
        began = time.monotonic()
        await manager.wait_discovered(0.2)
        assert time.monotonic() - began < 1


def test_the_manager_is_imported_without_the_sdk() -> None:
    heavy = ("mcp", "mcp_types", "jsonschema", "google", "anyio")
    code = (
        "import sys, tui.engine.mcp.manager; "
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
