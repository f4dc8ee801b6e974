"""Why a program cannot be started, and what to do: read from how it is named and how it begins."""

import errno
import os
import shlex
import shutil
from pathlib import Path
from typing import Final

from tui.engine.mcp.errors import ServerError
from tui.text import sanitize_line

MAX_HEAD: Final = 256
"""Bytes of a program that are read."""

_INSTALL: Final = "Install it, or set `command` to the path of an executable file in the settings."
_WINDOWS: Final = (".cmd", ".exe", ".bat", ".ps1")


def not_found(command: str, folder: Path) -> ServerError:
    """Return the error of a command that names no program. Blocks.

    Args:
        command: The command.
        folder: The base of a relative path.
    """
    reason, advice = f"command not found: {command}", _INSTALL
    first, _, rest = command.partition(" ")
    place = folder / command
    if os.path.isdir(place):  # noqa: PTH112 - it never raises
        reason = f"its command is a folder: {command}"
    elif os.path.exists(place):  # noqa: PTH110 - ditto
        reason, advice = (
            f"its command is not executable: {command}",
            f"Make it executable: chmod +x {shlex.quote(command)}",
        )
    elif command != command.strip():
        advice = "Remove the blanks around it from `command`."
    elif command[:1] in {"'", '"'}:
        advice = "Remove the quotes from `command`: no shell reads it. Put arguments into `args`."
    elif rest and (shutil.which(first) or shutil.which(str(folder / first))):
        advice = "Put only the program into `command`, and its arguments into `args`."
    elif command.startswith("~"):
        advice = "Write the full path: ~ is not expanded in `command`."
    elif "\\" in command or command.lower() == "cmd" or command.lower().endswith(_WINDOWS):
        advice = "That is a Windows command; use the plain name of the program, such as npx."
    return ServerError(reason, advice, permanent=True)


def not_started(program: str, error: ServerError) -> ServerError:
    """Return the error of a program that the system does not start, with what its head says."""
    if not error.reason.endswith((os.strerror(errno.ENOENT), os.strerror(errno.ENOEXEC))):
        return error
    try:
        first = shebang(program)
    except OSError:
        return error
    if not first:
        reason = "could not be started: it is not a program for this machine and has no #! line"
        return ServerError(reason, permanent=True)
    if first.endswith(b"\r"):
        reason = "could not be started: its #! line has a Windows line ending (CR)"
        return ServerError(reason, "Convert the file to Unix line endings.", permanent=True)
    interpreter = sanitize_line(first.decode("utf-8", "replace").strip(), MAX_HEAD)
    reason = f"could not be started: the interpreter in its #! line does not exist: {interpreter}"
    return ServerError(reason, "Install it, or correct that line.", permanent=True)


def shebang(program: str) -> bytes:
    """Return what a script's first line says behind ``#!``; nothing where there is no such line.

    Raises:
        OSError: If the file cannot be read.
    """
    with Path(program).open("rb") as file:
        head = file.read(MAX_HEAD)
    return head[2:].partition(b"\n")[0] if head.startswith(b"#!") else b""
