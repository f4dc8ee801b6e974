"""Files of the guarded folders, found and hashed. Blocks, but never on a pipe."""

import copy
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from tui.model.frozen import dataclass

MAX_HASHED: Final = 16 * 1024 * 1024
"""Largest file whose content is hashed, in bytes; of a larger one the state stands for it."""

_OPEN: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


@dataclass(frozen=True, slots=True)
class FileState:
    """Identifies a file's version: replaced or rewritten files differ.

    Attributes:
        device: The device it lies on.
        inode: Its number there.
        modified: When it was written last, in nanoseconds since the epoch.
        changed: When it was written, moved or renamed last, which no program can set; likewise.
        size: Its length in bytes.
    """

    device: int
    inode: int
    modified: int
    changed: int
    size: int


def file_state(path: str) -> FileState | None:
    """Return the state of a file, following links; None if there is none. Blocks."""
    try:
        return _state_of(Path(path).stat())
    except (OSError, ValueError):
        return None


def _state_of(found: os.stat_result) -> FileState:
    return FileState(
        found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size
    )


@dataclass(frozen=True, slots=True)
class FolderFile:
    """A file that a server runs or reads, as it was when it was shown.

    Attributes:
        path: Where it lies.
        state: Its state; None where only its path counts.
        content: The SHA-256 (hex) of what is in it, or its state in words where it is too large;
            empty where only its path counts.
    """

    path: str
    state: FileState | None
    content: str


class FolderFiles:
    """Looks at files of the guarded folders. Blocks on the file system.

    Args:
        reads: Whether to hash what files contain, each once; otherwise only their states are found.
    """

    def __init__(self, *, reads: bool = True) -> None:
        self._reads = reads
        self._seen: dict[Path, FolderFile] = {}
        self._places: tuple[str, ...] = ()

    def within(self, folders: Sequence[Path]) -> "FolderFiles":
        """Return the same that looks into these folders only."""
        other = copy.copy(self)
        places = dict.fromkeys(place for one in folders for place in (one, _real(one)))
        other._places = tuple(str(place).rstrip(os.sep) for place in places)
        return other

    def look(self, named: str) -> FolderFile | None:
        """Look at a file; None where no regular file lies there, or outside the folders."""
        try:
            found = os.stat(named)  # noqa: PTH116  (a tenth of the time, for many names)
        except (OSError, ValueError):
            return None
        path = Path(named)
        if ".." in path.parts:  # leads where the system would follow it to
            path = _real(path)
        if not stat.S_ISREG(found.st_mode) or not self._contains(path):
            return None
        if path not in self._seen:
            content = _content(path, found) if self._reads else ""
            self._seen[path] = FolderFile(str(path), _state_of(found), content)
        return self._seen[path]

    def has_folder(self, path: Path) -> bool:
        """Return whether a folder lies there, within the folders."""
        return os.path.isdir(path) and self._contains(path)  # noqa: PTH112  (never raises)

    def _contains(self, path: Path) -> bool:
        """Return whether a path is in the folders, literally or after following links."""
        return self._has(path) or self._has(_real(path))

    def _has(self, path: Path) -> bool:
        text = str(path)
        return any(text == place or text.startswith(place + os.sep) for place in self._places)


def changed_files(known: Iterable[FolderFile]) -> Iterator[str]:
    """Return the paths of files that are not as they were. Blocks."""
    for one in known:
        if one.state is not None and file_state(one.path) != one.state:
            yield one.path


def file_head(path: str, size: int) -> bytes:
    """Return the first bytes of a file; of a pipe and what cannot be read, none. Never blocks."""
    try:
        descriptor = os.open(path, _OPEN)
    except (OSError, ValueError):
        return b""
    try:
        return os.read(descriptor, size) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _content(path: Path, found: os.stat_result) -> str:
    """Hash a file; what grows meanwhile is read to its old end."""
    if found.st_size <= MAX_HASHED:
        try:
            with open(os.open(path, _OPEN), "rb") as file:  # noqa: PTH123  (no path)
                return hashlib.sha256(file.read(found.st_size)).hexdigest()
        except OSError:
            pass
    return f"{found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_ino}"


def _real(path: Path) -> Path:
    """Follow the links in a path; one that cannot exist stays as it is."""
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):
        return path
