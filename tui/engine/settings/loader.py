"""Load the settings: files, layers and the resulting server definitions."""

import os
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
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
from tui.engine.settings.sources.extensions import read_extensions
from tui.engine.settings.sources.source import (
    Report,
    Source,
    layer_files,
    read_source,
    read_variables,
    shown_path,
    user_variables,
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
    report = Report(home)
    layers = layer_files(folder, environ=environ, home=home)
    own = [layer for layer in layers if layer.origin is not Origin.PROJECT]
    sources = [one for at in own if (one := read_source(at.origin, at.path, report))]
    variables = read_variables(user_variables(home), report) or {}
    environ = {**variables, **environ}
    policies = (*policy_places(home, own), *named_policies(home, sources, environ))
    gemdeck = read_gemdeck(sources, environ, model, read_policies(policies, report), report)
    inheritance, developed = inheritance_of(gemdeck), frozenset(gemdeck.developed_servers)
    reader = ServerReader(environ, inheritance, developed, folder=folder, home=home, gate=project)
    mcp = read_mcp(sources, environ, read_enablement(report))
    manifests = list(read_extensions(folder, report))
    context = find_context(sources, manifests, folder, report)
    servers = [(entry, reader.read(entry)) for entry in _own_entries(sources, mcp, manifests)]
    entries: Sequence[Entry] = ()
    offer: ProjectOffer | None = None
    if project.may_read():
        files = [layer for layer in layers if layer.origin is Origin.PROJECT]
        brought, given = read_project(files, folder, report)
        taken = {definition.id for _, definition in servers}
        entries = [one for one in project_entries(brought) if not _is_taken(one, taken)]
        sketches = tuple(map(reader.fork(given).read, entries))
        rules, used = project_rules(brought), used_variables(sketches, given)
        offer = ProjectOffer(sketches, rules, used, project_context(context, folder, report))
    verdict = project.judge(offer)
    if offer is not None:
        trusting = reader.fork(offer.variables, verdict.servers)
        servers += [(entry, trusting.read(entry)) for entry in entries]
        report.problems += trusting.problems
    gemdeck = with_project(gemdeck, verdict.standing_rules)
    mcp = mcp.narrowed(verdict.standing_rules)
    narrowed = (mcp.apply(entry, definition) for entry, definition in servers)
    definitions = _with_protocols(narrowed, gemdeck, sources)
    report.problems += reader.problems
    listed = _listed(report.problems, [shown_path(one.path, home) for one in layers])
    return LoadedSettings(gemdeck, tuple(definitions), listed, verdict, variables, context)


def _own_entries(
    sources: Sequence[Source], mcp: McpRules, manifests: Iterable[Source]
) -> Sequence[Entry]:
    """Return the servers of the user and the system, then those of extensions.

    An entry that says nothing of how to reach its server changes that of an extension.
    """
    extensions = _extension_entries(manifests)
    entries = list(server_entries(sources))
    if mcp.command_source:
        entries.append(command_entry(mcp.command, mcp.command_source))
    for number, entry in enumerate(entries):
        changed = extensions.pop(server_id(entry.name), None)
        if changed is not None and not reaches(entry.raw):
            entries[number] = changed.changed_by(entry)
    return (*entries, *extensions.values())


def _extension_entries(sources: Iterable[Source]) -> dict[ServerId, Entry]:
    """Return the servers of the user's extensions; of two with one name the first counts."""
    found: dict[ServerId, Entry] = {}
    for entry in (entry for source in sources for entry in server_entries([source])):
        server, raw = server_id(entry.name), entry.raw
        if server in found:
            first = found[server].source.extension
            words = f"skipped: the extension {first} defines a server with this name"
            entry.source.note(entry.path, words)
            continue
        if isinstance(raw, dict):
            if raw.get("trust") not in (None, False, "false"):
                entry.source.note((*entry.path, "trust"), "has no effect in an extension")
            raw = {key: value for key, value in raw.items() if key != "trust"}
        found[server] = replace(entry, raw=raw)
    return found


def _is_taken(entry: Entry, taken: AbstractSet[ServerId]) -> bool:
    """Return whether the user or the system already use the name of a project's server."""
    if server_id(entry.name) not in taken:
        return False
    entry.source.note(entry.path, "skipped: your own settings define a server with this name")
    return True


def _with_protocols(
    servers: Iterable[ServerDefinition],
    gemdeck: GemdeckSettings,
    sources: Iterable[Source],
) -> list[ServerDefinition]:
    """Apply the forced protocol eras, and report those for unknown servers."""
    changed = [
        replace(server, protocol=gemdeck.protocols.get(server.id, server.protocol))
        for server in servers
    ]
    known = {server.id for server in changed}
    for source in sources:
        section = source.content.get("gemdeck")
        named = section.get("protocols") if isinstance(section, dict) else None
        for name in list(named)[:MAX_PROBLEMS] if isinstance(named, dict) else ():
            if name in gemdeck.protocols and name not in known:
                source.note(("gemdeck", "protocols", name), "no server has this name")
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
