"""Find the program of a command, without letting the opened folder shadow it."""

import hashlib
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MAX_HASHED: Final = 64 * 1024 * 1024
"""Largest file whose content is hashed, in bytes; of a larger one the state stands for it."""

MAX_HASHED_IN_ALL: Final = 256 * 1024 * 1024
"""Bytes that are hashed in one reading of the settings; for what is beyond, as above."""

MAX_NAMED: Final = 64
"""Files of the opened folder that are looked for among the arguments of one server."""

_BLOCK: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class FileState:
    """Identifies a file's version: replaced or rewritten files differ.

    Attributes:
        device: The device it lies on.
        inode: Its number there.
        modified: When it was written last, in nanoseconds since the epoch.
        size: Its length in bytes.
    """

    device: int
    inode: int
    modified: int
    size: int


def file_state(path: str) -> FileState | None:
    """Return the state of a file, following links; None if there is none. Blocks."""
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return None
    return FileState(found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)


@dataclass(frozen=True, slots=True)
class FolderFile:
    """A file of the opened folder that a server runs or reads, as it was when it was shown.

    Attributes:
        path: Where it lies.
        state: Its state.
        content: The SHA-256 (hex) of what is in it, or its state in words where it is too large.
    """

    path: str
    state: FileState
    content: str


class FolderFiles:
    """Looks at files of the opened folder, each once. Blocks on the file system."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._left = MAX_HASHED_IN_ALL
        self._seen: dict[str, FolderFile | None] = {}

    def look(self, path: str) -> FolderFile | None:
        """Look at a file; None where none lies there, or where it is not of the folder."""
        if path not in self._seen:
            self._seen[path] = self._look(path)
        return self._seen[path]

    def named(self, args: Sequence[str], start: Path) -> Iterator[FolderFile]:
        """Return the files that arguments name, directly or after ``=``, up to `MAX_NAMED`.

        Args:
            args: The arguments.
            start: The folder that a relative path starts from.
        """
        left = MAX_NAMED
        for word in dict.fromkeys(part for arg in args for part in (arg, arg.partition("=")[2])):
            found = self.look(os.path.normpath(start / word)) if word and left else None
            if found is not None:
                left -= 1
                yield found

    def _look(self, path: str) -> FolderFile | None:
        try:
            if not stat.S_ISREG(Path(path).stat().st_mode) or not is_within(path, self._folder):
                return None
        except (OSError, ValueError):
            return None
        state = file_state(path)
        return FolderFile(path, state, self._content(path, state)) if state is not None else None

    def _content(self, path: str, state: FileState) -> str:
        """Hash a file while there is leave to; what grows meanwhile is read to its old end."""
        instead = f"{state.size} {state.modified} {state.inode}"
        if state.size > min(MAX_HASHED, self._left):
            return instead
        self._left -= state.size
        found = hashlib.sha256()
        left = state.size
        try:
            with Path(path).open("rb") as file:
                while left > 0 and (block := file.read(min(_BLOCK, left))):
                    found.update(block)
                    left -= len(block)
        except OSError:
            return instead
        return found.hexdigest()


def is_within(path: str | Path, folder: Path) -> bool:
    """Return whether a path is in a folder, literally or after following links. Blocks."""
    real, place = Path(os.path.realpath(path)), Path(os.path.realpath(folder))
    return real == place or place in real.parents or folder in Path(path).parents


def guarded_folders(folders: Iterable[Path], home: Path) -> tuple[Path, ...]:
    """Return the folders whose programs must not shadow the system's.

    The home and its parents are left out: they hold the user's own programs.
    """
    own = Path(os.path.realpath(home))
    real = (Path(os.path.realpath(folder)) for folder in folders)
    return tuple(place for place in real if place != own and place not in own.parents)


def search_path(path: str, avoid: Iterable[Path]) -> str:
    """Clean a ``PATH``: relative and empty entries and those in the given folders go.

    A program that the opened folder brings could otherwise pass for one of the system.
    """
    folders = tuple(avoid)
    kept = [
        entry
        for entry in path.split(os.pathsep)
        if Path(entry).is_absolute() and not any(is_within(entry, place) for place in folders)
    ]
    return os.pathsep.join(kept)


def find_program(
    command: str, environment: Mapping[str, str], folder: Path, avoid: Iterable[Path] = ()
) -> str | None:
    """Find the file that a command means; None where there is none that can be executed.

    Args:
        command: A name to be looked up, or a path.
        environment: The environment the server gets; its ``PATH`` counts.
        folder: The folder that a relative path starts from.
        avoid: Folders in which no name is looked up.
    """
    try:
        if Path(command).name != command:
            found = shutil.which(str(folder / command))
        else:
            path = search_path(environment.get("PATH", os.defpath), avoid)
            found = shutil.which(command, path=path) if path else None
    except (OSError, ValueError):
        return None
    return found
