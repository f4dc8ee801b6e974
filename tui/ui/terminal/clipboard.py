"""The desktop's clipboard, tmux's buffer, the terminal: brings copies there, and gets pictures."""

import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

PATIENCE: Final = 2.0
"""Seconds that a program may take."""

MAX_SEQUENCE: Final = 100_000
"""Bytes of a copy that each terminal takes, if it takes any."""

MAX_PICTURE: Final = 7_000_000
"""Bytes of a picture that is read."""

_PNG: Final = b"\x89PNG\r\n\x1a\n"

_READERS: Final = {
    "pbcopy": ("pngpaste", "-"),
    "wl-copy": ("wl-paste", "--type", "image/png"),
    "xclip": ("xclip", "-selection", "clipboard", "-target", "image/png", "-out"),
}
"""What gives the picture that the clipboard of a program holds."""

_CLIPBOARD: Final = "the clipboard"
_BUFFER: Final = "tmux's buffer"

_TAKING: Final = re.compile(
    "kitty|ghostty|foot|alacritty|wezterm|contour|rio|vscode", re.IGNORECASE
)
"""Terminals that let programs write the clipboard as they come."""

_TAKING_NONE: Final = re.compile("linux|dumb|Apple_Terminal")
"""Terminals that have none, and might print what is sent."""


def bring(text: str, environ: Mapping[str, str]) -> list[str]:
    """Give a text to the programs that keep copies; return where it has arrived.

    Args:
        text: The text.
        environ: The variables that the programs get.
    """
    places = list[str]()
    environ = _outside(environ)
    for (name, *arguments), place in _programs(environ):
        program = None if place in places else shutil.which(name, path=environ.get("PATH"))
        with suppress(OSError, subprocess.SubprocessError):
            if program is not None:
                subprocess.run(  # noqa: S603 - a found program
                    [program, *arguments],
                    input=text.encode(),
                    stdout=subprocess.DEVNULL,  # xclip stays, and keeps them open
                    timeout=PATIENCE,
                    check=True,
                    **_apart(environ),
                )
                places.append(place)
    return places


def picture(environ: Mapping[str, str]) -> bytes:
    """Return the picture in the desktop's clipboard, as PNG; nothing if there is none. Blocks.

    Args:
        environ: The variables that the programs get.
    """
    environ = _outside(environ)
    for (name, *_), _place in _programs(environ):
        reader, *arguments = _READERS.get(name, ("",))
        program = shutil.which(reader, path=environ.get("PATH")) if reader else None
        if program and (data := _output([program, *arguments], environ)).startswith(_PNG):
            return data
    return b""


def _output(command: list[str], environ: Mapping[str, str]) -> bytes:
    """Return what a program writes; nothing if it is too much, or takes too long."""
    with (
        suppress(OSError),
        subprocess.Popen(  # noqa: S603 - a found program
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, **_apart(environ)
        ) as process,
    ):
        ending = threading.Timer(PATIENCE, process.kill)
        ending.start()
        data = process.stdout.read(MAX_PICTURE + 1) if process.stdout else b""
        if len(data) > MAX_PICTURE:
            process.kill()
        is_whole = process.wait() == 0
        ending.cancel()
        return data if is_whole and len(data) <= MAX_PICTURE else b""
    return b""


def _apart(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return how a program runs: by itself, and nowhere near the opened folder."""
    env = {**environ, "PWD": "/"}
    return {"stderr": subprocess.DEVNULL, "cwd": "/", "env": env, "start_new_session": True}


def _outside(environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return the variables without the opened folder's programs; none if that cannot be told."""
    from tui.engine.definitions.outside import without_folder  # noqa: PLC0415 - on first use

    try:
        return without_folder(environ, Path.cwd(), Path.home())[0]
    except (OSError, RuntimeError):  # the folder is gone, or there is no home
        return {}


def _programs(environ: Mapping[str, str]) -> Iterator[tuple[list[str], str]]:
    """Yield the programs that may keep a copy where the user is, the best first, and where."""
    if not environ.get("SSH_CONNECTION"):  # else it is the clipboard of another machine
        if sys.platform == "darwin":
            yield ["pbcopy"], _CLIPBOARD
        if environ.get("WAYLAND_DISPLAY"):
            yield ["wl-copy"], _CLIPBOARD
    if environ.get("DISPLAY"):
        yield ["xclip", "-selection", "clipboard", "-in"], _CLIPBOARD
        yield ["xsel", "--clipboard", "--input"], _CLIPBOARD
    if environ.get("TMUX"):
        yield ["tmux", "load-buffer", "-w", "-"], _BUFFER  # and to the terminal around it
        yield ["tmux", "load-buffer", "-"], _BUFFER  # before tmux 3.2


def terminal_takes(size: int, environ: Mapping[str, str]) -> bool | None:
    """Tell whether the terminal takes a copy of so many bytes; None if nobody knows."""
    kind = f"{environ.get('TERM', '')} {environ.get('TERM_PROGRAM', '')}"
    if environ.get("STY") or _TAKING_NONE.search(kind):
        return False
    takes = _TAKING.search(kind) or environ.get("WT_SESSION")
    return True if takes and size <= MAX_SEQUENCE and not environ.get("TMUX") else None
