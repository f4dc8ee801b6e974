"""Open URLs in the user's browser, never through a shell."""

import asyncio
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Final

from tui.engine.background import in_daemon_thread
from tui.engine.definitions.outside import without_folder

OPEN_TIMEOUT: Final = 2.0
"""Seconds after which an opener that still runs counts as successful."""

_SHELL_CHARACTERS: Final = "$();!*'`\"|<>^"
"""Characters percent-encoded because an opener script may pass the URL to a shell."""


async def open_in_browser(url: str) -> bool:
    """Open a URL; return whether that worked.

    Args:
        url: An ``http`` or ``https`` address in ASCII, which the user has agreed to.
    """
    if not url.startswith(("http://", "https://")):
        return False
    for character in _SHELL_CHARACTERS:
        url = url.replace(character, f"%{ord(character):02X}")
    return await open_outside(url)


async def open_outside(what: str) -> bool:
    """Open an address, or a file of ours, with the system's opener; return whether that worked."""
    try:
        async with asyncio.timeout(OPEN_TIMEOUT):
            return await in_daemon_thread(partial(_open, what))
    except TimeoutError:
        return True  # the opener has become the browser


def _open(what: str) -> bool:
    """Run the opener, wait for its end, so that it leaves no zombie, and return how it went.

    It starts outside the working folder, with nothing that names a place in there.
    """
    nothing = subprocess.DEVNULL
    try:
        environ, _ = without_folder(os.environ, Path.cwd(), Path.home())
        if (program := _opener(environ.get("PATH"))) is None:
            return False
        process = subprocess.Popen(  # noqa: S603 - a found program and an address of checked form
            (program, what),
            cwd="/",
            env={**environ, "PWD": "/"},
            stdin=nothing,
            stdout=nothing,
            stderr=nothing,
            start_new_session=True,
        )
    except (OSError, RuntimeError):
        return False
    return process.wait() == 0


def _opener(path: str | None) -> str | None:
    """Return the program that opens addresses on this system."""
    names = ("open",) if sys.platform == "darwin" else ("xdg-open", "wslview", "x-www-browser")
    found = (shutil.which(name, path=path) for name in names if path)
    return next(filter(None, found), None)
