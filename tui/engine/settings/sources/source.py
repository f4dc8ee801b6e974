"""Files of settings, of extensions and of variables: where they are, and what is wrong in them.

The user installed the extensions of gemini-cli, ``~/.gemini/extensions/NAME``, so their servers
start like the user's own and rank below them. Of a manifest `mcpServers` and `settings` are read;
what the user told gemini-cli to set is in the ``.env`` beside it, and what is sensitive in the
keyring, where it is read when a server starts. Which extensions are enabled for a folder comes from
gemini-cli's own file: an extension disabled there is off here, too.
"""

import hashlib
import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar

from dotenv import dotenv_values
from pydantic import BaseModel, ValidationError

from tui.engine.definitions.definition import SettingsProblem
from tui.engine.definitions.expansion import Expansion, KeyPath
from tui.engine.definitions.programs import guarded_folders, is_within
from tui.engine.files.atomic import read_text
from tui.engine.files.paths import (
    GEMINI_FOLDER,
    extensions_folder,
    folder_key,
    is_same_place,
    open_to_others,
    shown_path,
)
from tui.engine.settings.sources.document import (
    BadDocumentError,
    SettingsDocument,
    dotted,
    read_document,
)
from tui.model.bounded_json import as_list, as_object, as_texts
from tui.model.frozen import Frozen
from tui.model.servers import Origin
from tui.text import sanitize_line

FILE_NAME: Final = "settings.json"
ENABLEMENT: Final = "mcp-server-enablement.json"
"""The file in which gemini-cli turns servers off."""

SHARED_FILE_NAME: Final = ".mcp.json"
"""The file in which projects of several clients list their servers."""

_SYSTEM_FOLDERS: Final = {"darwin": "/Library/Application Support/GeminiCli"}
_SYSTEM_FOLDER: Final = "/etc/gemini-cli"
_PATH_VARIABLES: Final[Mapping[Origin, str]] = {
    Origin.SYSTEM_DEFAULTS: "GEMINI_CLI_SYSTEM_DEFAULTS_PATH",
    Origin.SYSTEM: "GEMINI_CLI_SYSTEM_SETTINGS_PATH",
}

EMPTY: Final = "the file is empty; write {} for a file without settings"

MAX_SERVERS: Final = 256
"""Servers in one file."""

MAX_ENTRY_PROBLEMS: Final = 10
"""Problems reported of one server, or of one other section."""

Section = TypeVar("Section", bound=BaseModel)

Refusal = Callable[[Mapping[str, Any]], str]
"""Says of an extension, by how it was installed, why it is not used; nothing where it is."""

ENV_FILE: Final = ".env"

MAX_FILE: Final = 64 * 1024
"""Largest file that is read, in bytes."""

MAX_VARIABLES: Final = 1_000
"""Variables that one file may set."""

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_NONE: Final[Mapping[str, str]] = MappingProxyType({})

MAX_EXTENSIONS: Final = 200
"""Extensions that are read, in the order of their folders' names."""

MAX_NAME: Final = 64
"""Longest name of an extension, in characters."""

_REPOSITORY: Final = re.compile(
    r"(?:git@github\.com:|\w+://(?:[^/@]*@)?github\.com/)?([^/:?#]+)/([^/?#]+)/?(?:[?#].*)?"
)
"""How the repository of an extension is named; one word before the name is its owner at GitHub."""

MAX_RULES: Final = 1_000
"""Rules that are read of when one extension is enabled."""

MANIFEST: Final = "gemini-extension.json"
INSTALLATION: Final = ".gemini-extension-install.json"
EXTENSION_RULES: Final = "extension-enablement.json"


class LayerFile(Frozen):
    """A settings file that may exist, and the layer it makes.

    Attributes:
        origin: The layer.
        path: The file.
        moved_by: The variable that puts it into the opened folder, or names no whole path; or "".
    """

    origin: Origin
    path: Path
    moved_by: str = ""


def layer_files(
    folder: Path,
    *,
    environ: Mapping[str, str],
    home: Path,
    state: Path | None = None,
    platform: str = sys.platform,
) -> tuple[LayerFile, ...]:
    """List the settings files that count for a folder, lowest layer first. Blocks.

    A folder has two files, whose its own settings are the higher. The home folder has no
    project layer: its file is the user's own. In the state folder is what the user wrote for this
    folder alone.
    """
    user = home / GEMINI_FOLDER / FILE_NAME
    project = folder / GEMINI_FOLDER / FILE_NAME
    guarded = guarded_folders((folder,), home)
    layers = [
        _system_layer(Origin.SYSTEM_DEFAULTS, environ, platform, guarded),
        LayerFile(Origin.USER, user),
        *(LayerFile(Origin.FOLDER, path) for path in own_files(state, folder, home)),
        LayerFile(Origin.PROJECT, folder / SHARED_FILE_NAME),
        LayerFile(Origin.PROJECT, project),
        _system_layer(Origin.SYSTEM, environ, platform, guarded),
    ]
    if is_same_place(folder, home) or is_same_place(project, user):
        layers = [layer for layer in layers if layer.origin is not Origin.PROJECT]
    return tuple(layers)


def own_files(state: Path | None, folder: Path, home: Path) -> tuple[Path, ...]:
    """Return the file of the user's settings for one folder, or nothing if it can have none.

    The name tells that folder from another that is at the same path later. No file is in the folder
    itself, unless that is or contains the home. Blocks.
    """
    try:
        found = folder.stat()
    except (OSError, ValueError):
        return ()
    guarded = guarded_folders((folder,), home)
    if state is None or any(is_within(state, place) for place in guarded):
        return ()
    which = f"{found.st_dev}-{found.st_ino}-{found.st_uid}"
    return (state / f"folder-{folder_key(folder)}-{which}.json",)


def system_folder(platform: str = sys.platform) -> Path:
    """Return the folder of the system's settings and policies."""
    return Path(_SYSTEM_FOLDERS.get(platform, _SYSTEM_FOLDER))


def _system_layer(
    origin: Origin, environ: Mapping[str, str], platform: str, guarded: Sequence[Path]
) -> LayerFile:
    variable = _PATH_VARIABLES[origin]
    if moved := environ.get(variable):
        path = Path(moved)
        is_apart = path.is_absolute() and not any(is_within(path, one) for one in guarded)
        return LayerFile(origin, path, "" if is_apart else variable)
    name = FILE_NAME if origin is Origin.SYSTEM else "system-defaults.json"
    return LayerFile(origin, system_folder(platform) / name)


class Report:
    """Collects what is wrong in settings files while they are read.

    Args:
        home: The user's home, for paths as shown.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self.problems: list[SettingsProblem] = []

    def note(
        self, path: Path, message: str, line: int = 0, key: str = "", *, fatal: bool = False
    ) -> None:
        """Report a problem with a file, which may not be a source."""
        file = shown_path(path, self.home)
        self.problems.append(SettingsProblem(file, line, key, message, fatal))


class Source(Frozen):
    """One settings file that was read.

    Attributes:
        origin: The layer it makes.
        file: The file, as shown.
        document: What it holds.
        report: Takes what is wrong in it.
        extension: The name of the gemini-cli extension it belongs to, or "".
        variables: What its references stand for besides the environment's variables.
        env: Variables that its servers get, for an extension.
        keychain: The service under which gemini-cli keeps the secrets of an extension.
        kept: The variables that it keeps there; as `variables` they stand for themselves.
        secrets: Values in its ``.env`` that the manifest calls sensitive.
    """

    origin: Origin
    file: str
    document: SettingsDocument
    report: Report = field(repr=False, compare=False)
    extension: str = ""
    variables: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    keychain: str = ""
    kept: tuple[str, ...] = ()
    secrets: frozenset[str] = field(default=frozenset(), repr=False)

    @property
    def content(self) -> Mapping[str, Any]:
        return self.document.content

    def problem(self, path: KeyPath, message: str, *, quiet: bool = False) -> SettingsProblem:
        """Make a problem with a key of this file."""
        line, words = self.document.line_of(path), sanitize_line(message)
        return SettingsProblem(self.file, line, dotted(path), words, quiet=quiet)

    def note(self, path: KeyPath, message: str, *, quiet: bool = False) -> None:
        """Report a problem with a key of this file."""
        self.report.problems.append(self.problem(path, message, quiet=quiet))

    def at(self, path: Sequence[str]) -> Any:  # noqa: ANN401 - any JSON value
        """Return what stands at a path; None where nothing does."""
        found: Any = self.content
        for key in path:
            found = found.get(key) if isinstance(found, dict) else None
        return found

    def section(self, name: str) -> Mapping[str, Any]:
        """Return a top-level object; empty if it is absent or not an object."""
        value = self.content.get(name)
        if isinstance(value, dict):
            return value
        if value is not None:
            self.note((name,), "must be an object: { … }")
        return {}

    def known_part(
        self, model: type[BaseModel], raw: Mapping[str, Any], key: str, environ: Mapping[str, str]
    ) -> dict[str, Any]:
        """Return what means something of a section, which has this key, with variables expanded."""
        expansion, known = Expansion(environ), known_keys(model)
        value = expansion.members({name: raw[name] for name in raw if name in known}, (key,))
        self.report.problems += expansion_problems(expansion, (key,), self.problem)
        return value

    def salvaged(self, model: type[Section], raw: Mapping[str, Any], *path: str) -> Section:
        """Read a section, which has this key, without the keys that are wrong."""
        try:
            return model.model_validate(raw)
        except ValidationError as error:
            for keys, words in validation_problems(error):
                self.note((*path, *keys), words)
            wrong = {details["loc"][0] for details in error.errors() if details["loc"]}
            return model.model_validate({key: raw[key] for key in raw if key not in wrong})


def expansion_problems(
    expansion: Expansion, path: KeyPath, problem: Callable[[KeyPath, str], SettingsProblem]
) -> Iterator[SettingsProblem]:
    """Say which variables are not set that the object at a path refers to, and what is too long.

    Args:
        expansion: What expanded the object.
        path: The key of the object.
        problem: Makes a problem with a key.
    """
    for name, where in list(expansion.undefined.items())[:MAX_ENTRY_PROBLEMS]:
        is_blank = where[len(path)] in expansion.blank
        what = "it is empty" if is_blank else "the reference is left as it is"
        yield problem(where, f"the variable {name} is not set; {what}")
    for where in expansion.too_long[:MAX_ENTRY_PROBLEMS]:
        yield problem(where, "too long after expanding variables; left as it is")


def read_layer(layer: LayerFile, report: Report) -> Source | None:
    """Read the file of a layer, as `read_source`; none that a variable puts where it may not be.

    Where the user's own for a folder is missing, report those for folders that were at its path.
    """
    if layer.moved_by:
        words = f"{layer.moved_by} is not an absolute path outside the opened folder"
        report.note(layer.path, f"{words}; the file is ignored")
        return None
    source = read_source(layer.origin, layer.path, report)
    if source is None and layer.origin is Origin.FOLDER:
        for path in sorted(layer.path.parent.glob(f"{layer.path.name.rsplit('-', 3)[0]}-*.json")):
            other = read_source(layer.origin, path, Report(report.home))
            names = ", ".join(other.section("mcpServers")) if other is not None else ""
            if names and path != layer.path:
                words = f"not used: a different folder is at this path now. Its servers: {names}"
                report.note(path, f"{sanitize_line(words)}. Add them again, or delete the file")
    return source


def read_source(origin: Origin, path: Path, report: Report) -> Source | None:
    """Read a file; None, with a problem where there is one, if it is absent or cannot be used."""
    fatal = origin is not Origin.PROJECT
    if origin in _PATH_VARIABLES and (place := open_to_others(path)) is not None:
        words = f"others besides root and you can write to {shown_path(place, report.home)}"
        report.note(path, f"{words}; the file is ignored")
        return None
    try:
        document = read_document(path, alone=origin is Origin.FOLDER)
    except BadDocumentError as error:
        report.note(path, str(error), error.line, fatal=fatal)
        return None
    if document is None:
        return None
    source = Source(origin, shown_path(path, report.home), document, report)
    if document.is_empty:
        source.note((), EMPTY, quiet=True)
    is_refused = bool(document.duplicates) and not fatal
    words = "the last one is used" if fatal else "the file is ignored"
    for key, line in document.duplicates[:1] if is_refused else document.duplicates:
        report.note(path, f"duplicate key; {words}", line, dotted(key))
    if is_refused:  # who reads it would see one while the other counts
        return None
    return source


def validation_problems(error: ValidationError) -> list[tuple[KeyPath, str]]:
    """Return keys and what is wrong with them; never a value."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return [(one["loc"], _plain_words(one["msg"])) for one in found[:MAX_ENTRY_PROBLEMS]]


def known_keys(model: type[BaseModel]) -> frozenset[str]:
    """Return the keys of a section as the file spells them."""
    return frozenset(field.alias or name for name, field in model.model_fields.items())


_PLAIN: Final = {
    "Extra inputs are not permitted": "unknown key",
    "a valid integer": "a whole number",
    "a valid (tuple|list)": "a list",
    r"a valid dictionary( or instance of \w+)?": "an object",
}
"""Words of the library for the kinds of values, as patterns, and ours."""


def _plain_words(message: str) -> str:
    message = message.partition(", unable to parse")[0]
    for word, plain in _PLAIN.items():
        message = re.sub(word, plain, message)
    return message.removeprefix("Value error, ").replace("Input should be", "must be")


def dotenv_files(folder: Path) -> tuple[Path, ...]:
    """List where the file may be; the first that exists counts. Folders above are not looked at."""
    return (folder / GEMINI_FOLDER / ENV_FILE, folder / ENV_FILE)


def user_variables(home: Path) -> Path:
    """Return the user's own file, as gemini-cli has it."""
    return home / GEMINI_FOLDER / ENV_FILE


def read_dotenv(folder: Path, report: Report) -> Mapping[str, str]:
    """Read the variables of a folder's ``.env``: nothing is expanded, and nothing of it is set.

    There are none where there is no file that can be used, with a problem where there is one.
    """
    for path in dotenv_files(folder):
        if leads_out(path, folder, report):
            return _NONE
        if (found := read_variables(path, report)) is not None:
            return found
    return _NONE


def read_variables(path: Path, report: Report) -> Mapping[str, str] | None:
    """Read one file of variables; None where there is none. One that is unfit sets nothing."""
    try:
        text = read_text(path, MAX_FILE)
    except OSError as error:
        reason = sanitize_line(error.strerror or str(error))
        report.note(path, f"{reason}; the file is ignored")
        return _NONE
    return parse_dotenv(text) if text is not None else None


def leads_out(path: Path, folder: Path, report: Report) -> bool:
    """Return whether a folder's file links outside the folder; if so, add a problem.

    Otherwise a folder could have the user's own files read and sent on. Blocks.
    """
    real, place = Path(os.path.realpath(path)), Path(os.path.realpath(folder))
    if place in real.parents:
        return False
    if path.exists():
        report.note(path, "links to a file outside the folder; ignored")
    return True


def parse_dotenv(text: str) -> Mapping[str, str]:
    """Return the variables that a text sets; invalid lines are ignored."""
    found = dotenv_values(stream=io.StringIO(text), interpolate=False)
    kept = {
        name: value
        for name, value in found.items()
        if value is not None and _NAME.fullmatch(name) and "\0" not in value
    }
    return MappingProxyType(dict(list(kept.items())[:MAX_VARIABLES]))


def manifest_files(home: Path) -> list[Path]:
    """List where the manifests of a user's extensions are or may be."""
    return [path for path, _ in _installations(home)]


def _installations(home: Path) -> list[tuple[Path, Mapping[str, Any]]]:
    """List the manifests, each with what gemini-cli wrote down when it installed the extension."""
    place = extensions_folder(home)
    try:
        names = sorted(entry.name for entry in os.scandir(place) if entry.is_dir())
    except OSError:
        return []
    return [_installation(place / name) for name in names[:MAX_EXTENSIONS]]


def read_extensions(folder: Path, report: Report, refusal: Refusal) -> Iterator[Source]:
    """Read the manifests of the extensions that are enabled for an opened folder.

    Args:
        folder: The folder.
        report: Takes what is wrong.
        refusal: Says why one is not used.
    """
    if (rules := _enablement(report)) is None:
        return
    seen: set[str] = set()
    for path, installed in _installations(report.home):
        if (source := read_source(Origin.EXTENSION, path, report)) is None:
            continue
        if words := refusal(installed):
            source.note((), words)
            continue
        given = source.content.get("name")
        name = sanitize_line(given if isinstance(given, str) else path.parent.name, MAX_NAME)
        if not name or name in seen:
            words = f"skipped: another extension has the same name, {name or 'empty'}"
            source.note(("name",), words)
        elif _is_enabled(rules.get(name), folder):
            env, sensitive = _settings(source, path.parent)
            kept = tuple(one for one in sensitive if one not in env)
            places = {"extensionPath": str(path.parent), "workspacePath": str(folder)}
            places |= {"/": os.sep, "pathSeparator": os.sep}
            known = {**env, **{one: f"${{{one}}}" for one in kept}, **places}
            found = replace(source, extension=name, variables=known, env=env, kept=kept)
            found = replace(found, secrets=frozenset(env[one] for one in sensitive if one in env))
            yield replace(found, keychain=_keychain(str(given or name), installed))
        seen.add(name)


def _installation(folder: Path) -> tuple[Path, Mapping[str, Any]]:
    """Return the manifest of an extension and how it was installed; a linked one is elsewhere."""
    try:
        document = read_document(folder / INSTALLATION)
    except BadDocumentError:
        document = None
    installed = document.content if document is not None else {}
    match installed:
        case {"type": "link", "source": str(place)} if Path(place).is_absolute():
            folder = Path(place)
    return folder / MANIFEST, installed


def _keychain(name: str, installed: Mapping[str, Any]) -> str:
    """Name the service under which gemini-cli keeps the secrets of an extension."""
    whole = str(installed.get("source", name))
    is_cloned = installed.get("type") in ("git", "github-release")  # it may be any JSON value
    if is_cloned and (match := _REPOSITORY.fullmatch(whole)):
        whole = f"https://github.com/{match[1]}/{match[2].replace('.git', '', 1)}"
    return f"Gemini CLI Extensions {name} {hashlib.sha256(whole.encode()).hexdigest()}"


def _settings(source: Source, extension: Path) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """Return the variables that the user has set of those that an extension declares.

    Returns:
        Those in its ``.env``, and the names of all that are sensitive.
    """
    named = {
        str(entry["envVar"]): bool(entry.get("sensitive"))
        for entry in as_list(source.content.get("settings"))[:MAX_RULES]
        if isinstance(entry, dict) and _NAME.fullmatch(str(entry.get("envVar")))
    }
    path, found = extension / ENV_FILE, _NONE
    if named and not leads_out(path, extension, source.report):
        found = read_variables(path, source.report) or {}
    env = {name: found[name] for name in named if name in found}
    return env, tuple(name for name, is_sensitive in named.items() if is_sensitive)


def _enablement(report: Report) -> Mapping[str, Any] | None:
    """Read gemini-cli's rules: per extension ``{"overrides": [RULE, …]}``; None if unreadable."""
    path = extensions_folder(report.home) / EXTENSION_RULES
    try:
        document = read_document(path)
    except BadDocumentError as error:
        report.note(path, f"{error}; no extension is used until this is fixed", error.line)
        return None
    return document.content if document is not None else {}


def _is_enabled(entry: object, folder: Path) -> bool:
    """Return whether an extension is enabled for a folder: the last rule that matches decides.

    A rule is a folder with a slash at both ends, with ``*`` behind it for the folders in it too,
    and with ``!`` before it to disable.
    """
    rules = as_texts(as_object(entry).get("overrides"))
    place = f"/{folder.as_posix().strip('/')}/".replace("//", "/")
    enabled = True
    for rule in rules[:MAX_RULES]:
        named = rule.removeprefix("!")
        if place.startswith(named[:-1]) if named.endswith("*") else place == named:
            enabled = not rule.startswith("!")
    return enabled
