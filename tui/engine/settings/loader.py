"""Load the settings: files, layers and the resulting server definitions."""

import difflib
import os
import shlex
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from tui.engine.definitions.definition import Inheritance, ServerDefinition, SettingsProblem
from tui.engine.definitions.expansion import references_in
from tui.engine.definitions.fingerprint import Installation
from tui.engine.files.paths import shown_path
from tui.engine.settings.entries import (
    KINDS,
    MAX_NAME,
    RawEntry,
    ServerReader,
    as_written,
    reaches,
    server_entries,
    server_id,
)
from tui.engine.settings.prohibitions import (
    BLOCK_KEY,
    DENY_KEY,
    EVERY,
    Permission,
    PlanRule,
    Restriction,
    RunRules,
    blocked_by,
    extension_rule,
    name_elsewhere,
    read_enablement,
    read_policies,
    read_run_rules,
    restricted_by,
    voids,
)
from tui.engine.settings.project import (
    LIMITS,
    Brought,
    ProjectOffer,
    ProjectRules,
    compared,
    note_texts,
    read_offer,
)
from tui.engine.settings.sources.context_places import ContextPlaces, find_context
from tui.engine.settings.sources.document import SettingsDocument
from tui.engine.settings.sources.source import (
    Report,
    Source,
    known_keys,
    layer_files,
    read_extensions,
    read_layer,
    read_variables,
    user_variables,
)
from tui.model.bounded_json import as_object
from tui.model.frozen import Frozen
from tui.model.servers import Origin, ServerId, ServerStatus, StartMode
from tui.model.settings import (
    GemdeckSettings,
    McpSettings,
    ModelSettings,
    SandboxSettings,
    ToolPattern,
)
from tui.model.settings_rules import check_model_name

KeyCheck = Callable[[Mapping[str, Sequence[str]]], Mapping[str, str]]
"""Says of keys by action which cannot hold, and why."""

MAX_UNKNOWN: Final = 200
"""Unknown keys of one section that are reported."""

COMMAND_SERVER: Final = "mcp"
"""The name of the server that `mcp.serverCommand` starts."""

MODEL_VARIABLE: Final = "GEMINI_MODEL"
"""Names the model, above all files."""

_NO_RULES: Final = ProjectRules()
_UNKNOWN: Final = Installation()
_SECTIONS: Final = ("mcpServers", "gemdeck")
_ELSEWHERE: Final = {key: ["mcpServers"] for key in ("servers", "context_servers")}
"""What other clients call them."""
_GONE: Final = {"developedServers": "has no effect: gemdeck no longer watches the code of servers"}
_DISABLED: Final = ServerStatus.DISABLED
_MODEL_ALIASES: Final = ("auto", "pro", "flash", "flash-lite")
"""Model aliases of gemini-cli that the service does not know."""

MAX_PROBLEMS: Final = 200
"""Problems reported of one load."""


def read_gemdeck(
    sources: Iterable[Source],
    environ: Mapping[str, str],
    model: str | None,
    denied: tuple[ToolPattern, ...],
    report: Report,
) -> tuple[GemdeckSettings, ModelSettings]:
    """Merge gemdeck's own settings key by key, and find the model that answers.

    Args:
        sources: The files, lowest layer first.
        environ: Variables for expansion, and perhaps the model.
        model: The model named on the command line, or None.
        denied: What is denied elsewhere.
        report: Takes what is wrong.

    Returns:
        Them, and gemini-cli's settings of the model.
    """
    values: dict[str, Any] = {}
    blocked: tuple[str, ...] = ()
    foreign = ModelSettings()
    known = known_keys(GemdeckSettings)
    for source in sources:
        foreign = foreign.model_copy(update=_gemini_cli_model(source, environ))
        for key, value in list(source.content.items())[:MAX_UNKNOWN]:
            near = difflib.get_close_matches(key[:MAX_NAME], _SECTIONS, n=1, cutoff=0.8)
            if any(isinstance(as_object(value).get(one), str) for one in KINDS):
                near = [f"mcpServers.{key}"]  # an entry without the section around it
            if key not in _SECTIONS and (near := _ELSEWHERE.get(key) or near):
                source.note((key,), f"unknown key, ignored; did you mean {near[0]}?")
        raw = source.section("gemdeck")
        if not isinstance(source.content.get("gemdeck"), dict | None):
            denied += (Restriction(source=f"gemdeck in {source.file}"),)  # it may have denied any
        for key in [key for key in list(raw)[:MAX_UNKNOWN] if key not in known]:
            words = _GONE.get(key, "unknown key, ignored")
            source.note(("gemdeck", key), words, quiet=key in _GONE)
        raw = source.known_part(GemdeckSettings, raw, "gemdeck", environ)
        denied += restricted_by(source, raw.pop(DENY_KEY, None), environ)
        blocked += blocked_by(source, raw.pop(BLOCK_KEY, None))
        section = source.salvaged(GemdeckSettings, raw, "gemdeck")
        values |= {key: getattr(section, key) for key in section.model_fields_set}
        if raw.get("sandbox") is not None and "sandbox" not in section.model_fields_set:
            source.note(("gemdeck", "sandbox"), "servers run in one that is given nothing more")
            values["sandbox"] = SandboxSettings()
    if foreign.name:
        values.setdefault("model", foreign.name)
    if (named := _named_model(environ, model, report)) is not None:
        values["model"] = named
    update = {"always_deny": denied, "environment_block": blocked}
    update |= {"sandbox": values["sandbox"]} if "sandbox" in values else {}  # null, if none is set
    return GemdeckSettings.model_validate(values).model_copy(update=update), foreign


def with_keys(
    settings: GemdeckSettings, sources: Iterable[Source], check: KeyCheck
) -> GemdeckSettings:
    """Split the user's keys at commas; report and leave out those that cannot hold."""
    keys = {
        name: tuple(key.strip() for one in words for key in one.split(","))
        for name, words in settings.keys.items()
    }
    wrong = check(keys)
    for source in sources if wrong else ():
        named = source.section("gemdeck").get("keys")
        for name in (one for one in wrong if isinstance(named, dict) and one in named):
            source.note(("gemdeck", "keys", name), wrong[name])
    kept = {name: keys[name] for name in keys if name not in wrong}
    return settings.model_copy(update={"keys": kept})


def inheritance_of(settings: GemdeckSettings) -> Inheritance:
    """Return which variables servers inherit, by the user's lists."""
    allow, block = settings.environment_allow, settings.environment_block
    return Inheritance(frozenset(map(str.upper, allow)), frozenset(map(str.upper, block)))


def _gemini_cli_model(source: Source, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return what ``model`` sets: the model, which it is in an older file, and a limit."""
    value = source.content.get("model")
    raw = {"name": value} if isinstance(value, str) else source.section("model")
    raw = source.known_part(ModelSettings, raw, "model", environ)
    found = source.salvaged(ModelSettings, raw, "model").model_dump(exclude_unset=True)
    if raw.get("maxSessionTurns") is not None and "max_session_turns" not in found:
        source.note(("model", "maxSessionTurns"), "no request is sent until this is fixed")
        found["max_session_turns"] = 0
    try:
        _no_alias(found.get("name", ""))
    except ValueError as error:
        source.note(("model", "name"), str(error))
        del found["name"]
    return found


def _named_model(environ: Mapping[str, str], model: str | None, report: Report) -> str | None:
    """Return the model that the command line or else the environment names."""
    named: str | None = None
    for place, key, name in (
        ("environment", MODEL_VARIABLE, environ.get(MODEL_VARIABLE) or None),
        ("command line", "--model", model),
    ):
        try:
            named = check_model_name(_no_alias(name.strip())) if name is not None else named
        except ValueError as error:
            report.problems.append(SettingsProblem(place, 0, key, str(error)))
    return named


def _no_alias(name: str) -> str:
    """Return the name of a model.

    Raises:
        ValueError: If it is one of gemini-cli's words for several models.
    """
    if name in _MODEL_ALIASES or name.startswith("auto-"):
        raise ValueError(f"{name} is a gemini-cli alias, not a model; set gemdeck.model")
    return name


class McpRules(Frozen):
    """The rules of ``mcp``; names are lower case and stripped, as gemini-cli compares them.

    `excluded` and `off`, the servers that gemini-cli was told to leave off, say where.
    """

    allowed: frozenset[str] | None
    allowed_in: str
    excluded: Mapping[str, str]
    command: str
    command_source: Source | None
    off: Mapping[str, str]
    run: RunRules = RunRules()

    def apply(self, entry: RawEntry, definition: ServerDefinition) -> ServerDefinition:
        """Withhold a server that the rules do not let start."""
        name = compared(entry.name)
        if definition.withheld is not None and not definition.may_enable:
            return definition
        reason, advice = self.run.why_held(definition)
        if reason:
            return definition.held(_DISABLED, f"Disabled: {reason}.", advice)
        if name in self.excluded:
            advice = f"Remove it from mcp.excluded in {self.excluded[name]}."
            return definition.held(_DISABLED, "Disabled: listed in mcp.excluded.", advice)
        if self.allowed is not None and name not in self.allowed:
            advice = f"Add it to mcp.allowed in {self.allowed_in}."
            return definition.held(_DISABLED, "Disabled: not listed in mcp.allowed.", advice)
        if (place := self.off.get(name, self.off.get(EVERY))) is not None:
            reason = "Disabled: turned off in gemini-cli."
            advice = f"Enable it here for now, or in {place}."
            return definition.held(_DISABLED, reason, advice, may_enable=True)
        return definition

    def narrowed(self, rules: ProjectRules) -> "McpRules":
        """Add a trusted project's rules."""
        excluded = dict.fromkeys(rules.excluded, rules.source) | dict(self.excluded)
        kept = replace(self, excluded=excluded)
        return kept if rules.allowed is None else kept.allowing(rules.allowed, rules.source)

    def allowing(self, names: frozenset[str], file: str) -> "McpRules":
        """Add a list of the only servers that start."""
        if self.allowed is None:
            return replace(self, allowed=names, allowed_in=file)
        places = f"{self.allowed_in} and {file}"
        return replace(self, allowed=self.allowed & names, allowed_in=places)


def read_mcp(
    sources: Iterable[Source], environ: Mapping[str, str], off: Mapping[str, str]
) -> McpRules:
    """Merge ``mcp``: all `allowed` and `excluded` hold, of `serverCommand` the highest counts.

    An `allowed` that cannot be read allows nothing, since it was meant to forbid.
    """
    rules = McpRules(None, "", {}, "", None, off)
    for source in sources:
        raw = source.known_part(McpSettings, source.section("mcp"), "mcp", environ)
        mcp = source.salvaged(McpSettings, raw, "mcp")
        note_texts(source, raw)
        if raw.get("allowed") is not None:
            rules = rules.allowing(frozenset(map(compared, mcp.allowed or ())), source.file)
        wrong = () if isinstance(source.content.get("mcp"), dict | None) else (("mcp",),)
        unread = {key for key in raw if raw[key] is not None} - mcp.model_fields_set
        for key in (*wrong, *(("mcp", key) for key in sorted(unread & {"allowed", "excluded"}))):
            source.note(key, "no server starts until this is fixed")
            rules = rules.allowing(frozenset(), source.file)
        excluded = {compared(name): source.file for name in mcp.excluded}
        rules = replace(rules, excluded={**rules.excluded, **excluded})
        if mcp.server_command:
            rules = replace(rules, command=mcp.server_command, command_source=source)
    return rules


def command_entry(command: str, source: Source) -> RawEntry:
    """Turn ``mcp.serverCommand`` into an entry; no shell ever reads it."""
    path = ("mcp", "serverCommand")
    try:
        words = shlex.split(command)
    except ValueError:
        return RawEntry(COMMAND_SERVER, "a quote is not closed", source, path)
    raw = {"command": "".join(words[:1]), "args": words[1:]}
    return RawEntry(COMMAND_SERVER, raw, source, path)


class LoadedSettings(Frozen):
    """The settings of all layers together.

    Attributes:
        gemdeck: gemdeck's own settings, with the model that answers, and limits that the opened
            folder lowers. What that denies is in `rules` alone.
        servers: All servers in settings order, then those of extensions, then those of the
            opened folder.
        problems: What is wrong, of the command line, then by file and line, lowest
            layer first.
        rules: What the opened folder forbids, as far as that counts.
        variables: What the user's own ``.env`` sets.
        context: Where files of context are or may be.
        run: What gemini-cli's files and variables demand of the run.
    """

    gemdeck: GemdeckSettings
    servers: tuple[ServerDefinition, ...]
    problems: tuple[SettingsProblem, ...]
    rules: ProjectRules = ProjectRules()
    variables: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    context: ContextPlaces = field(default_factory=ContextPlaces)
    run: RunRules = RunRules()

    @property
    def denied(self) -> tuple[ToolPattern, ...]:
        """What the user's own settings and the opened folder deny."""
        return self.gemdeck.always_deny + self.rules.always_deny

    @property
    def no_yolo(self) -> str:
        """Where it stands that ``--yolo`` is not to be used, or ""."""
        switches = (one for one in self.denied if voids(one) == (Permission.YOLO,))
        return next((one.source for one in switches if isinstance(one, Restriction)), "")

    @property
    def plan_mode(self) -> str:
        """Where plan mode stands, or ""."""
        rules = (one for one in self.denied if isinstance(one, PlanRule))
        return next((one.source for one in rules), "")

    def only(self, names: frozenset[str] | None) -> "LoadedSettings":
        """Return the settings with the servers of these names alone; None means all."""
        if names is None:
            return self
        return replace(self, servers=tuple(one for one in self.servers if one.id in names))


@dataclass(frozen=True, eq=False, repr=False)
class SettingsFiles:
    """What all files say; of the opened folder's nothing counts yet.

    Attributes:
        own: The entries of the user, the system and extensions, each with its server.
        brought: The entries of the opened folder.
        offer: What that says, or None if it was not read.
        rest: All that is settled already, without servers.
        mcp: What ``mcp`` says.
        files: The files, as shown, lowest layer first.
    """

    own: Sequence[tuple[RawEntry, ServerDefinition]]
    brought: Sequence[Brought]
    offer: ProjectOffer | None
    rest: LoadedSettings
    mcp: McpRules
    files: Sequence[str]

    def settled(
        self, trusted: Container[ServerId] = (), rules: ProjectRules = _NO_RULES
    ) -> LoadedSettings:
        """Return the settings as they count.

        Args:
            trusted: The servers of the opened folder that may run.
            rules: What it forbids.
        """
        gemdeck, problems, servers = self.rest.gemdeck, [*self.rest.problems], [*self.own]
        for entry, server, wrong in self.brought:
            is_trusted = server.id in trusted
            shown = server if is_trusted else as_written(server)
            if is_trusted or not references_in(dict(server.entry.written)):
                problems += wrong
            servers.append((entry, shown))
        lowered = {
            name: min(filter(None, (getattr(gemdeck, name), getattr(rules, name))))
            for name in LIMITS
        }
        mcp = self.mcp.narrowed(rules)
        narrowed = (mcp.apply(entry, definition) for entry, definition in servers)
        return replace(
            self.rest,
            gemdeck=gemdeck.model_copy(update=lowered),
            servers=tuple(_with_choices(one, gemdeck) for one in narrowed),
            problems=_listed(problems, self.files),
            rules=rules,
        )


def read_files(
    folder: Path,
    *,
    environ: Mapping[str, str],
    home: Path | None = None,
    model: str | None = None,
    known: Installation = _UNKNOWN,
    reads_folder: bool = True,
    check_keys: KeyCheck = lambda _: {},
    tried: Mapping[str, object] | None = None,
) -> SettingsFiles:
    """Read every settings file that counts for a folder, and the user's extensions. Blocks.

    The content of a file never raises: an unusable file is a fatal problem and the other layers
    count; a bad entry becomes an invalid server and the others load. The opened folder's files are
    never a fatal problem.

    Args:
        folder: The opened folder.
        environ: Variables for expansion and for the places of the system's files.
        home: The user's home, if not that of the process.
        model: The model named on the command line, which wins over all files.
        known: What is known of this installation and of the folder.
        reads_folder: Whether the folder's own files may be read.
        check_keys: Judges the user's keys.
        tried: Entries of servers to read as if they stood in the user's settings.
    """
    home = home or Path.home()
    folder = Path(os.path.realpath(folder))
    report = Report(home)
    layers = layer_files(folder, environ=environ, home=home, state=known.state)
    own = [layer for layer in layers if layer.origin is not Origin.PROJECT]
    sources = [one for at in own if (one := read_layer(at, report))]
    variables = read_variables(user_variables(home), report) or {}
    environ = {**variables, **environ}
    manifests = list(read_extensions(folder, report, extension_rule(sources, environ)))
    denied = read_policies(own, sources, manifests, environ, report)
    gemdeck, foreign = read_gemdeck(sources, environ, model, denied, report)
    gemdeck = with_keys(gemdeck, sources, check_keys)
    run = read_run_rules(sources, environ, gemdeck, foreign.max_session_turns, report)
    name_elsewhere(environ, report)
    inheritance, box = inheritance_of(gemdeck), gemdeck.sandbox
    reader = ServerReader(environ, inheritance, box, folder=folder, home=home, known=known)
    mcp = replace(read_mcp(sources, environ, read_enablement(report)), run=run)
    context = find_context(sources, manifests, folder, report)
    if tried is not None:
        document = SettingsDocument({"mcpServers": tried}, {}, ())
        sources.append(Source(Origin.USER, "", document, report))
    servers = [(entry, reader.read(entry)) for entry in _own_entries(sources, mcp, manifests)]
    brought: Sequence[Brought] = ()
    offer: ProjectOffer | None = None
    if reads_folder and not run.untrusted:
        files = [layer for layer in layers if layer.origin is Origin.PROJECT]
        taken = {definition.id for _, definition in servers}
        brought, offer, context = read_offer(files, reader, taken, context, report)
    problems = (*report.problems, *reader.problems)
    rest = LoadedSettings(gemdeck, (), problems, ProjectRules(), variables, context, run)
    shown = [shown_path(one.path, home) for one in layers]
    return SettingsFiles(servers, brought, offer, rest, mcp, shown)


def _own_entries(
    sources: Sequence[Source], mcp: McpRules, manifests: Iterable[Source]
) -> Sequence[RawEntry]:
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


def _extension_entries(sources: Iterable[Source]) -> dict[ServerId, RawEntry]:
    """Return the servers of the user's extensions; of two with one name the first counts."""
    found: dict[ServerId, RawEntry] = {}
    for entry in (entry for source in sources for entry in server_entries([source])):
        server, raw = server_id(entry.name), entry.raw
        if server in found:
            first = found[server].source.extension
            words = f"skipped: the extension {first} defines a server with the same name"
            entry.source.note(entry.path, words)
            continue
        if isinstance(raw, dict):
            if raw.get("trust") not in (None, False, "false"):
                entry.source.note((*entry.path, "trust"), "has no effect in an extension")
            raw = {key: value for key, value in raw.items() if key != "trust"}
        found[server] = replace(entry, raw=raw)
    return found


def _with_choices(server: ServerDefinition, gemdeck: GemdeckSettings) -> ServerDefinition:
    """Add when a server starts, which a project can only delay, and the era that is forced."""
    can_only_delay = server.entry.origin is Origin.PROJECT and gemdeck.start is StartMode.LAZY
    start = gemdeck.start if can_only_delay else server.start or gemdeck.start
    return replace(server, protocol=gemdeck.protocols.get(server.id, server.protocol), start=start)


def _listed(
    problems: Iterable[SettingsProblem], files: Iterable[str]
) -> tuple[SettingsProblem, ...]:
    """Sort problems by file and line, quiet ones last, and limit their number."""
    rank = {file: number for number, file in enumerate(files)}
    ordered = sorted(problems, key=lambda one: (one.quiet, rank.get(one.file, -1), one.line))
    more = len(ordered) - MAX_PROBLEMS
    if more > 0:
        rest = SettingsProblem("settings", 0, "", f"and {more} more problems")
        ordered = [*ordered[:MAX_PROBLEMS], rest]
    return tuple(ordered)
