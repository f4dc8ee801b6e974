"""Servers on the network that are away for long, and what makes gemdeck try them at once."""

import subprocess
import sys
from contextlib import suppress
from unittest.mock import Mock

import pytest

from tests.servers.web import RawServer, SseServer, answer
from tests.unit.engine.mcp.network.support import WEB, connected, define
from tests.unit.engine.mcp.support import HASTY, LATER, Watcher, call, eventually, running, script
from tui.engine.mcp import network_watch, supervisor
from tui.engine.mcp.backoff import Backoff
from tui.engine.mcp.catalog.offered_tool import ToolCallError
from tui.engine.mcp.manager import ServerManager
from tui.model.servers import ServerStatus as S
from tui.model.servers import Transport

SERVERS = [(RawServer, Transport.HTTP), (SseServer, Transport.SSE)]
KINDS = pytest.mark.parametrize(("kind", "transport"), SERVERS)


async def leave(server: RawServer, manager: ServerManager, watcher: Watcher) -> None:
    """Stop a server; over HTTP only a call tells that it is gone."""
    await server.stop()
    with suppress(ToolCallError, AssertionError):  # its tool may be gone already
        await call(manager, "echo")
    await eventually(lambda: S.RETRYING in watcher.statuses(WEB))


@KINDS
async def test_G40_a_long_absence_ends(kind: type[RawServer], transport: Transport) -> None:
    async with kind() as server, connected(server.url, transport, HASTY) as (manager, watcher):
        await leave(server, manager, watcher)
        away = HASTY.max_failures + 3
        await eventually(lambda: watcher.statuses(WEB).count(S.RETRYING) >= away)
        assert S.FAILED not in watcher.statuses(WEB)
        async with server:  # at its port of before
            await watcher.until(WEB, S.STARTING, S.READY)
            assert (await call(manager, "echo", {"text": "again"})).display == "again"


@KINDS
async def test_G40_after_a_sleep_it_is_tried_at_once(
    kind: type[RawServer], transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    offset, looks = 0.0, 0

    def clock_offset() -> float:
        nonlocal looks
        looks += 1
        return offset

    monkeypatch.setattr(supervisor, "ASLEEP", 0.02)
    monkeypatch.setattr(supervisor, "clock_offset", clock_offset)
    async with kind() as server, connected(server.url, transport, LATER) as (manager, watcher):
        await leave(server, manager, watcher)
        async with server:
            seen = looks
            await eventually(lambda: looks > seen + 3)
            assert watcher.statuses(WEB)[-1] is S.RETRYING
            offset = 3_600.0
            await watcher.until(WEB, S.RETRYING, S.STARTING, S.READY)


async def test_G40_after_a_change_of_the_network_it_is_tried_whatever_the_reason_was() -> None:
    async with RawServer({"initialize": answer(405)}) as server:
        definitions = define(server.url), script("raw", "exit")
        async with running(*definitions, retry=HASTY) as (manager, watcher):
            await watcher.until(WEB, S.STARTING, S.FAILED)
            await watcher.until("raw", S.STARTING, S.FAILED)
            server.on.clear()
            manager.network_changed()
            await watcher.until(WEB, S.FAILED, S.STARTING, S.READY)
            manager.network_changed()
            assert watcher.statuses(WEB)[-1] is S.READY, "one that is there is left alone"
            assert watcher.statuses("raw")[-1] is S.FAILED, "a program needs no network"
    async with RawServer() as server, connected(server.url, retry=LATER) as (manager, watcher):
        await leave(server, manager, watcher)
        async with server:
            manager.network_changed()
            await watcher.until(WEB, S.RETRYING, S.STARTING, S.READY)


async def test_G40_a_change_of_the_network_forgets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with RawServer() as server, connected(server.url, retry=LATER) as (manager, watcher):
        await leave(server, manager, watcher)
        reset = Mock()
        monkeypatch.setattr(Backoff, "reset", reset)
        manager.network_changed()
        await watcher.until(WEB, S.RETRYING, S.STARTING, S.RETRYING)
        reset.assert_not_called()


async def test_G40_a_kernel_that_tells_nothing_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Mock()
    kernel.bind.side_effect = PermissionError
    monkeypatch.setattr(network_watch, "socket", Mock(socket=Mock(return_value=kernel)))
    network_watch.watch_network(print)()
    kernel.close.assert_called_once()


IN_A_NETWORK_OF_ITS_OWN = """
import asyncio, fcntl, socket, struct
from tui.engine.mcp import network_watch

async def main():
    told = asyncio.Event()
    network_watch.SETTLE, network_watch.REST = 0.01, 0.5
    loop, moments = asyncio.get_running_loop(), []

    def tell():
        moments.append(loop.time())
        told.set()

    close = network_watch.watch_network(tell)
    for _ in range(2):
        for flags in (0, 1):  # the loopback interface goes down and up, and gets its addresses
            with socket.socket() as control:
                fcntl.ioctl(control, 0x8914, struct.pack("16sh14x", b"lo", flags))
        await asyncio.wait_for(told.wait(), 25)
        told.clear()
    close()
    assert moments[1] - moments[0] > 0.4, "further changes wait"
    print("told twice")

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of its addresses")
def test_G40_the_kernel_tells_of_addresses_that_come_and_go() -> None:
    alone = ["unshare", "--user", "--map-root-user", "--net"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no network namespaces here")
    command = [*alone, sys.executable, "-W", "error", "-c", IN_A_NETWORK_OF_ITS_OWN]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=50)
    assert (ran.stdout, ran.stderr) == ("told twice\n", "")
