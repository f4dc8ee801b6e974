"""A server that tries to leave its sandbox: one tool for each attack, named after its function.

A tool takes ``at``, what it is aimed at, and gives what it got; what stops it is its error. It
needs no more than the standard library, so that any way of starting it does.
"""

import ctypes
import fcntl
import json
import os
import signal
import socket
import stat
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

LIBC: Final = ctypes.CDLL(None, use_errno=True)
SEIZE: Final = 0x4206
NEW_USER, NEW_MOUNTS = 0x10000000, 0x00020000
REMOUNT, BIND = 32, 4096
DETACH: Final = 2
GUARD: Final = "gemdeck-reaper"
PATIENCE: Final = 5.0
HEAD: Final = 4096


def checked(outcome: int) -> None:
    """Raise what a function of the C library reports."""
    if outcome < 0:
        raise OSError(number := ctypes.get_errno(), os.strerror(number))


def read(at: str) -> str:
    """Read a file."""
    return Path(at).read_text()


def append(at: str) -> str:
    """Write to a file, in a folder that is made if need be."""
    Path(at).parent.mkdir(parents=True, exist_ok=True)
    with Path(at).open("a") as file:
        return f"wrote {file.write('burgled')}"


def remount(at: str) -> str:
    """Make writable what is mounted two folders above a file, and write to the file."""
    LIBC.mount(None, os.fsencode(Path(at).parents[1]), None, REMOUNT | BIND, None)
    return append(at)


def move(at: str) -> str:
    """Move the folder of a file out of the way, and put another one there."""
    folder = Path(at).parent
    folder.rename(folder.with_name("moved"))
    return append(at)


def unmount(at: str) -> str:
    """Take away all that is mounted, as the root of a namespace of our own, and read a file."""
    checked(LIBC.unshare(NEW_USER | NEW_MOUNTS))
    for line in reversed(Path("/proc/self/mountinfo").read_text().splitlines()):
        if (place := line.split()[4]) != "/":
            LIBC.umount2(os.fsencode(place), DETACH)
    return read(at)


def symlink(at: str) -> str:
    """Read a file through a symbolic link."""
    Path("link").symlink_to(at)
    return read("link")


def hardlink(at: str) -> str:
    """Read a file under another name."""
    Path("other").hardlink_to(at)
    return read("other")


def processes() -> Iterator[Path]:
    """Give the folders of all processes, ours last."""
    found = [one for one in Path("/proc").iterdir() if one.name.isdigit()]
    yield from sorted(found, key=lambda one: one.name == str(os.getpid()))


def roots(at: str) -> str:
    """Read a file below the root folder, or the working folder, of any process."""
    refused: OSError | None = None
    for process in (*processes(), Path("/proc/self"), Path("/proc/thread-self")):
        for start in ("root", "cwd"):
            try:
                return read(f"{process}/{start}/{at.lstrip('/')}")
            except OSError as error:
                refused = error
    raise refused or FileNotFoundError(at)


def descriptors(at: str) -> str:
    """Find a text in what any process has open."""
    for process in processes():
        try:
            for file in (process / "fd").iterdir():
                if stat.S_ISREG(file.stat().st_mode):
                    with file.open(encoding="latin-1") as opened:
                        if at in (text := opened.read(HEAD)):
                            return text
        except OSError:
            continue
    raise ProcessLookupError(f"no process has {at} open")


def inherited(at: str) -> str:
    """Read a file below a folder that we were started with."""
    for folder in Path("/proc/self/fd").iterdir():
        if int(folder.name) > 2:
            try:
                return read(f"{folder}/{at}")
            except OSError:
                continue
    raise OSError("nothing more is open than the standard streams")


def environment(at: str) -> str:
    """Give a variable."""
    if at not in os.environ:
        raise OSError(f"{at} is not set")
    return os.environ[at]


def connect(at: str) -> str:
    """Get a word from a listener: HOST:PORT, udp:HOST:PORT, @NAME, or the path of a socket."""
    host, _, port = at.removeprefix("udp:").rpartition(":")
    kind = socket.SOCK_DGRAM if at.startswith("udp:") else socket.SOCK_STREAM
    is_local = not port.isdigit()
    with socket.socket(socket.AF_UNIX if is_local else socket.AF_INET, kind) as ours:
        ours.settimeout(PATIENCE)
        ours.connect(at.replace("@", "\0", 1) if is_local else (host, int(port)))
        ours.send(b"?")
        return ours.recv(100).decode()


def see(at: str) -> str:
    """Find a process by what its command line holds."""
    for process in processes():
        with suppress(OSError):  # it has just ended
            if at in (process / "cmdline").read_text("latin-1"):
                return process.name
    raise ProcessLookupError(f"no process shows {at}")


def kill(at: str) -> str:
    """End a process."""
    os.kill(int(at), signal.SIGKILL)
    return "killed"


def trace(at: str) -> str:
    """Attach to a process, as a debugger does."""
    checked(LIBC.ptrace(SEIZE, int(at), None, None))
    return "attached"


def type_in(at: str) -> str:
    """Write to a terminal, and type into it where the kernel lets anybody."""
    terminal = os.open(at, os.O_RDWR | os.O_NOCTTY)
    os.write(terminal, b"burgled")
    try:
        fcntl.ioctl(terminal, termios.TIOCSTI, b"x")
    except OSError as error:
        return f"wrote, but {error}"
    return "wrote and typed"


def fill(at: str) -> str:
    """Take so many bytes of the temporary folder."""
    with tempfile.TemporaryFile() as file:
        os.posix_fallocate(file.fileno(), 0, int(at))
    return "filled"


def daemon(at: str) -> str:
    """Leave a process that shows a word, and end the guard that would end it."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            null = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(null, stream)
            os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)", at])
        os._exit(0)
    os.wait()
    while Path(f"/proc/{os.getppid()}/comm").read_text().strip() != GUARD:
        raise ProcessLookupError(f"no {GUARD} is to be seen")
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(PATIENCE)
    return "this server should be gone"


TOOLS: Final[dict[str, Callable[[str], str]]] = {
    tool.__name__: tool
    for tool in (
        *(read, append, remount, move, unmount, symlink, hardlink, roots, descriptors, inherited),
        *(environment, connect, see, kill, trace, type_in, fill, daemon),
    )
}
AT: Final = {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Answer one request."""
    match method:
        case "initialize":
            info = {"name": "burglar", "version": "0"}
            return {
                "result": {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {}},
                    "serverInfo": info,
                }
            }
        case "tools/list":
            return {"result": {"tools": [{"name": name, "inputSchema": AT} for name in TOOLS]}}
        case "tools/call":
            try:
                text, failed = TOOLS[params["name"]](params["arguments"]["at"]), False
            except OSError as error:
                text, failed = str(error), True
            return {"result": {"content": [{"type": "text", "text": text}], "isError": failed}}
    return {"error": {"code": -32601, "message": "method not found"}}


def main() -> None:
    """Serve until the input ends."""
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            found = answer(request["method"], request.get("params") or {})
            print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **found}), flush=True)


if __name__ == "__main__":
    main()
