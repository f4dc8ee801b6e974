"""The sections ``gemdeck``, ``model`` and ``mcp``, merged over all layers."""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from tui.engine.definitions.definition import Inheritance, ServerDefinition, SettingsProblem
from tui.engine.settings.entries import Entry, disabled
from tui.engine.settings.prohibitions import (
    EVERY,
    DenyRule,
    blocked_variables,
    excluded_tools,
    names_in,
    report_permissions,
)
from tui.engine.settings.project import DENY_KEY, LIMITS, ProjectRules, compared, denied_tools
from tui.engine.settings.sources.source import Report, Source, known_keys
from tui.model.frozen import dataclass
from tui.model.settings import (
    GemdeckSettings,
    McpSettings,
    ModelSettings,
    ToolPattern,
)
from tui.model.settings_rules import check_model_name

MAX_UNKNOWN: Final = 200
"""Unknown keys of one section that are reported."""

BLOCK_KEY: Final = "environmentBlock"
"""The list of variables that no server gets."""

COMMAND_SERVER: Final = "mcp"
"""The name of the server that `mcp.serverCommand` starts."""

MODEL_VARIABLE: Final = "GEMINI_MODEL"
"""Names the model, above all files."""

_MODEL_ALIASES: Final = ("auto", "pro", "flash", "flash-lite")
"""Model aliases of gemini-cli that the service does not know."""


def read_gemdeck(
    sources: Iterable[Source],
    environ: Mapping[str, str],
    model: str | None,
    denied: tuple[ToolPattern, ...],
    report: Report,
) -> GemdeckSettings:
    """Merge gemdeck's own settings key by key, and find the model that answers.

    Args:
        sources: The files, lowest layer first.
        environ: Variables for expansion, and perhaps the model.
        model: The model named on the command line, or None.
        denied: What is denied elsewhere.
        report: Takes what is wrong.
    """
    values: dict[str, Any] = {}
    blocked: tuple[str, ...] = ()
    foreign: str | None = None
    known = known_keys(GemdeckSettings)
    for source in sources:
        foreign = _gemini_cli_model(source, environ) or foreign
        raw = source.section("gemdeck")
        if not isinstance(source.content.get("gemdeck"), dict | None):
            denied += (DenyRule(source=f"gemdeck in {source.file}"),)  # it may have forbidden any
        for key in [key for key in list(raw)[:MAX_UNKNOWN] if key not in known]:
            source.note(("gemdeck", key), "unknown key, ignored")
        raw = {key: raw[key] for key in raw if key in known}
        raw = source.expanded(raw, ("gemdeck",), environ)
        denied += denied_tools(raw.pop(DENY_KEY, None), source)
        denied += excluded_tools(source, environ)
        report_permissions(source)
        blocked += names_in(raw.pop(BLOCK_KEY, None), source, ("gemdeck", BLOCK_KEY))
        blocked += blocked_variables(source)
        section = source.salvaged(GemdeckSettings, raw, "gemdeck")
        values |= {key: getattr(section, key) for key in section.model_fields_set}
    if foreign:
        values.setdefault("model", foreign)
    if (named := _named_model(environ, model, report)) is not None:
        values["model"] = named
    return GemdeckSettings.model_validate(values).model_copy(
        update={"always_deny": denied, "environment_block": blocked}
    )


def inheritance_of(settings: GemdeckSettings) -> Inheritance:
    """Return which variables servers inherit, by the user's lists."""
    allow, block = settings.environment_allow, settings.environment_block
    return Inheritance(frozenset(map(str.upper, allow)), frozenset(map(str.upper, block)))


def with_project(settings: GemdeckSettings, rules: ProjectRules) -> GemdeckSettings:
    """Add a trusted project's prohibitions and its lower limits."""
    lowered = {
        name: min(filter(None, (getattr(settings, name), getattr(rules, name)))) for name in LIMITS
    }
    denied = settings.always_deny + rules.always_deny
    return settings.model_copy(update={**lowered, "always_deny": denied})


def _gemini_cli_model(source: Source, environ: Mapping[str, str]) -> str | None:
    """Return the model that ``model.name``, or an older file's ``model``, names."""
    value = source.content.get("model")
    raw = {"name": value} if isinstance(value, str) else source.section("model")
    raw = source.expanded({"name": raw["name"]} if "name" in raw else {}, ("model",), environ)
    name = source.salvaged(ModelSettings, raw, "model").name
    try:
        return _no_alias(name) if name is not None else None
    except ValueError as error:
        source.note(("model", "name"), str(error))
        return None


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


@dataclass(frozen=True, slots=True)
class McpRules:
    """The rules of ``mcp``; names are lower case and stripped, as gemini-cli compares them.

    `excluded` and `off`, the servers that gemini-cli was told to leave off, say where.
    """

    allowed: frozenset[str] | None
    allowed_in: str
    excluded: Mapping[str, str]
    command: str
    command_source: Source | None
    off: Mapping[str, str]

    def apply(self, entry: Entry, definition: ServerDefinition) -> ServerDefinition:
        """Withhold a server that the rules do not let start."""
        name = compared(entry.name)
        if definition.withheld is not None and not definition.may_enable:
            return definition
        if name in self.excluded:
            advice = f"Remove it from mcp.excluded in {self.excluded[name]}."
            return replace(definition, **disabled("listed in mcp.excluded", advice))
        if self.allowed is not None and name not in self.allowed:
            advice = f"Add it to mcp.allowed in {self.allowed_in}."
            return replace(definition, **disabled("not listed in mcp.allowed", advice))
        if (place := self.off.get(name, self.off.get(EVERY))) is not None:
            advice = f"Enable it here for now, or in {place}."
            off = disabled("turned off in gemini-cli", advice, may_enable=True)
            return replace(definition, **off)
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
        return replace(
            self, allowed=self.allowed & names, allowed_in=f"{self.allowed_in} and {file}"
        )


def read_mcp(
    sources: Iterable[Source], environ: Mapping[str, str], off: Mapping[str, str]
) -> McpRules:
    """Merge ``mcp``: all `allowed` and `excluded` hold, of `serverCommand` the highest counts.

    An `allowed` that cannot be read allows nothing, since it was meant to forbid.
    """
    rules = McpRules(None, "", {}, "", None, off)
    for source in sources:
        section, known = source.section("mcp"), known_keys(McpSettings)
        raw = {key: section[key] for key in section if key in known}
        raw = source.expanded(raw, ("mcp",), environ)
        mcp = source.salvaged(McpSettings, raw, "mcp")
        if raw.get("allowed") is not None:
            rules = rules.allowing(frozenset(map(compared, mcp.allowed or ())), source.file)
        for key in _forbidding(source, raw, mcp):
            source.note(key, "no server is started until this is corrected")
            rules = rules.allowing(frozenset(), source.file)
        excluded = {compared(name): source.file for name in mcp.excluded}
        rules = replace(rules, excluded={**rules.excluded, **excluded})
        if mcp.server_command:
            rules = replace(rules, command=mcp.server_command, command_source=source)
    return rules


def _forbidding(
    source: Source, raw: Mapping[str, Any], mcp: McpSettings
) -> Iterator[tuple[str, ...]]:
    """Name what was meant to forbid servers and cannot be read."""
    if not isinstance(source.content.get("mcp"), dict | None):
        yield ("mcp",)
    for key in ("allowed", "excluded"):
        if raw.get(key) is not None and key not in mcp.model_fields_set:
            yield ("mcp", key)


def command_entry(command: str, source: Source) -> Entry:
    """Turn ``mcp.serverCommand`` into an entry; no shell ever reads it."""
    path = ("mcp", "serverCommand")
    try:
        words = shlex.split(command)
    except ValueError:
        return Entry(COMMAND_SERVER, "a quote is not closed", source, path)
    return Entry(COMMAND_SERVER, {"command": "".join(words[:1]), "args": words[1:]}, source, path)
