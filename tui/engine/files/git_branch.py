"""The git branch of the opened folder, read from its files.

Git is never run: a clone's configuration could name programs. What the files say is hostile.
"""

import os
import re
from pathlib import Path
from typing import Final

from tui.engine.files.atomic import read_regular
from tui.text import sanitize_line

MAX_HEAD: Final = 4096
"""Largest ``HEAD`` or ``.git`` file that is read, in bytes."""

MAX_BRANCH: Final = 40
"""Characters of a branch's name that are shown."""

_BRANCH: Final = "ref: refs/heads/"
_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_ELSEWHERE: Final = ("worktrees", "modules")
"""Folders in a ``.git`` that hold those of worktrees and submodules."""


def repository_of(folder: Path) -> Path | None:
    """Return the nearest folder that is a repository, a folder itself or one above it. Blocks."""
    return next((one for one in (folder, *folder.parents) if (one / ".git").exists()), None)


def branch_of(folder: Path) -> str:
    """Return the branch of the repository around a folder, or the start of a detached commit.

    Returns:
        A harmless line, or an empty string if there is no repository or it cannot be read.
    """
    try:
        head = _head(Path(os.path.normpath(folder)))
    except (OSError, ValueError):
        return ""
    if head.startswith(_BRANCH):
        return sanitize_line(head.removeprefix(_BRANCH), MAX_BRANCH)
    return head[:7] if _COMMIT.fullmatch(head) else ""


def _head(folder: Path) -> str:
    """Return what ``HEAD`` says in the nearest folder that is a repository, or nothing."""
    places = (folder, *folder.parents)
    for place in places:
        git = place / ".git"
        if git.is_dir():
            return _read(git / "HEAD")
        if git.is_file():
            target = Path(os.path.normpath(place / _read(git).removeprefix("gitdir:").strip()))
            homes = (parent / ".git" / name for parent in places for name in _ELSEWHERE)
            is_inside = any(home in target.parents for home in homes)
            return _read(target / "HEAD") if is_inside else ""
    return ""


def _read(path: Path) -> str:
    return read_regular(path, MAX_HEAD).decode("utf-8", "replace").strip()
