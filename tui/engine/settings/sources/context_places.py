"""Where files of context are: `GEMINI.md` and `AGENTS.md`, or what `context.fileName` names."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Final

from tui.engine.files.atomic import UnfitFileError, read_regular
from tui.engine.files.git_branch import repository_of
from tui.engine.files.paths import GEMINI_FOLDER, shown_path
from tui.engine.settings.sources.source import Report, Source, known_keys, leads_out
from tui.model.events import ContextFile
from tui.model.frozen import Frozen
from tui.model.settings import ContextSettings
from tui.text import clip_middle, noted_for_model, sanitize_line

MAX_DEPTH: Final = 5
"""Files that are imported within each other."""

MAX_IMPORTS: Final = 50
"""Words of one file of context that are looked up, those of imported files among them."""

MAX_IMPORTED: Final = 100_000
"""Largest file that is imported, in bytes."""

_CODE: Final = re.compile(r"(?ms)^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1|\Z)|`[^`\n]*`")
_IMPORT: Final = re.compile(r"(?<!\S)@([\w./][^\s`]*\.\w+)(?=[\s.,;:)]|\Z)")

MAX_FILE: Final = 1024 * 1024
"""Largest file of context that is read, in bytes."""

MAX_TEXT: Final = 100_000
"""Characters of one file that the model gets; a longer one loses its middle."""

MAX_FILES: Final = 50
"""Files of context that are read of each origin."""

DEFAULT_NAMES: Final = ("GEMINI.md", "AGENTS.md")


class Imports:
    """The imports of one file of context.

    Args:
        inside: The folder that no import leads out of.
    """

    def __init__(self, inside: Path) -> None:
        self._inside = Path(os.path.normpath(inside)), Path(os.path.realpath(inside))
        self._left = MAX_IMPORTS

    def put_in(self, text: str, path: Path, chain: tuple[str, ...] = ()) -> str:
        """Return the text of a file with what it imports in place. Blocks.

        Args:
            text: The text.
            path: The file.
            chain: The real paths of the files that import it.
        """
        chain = (*chain, os.path.realpath(path))
        done, at = [], 0
        for code in _CODE.finditer(text):
            done += [self._outside_code(text[at : code.start()], path, chain), code[0]]
            at = code.end()
        return "".join((*done, self._outside_code(text[at:], path, chain)))

    def _outside_code(self, text: str, path: Path, chain: tuple[str, ...]) -> str:
        return _IMPORT.sub(lambda found: self._imported(found[0], path, chain), text)

    def _imported(self, word: str, path: Path, chain: tuple[str, ...]) -> str:
        """Return what stands for a word with ``@``: a file, why it is left out, or the word."""
        if not self._left:
            return word
        self._left -= 1
        try:
            target = self._resolved(path.parent / word[1:])
            if not os.path.isfile(target):  # noqa: PTH113 - that of a path can raise
                return word
            if not word.endswith(".md"):
                raise UnfitFileError("only .md files can be imported")
            if str(target) in chain:
                raise UnfitFileError("it imports itself")
            if len(chain) > MAX_DEPTH:
                raise UnfitFileError("it is nested too deeply")
            text = read_regular(target, MAX_IMPORTED).decode("utf-8-sig", "replace").strip()
        except ValueError:
            return word
        except OSError as error:
            reason = error.strerror or str(error)
            return f"<!-- {word} is not imported: {reason} -->"
        inner = self.put_in(text, target, chain)
        return f"<!-- Imported from {word[1:]} -->\n{inner}\n<!-- End of {word[1:]} -->"

    def _resolved(self, path: Path) -> Path:
        """Return the real path; what lies outside by its name is not even looked up."""
        named = Path(os.path.normpath(path))
        if any(named.is_relative_to(folder) for folder in self._inside):
            real = Path(os.path.realpath(named))
            if real.is_relative_to(self._inside[-1]):
                return real
        raise UnfitFileError("it is outside the folder")


class ContextPlaces(Frozen):
    """Where files of context are or may be.

    Attributes:
        own: Those of the user and of extensions.
        project: Those of the opened folder and of the folders above it in its repository.
        said: What the user's settings say of them.
    """

    own: tuple[Path, ...] = ()
    project: tuple[Path, ...] = ()
    said: ContextSettings = field(default_factory=ContextSettings)


def find_context(
    sources: Iterable[Source], extensions: Iterable[Source], folder: Path, report: Report
) -> ContextPlaces:
    """List the places of files of context.

    Args:
        sources: The settings of the user and the system, lowest layer first.
        extensions: The manifests of extensions.
        folder: The real path of the opened folder.
        report: Takes what is wrong.
    """
    said = context_settings(sources, folder, report)
    home, names = report.home, said.file_name or ()
    own = [home / GEMINI_FOLDER / name for name in names]
    for extension in extensions:
        own += _of_extension(extension)
    project = [place / name for place in _folders(folder, home) for name in names]
    return ContextPlaces(tuple(own[:MAX_FILES]), tuple(project[-MAX_FILES:]), said)


def with_project(
    places: ContextPlaces, sources: Iterable[Source], folder: Path, report: Report
) -> ContextPlaces:
    """Add the files that a project names itself, and those of further folders of its repository."""
    said = context_settings(sources, folder, report, _top(folder, report.home))
    names = dict.fromkeys((*(places.said.file_name or ()), *(said.file_name or ())))
    folders = (*_folders(folder, report.home), *map(Path, said.include_directories))
    project = dict.fromkeys(place / name for place in folders for name in names)
    return replace(places, project=tuple(project)[-MAX_FILES:])


def context_settings(
    sources: Iterable[Source], folder: Path, report: Report, inside: Path | None = None
) -> ContextSettings:
    """Merge ``context``: names of the highest layer count, and the folders of all, as real paths.

    Args:
        sources: The files.
        folder: The opened folder.
        report: Takes what is wrong.
        inside: The project that none of them may lie outside of; None for the user's own.
    """
    names: tuple[str, ...] | None = DEFAULT_NAMES if inside is None else None
    folders: list[str] = []
    for source in sources:
        raw, known = source.section("context"), known_keys(ContextSettings)
        found = {key: raw[key] for key in raw if key in known}
        said = source.salvaged(ContextSettings, found, "context")
        names = said.file_name or names
        for text in said.include_directories:
            base, rest = (report.home, text[2:]) if text.startswith("~/") else (folder, text)
            named = Path(os.path.normpath(base / rest))
            real = os.path.realpath(named)
            # where a link of the folder leads is no word of the user's
            bounds = inside or (folder if named.is_relative_to(folder) else None)
            is_out = bounds is not None and not Path(real).is_relative_to(bounds)
            if not is_out and os.path.isdir(real):  # noqa: PTH112 - that of a path can raise
                folders.append(real)
            else:
                words = f"{text} is outside the project" if is_out else f"{text} does not exist"
                source.note(("context", "includeDirectories"), f"{words}; ignored")
    return ContextSettings(file_name=names, include_directories=tuple(folders))


def project_context(places: ContextPlaces, folder: Path, report: Report) -> tuple[ContextFile, ...]:
    """Read the files of a project, from the repository down; none that leads out of it. Blocks."""
    top = _top(folder, report.home)
    inside = (path for path in places.project if not leads_out(path, top, report))
    return read_context(inside, report.home, top)


def read_context(
    places: Iterable[Path], home: Path, inside: Path | None = None
) -> tuple[ContextFile, ...]:
    """Read the files that are there, with what they import. Blocks.

    A file adds nothing whose text a file beside it has: ``AGENTS.md`` is often a link to
    ``GEMINI.md``, or imported there.

    Args:
        places: The files.
        home: The user's home.
        inside: The folder that no import leads out of; None is that of each file.
    """
    read: dict[Path, ContextFile] = {}
    for path in places:
        beside = [one.text for at, one in read.items() if at.parent == path.parent]
        found = _read(path, home, inside or path.parent)
        if found and (found.problem or not any(found.text in text for text in beside)):
            read[path] = found
    return tuple(read.values())


def _read(path: Path, home: Path, inside: Path) -> ContextFile | None:
    place = shown_path(path, home)
    try:
        text = read_regular(path, MAX_FILE).decode("utf-8-sig", "replace").strip()
        text = Imports(inside).put_in(text, path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return ContextFile(place, "", sanitize_line(reason))
    half = MAX_TEXT // 2
    return ContextFile(place, noted_for_model(clip_middle(text, half, half))) if text else None


def _of_extension(extension: Source) -> Iterator[Path]:
    """List what an extension names in ``contextFileName``; nothing that leads out of it."""
    folder = Path(extension.variables["extensionPath"])
    named = extension.content.get("contextFileName", DEFAULT_NAMES[0])
    for name in [named] if isinstance(named, str) else named if isinstance(named, list) else ():
        if not isinstance(name, str) or "\0" in name:
            extension.note(("contextFileName",), "must be a name or a list of names")
        elif name and not leads_out(folder / name, folder, extension.report):
            yield folder / name


def _folders(folder: Path, home: Path) -> Sequence[Path]:
    """List the folders of a project from its repository down; the home is in none of them."""
    top = _top(folder, home)
    above = [one for one in (folder, *folder.parents) if one.is_relative_to(top)]
    return [one for one in reversed(above) if not _holds(one, home)]


def _top(folder: Path, home: Path) -> Path:
    """Return the repository around a folder; one of the home or above it does not count."""
    top = repository_of(folder) or folder
    return folder if _holds(top, home) else top


def _holds(folder: Path, home: Path) -> bool:
    """Return whether a folder is the home, or above it."""
    return Path(os.path.realpath(home)).is_relative_to(folder)
