"""Find the program of a command, without letting the opened folder shadow it."""

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tui.engine.files.paths import is_same_place

FULL_PATH: Final = "GEMDECK_FULL_PATH"
"""The variable in which a cleaned ``PATH`` is kept as it was, to tell what it lost."""

FETCHERS: Final = frozenset({"npx", "bunx", "pnpx", "uvx", "pipx"})
"""Programs whose first word is a package, even if it ends as a file does."""

FETCHING: Final = frozenset(
    {("npm", "exec"), ("npm", "x"), ("pnpm", "dlx"), ("yarn", "dlx"), ("bun", "x")}
    | {("uv", "run"), ("uv", "tool"), ("uv", "x"), ("deno", "run"), ("pipx", "run")}
)
"""Programs that fetch what follows this first word."""


def fetches(command: str, args: Sequence[str]) -> bool:
    """Return whether a command runs a package that it first fetches."""
    name = Path(command).name
    return name in FETCHERS or (name, next(iter(args), "")) in FETCHING


def is_within(path: str | Path, folder: Path) -> bool:
    """Return whether a path is in a folder, by whatever name or after following links. Blocks.

    Node drops ``..`` with what stands before it, and follows no link that stands there.
    """
    short, place = Path(os.path.normpath(path)), Path(os.path.realpath(folder))
    ways = (Path(os.path.realpath(path)), Path(os.path.realpath(short)))
    is_there = any(is_same_place(at, place) for way in ways for at in (way, *way.parents))
    return is_there or folder in Path(path).parents or folder in short.parents


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


def shield_path() -> None:
    """Clean the ``PATH`` of this process: nothing is found by name in the opened folder.

    That holds for what a library or a program of ours starts, too.
    """
    try:
        avoid = guarded_folders((Path.cwd(),), Path.home())
    except (OSError, RuntimeError):  # one of them is gone; whatever needs it says so
        avoid = ()
    os.environ[FULL_PATH] = os.environ.pop("PATH", os.defpath)
    path = search_path(os.environ[FULL_PATH], avoid)
    if path:  # an empty PATH would mean the working folder
        os.environ["PATH"] = path


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
