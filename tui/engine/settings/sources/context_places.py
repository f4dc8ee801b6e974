"""Where files of context are: ``GEMINI.md``, or whatever ``context.fileName`` calls them."""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from tui.engine.definitions.definition import SettingsProblem
from tui.engine.files.atomic import UnfitFileError, read_regular
from tui.engine.files.git_branch import repository_of
from tui.engine.settings.sources.context_imports import Imports
from tui.engine.settings.sources.dotenv import leads_out
from tui.engine.settings.sources.locations import FOLDER_NAME, shown_path
from tui.engine.settings.sources.source import Source, salvage
from tui.model.events import ContextFile
from tui.model.frozen import dataclass
from tui.model.settings import ContextSettings
from tui.text import clip_middle, for_model, sanitize_line

MAX_FILE: Final = 1024 * 1024
"""Largest file of context that is read, in bytes."""

MAX_TEXT: Final = 100_000
"""Characters of one file that the model gets; a longer one loses its middle."""

MAX_FILES: Final = 50
"""Files of context that are read of each origin."""

DEFAULT_NAMES: Final = ("GEMINI.md",)


@dataclass(frozen=True, slots=True)
class ContextPlaces:
    """Where files of context are or may be.

    Attributes:
        own: Those of the user and of extensions.
        project: Those of the opened folder and of the folders above it in its repository.
    """

    own: tuple[Path, ...] = ()
    project: tuple[Path, ...] = ()


def find_context(
    sources: Iterable[Source],
    extensions: Iterable[Source],
    folder: Path,
    home: Path,
    problems: list[SettingsProblem],
) -> ContextPlaces:
    """List the places of files of context.

    Args:
        sources: The settings of the user and the system, lowest layer first.
        extensions: The manifests of extensions.
        folder: The real path of the opened folder.
        home: The user's home.
        problems: Takes what is wrong.
    """
    names = context_names(sources, problems)
    own = [home / FOLDER_NAME / name for name in names]
    for extension in extensions:
        own += _of_extension(extension, home, problems)
    project = [place / name for place in _folders(folder, home) for name in names]
    return ContextPlaces(tuple(own[:MAX_FILES]), tuple(project[-MAX_FILES:]))


def context_names(sources: Iterable[Source], problems: list[SettingsProblem]) -> Sequence[str]:
    """Return the names of files of context; those of the highest layer count."""
    names: Sequence[str] = DEFAULT_NAMES
    for source in sources:
        raw = source.section("context", problems)
        known = {"fileName": raw["fileName"]} if "fileName" in raw else {}
        names = salvage(ContextSettings, known, source, ("context",), problems).file_name or names
    return names


def project_context(
    places: ContextPlaces, folder: Path, home: Path, problems: list[SettingsProblem]
) -> tuple[ContextFile, ...]:
    """Read the files of a project, from the repository down; none that leads out of it. Blocks."""
    top = _top(folder, home)
    inside = (path for path in places.project if not leads_out(path, top, home, problems))
    return read_context(inside, home, top)


def read_context(
    places: Iterable[Path], home: Path, inside: Path | None = None
) -> tuple[ContextFile, ...]:
    """Read the files that are there, with what they import. Blocks.

    Args:
        places: The files.
        home: The user's home.
        inside: The folder that no import leads out of; None is that of each file.
    """
    read = (_read(path, home, inside or path.parent) for path in places)
    return tuple(found for found in read if found is not None)


def _read(path: Path, home: Path, inside: Path) -> ContextFile | None:
    place = shown_path(path, home)
    try:
        text = read_regular(path, MAX_FILE).decode("utf-8-sig", "replace").strip()
        text = Imports(inside).put_in(text, path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, UnfitFileError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return ContextFile(place, "", sanitize_line(reason))
    half = MAX_TEXT // 2
    return ContextFile(place, for_model(clip_middle(text, half, half))[0]) if text else None


def _of_extension(extension: Source, home: Path, problems: list[SettingsProblem]) -> Iterator[Path]:
    """List what an extension names in ``contextFileName``; nothing that leads out of it."""
    folder = Path(extension.variables["extensionPath"])
    named = extension.document.content.get("contextFileName", list(DEFAULT_NAMES))
    for name in [named] if isinstance(named, str) else named if isinstance(named, list) else ():
        if not isinstance(name, str) or "\0" in name:
            problems.append(extension.problem(("contextFileName",), "must be a name, or a list"))
        elif name and not leads_out(folder / name, folder, home, problems):
            yield folder / name


def _folders(folder: Path, home: Path) -> list[Path]:
    """List the opened folder and those above it, from its repository's or its own down.

    The home and what is above it belong to no project.
    """
    top = _top(folder, home)
    between = [one for one in (folder, *folder.parents) if one.is_relative_to(top)]
    return [one for one in reversed(between) if not _holds(one, home)]


def _top(folder: Path, home: Path) -> Path:
    """Return the repository around a folder; one of the home or above it does not count."""
    top = repository_of(folder) or folder
    return folder if _holds(top, home) else top


def _holds(folder: Path, home: Path) -> bool:
    """Return whether a folder is the home, or above it."""
    return Path(os.path.realpath(home)).is_relative_to(folder)
