"""What is piped into the command."""

import os
import select
import sys
import time
from collections.abc import Callable
from typing import Final

PATIENCE: Final = 0.5
"""Seconds after which a word on standard error says what the command waits for."""

MAX_INPUT: Final = 8 * 1024 * 1024
"""Bytes read at most; what exceeds them is left out."""

_PIECE: Final = 64 * 1024


def read_piped_input(warn: Callable[[str], None]) -> str:
    """Read standard input to its end where it is a pipe or a file.

    A pipe is waited for as long as it takes, since what writes to it may be slow; one that was
    left open by accident is told by the word on standard error.

    Args:
        warn: Hears that the input was cut.
    """
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        return ""
    try:
        data = _read(sys.stdin.fileno())
    except (OSError, ValueError):  # a folder, or a descriptor that was closed: nothing to read
        return ""
    if len(data) > MAX_INPUT:
        warn(f"standard input was cut at {MAX_INPUT // 1024 // 1024} MiB")
    return data[:MAX_INPUT].decode("utf-8", errors="replace").strip()


def _read(descriptor: int) -> bytes:
    """Read to the end, or until there is more than `MAX_INPUT`."""
    data = bytearray()
    deadline = time.monotonic() + PATIENCE
    is_told = False
    while len(data) <= MAX_INPUT:
        left = None if is_told else max(0.0, deadline - time.monotonic())
        if not _is_ready(descriptor, left):
            is_told = True
            print("gemdeck: reading standard input; Ctrl+C ends it", file=sys.stderr)  # noqa: T201
            continue
        piece = os.read(descriptor, _PIECE)
        if not piece:
            break
        data += piece
    return bytes(data)


def _is_ready(descriptor: int, seconds: float | None) -> bool:
    """Wait until there is data or the end; None waits for good."""
    if sys.platform == "win32":  # it selects sockets only
        return True
    readable, _, _ = select.select([descriptor], [], [], seconds)
    return bool(readable)
