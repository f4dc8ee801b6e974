"""Loading the settings: files, layers, and what comes of them."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tui.engine.settings.definitions import ServerDefinition, SettingsProblem
from tui.engine.settings.extensions import read_extensions
from tui.engine.settings.places import LayerFile, layer_files, shown_path
from tui.engine.settings.project import (
    ClosedGate,
    ProjectFiles,
    ProjectGate,
    ProjectOffer,
    ProjectVerdict,
    project_entries,
    project_rules,
    read_project,
    used_variables,
)
from tui.engine.settings.sections import (
    McpRules,
    command_entry,
    read_gemdeck,
    read_mcp,
    with_project,
)
from tui.engine.settings.servers import Entry, ServerReader, server_id
from tui.engine.settings.source import Source, read_source
from tui.model.servers import Origin, ServerId
from tui.model.settings import GemdeckSettings

MAX_PROBLEMS: Final = 200
"""Problems reported of one load."""


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """What all layers together say.

    Attributes:
        gemdeck: gemdeck's own settings, with the model that answers.
        servers: All servers in settings order, then those of extensions, then those of the
            opened folder.
        problems: What is wrong, of the command line, then by file and line, lowest
            layer first.
        project: What became of what the opened folder brings.
    """

    gemdeck: GemdeckSettings
    servers: tuple[ServerDefinition, ...]
    problems: tuple[SettingsProblem, ...]
    project: ProjectVerdict


def load_settings(
    folder: Path,
    *,
    environ: Mapping[str, str],
    home: Path | None = None,
    model: str | None = None,
    project: ProjectGate | None = None,
) -> LoadedSettings:
    """Read every settings file that counts for a folder, and the user's gemini-cli extensions.

    Blocks on files only.

    Never raises for what stands in a file: a file that cannot be used is a fatal problem and
    the other layers count, a bad entry is an invalid server and the others load. What the
    opened folder brings takes effect only as far as the gate lets it; before that its entries
    are neither expanded nor started. Its files are never a fatal problem.

    Args:
        folder: The opened folder.
        environ: Variables for expansion and for the places of the system's files.
        home: The user's home, if not that of the process.
        model: The model named on the command line, which wins over all files.
        project: Decides on what the folder brings; without one, nothing of it takes effect.
    """
    home = home or Path.home()
    folder = Path(os.path.realpath(folder))
    gate = project or ClosedGate()
    problems: list[SettingsProblem] = []
    layers = layer_files(folder, environ=environ, home=home)
    own = (layer for layer in layers if layer.origin is not Origin.PROJECT)
    found = [read_source(layer.origin, layer.path, home, problems) for layer in own]
    sources = [source for source in found if source is not None]
    reader = ServerReader(environ, folder=folder, home=home, gate=gate)
    mcp = read_mcp(sources, environ, problems)
    servers = _own_servers(sources, mcp, reader, problems)
    _add_extensions(read_extensions(home, folder, problems), servers, reader, problems)
    taken = frozenset(definition.id for _, definition in servers)
    brought = _Project.find(gate, layers, folder, home, taken, problems)
    verdict = gate.judge(brought.offer(reader) if brought is not None else None)
    if brought is not None:
        servers += brought.servers(reader, verdict.servers)
    rules = verdict.standing_rules
    gemdeck = with_project(read_gemdeck(sources, environ, model, problems), rules)
    mcp = mcp.narrowed(rules)
    definitions = _with_protocols(
        (mcp.apply(entry, definition) for entry, definition in servers), gemdeck, sources, problems
    )
    shown = [shown_path(layer.path, home) for layer in layers]
    listed = _listed([*problems, *reader.problems], shown)
    return LoadedSettings(gemdeck, tuple(definitions), listed, verdict)


class _Project:
    """Turns the files of a folder into an offer, and that into servers."""

    def __init__(
        self, files: ProjectFiles, taken: frozenset[str], problems: list[SettingsProblem]
    ) -> None:
        self._file, self._variables = files.dotenv
        entries = project_entries(files.sources, problems)
        self._entries = tuple(_not_taken(entries, taken, problems))
        self._rules = project_rules(files.sources, problems)

    @classmethod
    def find(
        cls,
        gate: ProjectGate,
        layers: Sequence[LayerFile],
        folder: Path,
        home: Path,
        taken: frozenset[str],
        problems: list[SettingsProblem],
    ) -> "_Project | None":
        """Read the files of a folder; None where they may not even be read."""
        if not gate.may_read():
            return None
        files = [layer for layer in layers if layer.origin is Origin.PROJECT]
        return cls(read_project(files, folder, home, problems), taken, problems)

    def offer(self, reader: ServerReader) -> ProjectOffer:
        """Give what the folder brings, unexpanded."""
        sketching = reader.fork(variables=self._variables)
        servers = tuple(map(sketching.read, self._entries))
        variables = used_variables(servers, self._variables)
        return ProjectOffer(servers, self._rules, variables, self._file if variables else "")

    def servers(
        self, reader: ServerReader, trusted: frozenset[ServerId]
    ) -> list[tuple[Entry, ServerDefinition]]:
        """Give the servers: expanded where they are trusted, else withheld."""
        reading = reader.fork(trusted, self._variables)
        servers = [(entry, reading.read(entry)) for entry in self._entries]
        reader.problems += reading.problems
        return servers


def _own_servers(
    sources: Sequence[Source], mcp: McpRules, reader: ServerReader, problems: list[SettingsProblem]
) -> list[tuple[Entry, ServerDefinition]]:
    """Read the servers of the user and the system."""
    entries = list(_entries(sources, problems))
    if mcp.command_source:
        entries.append(command_entry(mcp.command, mcp.command_source))
    return [(entry, reader.read(entry)) for entry in entries]


def _add_extensions(
    sources: Iterable[Source],
    servers: list[tuple[Entry, ServerDefinition]],
    reader: ServerReader,
    problems: list[SettingsProblem],
) -> None:
    """Add the servers of the user's gemini-cli extensions to those of the user and the system."""
    taken = frozenset(definition.id for _, definition in servers)
    for source in sources:
        added = list(_of_extension(source, taken, servers, problems))
        servers += [(entry, reader.read(entry)) for entry in added]


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
    servers: Iterable[tuple[Entry, ServerDefinition]],
    problems: list[SettingsProblem],
) -> Iterable[Entry]:
    """Leave out an extension's servers where the user, or another extension, has one so named."""
    others = {server.id: server.extension for _, server in servers if server.extension}
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
