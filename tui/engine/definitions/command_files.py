"""Which files of the guarded folders the entry of a server names: one step, and no further.

What these files load is not watched, and the question says so. In doubt a file is watched.
"""

import copy
import hashlib
import itertools
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from tui.engine.definitions.definition import FileState, FolderFile
from tui.engine.definitions.known_programs import (
    BUILDS,
    CONTAINERS,
    MANIFESTS,
    NODES,
    interpreters_in,
    pieces_of,
    program_names,
)
from tui.engine.files.atomic import UnfitFileError, read_regular
from tui.model.bounded_json import JsonError, read_object

MAX_HASHED: Final = 16 * 1024 * 1024
"""Largest file whose content is hashed, in bytes; of a larger one the state stands for it."""

_OPEN: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


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


MAX_FILES: Final = 64
"""Files that are watched for one server."""

MAX_NAMES: Final = 200
"""Parts of an entry that are looked at as paths."""

MAX_PLACES: Final = 3
"""Folders in which these parts are looked for: the one it starts in, and those that it names."""

MAX_MANIFEST: Final = 256 * 1024
"""Largest ``package.json`` that is read, in bytes."""

_ENDINGS: Final = ("", ".js", ".cjs", ".mjs", ".ts")
"""What node tries the name of a script with, and what runs TypeScript."""

_FROM: Final = frozenset({"--from", "--spec", "--with"})
"""Flags by which the Python tool runners take a package of a folder; they obey no other one."""

_MODULE: Final = re.compile(r"(?:-\w*?m|--module=?)(.*)")


def named_parts(words: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """Return all in arguments and variables that could be a path, one more than is looked at."""
    values = (value for name, value in env.items() if name.upper() != "PATH")
    pieces = (piece for word in (*words, *values) for piece in pieces_of(word))
    return list(itertools.islice(dict.fromkeys(pieces), MAX_NAMES + 1))


def named_files(
    words: Sequence[str], program: str, env: Mapping[str, str], start: Path, files: FolderFiles
) -> tuple[FolderFile, ...]:
    """Find the files that an entry names, and what its runner is known to obey. Blocks.

    Args:
        words: The program as the entry names it, and its arguments.
        program: The file that it means, if one was found.
        env: Its variables, and those that load code into it.
        start: The folder where it starts.
        files: Looks at files of the guarded folders.
    """
    parts = named_parts(words[1:], env)[:MAX_NAMES]
    names = program_names(words[0], program, os.path.realpath(program) if program else "")
    is_contained = bool(names & CONTAINERS) and not BUILDS & set(words)
    # a program may run another one that its arguments name; in a container it finds nothing here
    names = set() if is_contained else names | program_names(*parts)
    if names & {"uvx", "pipx"} and _FROM & {word.partition("=")[0] for word in words}:
        names |= {"uv"}
    folders = [place for part in parts if files.has_folder(place := start / part)]
    places = list(dict.fromkeys((start, *folders)))[:MAX_PLACES]
    manifests = {manifest for name in names for manifest in MANIFESTS.get(name, ())}
    modules = [name.replace(".", "/") for name in _modules(words)]
    is_node = bool(names & NODES) or "NODE_OPTIONS" in env
    endings = _ENDINGS if is_node else ("",)
    inside = [
        *(f"{part}{ending}" for part in parts for ending in endings),
        *(f"{module}{ending}" for module in modules for ending in (".py", "/__main__.py")),
        *sorted(manifests),
    ]
    starts = map(str, places)
    paths = [os.path.join(place, name) for place in starts for name in inside]  # noqa: PTH118
    if is_node or interpreters_in(names):
        named = (place for place in places if place in folders)
        paths += [str(path) for place in named for path in _mains(place, files)]
    found = {one.path: one for path in paths if (one := files.look(path)) is not None}
    return tuple(found.values())[:MAX_FILES]


def _modules(words: Sequence[str]) -> Iterator[str]:
    """Return what stands behind ``-m``."""
    for word, behind in itertools.pairwise((*words, "")):
        if match := _MODULE.fullmatch(word):
            name = match[1] or behind
            if "/" not in name and all(name.split(".")):
                yield name


def _mains(folder: Path, files: FolderFiles) -> Iterator[Path]:
    """Return what an interpreter runs of a folder that it is given."""
    yield folder / "__main__.py"
    manifest = folder / "package.json"
    yield manifest
    main = _main_in(manifest) if files.look(str(manifest)) else ""
    names = (main, f"{main}/index", "index")
    yield from (folder / f"{name}{ending}" for name in names for ending in _ENDINGS)


def _main_in(manifest: Path) -> str:
    """Return what a ``package.json`` names as its main file; empty if it cannot be read."""
    try:
        main = read_object(read_regular(manifest, MAX_MANIFEST), last_key_counts=True).get("main")
    except (OSError, UnfitFileError, JsonError):
        return ""
    return main if isinstance(main, str) else ""
