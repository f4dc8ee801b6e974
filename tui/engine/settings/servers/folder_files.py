"""Files and package folders that a server runs: found in the guarded folders, and hashed.

Everything here blocks, and nothing of it can be made to hang or to take long: only regular files
are opened, no link is followed out of a package, and every walk has an end.
"""

import copy
import hashlib
import itertools
import json
import os
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from tui.engine.files.atomic import UnfitFileError, read_regular
from tui.model.frozen import dataclass

MAX_HASHED: Final = 64 * 1024 * 1024
"""Largest file whose content is hashed, in bytes; of a larger one the state stands for it."""

MAX_HASHED_IN_ALL: Final = 256 * 1024 * 1024
"""Bytes that are hashed in one reading of the settings; for what is beyond, as above."""

MAX_PACKAGE_FILES: Final = 2_000
"""Files of package folders that are watched for one server."""

MAX_PACKAGE_BYTES: Final = 20 * 1024 * 1024
"""Bytes of them."""

MAX_PACKAGE_TIME: Final = 0.2
"""Seconds that reading a package folder may take; after that nothing of it is watched."""

MAX_TIME_IN_ALL: Final = 1.0
"""Seconds for all package folders of one reading of the settings."""

ALWAYS_READ: Final = 1_000
"""Files and folders of packages that one reading looks at however long that takes.

On a busy machine what is watched would otherwise change from one reading to the next.
"""

MAX_LOOKS_IN_ALL: Final = 100_000
"""Looks at words of commands in one reading of the settings."""

MAX_ENTRIES: Final = 10_000
"""Entries of a folder that are listed, and those of all folders in a package."""

COMPILED: Final = "__pycache__"

LEFT_OUT: Final = {
    "node_modules": "packages in node_modules",
    ".venv": "packages in .venv",
    COMPILED: "",
    ".git": "",
}
"""Folders that are not watched, and in which words they are named; some come by themselves."""

_OPEN: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_BLOCK: Final = 1024 * 1024


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
    """A file or package folder that a server runs or reads, as it was when it was shown.

    Attributes:
        path: Where it lies.
        state: Its state; None for a package, and where only its path counts.
        content: The SHA-256 (hex) of what is in it, or its state in words where it is too large;
            empty where only its path counts.
        members: The files of a package.
    """

    path: str
    state: FileState | None
    content: str
    members: tuple["FolderFile", ...] = field(default=(), hash=False)


@dataclass(frozen=True, slots=True)
class Package:
    """What was found in a package folder.

    Attributes:
        file: The folder with its files, or as skipped; None if it has none.
        unwatched: What of it is not watched, in words.
        size: The bytes of its files.
    """

    file: FolderFile | None
    unwatched: tuple[str, ...] = ()
    size: int = 0


@dataclass(frozen=True, slots=True)
class _Listing:
    """The files and links below a folder, in a fixed order; each with its state unfollowed."""

    found: tuple[tuple[str, os.stat_result], ...]
    left_out: tuple[str, ...]
    is_whole: bool


class _TooSlowError(Exception):
    """A package takes too long to read."""


class FolderFiles:
    """Looks at files of the guarded folders, each once. Blocks on the file system.

    Args:
        reads: Whether to hash what files contain; otherwise only their states are found, however
            long that takes.
        clock: Tells the time in seconds.
    """

    def __init__(
        self, *, reads: bool = True, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._reads = reads
        self._clock = clock
        self._left = [MAX_HASHED_IN_ALL]
        self._spent = [0.0]
        self._listed = [0]
        self._looks = [MAX_LOOKS_IN_ALL]
        self._seen: dict[Path, FolderFile | None] = {}
        self._packages: dict[Path, Package] = {}
        self._manifests: dict[Path, Mapping[str, Any] | None] = {}
        self._places: tuple[str, ...] = ()
        self._inside: dict[Path, bool] = {}

    def within(self, folders: Sequence[Path]) -> "FolderFiles":
        """Return the same that looks into these folders only."""
        other = copy.copy(self)
        other._inside = {}
        places = dict.fromkeys(place for one in folders for place in (one, _real(one)))
        other._places = tuple(str(place).rstrip(os.sep) for place in places)
        return other

    def spend(self, looks: int) -> bool:
        """Take from the looks of this reading; return whether there were so many left."""
        self._looks[0] -= looks
        return self._looks[0] >= 0

    def look(self, path: Path) -> FolderFile | None:
        """Look at a file; None where no regular file lies there, or outside the folders."""
        if path not in self._seen:
            self._seen[path] = self._look(path)
        found = self._seen[path]
        return found if found is not None and self.contains(path) else None

    def contains(self, path: Path) -> bool:
        """Return whether a path is in the folders, literally or after following links."""
        if path not in self._inside:
            self._inside[path] = self._has(path) or self._has(_real(path))
        return self._inside[path]

    def package(self, folder: Path) -> Package:
        """Look at all files of a folder."""
        if folder not in self._packages:
            began = self._clock()
            self._packages[folder] = self._package(folder, began)
            self._spent[0] += self._clock() - began
        return self._packages[folder]

    def manifest(
        self, path: Path, read: Callable[[Path], Mapping[str, Any] | None]
    ) -> Mapping[str, Any] | None:
        """Read a manifest once."""
        if path not in self._manifests:
            self._manifests[path] = read(path)
        return self._manifests[path]

    def _has(self, path: Path) -> bool:
        text = str(path)
        return any(text == place or text.startswith(place + os.sep) for place in self._places)

    def _look(self, path: Path) -> FolderFile | None:
        try:
            found = path.stat()
        except (OSError, ValueError):
            return None
        if not stat.S_ISREG(found.st_mode):
            return None
        return FolderFile(str(path), _state_of(found), self._content(path, found))

    def _content(self, path: Path, found: os.stat_result) -> str:
        """Hash a file while there is leave to; what grows meanwhile is read to its old end."""
        if not self._reads:
            return ""
        if found.st_size > min(MAX_HASHED, self._left[0]):
            return _instead(found)
        self._left[0] -= found.st_size
        try:
            return _hashed(path, found.st_size)
        except OSError:
            return _instead(found)

    def _package(self, folder: Path, began: float) -> Package:
        until = began + min(MAX_PACKAGE_TIME, MAX_TIME_IN_ALL - self._spent[0])

        def check() -> None:
            self._listed[0] += 1
            if self._reads and self._listed[0] > ALWAYS_READ and self._clock() > until:
                raise _TooSlowError

        try:
            listing = _listed(folder, check)
            members, size = self._members(listing, check)
        except _TooSlowError:
            words = f"what lies in {folder.name}/, which takes too long to read"
            return Package(skipped(folder), (words,))
        unwatched = list(listing.left_out)
        if not listing.is_whole or len(members) < len(listing.found):
            beyond = f"beyond its first {len(members):,} files"
            unwatched.append(f"what lies in {folder.name}/ {beyond}")
        if not members:
            return Package(None, tuple(unwatched))
        content = [[one.path.removeprefix(str(folder)), one.content] for one in members]
        whole = hashlib.sha256(json.dumps(content).encode("ascii")).hexdigest()
        return Package(FolderFile(str(folder), None, whole, members), tuple(unwatched), size)

    def _members(
        self, listing: _Listing, check: Callable[[], None]
    ) -> tuple[tuple[FolderFile, ...], int]:
        """Hash the files of a package as far as they fit; a link counts with where it leads."""
        members: list[FolderFile] = []
        size = 0
        for path, found in listing.found:
            check()
            if size + found.st_size > MAX_PACKAGE_BYTES:
                break
            size += found.st_size
            content = _member(Path(path), found) if self._reads else ""
            members.append(FolderFile(path, _state_of(found), content))
        return tuple(members), size


def skipped(folder: Path) -> FolderFile:
    """Return what stands for a package folder that is known and not watched."""
    return FolderFile(str(folder), None, "")


def _instead(found: os.stat_result) -> str:
    """Return what stands for a content that is not read."""
    return f"{found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_ino}"


def _member(path: Path, found: os.stat_result) -> str:
    try:
        if stat.S_ISLNK(found.st_mode):
            return f"link to {path.readlink()}"
        return hashlib.sha256(read_regular(path, MAX_PACKAGE_BYTES)).hexdigest()
    except (OSError, UnfitFileError):
        return _instead(found)


def _real(path: Path) -> Path:
    """Follow the links in a path; one that cannot exist stays as it is."""
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):
        return path


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


def _hashed(path: Path, size: int) -> str:
    """Hash the first bytes of a file."""
    found = hashlib.sha256()
    with open(os.open(path, _OPEN), "rb") as file:  # noqa: PTH123  (no path)
        while size > 0 and (block := file.read(min(_BLOCK, size))):
            found.update(block)
            size -= len(block)
    return found.hexdigest()


def _listed(folder: Path, check: Callable[[], None]) -> _Listing:
    """List a package, folder by folder in the order of names, up to a number of files."""
    found: list[tuple[str, os.stat_result]] = []
    left_out: dict[str, None] = {}
    is_whole, entries, waiting = True, 0, [str(folder)]
    while waiting:
        check()
        place = waiting.pop()
        known = _entries(place)
        entries += len(known)
        if len(known) > MAX_ENTRIES or entries > MAX_ENTRIES or len(found) > MAX_PACKAGE_FILES:
            is_whole = False
            break
        below: list[str] = []
        for entry in known:
            if entry.is_dir(follow_symlinks=False):
                if entry.name == COMPILED:
                    found += bound_files(entry.path)
                if entry.name in LEFT_OUT:
                    left_out[LEFT_OUT[entry.name]] = None
                else:
                    below.append(entry.path)
            elif (status := _status(entry)) is not None:
                found.append((entry.path, status))
                if _leads_out(entry, folder):
                    left_out[f"where the link {entry.name} leads"] = None
        waiting += reversed(below)
    left_out.pop("", None)
    is_whole = is_whole and len(found) <= MAX_PACKAGE_FILES
    return _Listing(tuple(found[:MAX_PACKAGE_FILES]), tuple(left_out), is_whole)


def bound_files(place: str, module: str = "") -> list[tuple[str, os.stat_result]]:
    """List the compiled files, of one module or all, that no change of their source outdates.

    Python binds those that it writes to the time of a source. Others are bound to its hash or to
    nothing (PEP 552), so that anybody can prepare them. Blocks.
    """
    ours = (one for one in _entries(place) if one.name.startswith(f"{module}." if module else ""))
    files = ((one, _status(one)) for one in ours if one.name.endswith(".pyc"))
    heads = ((one, found, file_head(one.path, 8)) for one, found in files if found)
    return [(o.path, found) for o, found, head in heads if o.is_symlink() or any(head[4:])]


def _entries(place: str) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(place) as entries:
            return sorted(itertools.islice(entries, MAX_ENTRIES + 1), key=lambda one: one.name)
    except OSError:
        return []


def _status(entry: "os.DirEntry[str]") -> os.stat_result | None:
    """Return the status of a regular file or of a link itself."""
    try:
        if entry.is_symlink() or entry.is_file(follow_symlinks=False):
            return entry.stat(follow_symlinks=False)
    except OSError:
        pass
    return None


def _leads_out(entry: "os.DirEntry[str]", folder: Path) -> bool:
    return entry.is_symlink() and _real(folder) not in _real(Path(entry.path)).parents
