"""What git leaves out of a folder, by its ``.gitignore`` files; git is never run."""

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui.engine.files.atomic import UnfitFileError, read_regular
from tui.engine.files.git_branch import repository_of

if TYPE_CHECKING:  # loaded when the first path is looked at
    from pathspec import GitIgnoreSpec

MAX_FILE: Final = 64 * 1024
"""Largest file of patterns that is read, in bytes."""

MAX_WILDCARDS: Final = 4
"""Wildcards in one pattern; one with more costs too much to match, and is not applied."""

REPOSITORY: Final = ".git"

_FILES: Final = (f"{REPOSITORY}/info/exclude", ".gitignore", ".geminiignore")  # the last wins
_WILDCARD: Final = re.compile(r"\*+|\[")


class IgnoreRules:
    """Which files below a root are left out. Reads each folder's patterns once. Blocks.

    Args:
        root: A real folder; patterns of the folders above it count up to the repository's.
    """

    def __init__(self, root: Path) -> None:
        self._top = repository_of(root) or root
        self._specs: dict[Path, GitIgnoreSpec | None] = {}

    def leaves_out(self, path: Path, *, is_folder: bool) -> bool:
        """Return whether a file or folder is ignored, itself or because of a folder it is in."""
        if path == self._top:
            return False
        steps = [step for step in reversed(path.parents) if step.is_relative_to(self._top)][1:]
        return any(self.names(step, is_folder=True) for step in steps) or self.names(
            path, is_folder=is_folder
        )

    def names(self, path: Path, *, is_folder: bool) -> bool:
        """Return whether a pattern names this very path; the deepest folder's word counts."""
        if path.name == REPOSITORY:
            return True
        for folder in path.parents:
            if (spec := self._spec(folder)) is not None:
                inside = path.relative_to(folder).as_posix() + ("/" if is_folder else "")
                if (verdict := spec.check_file(inside).include) is not None:
                    return verdict
            if folder == self._top:
                break
        return False

    def _spec(self, folder: Path) -> "GitIgnoreSpec | None":
        if folder not in self._specs:
            self._specs[folder] = _compile("\n".join(_patterns(folder)))
        return self._specs[folder]


def _patterns(folder: Path) -> Iterator[str]:
    for name in _FILES:
        try:
            text = read_regular(folder / name, MAX_FILE).decode("utf-8", "replace")
        except (OSError, ValueError, UnfitFileError):
            continue
        yield from (line for line in text.splitlines() if _is_cheap(line))


def _is_cheap(pattern: str) -> bool:
    return len(_WILDCARD.findall(pattern)) <= MAX_WILDCARDS


@lru_cache(maxsize=256)
def _compile(patterns: str) -> "GitIgnoreSpec | None":
    if not patterns:
        return None
    from pathspec import GitIgnoreSpec  # noqa: PLC0415 - in a thread, on first use

    usable = []
    for line in patterns.splitlines():
        try:
            GitIgnoreSpec.from_lines([line])
        except ValueError:  # git skips a pattern that it cannot read
            continue
        usable.append(line)
    return GitIgnoreSpec.from_lines(usable)
