"""The process in front of each server on Linux: what it passes on and what it leaves behind."""

import asyncio
import errno
import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path

import psutil
import pytest

from tests.support.measures import Measure
from tests.support.waiting import PATIENCE
from tests.unit.engine.mcp.processes import gone, host, marked, pid_of, reapers, started, zygotes
from tests.unit.engine.mcp.support import FOLDER, eventually, ready, script, server_processes
from tui.engine.mcp.errors import ServerError
from tui.engine.mcp.transports.stdio import reaper as reaper_module
from tui.engine.mcp.transports.stdio.process import Invocation, ServerProcess
from tui.engine.mcp.transports.stdio.zygote import Zygote
from tui.model.servers import ServerId
from tui.model.servers import ServerStatus as S

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux adopts orphans")


@pytest.mark.parametrize("zygote_goes_first", [False, True])
async def test_gemdeck_is_killed_servers_have_their_moment_and_nothing_is_left(
    tmp_path: Path, zygote_goes_first: bool, measure: Measure
) -> None:
    mark = uuid.uuid4().hex
    kinds = ["grandchild", "daemon", "ignore_eof,ignore_term,daemon,grandchild"]
    with host(tmp_path, mark, *kinds, "save", "note_eof,note_term,ignore_eof") as process:
        await eventually(lambda: len(marked(mark)) == 9)
        [zygote] = psutil.Process(process.pid).children()
        guards = zygote.children()
        assert len(guards) == 5
        if zygote_goes_first:
            zygote.kill()
            await gone(zygote.pid)
            await eventually(lambda: len(marked(mark)) == 9)  # a daemon forks once more
        # A guard that has heard nothing for longer than its grace still gives all of that.
        await asyncio.sleep(reaper_module.EOF_GRACE * 1.1)
        began = time.monotonic()
        process.kill()
        process.wait()
        await eventually(lambda: marked(mark) == [])
        ended = time.monotonic()
        await gone(zygote.pid, *(guard.pid for guard in guards))
    measure(f"gemdeck killed: its 9 server processes were gone after {ended - began:.2f} s")
    assert (tmp_path / "saved").exists()
    eof, term = (float((tmp_path / name).read_text()) for name in ("eof", "term"))
    assert began < min(eof, term)
    # From the first moment, as a busy machine notes all that follows late.
    assert began + reaper_module.EOF_GRACE <= term
    assert began + reaper_module.EOF_GRACE + reaper_module.TERMINATE_GRACE <= ended


async def test_a_grandchild_in_a_session_of_its_own_does_not_survive_its_server() -> None:
    mark = uuid.uuid4().hex
    definition = script("raw", "daemon", env={"GUARDED_BY_TEST": mark})
    async with ready(definition, script("raw", server="other")) as (manager, watcher):
        await eventually(lambda: len(marked(mark)) == 2)
        manager.stop(definition.id)
        await watcher.until("raw", S.STOPPED)
        await eventually(lambda: marked(mark) == [])
        manager.start(definition.id)
        await watcher.until("raw", S.READY)
        await eventually(lambda: len(marked(mark)) == 2)
        os.kill(pid_of("raw.py daemon"), signal.SIGKILL)
        await watcher.until("raw", S.RETRYING)
        await eventually(lambda: marked(mark) == [])
        assert watcher.last("other").status is S.READY


async def test_the_end_of_the_server_is_passed_on(zygote: Zygote) -> None:
    for code, exit_code in (("exit 0", 0), ("exit 7", 7), ("kill -15 $$", -15), ("kill $$", -15)):
        process = await started(zygote, code)
        await process.exited.wait()
        assert process.exit_code == exit_code, code
        assert process.exited_by_itself
        await process.close()


async def test_the_streams_are_the_servers_own(zygote: Zygote) -> None:
    lines: list[bytes] = []
    code = "read x; echo you said $x; echo e >&2"
    launch = Invocation(("/bin/sh", "-c", code), {}, Path("/"))
    process = await ServerProcess.start(launch, lines.extend, zygote)
    await process.write(b"hi\n")
    assert await process.read_line() == b"you said hi"
    await process.exited.wait()
    await eventually(lambda: lines == [b"e"])
    await process.close()


async def test_the_server_gets_what_it_is_given_as_it_is(zygote: Zygote, tmp_path: Path) -> None:
    code = (
        "import json, os, signal, sys; fds = os.listdir('/proc/self/fd');"
        "status = open('/proc/self/status').read();"
        "signals = [int(status.partition(n)[2].split()[0], 16) for n in ('SigIgn:', 'SigBlk:')];"
        "print(json.dumps([sys.argv[1:], dict(os.environ), len(fds), signals,"
        " os.getsid(0) == os.getpid(), os.getcwd()]))"
    )
    odd = "ü\udcff\n=x"
    env = {"A": "1=2", "B": odd, "LC_ALL": "C.UTF-8"}
    env |= {f"V{number}": "x" * 100_000 for number in range(5)}  # more than a pipe holds
    launch = Invocation((sys.executable, "-I", "-c", code, odd, ""), env, tmp_path)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGCHLD})
    try:
        process = await ServerProcess.start(launch, lambda _: None, zygote)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    line = await process.read_line()
    assert line is not None
    arguments, environment, descriptors, [ignored, blocked], leads, folder = json.loads(line)
    assert arguments == [odd, ""]
    assert environment == env
    assert descriptors == 4  # three streams, and the listing itself
    # Python's own SIGPIPE and SIGXFSZ, and what glibc's posix_spawn sets for itself
    assert ignored & ~(1 << 12 | 1 << 24 | 3 << 31) == 0
    assert blocked == 0
    assert leads
    assert folder == str(tmp_path)
    await process.close()


async def test_what_cannot_start_says_so_and_leaves_nothing(zygote: Zygote, tmp_path: Path) -> None:
    (tmp_path / "odd").write_bytes(b"\x00\x01 no program")
    (tmp_path / "odd").chmod(0o755)
    for arguments, env, folder, reason in [
        (("./odd",), {}, "", "Exec format error"),
        (("/",), {}, "/", "Permission denied"),
        (("./gone",), {}, "", "No such file or directory"),
        (("/bin/true",), {}, "gone", "No such file or directory"),
        (("/bin/true",), {}, "/bin/sh", "Not a directory"),
        (("/bin/true", "a\0b"), {}, "/", "an argument or an environment variable contains a NUL"),
        (("/bin/true",), {"A=": "b"}, "/", "an environment variable has an invalid name"),
    ]:
        launch = Invocation(arguments, env, tmp_path / folder)
        with pytest.raises(ServerError) as caught:
            await ServerProcess.start(launch, lambda _: None, zygote)
        assert caught.value.reason == f"could not be started: {reason}"
        assert caught.value.permanent
    await eventually(lambda: reapers() == [])


async def test_a_signal_to_the_reaper_reaches_the_server() -> None:
    async with ready(script("raw")) as (_, watcher):
        [reaper] = reapers()
        reaper.send_signal(signal.SIGTERM)
        failed = await watcher.fails("raw", S.RETRYING)
        assert failed.reason == "was killed by SIGTERM"


async def test_a_reaper_that_hangs_does_not_hold_up_the_close(hasty_ends: float) -> None:
    async with ready(script("raw")) as (manager, watcher):
        [reaper] = reapers()
        reaper.suspend()
        async with asyncio.timeout(PATIENCE * hasty_ends):
            manager.stop(ServerId("raw"))
            await watcher.until("raw", S.STOPPED)
        await eventually(lambda: server_processes() == [])


def test_children_are_found_where_the_system_shows_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> list[str]:
        raise FileNotFoundError(path)

    with subprocess.Popen(["/bin/sh", "-c", "read x"], stdin=subprocess.PIPE) as child:
        assert child.pid in reaper_module.children(os.getpid())
        assert reaper_module.children(child.pid) == []
        monkeypatch.setattr("os.listdir", refuse)
        assert reaper_module.children(os.getpid()) == [], "the system shows none"


async def test_nothing_is_left_if_gemdeck_goes_at_a_start(zygote: Zygote, tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    arguments = [sys.executable, str(FOLDER / "raw.py"), "daemon", "ignore_eof"]
    words = [str(len(arguments)), str(tmp_path), "", *arguments, f"GUARDED_BY_TEST={mark}"]
    request = "\0".join(words).encode()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        zygote.fork([theirs.fileno()] * 4)
        ours.sendall(b"%08x" % len(request) + request)
        await eventually(lambda: len(marked(mark)) == 2)
    await eventually(lambda: marked(mark) == [] and reapers() == [])


async def test_A22_nothing_starts_in_a_folder_that_comes_while_it_is_started(
    zygote: Zygote, tmp_path: Path
) -> None:
    folder, sung = tmp_path / "folder", tmp_path / "sung"
    folder.mkdir()
    found = folder.stat()
    launch = Invocation(
        ("/bin/sh", "-c", f"echo >{sung}"), {}, folder, f"{found.st_dev}:{found.st_ino}"
    )
    folder.rename(tmp_path / "away")
    folder.mkdir()
    with pytest.raises(ServerError, match="could not be started"):
        await ServerProcess.start(launch, lambda _: None, zygote)
    assert not sung.exists()


async def test_a_start_needs_descriptors(zygote: Zygote, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr("socket.socketpair", refuse)
    with pytest.raises(ServerError, match="could not be started: Too many open files") as caught:
        await started(zygote)
    assert not caught.value.permanent


async def test_nothing_stays_open_when_the_start_of_a_server_is_given_up(zygote: Zygote) -> None:
    process = await started(zygote)  # the zygote runs now
    await process.close()
    [parent] = zygotes()
    parent.suspend()
    try:
        before = psutil.Process().num_fds()
        start = asyncio.create_task(started(zygote))
        await eventually(lambda: psutil.Process().num_fds() > before)
        start.cancel()
        await asyncio.wait({start})
        await eventually(lambda: psutil.Process().num_fds() == before)
    finally:
        parent.resume()
    await eventually(lambda: reapers() == [])
