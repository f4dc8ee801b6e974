"""The process in front of each server on Linux: what it passes on and what it leaves behind."""

import asyncio
import errno
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
import uuid
from pathlib import Path

import psutil
import pytest

from tests.support.measures import Measure
from tests.unit.engine.mcp.processes import host, marked, reapers, started, zygotes
from tests.unit.engine.mcp.support import (
    FOLDER,
    call,
    eventually,
    is_alive,
    ready,
    script,
    server_processes,
)
from tui.engine.mcp.errors import ServerError
from tui.engine.mcp.transports.stdio import reaper as reaper_module
from tui.engine.mcp.transports.stdio.process import Launch, ServerProcess, _request
from tui.engine.mcp.transports.stdio.zygote import Zygote
from tui.model.servers import ServerId
from tui.model.servers import ServerStatus as S

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux adopts orphans")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
async def test_nothing_is_left_when_gemdeck_is_killed(
    tmp_path: Path, number: signal.Signals, measure: Measure
) -> None:
    mark = uuid.uuid4().hex
    kinds = ["grandchild", "daemon", "ignore_eof,ignore_term,daemon,grandchild"]
    with host(tmp_path, mark, *kinds) as process:
        await eventually(lambda: len(marked(mark)) == 7)
        [zygote] = psutil.Process(process.pid).children()
        guards = zygote.children()
        assert len(guards) == 3
        began = time.monotonic()
        process.send_signal(number)
        process.wait()
        await eventually(
            lambda: marked(mark) == [] and not any(is_alive(p.pid) for p in (zygote, *guards))
        )
        took = time.monotonic() - began
    measure(f"gemdeck ended by {number.name}: its 7 server processes were gone after {took:.2f} s")
    assert took < 3.5


@pytest.mark.parametrize("idle", [0.0, 3.0])
async def test_servers_have_their_moment_when_gemdeck_is_killed(
    tmp_path: Path, idle: float
) -> None:
    mark = uuid.uuid4().hex
    with host(tmp_path, mark, "save", "note_eof,note_term,ignore_eof") as process:
        await asyncio.sleep(idle)  # a guard that has heard nothing for so long
        process.kill()
        process.wait()
        await eventually(lambda: marked(mark) == [])
        gone = time.monotonic()
    assert (tmp_path / "saved").exists()
    eof, term = (float((tmp_path / name).read_text()) for name in ("eof", "term"))
    assert eof + reaper_module.EOF_GRACE * 0.9 < term
    assert term + reaper_module.TERMINATE_GRACE * 0.9 < gone


@pytest.mark.parametrize("way", ["stop", "death"])
async def test_a_grandchild_in_a_session_of_its_own_does_not_survive_its_server(way: str) -> None:
    mark = uuid.uuid4().hex
    definition = script("raw", "daemon", env={"GUARDED_BY_TEST": mark})
    async with ready(definition, script("raw", server="other")) as (manager, watcher):
        await eventually(lambda: len(marked(mark)) == 2)
        if way == "stop":
            manager.stop(ServerId("raw"))
            await watcher.until("raw", S.STOPPED)
        else:
            [server] = [p for p in marked(mark) if "raw.py" in " ".join(p.cmdline())]
            server.kill()
            await watcher.until("raw", S.RETRYING)
        await eventually(lambda: marked(mark) == [])
        assert watcher.last("other").status is S.READY


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [
        ("import sys; sys.exit(0)", 0),
        ("import sys; sys.exit(7)", 7),
        ("import os; os.kill(os.getpid(), 15)", -15),
        ("import os; os.kill(os.getpid(), 9)", -9),
        ("import os; os.abort()", -6),
    ],
)
async def test_the_end_of_the_server_is_passed_on(
    zygote: Zygote, code: str, exit_code: int
) -> None:
    process = await started(zygote, "-c", code)
    await process.exited.wait()
    assert process.exit_code == exit_code
    assert process.exited_by_itself
    await process.close()


async def test_the_streams_are_the_servers_own(zygote: Zygote) -> None:
    lines: list[bytes] = []
    code = "import sys; print(sys.stdin.readline().upper(), flush=True); sys.stderr.write('e\\n')"
    launch = Launch((sys.executable, "-c", code), {}, Path("/"))
    process = await ServerProcess.start(launch, lines.extend, zygote)
    await process.write(b"hi\n")
    assert await process.read_line() == b"HI"
    await process.exited.wait()
    await eventually(lambda: lines == [b"e"])
    await process.close()


async def test_the_server_gets_its_environment_arguments_and_signals_as_they_are(
    zygote: Zygote, tmp_path: Path
) -> None:
    code = (
        "import json, os, signal, sys; fds = os.listdir('/proc/self/fd');"
        "status = open('/proc/self/status').read();"
        "ignored = [l for l in status.splitlines() if l.startswith('SigIgn')];"
        "print(json.dumps([sys.argv[1:], dict(os.environ), len(fds), ignored,"
        " os.getsid(0) == os.getpid(), os.getcwd()]))"
    )
    odd = "ü\udcff\n=x"
    process = await started(
        zygote,
        *("-I", "-c", code, odd, ""),
        env={"A": "1=2", "B": odd, "LC_ALL": "C.UTF-8"},
        folder=tmp_path,
    )
    line = await process.read_line()
    assert line is not None
    arguments, environment, descriptors, [ignored], leads, folder = json.loads(line)
    assert arguments == [odd, ""]
    assert environment == {"A": "1=2", "B": odd, "LC_ALL": "C.UTF-8"}
    assert descriptors == 4  # three streams, and the listing itself
    assert int(ignored.split()[1], 16) & ~(1 << 12 | 1 << 24) == 0  # Python's own SIGPIPE, SIGXFSZ
    assert leads
    assert folder == str(tmp_path)
    await process.close()


@pytest.mark.parametrize(
    ("arguments", "env", "folder", "reason"),
    [
        (("/",), {}, "/", "Permission denied"),
        (("./gone",), {}, "", "No such file or directory"),
        (("/bin/true",), {}, "gone", "No such file or directory"),
        (("/bin/true",), {}, "/bin/sh", "Not a directory"),
        (("/bin/true", "a\0b"), {}, "/", "an argument or a variable contains a NUL"),
        (("/bin/true",), {"A=": "b"}, "/", "a variable has an invalid name"),
    ],
)
async def test_what_cannot_be_started_says_why_and_leaves_nothing(
    zygote: Zygote,
    tmp_path: Path,
    arguments: tuple[str, ...],
    env: dict[str, str],
    folder: str,
    reason: str,
) -> None:
    launch = Launch(arguments, env, tmp_path / folder)
    with pytest.raises(ServerError) as caught:
        await ServerProcess.start(launch, lambda _: None, zygote)
    assert caught.value.reason == f"could not be started: {reason}"
    assert caught.value.permanent
    await eventually(lambda: reapers() == [])


async def test_an_environment_beyond_a_pipes_size_reaches_the_server(zygote: Zygote) -> None:
    env = {f"V{number}": "x" * 100_000 for number in range(5)}
    process = await started(zygote, "-c", "import os; print(len(os.environ['V4']))", env=env)
    assert await process.read_line() == b"100000"
    await process.close()


async def test_a_signal_to_the_reaper_reaches_the_server() -> None:
    async with ready(script("raw")) as (_, watcher):
        [reaper] = reapers()
        reaper.send_signal(signal.SIGTERM)
        failed = await watcher.fails("raw", S.RETRYING)
        assert failed.reason == "was ended by SIGTERM"


async def test_a_reaper_that_is_killed_takes_its_server_along(tmp_path: Path) -> None:
    async with ready(script("raw", "grandchild", cwd=tmp_path)) as (_, watcher):
        grandchild = int((tmp_path / "grandchild.pid").read_text())
        [reaper] = reapers()
        [server] = [p for p in server_processes() if p.pid != grandchild]
        reaper.kill()
        await watcher.until("raw", S.RETRYING)
        await eventually(lambda: not is_alive(server.pid) and not is_alive(grandchild))


async def test_a_reaper_that_hangs_does_not_hold_up_the_close() -> None:
    async with ready(script("raw")) as (manager, watcher):
        [reaper] = reapers()
        reaper.suspend()
        began = time.monotonic()
        manager.stop(ServerId("raw"))
        await watcher.until("raw", S.STOPPED)
        assert time.monotonic() - began < 4
        await eventually(lambda: server_processes() == [])


def test_children_are_found_with_and_without_the_kernels_list() -> None:
    with subprocess.Popen(["/bin/sh", "-c", "read x"], stdin=subprocess.PIPE) as child:
        assert child.pid in reaper_module.children()
        assert sorted(reaper_module.search_children(os.getpid())) == sorted(
            reaper_module.children()
        )
        assert reaper_module.search_children(child.pid) == []


async def test_what_a_reaper_costs(zygote: Zygote, measure: Measure) -> None:
    async with ready(script("raw")) as (manager, _):
        [reaper] = reapers()
        info = reaper.memory_full_info()
        before = reaper.cpu_times()
        for _ in range(50):
            await call(manager, "echo", {"text": "hi"})
        after = reaper.cpu_times()
        assert (after.user, after.system) == (before.user, before.system)
        assert info.rss < 14_000_000
    times: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(10):
        for guarded in (True, False):
            with pytest.MonkeyPatch.context() as monkeypatch:
                monkeypatch.setattr(Zygote, "is_available", staticmethod(lambda g=guarded: g))
                began = time.perf_counter()
                process = await ServerProcess.start(
                    Launch(("/bin/sh", "-c", "echo; read x"), {}, Path("/")), lambda _: None, zygote
                )
                await process.read_line()
                times[guarded].append(time.perf_counter() - began)
                await process.close()
    extra = (statistics.median(times[True]) - statistics.median(times[False])) * 1000
    measure(
        f"a reaper: {info.rss / 1e6:.1f} MB resident, {info.pss / 1e6:.1f} MB of its own share, "
        f"{extra:.0f} ms at the start of a server"
    )
    assert extra < 250


async def test_nothing_is_left_when_gemdeck_goes_before_it_has_heard_of_the_start(
    zygote: Zygote, tmp_path: Path
) -> None:
    mark = uuid.uuid4().hex
    ours, theirs = socket.socketpair()
    with ours, theirs:
        zygote.fork([theirs.fileno()] * 4)
        arguments = (sys.executable, str(FOLDER / "raw.py"), "daemon", "ignore_eof")
        ours.sendall(_request(Launch(arguments, {"GUARDED_BY_TEST": mark}, tmp_path)))
        await eventually(lambda: len(marked(mark)) == 2)
    await eventually(lambda: marked(mark) == [] and reapers() == [])


async def test_a_server_starts_with_no_signal_blocked(zygote: Zygote) -> None:
    code = "print(open('/proc/self/status').read().partition('SigBlk:')[2].split()[0])"
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGCHLD})
    try:
        process = await started(zygote, "-c", code)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert await process.read_line() == b"0" * 16
    await process.close()


def test_descendants_are_not_looked_for_where_the_system_shows_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(path: str) -> list[str]:
        raise FileNotFoundError(path)

    monkeypatch.setattr("os.listdir", refuse)
    assert reaper_module.search_children(os.getpid()) == []


async def test_a_server_for_which_there_is_no_descriptor_left_is_tried_again(
    zygote: Zygote, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr("socket.socketpair", refuse)
    with pytest.raises(ServerError, match="could not be started: Too many open files") as caught:
        await started(zygote, "-c", "pass")
    assert not caught.value.permanent


async def test_nothing_stays_open_when_the_start_of_a_server_is_given_up(zygote: Zygote) -> None:
    process = await started(zygote, "-c", "input()")  # the zygote runs now
    await process.close()
    [parent] = zygotes()
    parent.suspend()
    try:
        before = psutil.Process().num_fds()
        start = asyncio.create_task(started(zygote, "-c", "input()"))
        await eventually(lambda: psutil.Process().num_fds() > before)
        start.cancel()
        await asyncio.wait({start})
        await eventually(lambda: psutil.Process().num_fds() == before)
    finally:
        parent.resume()
    await eventually(lambda: reapers() == [])
