"""Settings files and the problems found in them."""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from tui.engine.definitions.definition import SettingsProblem
from tui.engine.definitions.expansion import Expansion, KeyPath
from tui.engine.settings.sources.document import (
    BadDocumentError,
    SettingsDocument,
    dotted,
    read_document,
)
from tui.model.frozen import dataclass
from tui.model.servers import Origin
from tui.text import sanitize_line

FILE_NAME: Final = "settings.json"
FOLDER_NAME: Final = ".gemini"
ENABLEMENT: Final = "mcp-server-enablement.json"
"""The file in which gemini-cli turns servers off."""

SHARED_FILE_NAME: Final = ".mcp.json"
"""The file in which projects of several clients list their servers."""

_SYSTEM_FOLDERS: Final[Mapping[str, str]] = {
    "darwin": "/Library/Application Support/GeminiCli",
    "win32": r"C:\ProgramData\gemini-cli",
}
_SYSTEM_FOLDER: Final = "/etc/gemini-cli"
_PATH_VARIABLES: Final[Mapping[Origin, str]] = {
    Origin.SYSTEM_DEFAULTS: "GEMINI_CLI_SYSTEM_DEFAULTS_PATH",
    Origin.SYSTEM: "GEMINI_CLI_SYSTEM_SETTINGS_PATH",
}


@dataclass(frozen=True, slots=True)
class LayerFile:
    """A settings file that may exist, and the layer it makes."""

    origin: Origin
    path: Path


def layer_files(
    folder: Path, *, environ: Mapping[str, str], home: Path, platform: str = sys.platform
) -> tuple[LayerFile, ...]:
    """List the settings files that count for a folder, lowest layer first.

    A folder has two files, whose its own settings are the higher. The home folder has no
    project layer: its file is the user's own.
    """
    user = home / FOLDER_NAME / FILE_NAME
    project = folder / FOLDER_NAME / FILE_NAME
    layers = [
        LayerFile(Origin.SYSTEM_DEFAULTS, _system_file(Origin.SYSTEM_DEFAULTS, environ, platform)),
        LayerFile(Origin.USER, user),
        LayerFile(Origin.PROJECT, folder / SHARED_FILE_NAME),
        LayerFile(Origin.PROJECT, project),
        LayerFile(Origin.SYSTEM, _system_file(Origin.SYSTEM, environ, platform)),
    ]
    if _is_same(folder, home) or _is_same(project, user):
        layers = [layer for layer in layers if layer.origin is not Origin.PROJECT]
    return tuple(layers)


def system_folder(platform: str = sys.platform) -> Path:
    """Return the folder of the system's settings and policies."""
    return Path(_SYSTEM_FOLDERS.get(platform, _SYSTEM_FOLDER))


def shown_path(path: Path, home: Path) -> str:
    r"""Write a path as shown, with ``~`` for the home folder and line ends as ``\n``."""
    for place in (home, Path(os.path.realpath(home))):
        if path.is_relative_to(place):
            path = Path("~") / path.relative_to(place)
            break
    return sanitize_line("\\n".join(str(path).splitlines()))


def _system_file(origin: Origin, environ: Mapping[str, str], platform: str) -> Path:
    moved = environ.get(_PATH_VARIABLES[origin])
    if moved:
        return Path(moved)
    name = FILE_NAME if origin is Origin.SYSTEM else "system-defaults.json"
    return system_folder(platform) / name


def _is_same(one: Path, other: Path) -> bool:
    """Return whether two paths lead to the same place."""
    try:
        return one == other or one.samefile(other)
    except (OSError, ValueError):
        return False


MAX_SERVERS: Final = 256
"""Servers in one file."""

MAX_ENTRY_PROBLEMS: Final = 10
"""Problems reported of one server, or of one other section."""

Section = TypeVar("Section", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Source:
    """One settings file that was read.

    Attributes:
        origin: The layer it makes.
        file: The file, as shown.
        document: What it holds.
        extension: The name of the gemini-cli extension it belongs to, or "".
        variables: What its references stand for besides the environment's variables.
        env: Variables that its servers get, for an extension.
    """

    origin: Origin
    file: str
    document: SettingsDocument
    extension: str = ""
    variables: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)

    def problem(self, path: KeyPath, message: str, *, fatal: bool = False) -> SettingsProblem:
        """Make a problem with a key of this file."""
        line = self.document.line_of(path)
        return SettingsProblem(self.file, line, dotted(path), sanitize_line(message), fatal)

    def section(self, name: str, problems: list[SettingsProblem]) -> Mapping[str, Any]:
        """Return a top-level object; empty if it is absent or not an object."""
        value = self.document.content.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            problems.append(self.problem((name,), "must be an object: { … }"))
            return {}
        return value

    def expanded(
        self,
        raw: Mapping[str, Any],
        path: KeyPath,
        expansion: Expansion,
        problem: Callable[[KeyPath, str], SettingsProblem] | None = None,
    ) -> tuple[dict[str, Any], list[SettingsProblem]]:
        """Expand the variables in an object and report those that are not set.

        Args:
            raw: The object.
            path: Its key.
            expansion: Knows the variables.
            problem: Makes a problem with a key, where that is not of this file.
        """
        problem = problem or self.problem
        value = expansion.members(raw, path)

        def what(where: KeyPath) -> str:
            is_blank = where[len(path)] in expansion.blank
            return "it is empty" if is_blank else "the reference is left as it is"

        undefined = list(expansion.undefined.items())[:MAX_ENTRY_PROBLEMS]
        problems = [
            problem(where, f"the variable {name} is not set; {what(where)}")
            for name, where in undefined
        ]
        problems += [
            problem(where, "too long with its variables filled in; left as it is")
            for where in expansion.too_long[:MAX_ENTRY_PROBLEMS]
        ]
        return value, problems


def read_source(
    origin: Origin, path: Path, home: Path, problems: list[SettingsProblem]
) -> Source | None:
    """Read a file; None, with a problem where there is one, if it is absent or cannot be used."""
    file, fatal = shown_path(path, home), origin is not Origin.PROJECT
    try:
        document = read_document(path)
    except BadDocumentError as error:
        problems.append(SettingsProblem(file, error.line, "", str(error), fatal=fatal))
        return None
    if document is None:
        return None
    source = Source(origin, file, document)
    is_refused = bool(document.duplicates) and not fatal
    words = "this last one counts" if fatal else "the file was not used"
    problems += [
        SettingsProblem(file, line, dotted(path), f"stands twice; {words}")
        for path, line in (document.duplicates[:1] if is_refused else document.duplicates)
    ]
    if is_refused:  # who reads it would see one while the other counts
        return None
    servers = document.content.get("mcpServers")
    if isinstance(servers, dict) and len(servers) > MAX_SERVERS:
        message = f"more than {MAX_SERVERS} servers; the file was not used"
        problems.append(source.problem(("mcpServers",), message, fatal=fatal))
        return None
    return source


def validation_problems(error: ValidationError) -> list[tuple[KeyPath, str]]:
    """Return keys and what is wrong with them; never a value."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return [
        (details["loc"], _plain_words(details["msg"])) for details in found[:MAX_ENTRY_PROBLEMS]
    ]


def salvage(
    model: type[Section],
    raw: Mapping[str, Any],
    source: Source,
    path: KeyPath,
    problems: list[SettingsProblem],
) -> Section:
    """Read a section and leave out, with a problem each, the keys that are wrong."""
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        problems += [
            source.problem((*path, *keys), words) for keys, words in validation_problems(error)
        ]
        wrong = {details["loc"][0] for details in error.errors() if details["loc"]}
        return model.model_validate({key: raw[key] for key in raw if key not in wrong})


def known_keys(model: type[BaseModel]) -> frozenset[str]:
    """Return the keys of a section as the file spells them."""
    return frozenset(field.alias or name for name, field in model.model_fields.items())


_PLAIN: Final = {
    "a valid integer": "a whole number",
    "a valid tuple": "a list",
    "a valid list": "a list",
    "a valid dictionary or instance of ToolPattern": "an object",
    "a valid dictionary": "an object",
}
"""Words of the library for the kinds of values, and ours."""


def _plain_words(message: str) -> str:
    message = message.partition(", unable to parse")[0]
    for word, plain in _PLAIN.items():
        message = message.replace(word, plain)
    return message.removeprefix("Value error, ").replace("Input should be", "must be")
