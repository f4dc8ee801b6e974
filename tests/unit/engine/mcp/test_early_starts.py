"""Server processes start while the MCP SDK is still imported, and end with their supervisor."""

import asyncio
import shutil
import threading
from collections.abc import Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.definitions import altered
from tests.support.waiting import PATIENCE
from tests.unit.engine.mcp.support import Running, eventually, running, script, server_processes
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.late import import_connection
from tui.engine.mcp.backoff import StartQueue
from tui.engine.mcp.supervisor import Connect
from tui.engine.mcp.transports.stdio import launch
from tui.model.servers import ServerStatus as S

SERVERS = [script("raw", server=name) for name in ("one", "two", "three")]


class Import:
    """The import of the SDK, which takes until a test lets it end."""

    def __init__(self, *, may_end: bool = False) -> None:
        self.begun = threading.Event()
        self.may_end = threading.Event()
        self.processes = 0
        if may_end:
            self.may_end.set()

    def __call__(self) -> Connect:
        self.processes = len(server_processes())
        self.begun.set()
        self.may_end.wait(PATIENCE)
        return import_connection()


@asynccontextmanager
async def starting(importing: Callable[[], Connect], *definitions: ServerDefinition) -> Running:
    async with running(*definitions, import_connect=importing) as (manager, watcher):
        if isinstance(importing, Import) and not importing.may_end.is_set():
            await eventually(importing.begun.is_set)
        yield manager, watcher


def touching(canary: Path) -> ServerDefinition:
    """Define a server that only tells that it ran."""
    return altered(SERVERS[0], command=shutil.which("touch") or "", args=(str(canary),))


async def test_all_processes_of_a_few_servers_run_before_the_import_begins() -> None:
    importing = Import()
    async with starting(importing, *SERVERS) as (_, watcher):
        assert importing.processes == len(SERVERS)
        assert all(watcher.statuses(server.id) == [S.STARTING] for server in SERVERS)
        importing.may_end.set()
        for server in SERVERS:
            await watcher.until(server.id, S.STARTING, S.READY)
        assert len(server_processes()) == len(SERVERS), "each was started once"


async def test_a_command_that_cannot_start_does_not_hold_up_the_import(tmp_path: Path) -> None:
    broken = altered(script("raw", server="broken"), command=str(tmp_path / "gone"))
    async with starting(Import(may_end=True), broken, SERVERS[0]) as (_, watcher):
        await watcher.until("one", S.STARTING, S.READY)
        assert watcher.statuses("broken") == [S.STARTING, S.FAILED]


async def test_a_server_stopped_during_the_import_is_gone() -> None:
    importing = Import()
    async with starting(importing, SERVERS[0]) as (manager, watcher):
        manager.stop(SERVERS[0].id)
        await watcher.until("one", S.STARTING, S.STOPPING, S.STOPPED)
        await eventually(lambda: server_processes() == [])
        manager.start(SERVERS[0].id)
        importing.may_end.set()
        await watcher.until("one", S.STARTING, S.READY)


async def test_E41_a_start_by_the_user_waits_for_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StartQueue, "turn", lambda _: asyncio.sleep(3_600))
    server = SERVERS[0].id
    async with running(SERVERS[0]) as (manager, watcher):
        await watcher.until("one", S.STARTING)
        assert manager.usage(server).starts == 0
        manager.start(server)
        await watcher.until("one", S.STARTING, S.READY)
        assert manager.usage(server).starts == 1


async def test_a_failed_import_ends_the_process() -> None:
    def fail() -> Connect:
        raise ImportError("no module named mcp")

    async with starting(fail, SERVERS[0]) as (_, watcher):
        await eventually(lambda: watcher.statuses("one")[-1:] == [S.RETRYING])
        await eventually(lambda: server_processes() == [])


async def test_a_server_that_ended_during_the_import_says_how() -> None:
    importing = Import()
    async with starting(importing, script("raw", "exit")) as (_, watcher):
        await eventually(lambda: server_processes() == [])
        importing.may_end.set()
        failure = await watcher.fails("raw", S.RETRYING)
        assert failure.reason.startswith("exited with code")


async def test_leaving_during_the_import_leaves_no_process() -> None:
    importing = Import()
    async with starting(importing, *SERVERS):
        importing.may_end.set()
    await eventually(lambda: server_processes() == [])


async def test_what_is_stopped_never_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checking, may_go_on = threading.Event(), threading.Event()

    def find(*_: object) -> tuple[Path, ...]:
        checking.set()
        may_go_on.wait(PATIENCE)
        return ()

    monkeypatch.setattr(launch, "guarded_folders", find)
    canary = tmp_path / "ran"
    server = touching(canary)
    async with starting(Import(may_end=True), server) as (manager, watcher):
        await eventually(checking.is_set)
        manager.stop(server.id)
        may_go_on.set()
        await watcher.until("one", S.STARTING, S.STOPPING, S.STOPPED)
    assert not canary.exists()
