"""What a call holds for a file of the opened folder, so that its question can show the difference.

Only shown: what is sent is the argument, whatever a server does with it. The file is hostile.
"""

import os
from pathlib import Path
from typing import Final

from tui.engine.definitions.definition_diff import all_lines
from tui.engine.files.atomic import UnfitFileError, read_regular
from tui.engine.mcp.catalog.offered_tool import JsonObject
from tui.model.input.arguments import reveal
from tui.model.requests import FileChange
from tui.text import counted, sanitize

MAX_FILE: Final = 128 * 1024
"""Largest file that is compared, in bytes, and longest argument, in characters."""

MAX_PATH: Final = 1_000
"""Characters of an argument that may be a path."""

_CONTENT: Final = frozenset(
    {"content", "contents", "filecontent", "filecontents", "filetext", "newcontent", "newcontents"}
)
_MAYBE_CONTENT: Final = frozenset({"body", "code", "data", "source", "text"})
"""Names of arguments that hold a file's content where they have several lines."""


def content_of(arguments: JsonObject) -> str:
    """Return the name of the argument that holds a file's content; empty if none or several do."""
    names = [name for name, value in arguments.items() if _is_content(name, value)]
    return names[0] if len(names) == 1 else ""


def file_change(folder: Path, arguments: JsonObject) -> FileChange | None:
    """Compare an argument with the file of a folder that another one names. Blocks.

    Returns:
        The difference, harmless to show; None if no argument, or more than one, names a file, if
        it lies elsewhere, or is no text of at most `MAX_FILE` bytes.
    """
    content = content_of(arguments)
    place = Path(os.path.realpath(folder))
    paths = [
        (name, path)
        for name, value in arguments.items()
        if name != content and (path := _file_in(place, value)) is not None
    ]
    if not content or len(paths) != 1:
        return None
    ((name, path),) = paths
    try:
        before = read_regular(path, MAX_FILE).decode()
    except (OSError, ValueError, UnfitFileError):
        return None
    return _change(name, content, before, arguments[content])


def _is_content(name: str, value: object) -> bool:
    plain = name.lower().replace("_", "").replace("-", "")
    if not isinstance(value, str) or len(value) > MAX_FILE:
        return False
    return plain in _CONTENT or (plain in _MAYBE_CONTENT and "\n" in value)


def _file_in(place: Path, value: object) -> Path | None:
    """Return the file that a value names if it lies in a folder, wherever links lead."""
    if not isinstance(value, str) or not 0 < len(value) <= MAX_PATH or "\n" in value:
        return None
    try:
        path = Path(os.path.realpath(place / value))
        return path if place in path.parents and path.is_file() else None
    except (OSError, ValueError):
        return None


def _change(path: str, content: str, before: str, after: str) -> FileChange:
    new = after.removesuffix("\n").split("\n")
    old = before.removesuffix("\n").split("\n") if before else []
    lines = [(line.sign, line.text) for line in all_lines(old, new)]
    gone = sum(sign == "-" for sign, _ in lines)
    come = sum(sign == "+" for sign, _ in lines)
    summary = "exists: unchanged"
    if gone or come:
        first = next(number for number, (sign, _) in enumerate(lines, 1) if sign != " ")
        number = counted(gone or come, "line")
        verb = "added" if not gone else "replaced" if come else "removed"
        by = f" by {come:,}" if gone and come and come != gone else ""
        summary = f"exists: {number} {verb}{by}, from line {first:,}"
    shown = ((sign, sanitize(reveal(text)) if sign == "-" else "") for sign, text in lines)
    return FileChange(path, content, summary, tuple(shown))
