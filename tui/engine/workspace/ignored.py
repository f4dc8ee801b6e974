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
_Rules = tuple[int, "GitIgnoreSpec"]
"""Where a path in a folder starts, and the folder's patterns."""

_WILDCARD: Final = re.compile(r"\*+|\[")


class IgnoreRules:
    """Which files below a root are left out. Reads each folder's patterns once. Blocks.

    Args:
        root: A real folder; patterns of the folders above it count up to the repository's.
    """

    def __init__(self, root: Path) -> None:
        self._top = repository_of(root) or root
        self._chains: dict[Path, tuple[_Rules, ...]] = {}

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
        written = f"{path.as_posix()}/" if is_folder else path.as_posix()
        for start, spec in self._rules_of(path.parent):
            if (verdict := spec.check_file(written[start:]).include) is not None:
                return verdict
        return False

    def _rules_of(self, folder: Path) -> "tuple[_Rules, ...]":
        """Return the patterns for what is in a folder, the deepest folder's first."""
        if folder not in self._chains:
            spec = _compile("\n".join(_patterns(folder)))
            start = len(folder.as_posix().rstrip("/")) + 1
            own = ((start, spec),) if spec is not None else ()
            above = () if folder in {self._top, folder.parent} else self._rules_of(folder.parent)
            self._chains[folder] = (*own, *above)
        return self._chains[folder]


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
