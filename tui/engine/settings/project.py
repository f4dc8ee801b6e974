"""What an opened folder says: read strictly, and used only after the user agrees.

Reading has no effect: what it comes to is kept apart, and `SettingsFiles.settled` takes as much of
it as the user trusts.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType
from typing import Annotated, Any, Final, TypeAlias

from pydantic import BaseModel, BeforeValidator, PlainSerializer

from tui.engine.definitions.definition import ServerDefinition, SettingsProblem
from tui.engine.definitions.expansion import KeyPath, references_in
from tui.engine.settings.entries import RawEntry, ServerReader, server_entries, server_id
from tui.engine.settings.prohibitions import (
    DENY_KEY,
    HookRule,
    Permission,
    Restriction,
    restricted_by,
    voids,
)
from tui.engine.settings.sources.context_places import ContextPlaces, project_context, with_project
from tui.engine.settings.sources.source import (
    LayerFile,
    Report,
    Source,
    known_keys,
    leads_out,
    read_dotenv,
    read_layer,
)
from tui.model.consent import conditions_words
from tui.model.events import ContextFile
from tui.model.frozen import Frozen
from tui.model.servers import ServerId, ServerStatus
from tui.model.settings import (
    GemdeckSettings,
    McpSettings,
    OAuthSettings,
    SandboxSettings,
    ServerSettings,
    ToolPattern,
)
from tui.text import counted, sanitize_line

_NONE: Final[Mapping[str, str]] = MappingProxyType({})


COUNTING_KEYS: Final[Mapping[str, frozenset[str]]] = {
    # Other ways of signing in would send the user's Google credentials to the project's address.
    "mcpServers.*": frozenset(
        {"command", "args", "env", "cwd", "url", "httpUrl", "type", "transportType", "tcp"}
        | {"headers", "timeout", "description", "includeTools", "excludeTools", "oauth"}
        | {"reviewResults", "start", "sandbox"}
    ),
    "mcpServers.*.sandbox": frozenset({"read", "write", "network"}),
    # The server says where to sign in, and that is checked; addresses here would go unchecked.
    "mcpServers.*.oauth": frozenset(
        {"enabled", "clientId", "clientSecret", "scopes", "audiences", "redirectUri"}
        | {"tokenParamName", "grantType", "privateKey", "signingAlgorithm"}
    ),
    "mcp": frozenset({"allowed", "excluded"}),
    "gemdeck": frozenset({"alwaysDeny", "maxToolCalls", "maxResultSize", "idleTimeout"}),
}
"""What a project's file may set, by section; `*` stands for a server's name.

It adds servers, forbids and lowers limits; a key that is not listed has no effect in it.
"""

LIMITS: Final = ("max_tool_calls", "max_result_size", "idle_timeout")
"""Limits that a project can lower."""

_MODELS: Final[Mapping[str, type[BaseModel]]] = {
    "mcpServers.*": ServerSettings,
    "mcpServers.*.oauth": OAuthSettings,
    "mcpServers.*.sandbox": SandboxSettings,
    "mcp": McpSettings,
    "gemdeck": GemdeckSettings,
}
_WITHOUT_EFFECT: Final = {
    section: known_keys(model) - COUNTING_KEYS[section] for section, model in _MODELS.items()
}


def written_rule(rule: ToolPattern) -> list[str] | dict[str, Any]:
    """Return a rule as it stands in the file of trust: server, tool, permissions that are void.

    One with arguments is an object, of which a gemdeck that knows none of them denies all.
    """
    if rule.arguments:
        return rule.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return [rule.server, rule.tool, *voids(rule)]


def _read_rule(raw: object) -> object:
    if not isinstance(raw, list):
        return raw
    server, tool, *void = raw
    if not void:
        return {"server": server, "tool": tool}
    return Restriction(server=server, tool=tool, voids=tuple(map(Permission, void)))


_Rule = Annotated[ToolPattern, BeforeValidator(_read_rule), PlainSerializer(written_rule)]


class ProjectRules(Frozen):
    """What a project forbids and the limits it lowers.

    Attributes:
        allowed: If not None, only these servers start; lower case, as `mcp.allowed` compares.
        excluded: These do not; likewise.
        always_deny: Tools that never run, or not without a question.
        max_tool_calls: The most calls one turn may make, or None.
        max_result_size: The most characters of one result for the model, or None.
        idle_timeout: The longest silence in seconds, or None.
        sources: Where `allowed` and `excluded` stand, as shown.
    """

    allowed: frozenset[str] | None = None
    excluded: frozenset[str] = frozenset()
    always_deny: tuple[_Rule, ...] = ()
    max_tool_calls: int | None = None
    max_result_size: int | None = None
    idle_timeout: float | None = None
    source: str = ""

    def words(self) -> tuple[str, ...]:
        """Return the rules as sentences."""
        said: list[str] = []
        if self.allowed is not None:
            names = ", ".join(sorted(self.allowed)) or "none"
            said.append(f"Only these servers may start, including your own: {names}.")
        if self.excluded:
            said.append(f"These servers do not start: {', '.join(sorted(self.excluded))}.")
        said += map(_rule_words, self.always_deny)
        if self.max_tool_calls is not None:
            said.append(f"A turn may make at most {counted(self.max_tool_calls, 'tool call')}.")
        if self.max_result_size is not None:
            said.append(f"The model gets at most {self.max_result_size} characters per result.")
        if self.idle_timeout is not None:
            said.append(f"A response times out after {self.idle_timeout:g} s of silence.")
        return tuple(map(sanitize_line, said))


def _rule_words(rule: ToolPattern) -> str:
    if voids(rule) == (Permission.YOLO,):
        return "--yolo has no effect here."
    name = f"tool {rule.tool} of {rule.server}"
    if rule.arguments:
        return f"The {name} never runs where {conditions_words(rule.conditions)}."
    name = f"a BeforeTool hook would check {name}" if isinstance(rule, HookRule) else name
    return f"Approval every time: {name}." if voids(rule) else f"The {name} never runs."


class ProjectOffer(Frozen):
    """What a folder says.

    Attributes:
        servers: Its servers as they would run; what is shown of them is as written.
        rules: Its restrictions.
        variables: Those variables of its ``.env`` that its servers refer to.
        context: What it tells the model.
        taken: Its servers that do not count, since the user's settings have the names.
    """

    servers: tuple[ServerDefinition, ...] = ()
    rules: ProjectRules = ProjectRules()
    variables: Mapping[str, str] = field(default_factory=lambda: _NONE, repr=False)
    context: tuple[ContextFile, ...] = ()
    taken: tuple[ServerId, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to agree to: no rule, no server that could run, no context."""
        runs = any(server.withheld is not ServerStatus.INVALID for server in self.servers)
        has_rules = self.rules != ProjectRules(source=self.rules.source)
        return not (runs or has_rules or self.context)


Brought: TypeAlias = tuple[RawEntry, ServerDefinition, Sequence[SettingsProblem]]
"""An entry of a folder's, the server that it comes to, and what is wrong with it."""


def read_offer(
    layers: Iterable[LayerFile],
    reader: ServerReader,
    taken: Container[ServerId],
    context: ContextPlaces,
    report: Report,
) -> tuple[list[Brought], ProjectOffer, ContextPlaces]:
    """Read what a folder brings, with its entries and files of context. Blocks.

    Its ``.env`` is read only where one of its files refers to variables.

    Args:
        layers: The files that may be there.
        reader: Reads its servers.
        taken: The names that the user's and the system's servers have.
        context: Where its files of context may be.
        report: Takes what is wrong.
    """
    folder = reader.folder
    inside = [one for one in layers if not leads_out(one.path, folder, report)]
    sources = [one for at in inside if (one := read_layer(at, report))]
    refers = any(references_in(source.content.get("mcpServers")) for source in sources)
    variables = read_dotenv(folder, report) if refers else _NONE
    brought: list[Brought] = []
    skipped: list[ServerId] = []
    inner = reader.fork(variables)
    for found in server_entries(sources):
        if server_id(found.name) in taken:
            words = "skipped: your own settings define a server with the same name"
            found.source.note(found.path, words)
            skipped.append(server_id(found.name))
        else:
            entry, inner.problems = replace(found, raw=_entry(found)), []
            brought.append((entry, inner.read(entry), inner.problems))
    servers = tuple(server for _, server, _ in brought)
    names = {name for server in servers for name in references_in(dict(server.entry.written))}
    used = MappingProxyType({name: variables[name] for name in variables if name in names})
    context = with_project(context, sources, folder, report)
    said = project_context(context, folder, report)
    rules = _rules_of(sources)
    return brought, ProjectOffer(servers, rules, used, said, tuple(skipped)), context


def _rules_of(sources: Iterable[Source]) -> ProjectRules:
    """Read what a folder forbids; the lowest limit counts. References are not expanded here."""
    rules = ProjectRules()
    for source in sources:
        if source.content.get("model") is not None:
            source.note(("model",), "has no effect in a project's file")
        raw_mcp, raw = (
            _counting(source, source.section(name), name, (name,)) for name in ("mcp", "gemdeck")
        )
        mcp = source.salvaged(McpSettings, raw_mcp, "mcp")
        note_texts(source, raw_mcp)
        denied = restricted_by(source, raw.pop(DENY_KEY, None), _NONE)
        own = source.salvaged(GemdeckSettings, raw, "gemdeck")
        allowed = rules.allowed
        if raw_mcp.get("allowed") is not None:
            names = frozenset(map(compared, mcp.allowed or ()))
            allowed = names if allowed is None else allowed & names
        lowest: dict[str, Any] = {
            name: min(filter(None, (getattr(rules, name), getattr(own, name))))
            for name in LIMITS
            if name in own.model_fields_set
        }
        rules = replace(
            rules,
            allowed=allowed,
            excluded=rules.excluded | frozenset(map(compared, mcp.excluded)),
            always_deny=rules.always_deny + denied,
            source=source.file,
            **lowest,
        )
    return rules


def compared(name: str) -> str:
    """Return a server's name in the form that gemini-cli compares."""
    return name.strip().lower()


def note_texts(source: Source, mcp: Mapping[str, Any]) -> None:
    """Say that a text in place of a list of servers is the name of one."""
    for key in ("allowed", "excluded"):
        if isinstance(mcp.get(key), str):
            source.note(("mcp", key), "this text is a single name; use a list for several: [ … ]")


def _entry(entry: RawEntry) -> object:
    """Return an entry with the keys alone that count in a project's file."""
    if not isinstance(entry.raw, dict):
        return entry.raw
    kept = _counting(entry.source, entry.raw, "mcpServers.*", entry.path)
    for key in ("oauth", "sandbox"):
        if isinstance(inner := kept.get(key), dict):
            path = (*entry.path, key)
            kept[key] = _counting(entry.source, inner, f"mcpServers.*.{key}", path)
    return kept


def _counting(
    source: Source, raw: Mapping[str, Any], section: str, path: KeyPath
) -> dict[str, Any]:
    """Drop the keys of a section that have no effect in a project's file, with a problem each."""
    ignored = raw.keys() & _WITHOUT_EFFECT[section]
    for key in sorted(ignored):
        harmless = (None, False, "false") if key == "trust" else (None,)
        if raw[key] not in harmless:
            source.note((*path, key), "has no effect in a project's file")
    return {key: raw[key] for key in raw if key not in ignored}
