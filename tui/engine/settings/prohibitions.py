"""What gemini-cli's own files forbid, and what they would allow.

Its prohibitions hold here, by names that are compared generously: `tools.exclude`, the deny rules
of its policies, and the servers that it was told to leave off. A condition of a rule is not looked
at, so such a rule denies more here than there. What it allows gives no permission and is named. A
file of rules that cannot be read forbids everything, since it was meant to forbid.
"""

import itertools
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from tui.engine.definitions.expansion import Expansion
from tui.engine.definitions.folder_code import FOLDER_NAME
from tui.engine.files.atomic import UnfitFileError, read_regular
from tui.engine.settings.sources.document import BadDocumentError, read_document
from tui.engine.settings.sources.source import (
    ENABLEMENT,
    LayerFile,
    Report,
    Source,
    shown_path,
    system_folder,
    validation_problems,
)
from tui.model.servers import Origin
from tui.model.settings import MAX_PATTERNS, GemdeckSettings, ToolPattern
from tui.text import sanitize_line

MAX_POLICY: Final = 256 * 1024
"""Largest file of policies, in bytes."""

MAX_POLICIES: Final = 100
"""Files of policies in one folder."""

MAX_NAME: Final = 200
"""Longest name in a rule; no tool has a longer one there."""

MAX_NAMED: Final = 10
"""Names that one problem lists."""

EVERY: Final = "*"
"""Stands for all servers."""

DENY_KEY: Final = "alwaysDeny"
"""The key under ``gemdeck`` that forbids tools."""

BLOCK_KEY: Final = "environmentBlock"
"""The list of variables that no server gets."""

_POLICIES: Final = "policies"
_EXCLUDE: Final = ("tools", "exclude")
_ALL: Final = "no tool runs until this is corrected"
_PREFIX: Final = "mcp_"
_CONDITIONS: Final = ("argsPattern", "toolAnnotations")
_SHELL_ONLY: Final = frozenset({"commandPrefix", "commandRegex"})
_DECISIONS: Final = ("allow", "ask_user", "deny")
_CUT: Final = "..."
"""What stands for the middle of a long name there."""

_WITHOUT_EFFECT: Final[Mapping[tuple[str, ...], str]] = {
    ("tools", "allowed"): "lets no tool run here; use gemdeck.alwaysAllow",
    ("tools", "core"): "has no effect here",
    ("tools", "confirmationRequired"): "has no effect here: you are asked unless a rule allows it",
    ("mcp", "autoAllowInHeadless"): "lets no tool run here; use --allowed-tools",
    ("security", "disableYoloMode"): "has no effect here",
    ("security", "environmentVariableRedaction", "allowed"): "use gemdeck.environmentAllow",
}
_RENAMED: Final[Mapping[str, str]] = {
    "allowMCPServers": "mcp.allowed",
    "excludeMCPServers": "mcp.excluded",
    "mcpServerCommand": "mcp.serverCommand",
    "allowedTools": "tools.allowed",
    "coreTools": "tools.core",
    "excludeTools": "tools.exclude",
    "autoAccept": "tools.autoAccept",
    "toolDiscoveryCommand": "tools.discoveryCommand",
    "toolCallCommand": "tools.callCommand",
    "selectedAuthType": "security.auth.selectedType",
    "enforcedAuthType": "security.auth.enforcedType",
    "useExternalAuth": "security.auth.useExternal",
    "folderTrust": "security.folderTrust.enabled",
    "excludedProjectEnvVars": "advanced.excludedEnvVars",
    "maxSessionTurns": "model.maxSessionTurns",
    "contextFileName": "context.fileName",
    "includeDirectories": "context.includeDirectories",
    "fileFiltering": "context.fileFiltering",
    "checkpointing": "general.checkpointing",
    "preferredEditor": "general.preferredEditor",
    "vimMode": "general.vimMode",
    "sandbox": "tools.sandbox",
    "theme": "ui.theme",
    "customThemes": "ui.customThemes",
    "hideBanner": "ui.hideBanner",
    "hideTips": "ui.hideTips",
    "hideFooter": "ui.hideFooter",
    "hideWindowTitle": "ui.hideWindowTitle",
    "showMemoryUsage": "ui.showMemoryUsage",
    "usageStatisticsEnabled": "privacy.usageStatisticsEnabled",
}
"""Keys of gemini-cli's first settings, which it no longer reads either."""


class DenyRule(ToolPattern):
    """A rule that denies tools and stands elsewhere than in `gemdeck.alwaysDeny`."""

    source: str = ""


def denied_by(source: Source, own: object, environ: Mapping[str, str]) -> tuple[ToolPattern, ...]:
    """Read what a file denies, and name what gives no permission here and has been given up.

    Args:
        source: The file.
        own: The value of its ``gemdeck.alwaysDeny``.
        environ: Variables for expansion.
    """
    for path, words in _WITHOUT_EFFECT.items():
        if _value(source.content, path):
            source.note(path, words)
    if old := [key for key in source.content if key in _RENAMED]:
        named = ", ".join(f"{key} (now {_RENAMED[key]})" for key in old)
        source.note((old[0],), f"old names without effect: {named}")
    return (*_always_denied(own, source), *_excluded_tools(source, environ))


def _always_denied(raw: object, source: Source) -> Iterator[ToolPattern]:
    """Read ``gemdeck.alwaysDeny`` item by item; what is no list of fit length forbids all tools."""
    path = ("gemdeck", DENY_KEY)
    if raw is None:
        return
    if not isinstance(raw, list) or len(raw) > MAX_PATTERNS:
        words = f"no tool runs until this is a list of at most {MAX_PATTERNS} rules: [ … ]"
        source.note(path, words)
        yield ToolPattern()
        return
    for index, item in enumerate(raw):
        try:
            yield from GemdeckSettings.model_validate({DENY_KEY: [item]}).always_deny
        except ValidationError as error:
            keys, words = validation_problems(error)[0]
            source.note((*path, index, *keys[2:]), words)


def _excluded_tools(source: Source, environ: Mapping[str, str]) -> tuple[DenyRule, ...]:
    """Read `tools.exclude`, whose names mean tools with and without their server's name."""
    tools = source.content.get(_EXCLUDE[0]) or {}
    raw = tools.get(_EXCLUDE[1]) if isinstance(tools, dict) else tools
    if raw is None:
        return ()
    names = Expansion(environ).value([raw] if isinstance(raw, str) else raw)
    where = f"tools.exclude in {source.file}"
    if not isinstance(tools, dict):
        names = None
    if not isinstance(names, list) or len(names) > MAX_PATTERNS or not all(map(_is_name, names)):
        source.note(_EXCLUDE, f"must be a list of at most {MAX_PATTERNS} names; {_ALL}")
        return (DenyRule(source=where),)
    pairs = dict.fromkeys(
        pair
        for name in names
        if name
        for pair in (*_meant(name), ("*", _bare(name).replace(_CUT, "*")))
    )
    return tuple(DenyRule(server=server, tool=tool, source=where) for server, tool in pairs)


def policy_places(home: Path, layers: Iterable[LayerFile]) -> list[Path]:
    """List the folders of policies: the user's and the system's.

    Args:
        home: The user's home.
        layers: The settings files; the system's policies are in its own folder, which no variable
            moves, and beside its settings.
    """
    system = (layer.path.parent for layer in layers if layer.origin is Origin.SYSTEM)
    return [folder / _POLICIES for folder in (home / FOLDER_NAME, system_folder(), *system)]


def read_policies(
    layers: Iterable[LayerFile],
    sources: Iterable[Source],
    environ: Mapping[str, str],
    report: Report,
) -> tuple[DenyRule, ...]:
    """Read the rules of policies that deny tools of servers. Blocks.

    Args:
        layers: The settings files of the user and the system; see `policy_places`.
        sources: Those that there are. They may name further places of policies.
        environ: Variables for expansion.
        report: Takes what is wrong.
    """
    home = report.home
    places = policy_places(home, layers)
    for source, key in itertools.product(sources, ("policyPaths", "adminPolicyPaths")):
        named = _names_in(source.content.get(key), source, (key,))
        for text in map(Expansion(environ).text, named[:MAX_POLICIES]):
            places.append(home / text.removeprefix("~/"))
            if not places[-1].exists():
                source.note((key,), f"{sanitize_line(text, MAX_NAME)} does not exist")
    denials: list[DenyRule] = []
    for place in dict.fromkeys(places):
        files: Sequence[Path] = ()
        with _denying_if_unread(place, denials, report):
            files = _policy_files(place)
        for path in files:
            with _denying_if_unread(path, denials, report):
                content = tomllib.loads(read_regular(path, MAX_POLICY).decode("utf-8"))
                if content and "rule" not in content:
                    report.note(path, "has no [[rule]], so it forbids nothing")
                denials += _denials(content, path, report)
    return tuple(denials)


@contextmanager
def _denying_if_unread(path: Path, denials: list[DenyRule], report: Report) -> Iterator[None]:
    """Deny every tool if what is there cannot be read."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, UnfitFileError, ValueError, RecursionError) as error:
        reason = sanitize_line(getattr(error, "strerror", None) or str(error), MAX_NAME)
        report.note(path, f"{reason or 'too deep'}; {_ALL}")
        denials.append(DenyRule(source=shown_path(path, report.home)))


def read_enablement(report: Report) -> Mapping[str, str]:
    """Name the servers that gemini-cli was told to leave off, each with the file that says so.

    `EVERY` stands for all of them, where the file cannot be read.
    """
    path = report.home / FOLDER_NAME / ENABLEMENT
    file = shown_path(path, report.home)
    try:
        document = read_document(path)
    except BadDocumentError as error:
        report.note(
            path, f"{error}; no server starts by itself until this is corrected", error.line
        )
        return {EVERY: file}
    content = document.content if document is not None else {}
    return {name.strip().lower(): file for name, entry in content.items() if _is_off(entry)}


def _is_off(entry: object) -> bool:
    enabled = entry.get("enabled", True) if isinstance(entry, dict) else entry
    return str(enabled).lower() in {"false", "0"}


def blocked_by(source: Source, own: object) -> tuple[str, ...]:
    """Return the variables that gemdeck, by its own list, and gemini-cli are told to withhold."""
    path = ("security", "environmentVariableRedaction", "blocked")
    theirs = _names_in(_value(source.content, path), source, path)
    return (*_names_in(own, source, ("gemdeck", BLOCK_KEY)), *theirs)


def _names_in(value: object, source: Source, path: tuple[str, ...]) -> tuple[str, ...]:
    """Read a list of names that forbids: what is wrong in it takes nothing else with it."""
    listed = [value] if isinstance(value, str) else value
    if listed is None:
        return ()
    names = listed[:MAX_PATTERNS] if isinstance(listed, list) else []
    kept = tuple(name for name in names if isinstance(name, str))
    if not isinstance(listed, list) or len(kept) < len(listed):
        source.note(path, f"must be a list of at most {MAX_PATTERNS} names; only its names count")
    return kept


def _policy_files(place: Path) -> Sequence[Path]:
    """List the files of a folder, or a file itself.

    Raises:
        OSError: If the folder cannot be read.
        ValueError: If it has more than `MAX_POLICIES`.
    """
    if place.suffix == ".toml":
        return (place,)
    files = sorted(path for path in place.iterdir() if path.suffix == ".toml")
    if len(files) > MAX_POLICIES:
        raise ValueError(f"more than {MAX_POLICIES} files")
    return files


def _denials(content: Mapping[str, Any], path: Path, report: Report) -> list[DenyRule]:
    """Return what the rules of one file deny.

    Raises:
        ValueError: If they cannot be understood.
    """
    rules = content.get("rule", [])
    if not isinstance(rules, list) or len(rules) > MAX_PATTERNS:
        raise ValueError(f"rule must be a list of at most {MAX_PATTERNS} tables")
    file = shown_path(path, report.home)
    allowed: list[str] = []
    widened: list[str] = []
    found: list[DenyRule] = []
    for rule in rules:
        decision = rule.get("decision") if isinstance(rule, dict) else None
        if decision not in _DECISIONS:
            raise ValueError(f"decision must be one of {', '.join(_DECISIONS)}")
        if decision == "allow":
            allowed += _rule_names(rule)
        if decision != "deny" or rule.keys() & _SHELL_ONLY or "subagent" in rule:
            continue
        if rule.get("modes") == ["plan"]:
            continue
        widened += _rule_names(rule) if any(key in rule for key in _CONDITIONS) else []
        for name in _rule_tools(rule):
            pairs = dict.fromkeys(_rule_pairs(rule, name))
            found += [DenyRule(server=one, tool=tool, source=file) for one, tool in pairs]
    for names, words in ((allowed, "lets nothing run here"), (widened, "denied altogether here")):
        if names:
            listed = sanitize_line(", ".join(dict.fromkeys(names[:MAX_NAMED])))
            report.note(path, f"{words}: {listed}", key="rule")
    return found


def _rule_names(rule: Mapping[str, Any]) -> list[str]:
    """Name what a rule is about."""
    server = rule.get("mcpName")
    return [f"{server}: {tool}" if server else str(tool) for tool in _rule_tools(rule)]


def _rule_tools(rule: Mapping[str, Any]) -> list[str]:
    names = rule.get("toolName", "*")
    names = [names] if isinstance(names, str) else names
    if not isinstance(names, list) or len(names) > MAX_PATTERNS or not all(map(_is_name, names)):
        raise ValueError("toolName must be a name or a list of names")
    return names


def _rule_pairs(rule: Mapping[str, Any], name: str) -> Iterator[tuple[str, str]]:
    """Return what tools of what servers a rule means by a name."""
    server = rule.get("mcpName")
    if server is None:
        yield from _meant(name)
    elif _is_name(server) and server:
        yield server, name or "*"
        yield from _meant(name) if name.startswith(_PREFIX) else ()
    else:
        raise ValueError("mcpName must be a name")


def _meant(name: str) -> Iterator[tuple[str, str]]:
    """Return the servers and tools that a whole name can stand for: ``mcp_SERVER_TOOL``.

    Either part may hold underscores, so all ways to part them count.
    """
    name = _bare(name)
    if name in {"*", f"{_PREFIX}*"}:
        yield "*", "*"
    elif name.startswith(_PREFIX) and name.endswith("_*"):
        yield name[len(_PREFIX) : -2], "*"
        yield name[:-2], "*"  # a server's name that begins like this is not given the prefix again
    elif name.startswith(_PREFIX):
        whole = name.replace(_CUT, "*")
        if _CUT in name:
            head, _, tail = name.partition(_CUT)
            yield f"{head[len(_PREFIX) :]}*", f"*{tail}"
            yield f"{head}*", f"*{tail}"
        for at in (at for at, sign in enumerate(whole) if sign == "_"):
            if len(_PREFIX) < at < len(whole) - 1:
                yield whole[len(_PREFIX) : at], whole[at + 1 :]
                yield whole[:at], whole[at + 1 :]
    elif "__" in name.strip("_"):
        server, _, tool = name.partition("__")
        yield server or "*", tool or "*"


def _bare(name: str) -> str:
    """Return a name without what some names say in parentheses."""
    return name.partition("(")[0].strip() or name


def _is_name(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MAX_NAME


def _value(content: Mapping[str, Any], path: Sequence[str]) -> Any:  # noqa: ANN401 - any JSON value
    """Return what stands at a path; None where nothing does."""
    found: Any = content
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found
