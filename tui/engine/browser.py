"""Open URLs in the user's browser, never through a shell."""

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from typing import Final

from tui.engine.background import in_daemon_thread

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
    command = _opener()
    if command is None:
        return False
    try:
        async with asyncio.timeout(OPEN_TIMEOUT):
            return await in_daemon_thread(partial(_run, (*command, what)))
    except TimeoutError:
        return True  # the opener has become the browser


def _run(command: Sequence[str]) -> bool:
    """Run a program, wait for its end, so that it leaves no zombie, and return how it went."""
    nothing = subprocess.DEVNULL
    try:
        process = subprocess.Popen(  # noqa: S603 - a found program and an address of checked form
            command, cwd="/", stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True
        )
    except OSError:
        return False
    return process.wait() == 0


def _opener() -> tuple[str, ...] | None:
    """Return the command that opens URLs on this system."""
    names = ("open",) if sys.platform == "darwin" else ("xdg-open", "wslview", "x-www-browser")
    found = next((path for name in names if (path := shutil.which(name))), None)
    return (found,) if found is not None else None
