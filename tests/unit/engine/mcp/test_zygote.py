"""The process that forks the reapers: one for all servers, and none that hangs on it."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from tests.unit.engine.mcp.processes import gone, pid_of, reapers, started, zygotes
from tests.unit.engine.mcp.support import eventually, is_alive, ready, script, server_processes
from tui.engine.mcp.errors import ServerError
from tui.engine.mcp.transports.stdio.process import ServerProcess
from tui.engine.mcp.transports.stdio.zygote import Zygote
from tui.model.servers import ServerStatus as S

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has reapers")


@asynccontextmanager
async def started_together(zygote: Zygote, count: int) -> AsyncIterator[list[ServerProcess]]:
    """Run servers that are started at the same moment."""
    servers = await asyncio.gather(*(started(zygote) for _ in range(count)))
    try:
        yield servers
    finally:
        await asyncio.gather(*(server.close() for server in servers))


def open_pipes(pid: int) -> set[str]:
    """Name the pipes and sockets that a process has open."""
    folder = Path(f"/proc/{pid}/fd")
    targets = (str(entry.readlink()) for entry in folder.iterdir())
    return {target for target in targets if target.startswith(("pipe:", "socket:"))}


async def test_one_zygote_forks_reapers_that_end_their_servers_alone(tmp_path: Path) -> None:
    definition = script("raw", "grandchild", cwd=tmp_path)
    async with ready(definition, script("raw", "paging", server="other")) as (_, watcher):
        [zygote] = zygotes()
        assert {reaper.ppid() for reaper in reapers()} == {zygote.pid}
        grandchild = int((tmp_path / "grandchild.pid").read_text())
        server, other = pid_of("raw.py grandchild"), pid_of("paging")
        first, second = psutil.Process(server).parent(), psutil.Process(other).parent()
        assert {first, second} == set(reapers())
        assert first is not None
        first.kill()
        failed = await watcher.fails("raw", S.RETRYING)
        assert failed.reason == "was killed by SIGKILL"
        await gone(server, grandchild)
        assert is_alive(other)
        assert watcher.last("other").status is S.READY
        await eventually(lambda: zygote.children() == [second])  # the dead one has been reaped
    await eventually(lambda: [*zygotes(), *reapers(), *server_processes()] == [])


async def test_servers_outlive_the_zygote_and_the_next_one_gets_another(zygote: Zygote) -> None:
    for number in (signal.SIGKILL, signal.SIGTERM):
        async with started_together(zygote, 2) as servers:
            [first] = zygotes()
            first.send_signal(number)
            await gone(first.pid)
            async with started_together(zygote, 1) as [another]:
                [second] = zygotes()
                assert second.pid != first.pid
                for server in (*servers, another):
                    assert await server.read_line() == b"1"
                assert len(reapers()) == 3
            assert [server.exit_code for server in servers] == [None, None]
        assert [server.exit_code for server in (*servers, another)] == [0, 0, 0]


async def test_no_descriptor_of_a_server_reaches_another(zygote: Zygote) -> None:
    async with started_together(zygote, 3) as servers:
        for server in servers:
            assert await server.read_line() == b"1"
        everybody = [process.pid for process in (*zygotes(), *reapers(), *server_processes())]
        assert len(everybody) == 7
        pipes = [open_pipes(pid) for pid in everybody]
        assert sum(map(len, pipes)) == len(set().union(*pipes))
        assert all(len(open_pipes(server.pid)) == 3 for server in servers)
        await servers[0].close()
        assert servers[0].exit_code == 0  # so its input has ended, while the others run
        assert [server.exit_code for server in servers[1:]] == [None, None]


async def test_a_start_that_is_cancelled_leaves_nothing(zygote: Zygote) -> None:
    async with started_together(zygote, 1):
        for steps in (1, 2, 3, 5, 8, 13, 40):
            start = asyncio.create_task(started(zygote))
            for _ in range(steps):
                await asyncio.sleep(0)
            if start.cancel():
                with pytest.raises(asyncio.CancelledError):
                    await start
            else:
                assert steps > 5  # by then the zygote may have answered
                await (await start).close()
            await eventually(lambda: len(reapers()) == len(server_processes()) == 1)


async def test_a_zygote_that_hangs_goes(zygote: Zygote, monkeypatch: pytest.MonkeyPatch) -> None:
    async with started_together(zygote, 1):
        [first] = zygotes()
        first.suspend()
        with monkeypatch.context() as hasty:
            hasty.setattr("tui.engine.mcp.transports.stdio.process.START_TIMEOUT", 0.2)
            with pytest.raises(ServerError, match="its parent process does not respond") as caught:
                await started(zygote)
        assert not caught.value.permanent
        await gone(first.pid)
        async with started_together(zygote, 1) as [server]:
            assert await server.read_line() == b"1"
