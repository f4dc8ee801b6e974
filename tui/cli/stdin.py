"""What is piped into the command."""

import select
import sys
from typing import Final

PATIENCE: Final = 0.5
"""Seconds to wait for the first byte: an open pipe nobody writes to must not hang the command."""

MAX_INPUT: Final = 8 * 1024 * 1024
"""Bytes read at most; what exceeds them is left out."""


def read_piped_input() -> str:
    """Read standard input where it is a pipe or a file with something in it."""
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        return ""
    if not _has_data():
        return ""
    data = sys.stdin.buffer.read(MAX_INPUT)
    return data.decode("utf-8", errors="replace").strip()


def _has_data() -> bool:
    try:
        readable, _, _ = select.select([sys.stdin], [], [], PATIENCE)
    except (OSError, ValueError):  # Windows selects sockets only; a closed descriptor has nothing
        return sys.platform == "win32"
    return bool(readable)
