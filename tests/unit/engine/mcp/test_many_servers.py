"""Many servers at once, and bad ones among good ones."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.measures import Measure
from tests.support.stalls import LoopWatch
from tests.unit.engine.mcp.support import (
    HASTY,
    call,
    children,
    eventually,
    ready,
    running,
    script,
    server_processes,
)
from tui.engine.mcp.backoff import RetryPolicy
from tui.model.events import ServerStatusChanged
from tui.model.servers import ServerId
from tui.model.servers import ServerStatus as S


@pytest.mark.slow
@pytest.mark.usefixtures("settled_heap")
async def test_thirty_servers_start_restart_and_stop(
    measure: Measure, loop_watch: LoopWatch
) -> None:
    names = [ServerId(f"s{number}") for number in range(30)]
    began = time.monotonic()
    async with running(*(script("raw", server=name) for name in names)) as (manager, watcher):
        await manager.wait_discovered(30)
        started = time.monotonic() - began
        assert all(watcher.last(name).status is S.READY for name in names)
        assert len(server_processes()) == 30
        assert len({tool.id for tool in manager.offered_tools()}) == len(manager.offered_tools())
        began = time.monotonic()
        manager.restart_all()
        await eventually(lambda: all(watcher.statuses(n)[-1:] == [S.STOPPING] for n in names))
        await eventually(lambda: all(watcher.last(n).status is S.READY for n in names), 30)
        restarted = time.monotonic() - began
        began = time.monotonic()
    closed = time.monotonic() - began
    measure(
        f"30 servers: ready {started:.1f} s, restarted {restarted:.1f} s, closed {closed:.2f} s"
    )
    assert closed < 5
    assert children() == []
    loop_watch.assert_smooth()


async def test_a_crash_loop_ends_as_failed_and_disturbs_nobody(measure: Measure) -> None:
    policy = replace(HASTY, least_delay=0.02)
    good = script("raw", server="good")
    async with running(script("raw", "exit"), good, retry=policy) as (manager, watcher):
        await watcher.until("good", S.READY)
        slowest = 0.0
        while watcher.last("raw").status is not S.FAILED:
            began = time.perf_counter()
            assert (await call(manager, "echo", {"text": "on"})).display == "on"
            slowest = max(slowest, time.perf_counter() - began)
            await asyncio.sleep(0.01)
        measure(f"calls beside a crash loop took {slowest * 1000:.0f} ms at most")
        assert watcher.statuses("raw") == [S.STARTING, S.RETRYING] * 4 + [S.STARTING, S.FAILED]
        failed = watcher.last("raw")
        assert failed.failure is not None
        assert failed.failure.reason == "exited with code 3 before it was ready"
        assert failed.failure.stderr_tail == ("cannot read the config", "giving up")
        assert "failed 5 times within 60 s; r restarts it" in failed.failure.advice
        assert watcher.statuses("good") == [S.STARTING, S.READY]
        moments = [e.retry_at for e in watcher.of(ServerStatusChanged) if e.server == "raw"]
        assert [moment is not None for moment in moments] == [False, True] * 4 + [False, False]


async def test_a_server_that_recovers_is_ready_again_by_itself(tmp_path: Path) -> None:
    flaky = script("raw", "flaky", cwd=tmp_path)
    async with running(flaky, retry=HASTY) as (manager, watcher):
        await watcher.until("raw", S.STARTING, S.RETRYING, S.STARTING, S.READY)
        assert (await call(manager, "echo", {"text": "back"})).display == "back"


async def test_a_server_that_dies_is_back_within_a_second(measure: Measure) -> None:
    async with ready(script("raw"), retry=RetryPolicy()) as (_, watcher):
        [server] = server_processes()
        began = time.monotonic()
        server.kill()
        await watcher.until("raw", S.READY, S.RETRYING, S.STARTING, S.READY)
        took = time.monotonic() - began
        measure(f"kill -9 of a server: ready again after {took:.2f} s")
        assert took < 3
