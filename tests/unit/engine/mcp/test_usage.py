"""What is measured of servers: real calls, real processes, and offers that change."""

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.servers.sample import server as sample
from tests.servers.web import serving
from tests.unit.engine.mcp.network.support import WEB, connected
from tests.unit.engine.mcp.processes import pid_of
from tests.unit.engine.mcp.support import call, eventually, ready, refuses, script
from tui.engine.mcp import usage as module
from tui.engine.mcp.session import listing
from tui.engine.mcp.session.call_timeout import CallTimeout
from tui.engine.mcp.usage import process_tree
from tui.model.servers import ServerId, ServerUsage
from tui.model.servers import ServerStatus as S

SAMPLE, SHELF = ServerId("sample"), ServerId("library")


async def test_calls_and_their_time_count_over_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ready(script("sample")) as (manager, watcher):
        fresh = manager.usage(SAMPLE)
        assert (fresh.starts, fresh.calls, fresh.seconds, fresh.change) == (1, 0, (), {})
        assert fresh.connected > 0
        assert fresh.listed > 0
        await call(manager, "add", {"a": 2, "b": 3})
        await call(manager, "fail", {"reason": "rain"})
        await call(manager, "count", {"to": 2, "pause": 0.11})
        used = manager.usage(SAMPLE)
        assert (used.calls, used.failed, len(used.seconds)) == (3, 1, 3)
        assert used.seconds[-1] >= 0.22, "the server pauses twice"
        assert min(used.seconds) > 0
        monkeypatch.setattr(module, "MAX_TIMED", 2)
        manager.restart(SAMPLE)
        await watcher.until("sample", S.STOPPED, S.STARTING, S.READY)
        await call(manager, "add", {"a": 2, "b": 3})
        again = manager.usage(SAMPLE)
        assert (again.starts, again.calls) == (2, 4)
        assert again.seconds[0] == used.seconds[-1], "the newest are kept"
        assert again.change == {}, "it offers the same as before"
        manager.stop(SAMPLE)
        await watcher.until("sample", S.STOPPED)
        gone = manager.usage(SAMPLE)
        assert (gone.pid, gone.processes, gone.memory, gone.calls) == (0, 0, 0, 4)
        assert manager.usage(ServerId("nobody")) == ServerUsage()


async def test_the_time_of_the_user_is_not_the_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, passed = asyncio.get_running_loop(), 0.0
    monkeypatch.setattr(loop, "time", lambda: passed)
    timeout = CallTimeout(600)
    passed = 5.0
    with timeout.pause(), timeout.pause():
        passed = 100.0
        assert timeout.clock() == 5
    passed = 102.0
    assert timeout.clock() == 7


async def test_a_server_over_http_is_measured_and_has_no_process() -> None:
    application = sample.streamable_http_app()
    async with serving(application) as base, connected(f"{base}/mcp") as (manager, _):
        await call(manager, "add", {"a": 2, "b": 3})
        used = manager.usage(WEB)
        assert (used.calls, used.pid, used.processes, used.memory) == (1, 0, 0, 0)
        assert used.connected > 0


async def test_its_process_is_named_and_a_call_without_a_result_counts_as_failed() -> None:
    async with ready(script("raw")) as (manager, _):
        used = manager.usage(ServerId("raw"))
        assert (used.pid, used.processes) == (pid_of("raw.py"), 1)
        assert used.memory == pytest.approx(psutil.Process(used.pid).memory_info().rss, rel=0.2)
        await refuses("exited with code 7", manager, "die")
        used = manager.usage(ServerId("raw"))
        assert (used.calls, used.failed) == (1, 1)


async def test_a_process_counts_with_all_that_it_started(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import subprocess as s, time; s.Popen(['sh', '-c', 'sleep 60; true']); time.sleep(60)"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code)
    parent = psutil.Process(process.pid)
    try:
        await eventually(lambda: process_tree(process.pid)[0] == 3)
        family = [parent, *parent.children(recursive=True)]
        resident = sum(one.memory_info().rss for one in family)
        assert process_tree(process.pid)[1] == pytest.approx(resident, rel=0.2)
        monkeypatch.setattr(module, "MAX_THREADS", 2)
        assert process_tree(process.pid)[0] == 2, "the work has a limit"
    finally:
        for one in (*parent.children(recursive=True), parent):
            one.kill()
        await process.wait()
    assert process_tree(process.pid) == (0, 0)


async def test_what_a_restart_changes_in_an_offer_is_named(tmp_path: Path) -> None:
    says = tmp_path / "says.json"

    def say(**offer: object) -> None:
        says.write_text(json.dumps(offer), encoding="utf-8")

    about: Mapping[str, Any] = {"one": {"description": "now otherwise"}}
    say(tools={"one": [], "two": []}, prompts={"greet": []}, resources=["memo://a"])
    async with ready(script("library", str(says))) as (manager, watcher):
        say(tools={"one": [], "three": []}, definitions=about, prompts={"greet": ["who!"]})
        manager.restart(SHELF)
        await watcher.until("library", S.STOPPED, S.STARTING, S.READY)
        assert manager.usage(SHELF).change == {
            "gained": ("tool three",),
            "lost": ("tool two", "resource memo://a"),
            "changed": ("tool one", "prompt greet"),
        }
        say(tools={"one": []}, definitions=about, templates=["memo://{x}"])
        manager.restart(SHELF)
        await watcher.until("library", S.STOPPED, S.STARTING, S.READY)
        assert manager.usage(SHELF).change == {
            "gained": ("template memo://{x}",),
            "lost": ("tool three", "prompt greet"),
        }, "only the connection before counts"


async def test_changes_are_since_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "DEBOUNCE", 0.05)
    tools, calls = tmp_path / "tools.json", tmp_path / "calls"

    def offer(*names: str) -> None:
        listed = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
        tools.write_text(json.dumps(listed), encoding="utf-8")

    offer("turn", "old")
    turncoat = ServerId("turncoat")
    async with ready(script("turncoat", str(tools), str(calls))) as (manager, _):
        for names, change in (
            (("turn", "new"), {"gained": ("tool new",), "lost": ("tool old",)}),
            (("turn", "old", "new"), {"gained": ("tool new",)}),
        ):
            offer(*names)
            await call(manager, "turn")
            await eventually(lambda: manager.usage(turncoat).change == change)  # noqa: B023 - awaited at once


async def test_what_both_sides_declare_is_sanitised_and_bounded(tmp_path: Path) -> None:
    says = tmp_path / "says.json"
    hostile = "\x1b[31mred\u202e" + "x" * 200
    info = {"title": hostile, "websiteUrl": f"javascript:{hostile}", "version": "2"}
    extensions: dict[str, Any] = {hostile: {}, **{f"io.example/{n}": {} for n in range(100)}}
    capabilities = {"extensions": extensions, "experimental": {hostile: {}}}
    says.write_text(json.dumps({"tools": {"one": []}, "info": info, "capabilities": capabilities}))
    async with ready(script("library", str(says))) as (_, watcher):
        told = watcher.last("library").info
        assert told is not None
        assert told.capabilities[:4] == ("experimental", "prompts", "resources", "tools")
        assert "io.example/3" in told.capabilities
        assert len(told.capabilities) == 32
        mine = ("io.modelcontextprotocol/skills", "io.modelcontextprotocol/tasks")
        assert told.announced == ("elicitation", "roots", *mine)
        shown = (told.title, told.website, *told.capabilities)
        assert not [text for text in shown if "\x1b" in text or "\u202e" in text]
        assert max(map(len, (told.title, *told.capabilities))) <= 64
        assert told.title.startswith("red")
