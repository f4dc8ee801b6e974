"""Load the settings: files, layers and the resulting server definitions."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from tui.engine.definitions.definition import ServerDefinition, SettingsProblem
from tui.engine.settings.entries import Entry, ServerReader, reaches, server_entries, server_id
from tui.engine.settings.prohibitions import (
    named_policies,
    policy_places,
    read_enablement,
    read_policies,
)
from tui.engine.settings.project import (
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
    inheritance_of,
    read_gemdeck,
    read_mcp,
    with_project,
)
from tui.engine.settings.sources.context_places import (
    ContextPlaces,
    find_context,
    project_context,
)
from tui.engine.settings.sources.dotenv import read_variables, user_variables
from tui.engine.settings.sources.extensions import read_extensions
from tui.engine.settings.sources.source import (
    LayerFile,
    Source,
    layer_files,
    read_source,
    shown_path,
)
from tui.model.frozen import dataclass
from tui.model.servers import Origin, ServerId
from tui.model.settings import GemdeckSettings

MAX_PROBLEMS: Final = 200
"""Problems reported of one load."""


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The settings of all layers together.

    Attributes:
        gemdeck: gemdeck's own settings, with the model that answers.
        servers: All servers in settings order, then those of extensions, then those of the
            opened folder.
        problems: What is wrong, of the command line, then by file and line, lowest
            layer first.
        project: What became of what the opened folder brings.
        variables: What the user's own ``.env`` sets.
        context: Where files of context are or may be.
    """

    gemdeck: GemdeckSettings
    servers: tuple[ServerDefinition, ...]
    problems: tuple[SettingsProblem, ...]
    project: ProjectVerdict
    variables: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    context: ContextPlaces = field(default_factory=ContextPlaces)

    def only(self, names: frozenset[str] | None) -> "LoadedSettings":
        """Return the settings with the servers of these names alone; None means all."""
        if names is None:
            return self
        return replace(self, servers=tuple(one for one in self.servers if one.id in names))


def load_settings(
    folder: Path,
    *,
    environ: Mapping[str, str],
    home: Path | None = None,
    model: str | None = None,
    project: ProjectGate,
) -> LoadedSettings:
    """Read every settings file that counts for a folder, and the user's extensions. Blocks.

    The content of a file never raises: an unusable file is a fatal problem and the other layers
    count; a bad entry becomes an invalid server and the others load. The opened folder's settings
    take effect only as far as the gate allows; until then its entries are neither expanded nor
    started. Its files are never a fatal problem.

    Args:
        folder: The opened folder.
        environ: Variables for expansion and for the places of the system's files.
        home: The user's home, if not that of the process.
        model: The model named on the command line, which wins over all files.
        project: Decides which of the folder's own settings take effect.
    """
    home = home or Path.home()
    folder = Path(os.path.realpath(folder))
    problems: list[SettingsProblem] = []
    layers = layer_files(folder, environ=environ, home=home)
    own = [layer for layer in layers if layer.origin is not Origin.PROJECT]
    sources = [one for at in own if (one := read_source(at.origin, at.path, home, problems))]
    variables = read_variables(user_variables(home), home, problems) or {}
    environ = {**variables, **environ}
    named = named_policies(home, sources, environ, problems)
    denied = read_policies([*policy_places(home, own), *named], home, problems)
    gemdeck = read_gemdeck(sources, environ, model, denied, problems)
    reader = _reader(gemdeck, environ, folder, home, project)
    mcp = read_mcp(sources, environ, read_enablement(home, problems), problems)
    manifests = list(read_extensions(home, folder, problems))
    context = find_context(sources, manifests, folder, home, problems)
    servers = _own_servers(sources, mcp, manifests, reader, problems)
    entries, offer = _project_offer(project, layers, reader, servers, context, problems)
    verdict = project.judge(offer)
    if offer is not None:
        trusting = reader.fork(offer.variables, verdict.servers)
        servers += [(entry, trusting.read(entry)) for entry in entries]
        problems += trusting.problems
    gemdeck = with_project(gemdeck, verdict.standing_rules)
    mcp = mcp.narrowed(verdict.standing_rules)
    narrowed = (mcp.apply(entry, definition) for entry, definition in servers)
    definitions = _with_protocols(narrowed, gemdeck, sources, problems)
    listed = _listed([*problems, *reader.problems], [shown_path(one.path, home) for one in layers])
    return LoadedSettings(gemdeck, tuple(definitions), listed, verdict, variables, context)


def _reader(
    gemdeck: GemdeckSettings,
    environ: Mapping[str, str],
    folder: Path,
    home: Path,
    gate: ProjectGate,
) -> ServerReader:
    developed = frozenset(gemdeck.developed_servers)
    inheritance = inheritance_of(gemdeck)
    return ServerReader(environ, inheritance, developed, folder=folder, home=home, gate=gate)


def _project_offer(
    gate: ProjectGate,
    layers: Iterable[LayerFile],
    reader: ServerReader,
    own: Iterable[tuple[Entry, ServerDefinition]],
    context: ContextPlaces,
    problems: list[SettingsProblem],
) -> tuple[Sequence[Entry], ProjectOffer | None]:
    """Read what the folder brings, unexpanded; None where its files may not even be read."""
    if not gate.may_read():
        return (), None
    files = [layer for layer in layers if layer.origin is Origin.PROJECT]
    sources, variables = read_project(files, reader.folder, reader.home, problems)
    taken = frozenset(definition.id for _, definition in own)
    entries = tuple(_not_taken(project_entries(sources, problems), taken, problems))
    sketching = reader.fork(variables)
    servers = tuple(map(sketching.read, entries))
    used = used_variables(servers, variables)
    rules = project_rules(sources, problems)
    said = project_context(context, reader.folder, reader.home, problems)
    return entries, ProjectOffer(servers, rules, used, said)


def _own_servers(
    sources: Sequence[Source],
    mcp: McpRules,
    manifests: Iterable[Source],
    reader: ServerReader,
    problems: list[SettingsProblem],
) -> list[tuple[Entry, ServerDefinition]]:
    """Read the servers of the user and the system, then those of extensions.

    An entry that says nothing of how to reach its server changes that of an extension.
    """
    extensions = _extension_entries(manifests, problems)
    entries = list(server_entries(sources, problems))
    if mcp.command_source:
        entries.append(command_entry(mcp.command, mcp.command_source))
    for number, entry in enumerate(entries):
        changed = extensions.pop(server_id(entry.name), None)
        if changed is not None and not reaches(entry.raw):
            entries[number] = changed.changed_by(entry)
    return [(entry, reader.read(entry)) for entry in (*entries, *extensions.values())]


def _extension_entries(
    sources: Iterable[Source], problems: list[SettingsProblem]
) -> dict[ServerId, Entry]:
    """Return the servers of the user's extensions; of two with one name the first counts."""
    found: dict[ServerId, Entry] = {}
    for source in sources:
        for entry in server_entries([source], problems):
            server, raw = server_id(entry.name), entry.raw
            if server in found:
                first = found[server].source.extension
                message = f"skipped: the extension {first} defines a server with this name"
                problems.append(source.problem(entry.path, message))
                continue
            if isinstance(raw, dict) and raw.get("trust") not in (None, False, "false"):
                path = (*entry.path, "trust")
                problems.append(source.problem(path, "has no effect in an extension"))
            if isinstance(raw, dict):
                raw = {key: value for key, value in raw.items() if key != "trust"}
            found[server] = replace(entry, raw=raw)
    return found


def _not_taken(
    entries: Iterable[Entry], taken: frozenset[ServerId], problems: list[SettingsProblem]
) -> Iterable[Entry]:
    """Skip a project's servers whose names the user or the system already use."""
    for entry in entries:
        if server_id(entry.name) in taken:
            message = "skipped: your own settings define a server with this name"
            problems.append(entry.source.problem(entry.path, message))
        else:
            yield entry


def _with_protocols(
    servers: Iterable[ServerDefinition],
    gemdeck: GemdeckSettings,
    sources: Iterable[Source],
    problems: list[SettingsProblem],
) -> list[ServerDefinition]:
    """Apply the forced protocol eras, and report those for unknown servers."""
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
                problems.append(source.problem(path, "no server has this name"))
    return changed


def _listed(
    problems: Iterable[SettingsProblem], files: Iterable[str]
) -> tuple[SettingsProblem, ...]:
    """Sort problems by file and line, and limit their number."""
    rank = {file: number for number, file in enumerate(files)}
    ordered = sorted(problems, key=lambda problem: (rank.get(problem.file, -1), problem.line))
    more = len(ordered) - MAX_PROBLEMS
    if more > 0:
        rest = SettingsProblem("settings", 0, "", f"and {more} more problems")
        ordered = [*ordered[:MAX_PROBLEMS], rest]
    return tuple(ordered)
