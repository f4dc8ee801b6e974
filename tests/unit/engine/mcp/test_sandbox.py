"""The sandbox of a server: what is in it, what is not, and how it ends, with real processes."""

import json
import os
import signal
import socket
import sys
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import World
from tests.support.definitions import define_server
from tests.support.rows import row
from tests.unit.engine.mcp.support import eventually, is_alive
from tui.engine.definitions import bubblewrap
from tui.engine.definitions.definition import Sandbox, ServerDefinition
from tui.engine.files.paths import cache_dir
from tui.engine.mcp.context import ClientContext
from tui.engine.mcp.errors import ServerError
from tui.engine.mcp.transports.stdio.launch import prepare
from tui.engine.mcp.transports.stdio.process import ServerProcess
from tui.engine.mcp.transports.stdio.sandbox import Sandboxes
from tui.engine.mcp.transports.stdio.zygote import Zygote

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a sandbox"),
    pytest.mark.usefixtures("sandboxes"),
]

LOOK = """
import json, os, socket, sys
def tried(code):
    try:
        return eval(code)
    except OSError as error:
        return type(error).__name__
print(json.dumps({code: tried(code) for code in json.loads(sys.argv[1])}), flush=True)
"""
"""Evaluates what it is given, and prints what came of it or which error."""

WAIT = """
import os, signal, sys, time
def end(number, frame):
    open("saved", "w").close()
    sys.exit(7)
signal.signal(signal.SIGTERM, end)
if os.fork():
    print(os.getpid(), flush=True)
while True:
    time.sleep(60)
"""
"""Has a child, outlives the end of its input, and saves when it is told to end."""


class Box:
    """A home, an opened folder in it, and the servers that are started there."""

    def __init__(self, world: World, zygote: Zygote) -> None:
        self.home, self.folder = world.home, world.home / "shop"
        self.folder.mkdir()
        boxes = Sandboxes(world.home, world.state)
        self.context = ClientContext(workspaces=(self.folder,), zygote=zygote, sandboxes=boxes)

    def write(self, path: str, text: str = "", mode: int = 0o644) -> Path:
        """Write a file below the home."""
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)
        return file

    def define(self, *args: str, command: str = sys.executable, **more: Any) -> ServerDefinition:  # noqa: ANN401
        more = {"sandbox": Sandbox(), "fingerprint": "f" * 64, **more}
        return define_server(command=command, args=args, **more)

    def options(self, **more: Any) -> list[tuple[str, str]]:  # noqa: ANN401
        """Give the options of a start, each with its first word."""
        words = prepare(self.define(**more), self.context).arguments
        return [*pairwise(words)]

    async def start(self, code: str, *args: str, **more: Any) -> ServerProcess:  # noqa: ANN401
        invocation = prepare(self.define("-c", code, *args, **more), self.context)
        return await ServerProcess.start(invocation, lambda _: None, self.context.zygote)

    async def look(self, *codes: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401
        """Evaluate expressions in a sandbox."""
        process = await self.start(LOOK, json.dumps(codes), **more)
        try:
            line = await process.read_line()
        finally:
            await process.close()
        assert line is not None
        return dict(json.loads(line))


@pytest.fixture
def box(world: World, zygote: Zygote) -> Box:
    return Box(world, zygote)


async def test_there_is_the_system_and_the_opened_folder_and_nothing_else(box: Box) -> None:
    key = box.write(".ssh/id_rsa", "key")
    box.write("shop/.git/config")
    inside = box.write("shop/data.txt", "data")
    seen = await box.look(
        "sorted(os.listdir(os.environ['HOME']))",
        f"open({str(key)!r}).read()",
        f"open({str(inside)!r}).read()",
        "open('new.txt', 'w').write('new')",
        "open('.git/config', 'a').write('x')",
        "os.rename('.git', 'git')",
        "open(os.path.expanduser('~/.bashrc'), 'w').write('x')",
        "open('/tmp/own', 'w').write('x')",
        "open('/etc/own', 'w').write('x')",
        "open('/own', 'w').write('x')",
        "open('/proc/sys/kernel/core_pattern', 'r+').name",
        "[one for one in os.listdir('/proc') if one.isdigit()]",
        "sorted(os.listdir('/run'))",
        "socket.create_connection(('127.0.0.1', 9), 5)",
        "sorted(name for name in os.environ if name.startswith(('XDG_', 'DBUS')))",
        "os.getcwd()",
        "[one for one in os.listdir('/proc/self/fd') if int(one) > 3]",
        env={"DBUS_STARTER": "own"},
    )
    assert [*seen.values()] == [
        ["shop"],
        "FileNotFoundError",
        "data",
        3,
        "OSError",
        "OSError",
        1,
        1,
        "OSError",
        "OSError",
        "OSError",
        ["1", "2"],
        [],
        "ConnectionRefusedError",
        ["DBUS_STARTER"],
        str(box.folder),
        [],
    ]
    assert (box.folder / "new.txt").exists()
    assert not (box.home / ".bashrc").exists()


async def test_what_it_is_given_is_there_and_no_more(box: Box) -> None:
    read, write = box.write("a/x.txt", "a"), box.write("b/x.txt", "b")
    box.write("shop/.git/config")
    given = Sandbox((read.parent,), (write.parent, box.folder / ".git"), network=True)
    expected = {
        "open('../a/x.txt').read()": "a",
        "open('../a/x.txt', 'w').write('x')": "OSError",
        "open('../b/x.txt', 'w').write('x')": 1,
        "open('.git/config', 'w').write('x')": 1,
        "socket.if_nameindex()": [[*one] for one in socket.if_nameindex()],
    }
    assert await box.look(*expected, sandbox=given) == expected


async def test_outside_a_trusted_folder_that_is_not_there(box: Box, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    seen = await box.look(
        "os.listdir()",
        f"os.listdir({str(box.folder)!r})",
        is_outside=True,
        cwd=own,
        sandbox=Sandbox((own,)),
    )
    assert [*seen.values()] == [[], "FileNotFoundError"]


async def test_a_folder_whole_is_given_without_lifting_what_is_read_only(box: Box) -> None:
    box.write("shop/.git/config")
    for given in (box.folder, box.folder.parent / "shop" / "."):
        seen = await box.look("open('.git/config', 'w')", sandbox=Sandbox((), (given,)))
        assert [*seen.values()] == ["OSError"]


async def test_a_trap_that_a_server_sets_for_the_next_one_is_not_mounted(box: Box) -> None:
    secret = box.write("secret/file", "x").parent
    box.write("shop/.git/config")
    code = f"os.symlink({str(secret)!r}, '.vscode')"
    assert await box.look(code) == {code: None}
    seen = await box.look("os.listdir('.vscode')", "open('.git/config', 'w')")
    assert [*seen.values()] == ["FileNotFoundError", "OSError"]
    (box.folder / ".vscode").unlink()
    (box.folder / ".vscode").mkdir()
    assert ("--ro-bind", str(box.folder / ".vscode")) not in box.options()


@pytest.mark.parametrize(
    ("ending", "code"), [("end", 7), ("kill", -signal.SIGKILL), ("crash", -signal.SIGKILL)]
)
async def test_it_ends_as_without_and_leaves_nothing(box: Box, ending: str, code: int) -> None:
    process = await box.start(WAIT)
    assert await process.read_line() == b"2"
    pids = [process.pid, *_below(process.pid)]
    assert len(pids) == 4, "bwrap twice, the server and its child"
    if ending == "end":
        await process.close()
    else:
        os.kill(pids[2], signal.SIGKILL) if ending == "crash" else process.kill()
        await process.exited.wait()
    assert (process.exit_code, (box.folder / "saved").exists()) == (code, ending == "end")
    await eventually(lambda: not any(map(is_alive, pids)))
    await process.close()


def _below(pid: int) -> list[int]:
    """List the descendants of a process, from the top."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [one for child in map(int, children) for one in (child, *_below(child))]


def test_what_no_sandbox_may_get_is_refused_with_words(box: Box, tmp_path: Path) -> None:
    for path in (".ssh/id_rsa", ".gnupg/x", "data/file"):
        box.write(path)
    link = box.home / "innocent"
    link.symlink_to(box.home / ".ssh")
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    cases: dict[str, Mapping[str, Any]] = {
        "cannot be given ~: it contains your whole home": {"sandbox": Sandbox((box.home,))},
        "cannot be given /: it contains your": {"sandbox": Sandbox((), (Path("/"),))},
        "cannot be given ~/.ssh: it gives access": {"sandbox": Sandbox((box.home / ".ssh",))},
        "~/innocent: it gives access to ~/.ssh": {"sandbox": Sandbox((link,))},
        "/cache: it gives access": {"sandbox": Sandbox((cache_dir(),))},
        "/run: it gives access": {"sandbox": Sandbox((Path("/run"),))},
        "/proc: it gives access": {"sandbox": Sandbox((Path("/proc"),))},
        "/run/user/1/bus: it gives": {"sandbox": Sandbox((Path("/run/user/1/bus"),))},
        "does not exist: ~/gone": {"sandbox": Sandbox((box.home / "gone",))},
        "working directory is not in its sandbox": {"cwd": outside},
        "no sandbox holds a container": {"command": str(box.write("bin/docker", "", 0o755))},
    }
    for words, more in cases.items():
        with row(words), pytest.raises(ServerError) as caught:
            prepare(box.define(**more), box.context)
        assert words in caught.value.reason
        assert caught.value.permanent
        assert caught.value.advice


def test_without_bubblewrap_nothing_that_asks_for_it_starts(
    box: Box, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for text, words in (
        ("", "bubblewrap (bwrap) is not installed"),
        ("#!/bin/sh\necho 'no user namespaces' >&2; exit 1\n", "one (no user namespaces)"),
    ):
        if text:
            (tmp_path / "bwrap").write_text(text)
            (tmp_path / "bwrap").chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        bubblewrap.sandbox_problem.cache_clear()
        with row(words), pytest.raises(ServerError) as caught:
            prepare(box.define(), box.context)
        assert words in caught.value.reason
        assert caught.value.permanent
    bubblewrap.sandbox_problem.cache_clear()


def test_no_variable_of_the_entry_loads_anything_outside_the_sandbox(box: Box) -> None:
    env = {"LD_PRELOAD": "/evil.so", "GLIBC_TUNABLES": "x", "OWN": "1"}
    found = prepare(box.define(env=env), box.context)
    assert {"LD_PRELOAD", "GLIBC_TUNABLES"}.isdisjoint(found.environment)
    assert found.environment["OWN"] == "1"
    at = found.arguments.index("LD_PRELOAD")
    assert found.arguments[at - 1 : at + 2] == ("--setenv", "LD_PRELOAD", "/evil.so")


def test_a_program_brings_its_installation_and_a_hostile_one_nothing_of_yours(box: Box) -> None:
    box.write("py/lib/x"), box.write("work/bin/x", "", 0o755), box.write("work/plans")
    box.write("rails/lib/x"), box.write("rails/.git/config"), box.write("rails/bin/x", "", 0o755)
    python = box.write("py/bin/python", "", 0o755)
    box.write("tools/app/pyvenv.cfg")
    box.write("tools/app/bin/app", "#!/usr/bin/env -S runner\n", 0o755)
    (box.home / "tools/app/bin/runner").symlink_to(python)
    (box.home / ".local/bin").mkdir(parents=True)
    (box.home / ".local/bin/app").symlink_to("../../tools/app/bin/app")
    environment = {"PATH": str(box.home / "tools/app/bin")}
    table: dict[str, set[str]] = {
        ".local/bin/app": {".local/bin/app", "tools/app", "py"},
        "py/bin/python": {"py"},
        "work/bin/x": {"work/bin/x"},
    }
    for shebang in ("work", "work/bin/none", ".ssh/bin/x", ".", "rails/bin/x"):
        box.write(".ssh/bin/x", "", 0o755)
        name = f"shop/evil-{len(table)}"
        box.write(name, f"#!{box.home / shebang}\n", 0o755)
        table[name] = {name, *({shebang} & {"rails/bin/x"})}
    for command, expected in table.items():
        program = str(box.home / command)
        found = box.options(command=program, program=program, env=environment)
        given = {b for a, b in found if a == "--ro-bind" and b.startswith(str(box.home))}
        with row(command):
            assert given == {str(box.home / one) for one in expected}


def test_each_server_that_fetches_its_program_has_a_cache_of_its_own(box: Box) -> None:
    npx = str(box.write("bin/npx", "", 0o755))
    made = [
        prepare(box.define("pkg", command=npx, server=name, fingerprint=name * 64), box.context)
        for name in "ab"
    ]
    [one, other] = (Path(found.environment["npm_config_cache"]).parent for found in made)
    assert one != other
    assert one.parent == cache_dir() / "sandboxes"
    assert {at.stat().st_mode & 0o777 for at in (one, other, one.parent)} == {0o700}
    assert ("--bind", str(one)) in [*pairwise(made[0].arguments)]
    assert str(other) not in made[0].arguments
