"""Folders anywhere whose names begin as was typed."""

import os
from itertools import islice
from pathlib import Path
from typing import Final

from tui.text import sanitize_line

MAX_SCANNED: Final = 10_000
"""Entries of a folder that are looked at."""


def folders_like(typed: str, base: Path, limit: int) -> list[str]:
    """List folders that continue what was typed, as they would be typed. Blocks.

    Args:
        typed: A path from `base` on, absolute or with ``~``, its last name not complete.
        base: The folder that it starts from.
        limit: How many are listed.
    """
    begun = typed.rpartition("/")[2]
    start = typed.removesuffix(begun)
    try:
        with os.scandir(base / Path(start).expanduser()) as entries:
            found = [
                entry.name
                for entry in islice(entries, MAX_SCANNED)
                if entry.name.startswith(begun)
                and (begun or not entry.name.startswith("."))
                and sanitize_line(entry.name) == entry.name
                and entry.is_dir()
            ]
    except (OSError, ValueError, RuntimeError):  # no such folder, or no such home
        return []
    return [f"{start}{name}/" for name in sorted(found)[:limit]]
