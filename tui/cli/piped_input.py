"""Standard input, where it is a pipe or a file."""

import os
import select
import sys
import time
from collections.abc import Callable
from typing import Final

from tui.cli.output import PATIENCE, say

MAX_INPUT: Final = 8 * 1024 * 1024
"""Most bytes read; the rest is ignored."""

_PIECE: Final = 64 * 1024


def read_piped_input(warn: Callable[[str], None]) -> str:
    """Read standard input to its end if it is a pipe or a file.

    There is no timeout, since the writer may be slow; after a while a message on standard error
    says that the command is waiting.

    Args:
        warn: Called if the input was cut.

    Raises:
        IsADirectoryError: If it is a folder.
    """
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        return ""
    try:
        data = _read(sys.stdin.fileno())
    except IsADirectoryError:
        raise
    except (OSError, ValueError):  # a closed descriptor
        return ""
    if len(data) > MAX_INPUT:
        warn(f"standard input was cut off at {MAX_INPUT // 1024 // 1024} MiB")
    return data[:MAX_INPUT].decode("utf-8", errors="replace").strip()


def _read(descriptor: int) -> bytes:
    """Read to the end, or until `MAX_INPUT` is exceeded."""
    data = bytearray()
    deadline = time.monotonic() + PATIENCE
    is_told = False
    while len(data) <= MAX_INPUT:
        left = None if is_told else max(0.0, deadline - time.monotonic())
        if not _is_ready(descriptor, left):
            is_told = True
            say("reading standard input; press Ctrl+C to stop")
            continue
        piece = os.read(descriptor, _PIECE)
        if not piece:
            break
        data += piece
    return bytes(data)


def _is_ready(descriptor: int, seconds: float | None) -> bool:
    """Wait until there is data or the end; None waits forever."""
    if sys.platform == "win32":  # select supports only sockets there
        return True
    readable, _, _ = select.select([descriptor], [], [], seconds)
    return bool(readable)
