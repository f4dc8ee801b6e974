"""Hostile servers in a sandbox. Each attack succeeds without one: else its test proved nothing."""

import contextlib
import io
import os
import pty
import re
import socketserver
import subprocess
import sys
import tarfile
import tempfile
import threading
import uuid
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil
import pytest

from tests.conftest import World
from tests.servers import burglar
from tests.support.definitions import altered
from tests.unit.engine.mcp.support import FOLDER, call, eventually, ready, script
from tui.engine.definitions.bubblewrap import MEMORY
from tui.engine.definitions.definition import Sandbox, ServerDefinition
from tui.engine.mcp.catalog.offered_tool import ToolCallError
from tui.model.servers import ServerId
from tui.model.servers import ServerStatus as S

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a sandbox"),
    pytest.mark.usefixtures("sandboxes"),
]

KEY: Final = "what only the user may read"
SCRIPT: Final = Path(burglar.__file__)
PROGRAMS: Final = Path(sys.executable).parent
VICTIM: Final = """
import ctypes, sys, tempfile, time
ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)  # any process may trace it
file = tempfile.TemporaryFile("w+"); file.write(sys.argv[1] + " is open"); file.flush()
print(flush=True); time.sleep(600)
"""
GONE: Final = "No such file or directory|does not exist|Read-only file system"
ITS_OWN: Final = "wrote 7"
"""It writes to memory of its own, which goes with the sandbox."""


class Greeter(socketserver.BaseRequestHandler):
    """Answers whoever speaks first."""

    def handle(self) -> None:
        if isinstance(self.request, tuple):
            self.request[1].sendto(b"welcome", self.client_address)
        elif self.request.recv(1):
            self.request.sendall(b"welcome")


@dataclass
class Place:
    """What an attack may be aimed at: a user's home, open folder, processes and listeners."""

    home: Path
    state: Path
    opened: Path
    run: Path
    mark: str
    victim: int
    terminal: str
    listeners: dict[str, str]


@contextlib.contextmanager
def listening(run: Path, mark: str) -> Iterator[dict[str, str]]:
    """Listen in every way; give the addresses."""
    (run / "gnupg").mkdir()
    with contextlib.ExitStack() as stack:
        tcp = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Greeter)
        udp = socketserver.ThreadingUDPServer(("127.0.0.1", 0), Greeter)
        found = {"@": f"@{mark}", "bus": f"{run}/bus", "agent": f"{run}/gnupg/S.ssh"}
        local = [
            socketserver.ThreadingUnixStreamServer(address.replace("@", "\0"), Greeter)
            for address in found.values()
        ]
        for server in (tcp, udp, *local):
            thread = threading.Thread(target=server.serve_forever, args=[0.01])
            thread.start()
            stack.callback(server.server_close)
            stack.callback(thread.join)
            stack.callback(server.shutdown)
        for name, ours in (("tcp", tcp), ("udp", udp)):
            host, port = ours.socket.getsockname()
            found[name] = f"{host}:{port}" if name == "tcp" else f"udp:{host}:{port}"
        yield found


@pytest.fixture
def place(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """Furnish a user's machine."""
    opened, mark = tmp_path / "opened", uuid.uuid4().hex
    files = {
        world.home / ".ssh/id_ed25519": KEY,
        world.home / ".bashrc": "",
        world.home / ".local/share/keyrings/login.keyring": KEY,
        world.state / "secrets.json": KEY,
        world.state / "cache/sandboxes/other-1/npm/index.js": "",
        opened / ".git/hooks/pre-commit": "",
        opened / ".git/config": "",
        opened / ".gemini/settings.json": "",
        opened / ".vscode/tasks.json": "",
        opened / ".mcp.json": "",
        opened / ".envrc": "",
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", VICTIM, mark]
    with (
        tempfile.TemporaryDirectory(prefix="run") as short,
        listening(Path(short), mark) as listeners,
        subprocess.Popen(command, stdout=subprocess.PIPE) as victim,
    ):
        assert victim.stdout is not None
        victim.stdout.readline()
        monkeypatch.setenv("XDG_RUNTIME_DIR", short)
        monkeypatch.setenv("SSH_AUTH_SOCK", listeners["agent"])
        terminal = os.ttyname(theirs)
        yield Place(
            world.home, world.state, opened, Path(short), mark, victim.pid, terminal, listeners
        )
        victim.kill()
        os.close(ours)
        os.close(theirs)


@dataclass
class Attack:
    """A tool, its target, what the sandbox answers, and whether it is to change that file."""

    tool: str
    at: Callable[[Place], object]
    told: str
    changes: bool = False


def in_home(name: str) -> Callable[[Place], object]:
    return lambda place: place.home / name


def in_opened(name: str) -> Callable[[Place], object]:
    return lambda place: place.opened / name


def listener(name: str) -> Callable[[Place], object]:
    return lambda place: place.listeners[name]


REFUSED: Final = "Connection refused|timed out|No such file"
UNSEEN: Final = "No such process|no process"
HOOK: Final = in_opened(".git/hooks/pre-commit")

ATTACKS: Final = {
    "a private key": Attack("read", in_home(".ssh/id_ed25519"), GONE),
    "the keyring's file": Attack("read", in_home(".local/share/keyrings/login.keyring"), GONE),
    "gemdeck's secrets": Attack("read", lambda place: place.state / "secrets.json", GONE),
    "what the shell runs": Attack("append", in_home(".bashrc"), f"{ITS_OWN}|{GONE}", changes=True),
    "another server's programs": Attack(
        "append",
        lambda place: place.state / "cache/sandboxes/other-1/npm/index.js",
        f"{ITS_OWN}|{GONE}",
        changes=True,
    ),
    "a listener on loopback": Attack("connect", listener("tcp"), REFUSED),
    "the same by UDP": Attack("connect", listener("udp"), REFUSED),
    "an abstract socket": Attack("connect", listener("@"), REFUSED),
    "the session bus": Attack("connect", listener("bus"), REFUSED),
    "the keys' agent": Attack("connect", listener("agent"), REFUSED),
    "the way to the agent": Attack("environment", lambda _: "SSH_AUTH_SOCK", "not set"),
    "a process": Attack("see", lambda place: place.mark, UNSEEN),
    "gemdeck and the guard": Attack("see", lambda _: "stdio/reaper.py", UNSEEN),
    "a process's life": Attack("kill", lambda place: place.victim, UNSEEN),
    "a process's memory": Attack("trace", lambda place: place.victim, f"{UNSEEN}|not permitted"),
    "a process's files": Attack("descriptors", lambda place: f"{place.mark} is open", UNSEEN),
    "a process's folders": Attack("roots", in_home(".ssh/id_ed25519"), f"{GONE}|denied"),
    "a symbolic link": Attack("symlink", in_home(".ssh/id_ed25519"), GONE),
    "a hard link": Attack("hardlink", in_home(".ssh/id_ed25519"), f"{GONE}|cross-device"),
    "mounts on top": Attack("unmount", in_home(".ssh/id_ed25519"), f"{GONE}|not permitted|space"),
    "a mount made writable": Attack("remount", HOOK, GONE, changes=True),
    "a hook": Attack("append", HOOK, GONE, changes=True),
    "the folder of hooks": Attack("move", HOOK, GONE, changes=True),
    "a repository": Attack("move", in_opened(".git/config"), "busy", changes=True),
    "gemini-cli's settings": Attack("append", in_opened(".gemini/settings.json"), GONE, True),
    "an editor's tasks": Attack("append", in_opened(".vscode/tasks.json"), GONE, True),
    "a client's servers": Attack("append", in_opened(".mcp.json"), GONE, True),
    "a shell's variables": Attack("append", in_opened(".envrc"), GONE, True),
    "the terminal": Attack("type_in", lambda place: place.terminal, GONE),
    "the disk": Attack("fill", lambda _: MEMORY + 2**20, "No space left"),
}


def is_burgled(file: str) -> bool:
    return "burgled" in Path(file).read_text()


BOXES: Final = {"bare": None, "sandboxed": Sandbox(read=(FOLDER,))}


@pytest.mark.parametrize("box", BOXES.values(), ids=BOXES)
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
async def test_K01_K02_K03_K04_K05_K06_K07_K08_K09_a_sandbox_holds_what_attacks(
    attack: Attack, box: Sandbox | None, place: Place
) -> None:
    at = str(attack.at(place))
    definition = script("burglar", sandbox=box)
    async with ready(definition, workspace=place.opened) as (manager, _):
        result = await call(manager, attack.tool, {"at": at})
        changed = not attack.changes or is_burgled(at)
    succeeded = not result.is_error and changed
    assert succeeded == (box is None), result.display
    if box is not None:
        assert re.search(attack.told, result.display), result.display


@pytest.mark.parametrize("box", BOXES.values(), ids=BOXES)
async def test_K10_no_daemon_outlives_its_sandbox(box: Sandbox | None, place: Place) -> None:
    word = uuid.uuid4().hex

    def left() -> list[psutil.Process]:
        return [one for one in psutil.process_iter() if word in living_words(one)]

    async with ready(script("burglar", sandbox=box), workspace=place.opened) as (manager, watcher):
        if box is None:
            with pytest.raises(ToolCallError):
                await call(manager, "daemon", {"at": word})
            await watcher.until("burglar", S.RETRYING)
            await eventually(left)  # it forks first, and shows the word later
            left()[0].kill()
        else:
            result = await call(manager, "daemon", {"at": word})
            assert "no gemdeck-reaper is to be seen" in result.display
            await eventually(lambda: len(left()) == 1)
            manager.stop(ServerId("burglar"))
            await watcher.until("burglar", S.STOPPED)
        await eventually(lambda: left() == [])


def living_words(process: psutil.Process) -> list[str]:
    with contextlib.suppress(psutil.Error):
        return process.cmdline()
    return []


def test_K11_a_server_inherits_no_more_than_its_streams(place: Place) -> None:
    """Shown with the server alone, whose tool finds what a parent leaves open."""
    folder = os.open(place.home, os.O_RDONLY)
    request = (
        '{"id":1,"method":"tools/call","params":{"name":"inherited","arguments":'
        '{"at":".ssh/id_ed25519"}}}\n'
    )
    try:
        command = [sys.executable, str(SCRIPT)]
        told = subprocess.run(
            command, input=request, capture_output=True, text=True, pass_fds=[folder], check=True
        )
    finally:
        os.close(folder)
    assert KEY in told.stdout


async def test_K11_a_sandboxed_server_inherits_no_more_than_its_streams(place: Place) -> None:
    folder = os.open(place.home, os.O_RDONLY)
    os.set_inheritable(folder, True)
    try:
        box = BOXES["sandboxed"]
        async with ready(script("burglar", sandbox=box), workspace=place.opened) as (manager, _):
            result = await call(manager, "inherited", {"at": ".ssh/id_ed25519"})
    finally:
        os.close(folder)
    assert "nothing more is open" in result.display


def of(definition: ServerDefinition, command: str, args: list[str]) -> ServerDefinition:
    """Start a server by another command."""
    return altered(definition, command=command, args=tuple(args))


def tarball(folder: Path) -> tuple[str, list[str]]:
    """Make an npm package of the server; give what runs it."""
    file = folder / "burglar.tgz"
    files = {
        "start.sh": f"#!/bin/sh\nexec {sys.executable} {SCRIPT}\n",
        "package.json": '{"name": "burglar", "version": "1.0.0", "bin": "start.sh"}',
    }
    with tarfile.open(file, "w:gz") as made:
        for name, text in files.items():
            about = tarfile.TarInfo(f"package/{name}")
            about.size = len(text)
            made.addfile(about, io.BytesIO(text.encode()))
    return str(PROGRAMS / "npx"), ["--offline", "--yes", "--package", str(file), "burglar"]


def wheel(folder: Path) -> tuple[str, list[str]]:
    """Make a wheel of the server; give what runs it."""
    file, about = folder / "burglar-1-py3-none-any.whl", "burglar-1.dist-info"
    with zipfile.ZipFile(file, "w") as made:
        made.write(SCRIPT, "burglar.py")
        made.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: burglar\nVersion: 1\n")
        made.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        made.writestr(f"{about}/entry_points.txt", "[console_scripts]\nburglar = burglar:main\n")
        made.writestr(f"{about}/RECORD", "")
    options = ["--offline", "--no-index", "--python", sys.executable, "--from", str(file)]
    return str(PROGRAMS / "uvx"), [*options, "burglar"]


FETCHED: Final = {"npx": tarball, "uvx": wheel}


@pytest.mark.parametrize("box", BOXES.values(), ids=BOXES)
@pytest.mark.parametrize("package", FETCHED.values(), ids=FETCHED)
async def test_K12_a_fetched_server_has_a_cache_of_its_own(
    package: Callable[[Path], tuple[str, list[str]]],
    box: Sandbox | None,
    place: Place,
    tmp_path: Path,
) -> None:
    (folder := tmp_path / "package").mkdir()
    command, args = package(folder)
    prefix = Path(sys.base_prefix)
    given = box and Sandbox(read=(FOLDER, folder, PROGRAMS.parent, prefix))
    definition = script("burglar", sandbox=given, server=package.__name__)
    definition = of(definition, command, args)
    other = str(place.state / "cache/sandboxes/other-1/npm/index.js")
    async with ready(definition, workspace=place.opened) as (manager, _):
        for tool, at in (("read", str(place.home / ".ssh/id_ed25519")), ("append", other)):
            result = await call(manager, tool, {"at": at})
            changed = tool == "read" or is_burgled(at)
            assert (not result.is_error and changed) == (box is None), result.display
    own = [*(place.state / "cache/sandboxes").glob(f"{package.__name__}-*/*/*")]
    assert bool(own) == (box is not None)
