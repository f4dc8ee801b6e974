"""Loading the settings: files, layers, and what comes of them."""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from tui.engine.settings.definitions import ServerDefinition, SettingsProblem
from tui.engine.settings.expansion import Expansion
from tui.engine.settings.extensions import read_extensions
from tui.engine.settings.places import layer_files, shown_path
from tui.engine.settings.servers import Entry, ServerReader, disabled, server_id
from tui.engine.settings.source import Source, known_keys, read_source, salvage
from tui.model.model_name import check_model_name
from tui.model.settings import GemdeckSettings, McpSettings, ModelSettings

MAX_PROBLEMS: Final = 200
"""Problems reported of one load."""

COMMAND_SERVER: Final = "mcp"
"""The name of the server that `mcp.serverCommand` starts."""

_OUR_KEYS: Final = ("gemdeck", "mcp", "model")
_MODEL_ALIASES: Final = ("auto", "pro", "flash", "flash-lite")
"""Words that gemini-cli takes for a model and the service does not know."""


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """What all layers together say.

    Attributes:
        gemdeck: gemdeck's own settings, with the model that answers.
        servers: All servers in settings order, then those of extensions, then those of the
            opened folder.
        problems: What is wrong, of the command line, then by file and line, lowest
            layer first.
    """

    gemdeck: GemdeckSettings
    servers: tuple[ServerDefinition, ...]
    problems: tuple[SettingsProblem, ...]


def load_settings(
    folder: Path,
    *,
    environ: Mapping[str, str],
    home: Path | None = None,
    model: str | None = None,
) -> LoadedSettings:
    """Read every settings file that counts for a folder, and the user's gemini-cli extensions.

    Blocks on files only.

    Never raises for what stands in a file: a file that cannot be used is a fatal problem and
    the other layers count, a bad entry is an invalid server and the others load. Of the opened
    folder's own file only `mcpServers` is looked at, unexpanded, and none of it is started; it
    is never a fatal problem.

    Args:
        folder: The opened folder.
        environ: Variables for expansion and for the places of the system's files.
        home: The user's home, if not that of the process.
        model: The model named on the command line, which wins over all files.
    """
    home = home or Path.home()
    folder = folder.absolute()
    problems: list[SettingsProblem] = []
    layers = layer_files(folder, environ=environ, home=home)
    found = [read_source(layer.origin, layer.path, home, problems) for layer in layers]
    sources = [source for source in found if source is not None]
    reader = ServerReader(environ, folder=folder, home=home)
    trusted = [source for source in sources if source.trusted]
    gemdeck = _read_gemdeck(trusted, environ, model, problems)
    mcp = _read_mcp(trusted, environ, problems)
    servers = [mcp.apply(entry, reader.read(entry)) for entry in _entries(trusted, problems)]
    if mcp.command_source:
        entry = _command_entry(mcp.command, mcp.command_source)
        servers.append(mcp.apply(entry, reader.read(entry)))
    taken = frozenset(server.id for server in servers)
    for source in read_extensions(home, folder, problems):
        added = list(_of_extension(source, taken, servers, problems))
        servers += [mcp.apply(entry, reader.read(entry)) for entry in added]
    taken = frozenset(server.id for server in servers)
    for source in sources:
        if not source.trusted:
            _report_ignored_keys(source, problems)
            entries = list(_entries([source], problems))
            servers += [reader.read(entry) for entry in _not_taken(entries, taken, problems)]
    servers = _with_protocols(servers, gemdeck, trusted, problems)
    files = [shown_path(layer.path, home) for layer in layers]
    return LoadedSettings(gemdeck, tuple(servers), _listed([*problems, *reader.problems], files))


def _entries(sources: Iterable[Source], problems: list[SettingsProblem]) -> Iterable[Entry]:
    """Merge the layers' servers: a higher layer's whole entry takes the place of a lower one's."""
    merged: dict[str, Entry] = {}
    for source in sources:
        for name, raw in source.section("mcpServers", problems).items():
            merged[name] = Entry(name, raw, source, ("mcpServers", name))
    return merged.values()


def _not_taken(
    entries: Iterable[Entry], taken: frozenset[str], problems: list[SettingsProblem]
) -> Iterable[Entry]:
    """Leave out a project's servers that would stand in for one of the user or system."""
    for entry in entries:
        if server_id(entry.name) in taken:
            message = "left out: your own settings have a server of this name"
            problems.append(entry.source.problem(entry.path, message))
        else:
            yield entry


def _of_extension(
    source: Source,
    taken: frozenset[str],
    servers: Iterable[ServerDefinition],
    problems: list[SettingsProblem],
) -> Iterable[Entry]:
    """Leave out an extension's servers where the user, or another extension, has one so named."""
    others = {server.id: server.extension for server in servers if server.extension}
    for entry in _entries([source], problems):
        server = server_id(entry.name)
        if server in others:
            message = f"left out: the extension {others[server]} has a server of this name"
            problems.append(source.problem(entry.path, message))
        elif server not in taken:
            yield entry


def _with_protocols(
    servers: Iterable[ServerDefinition],
    gemdeck: GemdeckSettings,
    sources: Iterable[Source],
    problems: list[SettingsProblem],
) -> list[ServerDefinition]:
    """Force the era of the protocol where the settings do, and name those that are not there."""
    changed = [
        replace(server, protocol=gemdeck.protocols.get(server.id, server.protocol))
        for server in servers
    ]
    known = {server.id for server in changed}
    for source in sources:
        section = source.document.content.get("gemdeck")
        named = section.get("protocols") if isinstance(section, dict) else None
        for name in list(named)[:MAX_PROBLEMS] if isinstance(named, dict) else ():
            if name in gemdeck.protocols and name not in known:
                path = ("gemdeck", "protocols", name)
                problems.append(source.problem(path, "there is no server of this name"))
    return changed


def _report_ignored_keys(source: Source, problems: list[SettingsProblem]) -> None:
    """Say which keys would mean something in the user's file and mean nothing here."""
    ignored = [key for key in _OUR_KEYS if key in source.document.content]
    if ignored:
        words = ", ".join(ignored)
        message = f"a project's file may only have mcpServers; ignored: {words}"
        problems.append(source.problem((ignored[0],), message))


def _read_gemdeck(
    sources: Iterable[Source],
    environ: Mapping[str, str],
    model: str | None,
    problems: list[SettingsProblem],
) -> GemdeckSettings:
    """Merge gemdeck's own settings key by key, and find the model that answers."""
    values: dict[str, Any] = {}
    foreign: str | None = None
    known = known_keys(GemdeckSettings)
    for source in sources:
        foreign = _gemini_cli_model(source, environ, problems) or foreign
        raw = source.section("gemdeck", problems)
        problems += [
            source.problem(("gemdeck", key), "unknown key, ignored")
            for key in list(raw)[:MAX_PROBLEMS]
            if key not in known
        ]
        raw, found = source.expanded(
            {key: raw[key] for key in raw if key in known}, ("gemdeck",), Expansion(environ)
        )
        problems += found
        section = salvage(GemdeckSettings, raw, source, ("gemdeck",), problems)
        values |= {key: getattr(section, key) for key in section.model_fields_set}
    if foreign:
        values.setdefault("model", foreign)
    if model is not None:
        try:
            values["model"] = check_model_name(model.strip())
        except ValueError as error:
            problems.append(SettingsProblem("command line", 0, "--model", str(error)))
    return GemdeckSettings.model_validate(values)


def _gemini_cli_model(
    source: Source, environ: Mapping[str, str], problems: list[SettingsProblem]
) -> str | None:
    """Give the model that ``model.name``, or an older file's ``model``, names."""
    value = source.document.content.get("model")
    path: tuple[str, ...] = ("model",)
    raw = {"name": value} if isinstance(value, str) else source.section("model", problems)
    raw = {"name": raw["name"]} if "name" in raw else {}
    raw, found = source.expanded(raw, path, Expansion(environ))
    problems += found
    name = salvage(ModelSettings, raw, source, path, problems).name
    if name in _MODEL_ALIASES or (name or "").startswith("auto-"):
        message = f"{name} is a word of gemini-cli's, not a model; set gemdeck.model"
        problems.append(source.problem(("model", "name"), message))
        return None
    return name


@dataclass(frozen=True, slots=True)
class _McpRules:
    """What ``mcp`` says; names are lower case and stripped, as gemini-cli compares them."""

    allowed: frozenset[str] | None
    allowed_in: str
    excluded: Mapping[str, str]
    command: str
    command_source: Source | None

    def apply(self, entry: Entry, definition: ServerDefinition) -> ServerDefinition:
        """Withhold a server that the rules keep from starting."""
        name = _compared(entry.name)
        if definition.withheld is not None and not definition.may_enable:
            return definition
        if name in self.excluded:
            advice = f"Remove it from mcp.excluded in {self.excluded[name]}."
            return replace(definition, **disabled("mcp.excluded names it", advice))
        if self.allowed is not None and name not in self.allowed:
            advice = f"Add it to mcp.allowed in {self.allowed_in}."
            return replace(definition, **disabled("mcp.allowed does not name it", advice))
        return definition


def _read_mcp(
    sources: Iterable[Source], environ: Mapping[str, str], problems: list[SettingsProblem]
) -> _McpRules:
    """Merge ``mcp``: of `allowed` and `serverCommand` the highest counts, of `excluded` all.

    An `allowed` that cannot be read allows nothing, since it was meant to forbid.
    """
    rules = _McpRules(None, "", {}, "", None)
    for source in sources:
        section = source.section("mcp", problems)
        raw, found = source.expanded(
            {key: section[key] for key in section if key in known_keys(McpSettings)},
            ("mcp",),
            Expansion(environ),
        )
        problems += found
        mcp = salvage(McpSettings, raw, source, ("mcp",), problems)
        if raw.get("allowed") is not None:
            if mcp.allowed is None:
                message = "no server is started until this is corrected"
                problems.append(source.problem(("mcp", "allowed"), message))
            allowed = frozenset(map(_compared, mcp.allowed or ()))
            rules = replace(rules, allowed=allowed, allowed_in=source.file)
        excluded = {_compared(name): source.file for name in mcp.excluded}
        rules = replace(rules, excluded={**rules.excluded, **excluded})
        if mcp.server_command:
            rules = replace(rules, command=mcp.server_command, command_source=source)
    return rules


def _command_entry(command: str, source: Source) -> Entry:
    """Make an entry of ``mcp.serverCommand``; no shell ever reads it."""
    path = ("mcp", "serverCommand")
    try:
        words = shlex.split(command)
    except ValueError:
        return Entry(COMMAND_SERVER, "a quote is not closed", source, path)
    return Entry(COMMAND_SERVER, {"command": "".join(words[:1]), "args": words[1:]}, source, path)


def _compared(name: str) -> str:
    return name.strip().lower()


def _listed(
    problems: Iterable[SettingsProblem], files: Iterable[str]
) -> tuple[SettingsProblem, ...]:
    """Order problems by file and line, and keep the list short enough to read."""
    rank = {file: number for number, file in enumerate(files)}
    ordered = sorted(problems, key=lambda problem: (rank.get(problem.file, -1), problem.line))
    more = len(ordered) - MAX_PROBLEMS
    if more > 0:
        rest = SettingsProblem("settings", 0, "", f"and {more} more problems")
        ordered = [*ordered[:MAX_PROBLEMS], rest]
    return tuple(ordered)
