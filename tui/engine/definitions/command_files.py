"""Which files of the guarded folders the entry of a server names: one step, and no further.

What these files load is not watched, and the question says so. In doubt a file is watched.
"""

import itertools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from tui.engine.definitions.folder_files import FolderFile, FolderFiles
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
