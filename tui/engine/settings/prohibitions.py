"""What gemini-cli's own files and variables forbid, and what they would allow.

Its prohibitions hold here, by names that are compared generously: `tools.exclude`, what extensions
exclude, plan mode, the deny rules of its policies, and the servers that it was told to leave off;
likewise what it asks about: `tools.confirmationRequired`, rules with `ask_user`, and tools that one
of its hooks would check. What it demands of a whole run is in `RunRules`. A
condition of a rule is not looked at, so such a rule restricts more here than there. What it allows
gives no permission and is named. A file of rules that cannot be read forbids everything, since it
was meant to forbid.
"""

import itertools
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from tui.engine.definitions.definition import ServerDefinition, SettingsProblem
from tui.engine.definitions.expansion import Expansion
from tui.engine.files.atomic import read_text
from tui.engine.files.paths import GEMINI_FOLDER, shown_path
from tui.engine.settings.sources.document import BadDocumentError, dotted, read_document, read_toml
from tui.engine.settings.sources.source import (
    ENABLEMENT,
    LayerFile,
    Refusal,
    Report,
    Source,
    system_folder,
    validation_problems,
)
from tui.model.bounded_json import as_object
from tui.model.frozen import Frozen
from tui.model.servers import Origin, Transport
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

HOOKS: Final = "hooks.BeforeTool in "
"""The source of a rule that a hook makes, before its file."""

POLICIES: Final = "policies"
_ALL: Final = "no tool runs until this is fixed"
_ASKED: Final = "every tool needs approval until this is fixed"
_PREFIX: Final = "mcp_"
_IGNORING: Final = ', unless gemdeck.projectHooks in your settings is "ignore"'
_SHELL_ONLY: Final = frozenset({"commandPrefix", "commandRegex"})
_DECISIONS: Final = ("allow", "ask_user", "deny")
"""What a policy may decide."""

TRUST_PRIORITY: Final = 200
"""From this priority on a user's rule wins over ``trust: true`` in gemini-cli."""

_CUT: Final = "..."
"""What stands for the middle of a long name there."""

MAX_SOURCE: Final = 500
"""Longest source of an extension that a regular expression is tried on, in characters."""

SANDBOX_VARIABLE: Final = "GEMINI_SANDBOX"
"""Asks for a sandbox, or for none, above all files."""

_NO_SANDBOX: Final = 'To run without one, set gemdeck.sandbox to "none" in your settings.'
_SANDBOX: Final = f"Set gemdeck.sandbox to true. {_NO_SANDBOX}"
_REFUSING: Final = "`-p` is refused (exit {}) and {} stay disabled; {}"


class Permission(StrEnum):
    """What lets tools run without a question: an option, the settings, or the user's answers."""

    YOLO = "--yolo"
    SETTINGS = "settings"
    GRANTS = "always"


class Restriction(ToolPattern):
    """A rule that restricts tools and stands elsewhere than in `gemdeck.alwaysDeny`.

    Those that ask travel with those that deny: both add up, and hold until a restart.

    Attributes:
        source: Where it stands, as shown.
        voids: The permissions that do not count for these tools; if none, the tools are denied.
    """

    source: str = ""
    voids: tuple[Permission, ...] = ()


class PlanRule(Restriction):
    """Plan mode: no tool runs unless the command line names another mode."""


class HookRule(Restriction):
    """A hook of a project would check these tools; the user may have said to ignore that."""


class RunRules(Frozen):
    """What gemini-cli's files and variables demand of a whole run.

    Attributes:
        untrusted: The variable by which no server may run, or "".
        sandbox: Where it stands that programs run in a sandbox alone, or "".
        auth: The only way to sign in to the model's service, as gemini-cli names it, and where
            that stands; nothing where there is no such rule.
        max_requests: Most requests to the model; below 0 or None for any number.
        output: What ``-p`` prints unless the command line says it.
    """

    untrusted: str = ""
    sandbox: str = ""
    auth: tuple[Any, str] = ("", "")
    max_requests: int | None = None
    output: str = "text"

    def why_held(self, one: ServerDefinition) -> tuple[str, str]:
        """Say why a server may not start, and what to do; nothing where it may."""
        is_bare = one.transport is Transport.STDIO and one.launch.sandbox is None
        return self.why_refused(is_bare=is_bare)

    def why_refused(self, *, is_bare: bool) -> tuple[str, str]:
        """Say why nothing may start, or nothing without a sandbox (`is_bare`)."""
        if self.untrusted:
            return f"no server may run: {self.untrusted} is set", f"Unset {self.untrusted}."
        if self.sandbox and is_bare:
            return f"{self.sandbox} requires a sandbox, and gemdeck has none set", _SANDBOX
        return "", ""


_Place = tuple[Source, tuple[str, ...]]

_WEAK: Final = (Permission.YOLO, Permission.GRANTS)
"""What a rule that asks makes void whatever its priority."""


def voids(rule: ToolPattern) -> tuple[Permission, ...]:
    """Return the permissions that a rule makes void; none where it denies."""
    return rule.voids if isinstance(rule, Restriction) else ()


def restricted_by(
    source: Source, own: object, environ: Mapping[str, str]
) -> tuple[ToolPattern, ...]:
    """Read what a file denies or asks about, and name what has no effect here.

    Args:
        source: The file.
        own: The value of its ``gemdeck.alwaysDeny``.
        environ: Variables for expansion.
    """
    _name_ineffective(source)
    renamed = key_table()["renamed"]
    tops = {key.partition(".")[0] for key in key_table()["obeyed"]}
    flat = {key for key in source.content if "." in key and key.partition(".")[0] in tops}
    if old := [key for key in source.content if key in renamed or key in flat][:MAX_NAMED]:
        named = ", ".join(f"{key} (now {renamed.get(key, 'nested objects')})" for key in old)
        source.note((old[0],), f"old names, ignored: {named}")
    denied = _always_denied(own, source)
    switches = *_mode(source, environ), *_switches(source)
    return (*denied, *_listed(source, environ), *switches, *_hooked(source))


@cache
def key_table() -> Mapping[str, Any]:
    """Read what becomes of gemini-cli's keys, variables and files, and what serves for the rest."""
    return tomllib.loads(Path(__file__).with_name("gemini_cli_keys.toml").read_text("utf-8"))


def _name_ineffective(source: Source) -> None:
    """Name the keys without effect; of those that harm nobody only who asks is told."""
    for group in ("told", "named", *(["project"] if source.origin is Origin.PROJECT else ())):
        for key, words in key_table()[group].items():
            path, is_quiet = tuple(key.split(".")), group == "named"
            if (value := source.at(path)) or (is_quiet and value is not None):
                source.note(path, words, quiet=is_quiet)


def name_elsewhere(environ: Mapping[str, str], report: Report) -> None:
    """Name the variables, and the files in the user's home, that have no effect here."""
    quiet, told = key_table()["elsewhere"], key_table()["variables"]
    for name, words in (told | quiet).items():
        if not says_no(environ.get(name, "").strip().lower()) or any(report.home.glob(name)):
            report.problems.append(SettingsProblem(name, 0, "", words, quiet=name in quiet))


def read_run_rules(
    sources: Sequence[Source],
    environ: Mapping[str, str],
    own: GemdeckSettings,
    turns: int | None,
    report: Report,
) -> RunRules:
    """Find what a run must keep to, and name it; a project's file demands nothing of the kind.

    Args:
        sources: The settings of the user and the system, lowest layer first.
        environ: The variables.
        own: gemdeck's own settings, by which it may go without a sandbox.
        turns: gemini-cli's ``model.maxSessionTurns``.
        report: Takes what keeps a run from starting, for those who ask.
    """
    words = {name: environ[name].strip().lower() for name in environ}
    untrusted, _ = min(words.items() & key_table()["untrusting"].items(), default=("", ""))
    if untrusted:
        telling = _REFUSING.format(55, "all servers", f"to lift that, unset {untrusted}")
        report.problems.append(SettingsProblem(untrusted, 0, "", telling, quiet=True))
    keys = ("tools", "sandbox"), ("sandbox",)
    box, place = _standing(sources, environ, *keys)
    box = box.get("enabled") if isinstance(box, dict) else box
    if words.get(SANDBOX_VARIABLE):
        box, place = words[SANDBOX_VARIABLE], SANDBOX_VARIABLE
    is_lifted = own.sandbox is None and "sandbox" in own.model_fields_set
    if is_lifted or says_no(box) or words.get("SANDBOX"):  # which we are in
        place = ""
    telling = _REFUSING.format(44, "stdio servers", _NO_SANDBOX[0].lower() + _NO_SANDBOX[1:-1])
    if place == SANDBOX_VARIABLE and own.sandbox is None:
        report.problems.append(SettingsProblem(place, 0, "", telling, quiet=True))
    elif place and own.sandbox is None:
        _name(sources, telling, *keys)
    auth = _standing(sources, environ, key := ("security", "auth", "enforcedType"))
    if auth[0]:
        _name(sources, f"`-p` is refused (exit 41) unless you sign in with {auth[0]}", key)
    output, _ = _standing(sources, environ, ("output", "format"))
    if output not in (None, "text", "json"):
        _name(sources, "must be text or json; text is used", ("output", "format"))
    return RunRules(untrusted, place, auth, turns, "json" if output == "json" else "text")


def extension_rule(sources: Sequence[Source], environ: Mapping[str, str]) -> Refusal:
    """Return what refuses extensions; patterns that cannot be read refuse all."""
    listed, listed_in = _standing(sources, environ, ("security", "allowedExtensions"))
    blocks, blocked_in = _standing(sources, environ, ("security", "blockGitExtensions"))

    def refusal(installed: Mapping[str, Any]) -> str:
        if listed:
            is_in = _is_listed(installed.get("source"), listed)
            return "" if is_in else f"not used: its source is not listed in {listed_in}"
        is_blocked = not says_no(blocks) and installed.get("type") in ("git", "github-release")
        return f"not used: {blocked_in} blocks extensions from Git" if is_blocked else ""

    return refusal


def _is_listed(source: object, patterns: object) -> bool:
    if not (isinstance(source, str) and source.isprintable() and isinstance(patterns, list)):
        return False
    real = os.path.realpath(source) if os.path.exists(source) else source  # noqa: PTH110 - a text
    is_fit = 0 < len(real) <= MAX_SOURCE
    try:
        return is_fit and any(re.search(pattern, real, re.ASCII) for pattern in patterns)
    except (re.error, TypeError, RecursionError, OverflowError):
        return False


def _standing(
    sources: Sequence[Source], environ: Mapping[str, str], *paths: tuple[str, ...]
) -> tuple[Any, str]:
    """Return the value of a key in the highest file, by any of its names, and where it stands."""
    for source, path in _places(sources, *paths):
        return Expansion(environ).value(source.at(path)), f"{dotted(path)} in {source.file}"
    return None, ""


def _places(sources: Sequence[Source], *paths: tuple[str, ...]) -> Iterator[_Place]:
    """Give the files that set a key, the highest first, with the name that it has there."""
    every = itertools.product(reversed(sources), paths)
    return ((source, path) for source, path in every if source.at(path) is not None)


def _name(sources: Sequence[Source], words: str, *paths: tuple[str, ...]) -> None:
    """Name the key that counts to who asks."""
    for source, path in itertools.islice(_places(sources, *paths), 1):
        source.note(path, words, quiet=True)


def _always_denied(raw: object, source: Source) -> Iterator[ToolPattern]:
    """Read ``gemdeck.alwaysDeny`` item by item; what cannot be read forbids all tools."""
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
            source.note((*path, index, *keys[2:]), f"{words}; {_ALL}")
            yield ToolPattern()


def _listed(source: Source, environ: Mapping[str, str]) -> Iterator[Restriction]:
    """Read the lists under ``tools``, whose names mean tools with and without their server's.

    An extension has one list.
    """
    tools = source.content.get("tools") or {}
    if source.extension:
        tools = {"exclude": source.content.get("excludeTools")}
    tools = tools if isinstance(tools, dict) else {"exclude": 0}  # it may have forbidden any
    for key, void, effect in (
        ("exclude", (), _ALL),
        ("confirmationRequired", tuple(Permission), _ASKED),
    ):
        if (raw := tools.get(key)) is None:
            continue
        names = Expansion(environ).value([raw] if isinstance(raw, str) else raw)
        path = ("excludeTools",) if source.extension else ("tools", key)
        where = f"{dotted(path)} in {source.file}"
        is_list = isinstance(names, list) and len(names) <= MAX_PATTERNS
        if not is_list or not all(map(_is_name, names)):
            source.note(path, f"must be a list of at most {MAX_PATTERNS} names; {effect}")
            yield Restriction(source=where, voids=void)
            continue
        pairs = dict.fromkeys(
            pair
            for name in names
            if name
            for pair in (*_meant(name), ("*", _bare(name).replace(_CUT, "*")))
        )
        for server, tool in pairs:
            yield Restriction(server=server, tool=tool, source=where, voids=void)


def says_no(value: object) -> bool:
    """Return whether the value of a switch leaves it off; every other one sets it."""
    return value in (None, False, 0, "", "false", "0")


def _mode(source: Source, environ: Mapping[str, str]) -> Iterator[Restriction]:
    """Read the approval mode, of which plan mode denies and no other one permits anything."""
    keys = ("general", "defaultApprovalMode"), ("tools", "approvalMode")
    mode, place = _standing([source], environ, *keys)
    is_off = source.at(("general", "plan", "enabled")) in (False, "false")
    if str(mode).strip().lower() == "plan" and not is_off:
        _name([source], "no tool runs; --approval-mode default lifts it", *keys)
        yield PlanRule(source=place)
    elif mode not in (None, "default", "plan"):
        source.note(keys[0], "allows no tool here; use --approval-mode")


def _switches(source: Source) -> Iterator[Restriction]:
    """Read what switches permissions off."""
    switches = {"disableYoloMode": Permission.YOLO, "disableAlwaysAllow": Permission.GRANTS}
    for key, permission in switches.items():
        if not says_no(source.at(("security", key))):
            yield Restriction(source=f"security.{key} in {source.file}", voids=(permission,))


def _hooked(source: Source) -> Iterator[Restriction]:
    """Name the hooks, of which none runs here, and ask about the tools that they would check."""
    kind = HookRule if source.origin is Origin.PROJECT else Restriction
    hooks = as_object(source.content.get("hooks"))
    events = {name: found for name, found in hooks.items() if found and isinstance(found, list)}
    if events.keys() - {"disabled"}:
        listed = ", ".join(name for name in [*events][:MAX_NAMED] if name != "disabled")
        asked = "; what BeforeTool checks needs approval" if "BeforeTool" in events else ""
        asked += _IGNORING if asked and kind is HookRule else ""
        source.note(("hooks",), f"not run here: {listed}{asked}")
    parts = [part for one in events.get("BeforeTool", ()) for part in _matcher(one)]
    where = f"{HOOKS}{source.file}"
    for part in dict.fromkeys(parts) if len(parts) <= MAX_PATTERNS else (EVERY,):
        yield kind(tool=part, source=where, voids=tuple(Permission))


def _matcher(hook: object) -> Iterator[str]:
    """Return patterns that match at least what the regular expression of a hook does.

    What each alternative is made of must stand in the name; all else means every tool.
    """
    text = hook.get("matcher") if isinstance(hook, dict) else None
    plain = re.sub(r"[\^$()]", "", text.strip()) if isinstance(text, str) else ""
    if len(plain) > MAX_NAME // 2 or not re.fullmatch(r"(?:[\w:|-]|\.\*)+", plain):
        yield EVERY
    else:
        yield from (f"*{part.replace('.*', '*')}*" for part in plain.split("|"))


def policy_places(home: Path, layers: Iterable[LayerFile]) -> list[Path]:
    """List the folders of policies: the user's and the system's.

    Args:
        home: The user's home.
        layers: The settings files; the system's policies are in its own folder, which no variable
            moves, and beside its settings.
    """
    system = (layer.path.parent for layer in layers if layer.origin is Origin.SYSTEM)
    return [folder / POLICIES for folder in (home / GEMINI_FOLDER, system_folder(), *system)]


def read_policies(
    layers: Iterable[LayerFile],
    sources: Iterable[Source],
    manifests: Iterable[Source],
    environ: Mapping[str, str],
    report: Report,
) -> tuple[Restriction, ...]:
    """Read the rules of policies and of extensions on tools of servers. Blocks.

    Args:
        layers: The settings files of the user and the system; see `policy_places`.
        sources: Those that there are. They may name further places of policies.
        manifests: Those of the extensions, which may exclude tools and have policies beside them.
        environ: Variables for expansion.
        report: Takes what is wrong.
    """
    home = report.home
    users, *systems = policy_places(home, layers)
    # whether they are an administrator's
    beside = (Path(one.variables["extensionPath"]) / POLICIES for one in manifests)
    places = dict.fromkeys((users, *beside), False)
    places |= dict.fromkeys(systems, True)
    found = [rule for manifest in manifests for rule in _listed(manifest, environ)]
    for source, key in itertools.product(sources, ("policyPaths", "adminPolicyPaths")):
        named = _names_in(source.content.get(key), source, (key,))
        for text in map(Expansion(environ).text, named[:MAX_POLICIES]):
            place = home / text.removeprefix("~/")
            places[place] = places.get(place, False) or key == "adminPolicyPaths"
            if not place.exists():
                source.note((key,), f"{sanitize_line(text, MAX_NAME)} does not exist")
    for place, is_firm in places.items():
        files: Sequence[Path] = ()
        with _denying_if_unread(place, found, report):
            files = _policy_files(place)
        for path in files:
            with _denying_if_unread(path, found, report):
                content = read_toml(read_text(path, MAX_POLICY) or "")
                if content and "rule" not in content:
                    report.note(path, "has no [[rule]], so it denies nothing")
                found += _restrictions(content, path, report, is_firm=is_firm)
    return tuple(found)


@contextmanager
def _denying_if_unread(path: Path, found: list[Restriction], report: Report) -> Iterator[None]:
    """Deny every tool if what is there cannot be read."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError, RecursionError) as error:
        reason = sanitize_line(getattr(error, "strerror", None) or str(error), MAX_NAME)
        report.note(path, f"{reason or 'too deep'}; {_ALL}")
        found.append(Restriction(source=shown_path(path, report.home)))


def read_enablement(report: Report) -> Mapping[str, str]:
    """Name the servers that gemini-cli was told to leave off, each with the file that says so.

    `EVERY` stands for all of them, where the file cannot be read.
    """
    path = report.home / GEMINI_FOLDER / ENABLEMENT
    file = shown_path(path, report.home)
    try:
        document = read_document(path)
    except BadDocumentError as error:
        words = f"{error}; no server starts automatically until this is fixed"
        report.note(path, words, error.line)
        return {EVERY: file}
    content = document.content if document is not None else {}
    return {name.strip().lower(): file for name, entry in content.items() if _is_off(entry)}


def _is_off(entry: object) -> bool:
    enabled = entry.get("enabled", True) if isinstance(entry, dict) else entry
    return str(enabled).lower() in {"false", "0"}


def blocked_by(source: Source, own: object) -> tuple[str, ...]:
    """Return the variables that gemdeck, by its own list, and gemini-cli are told to withhold."""
    path = ("security", "environmentVariableRedaction", "blocked")
    theirs = _names_in(source.at(path), source, path)
    return (*_names_in(own, source, ("gemdeck", BLOCK_KEY)), *theirs)


def _names_in(value: object, source: Source, path: tuple[str, ...]) -> tuple[str, ...]:
    """Read a list of names that forbids: what is wrong in it takes nothing else with it."""
    listed = [value] if isinstance(value, str) else value
    if listed is None:
        return ()
    names = listed[:MAX_PATTERNS] if isinstance(listed, list) else []
    kept = tuple(name for name in names if isinstance(name, str))
    if not isinstance(listed, list) or len(kept) < len(listed):
        source.note(path, f"must be a list of at most {MAX_PATTERNS} names; others are ignored")
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


def _restrictions(
    content: Mapping[str, Any], path: Path, report: Report, *, is_firm: bool
) -> list[Restriction]:
    """Return what the rules of one file deny or ask about.

    Args:
        content: The file's content.
        path: The file.
        report: Takes what is wrong.
        is_firm: Whether the settings permit nothing against it, whatever its priorities.

    Raises:
        ValueError: If they cannot be understood.
    """
    rules = content.get("rule", [])
    if not isinstance(rules, list) or len(rules) > MAX_PATTERNS:
        raise ValueError(f"rule must be a list of at most {MAX_PATTERNS} tables")
    file = shown_path(path, report.home)
    allowed: list[str] = []
    found: list[Restriction] = []
    for rule in rules:
        decision = rule.get("decision") if isinstance(rule, dict) else None
        if decision not in _DECISIONS:
            raise ValueError(f"decision must be one of {', '.join(_DECISIONS)}")
        is_ours = not (rule.keys() & _SHELL_ONLY or "subagent" in rule)
        if decision == "allow":
            where = f"{rule['mcpName']}: " if rule.get("mcpName") else ""
            allowed += [f"{where}{tool}" for tool in _rule_tools(rule)]
        if decision == "allow" or not is_ours or rule.get("modes") == ["plan"]:
            continue
        priority = rule.get("priority")
        is_weak = not is_firm and isinstance(priority, int) and priority < TRUST_PRIORITY
        void = () if decision == "deny" else _WEAK if is_weak else tuple(Permission)
        for name in _rule_tools(rule):
            pairs = dict.fromkeys(_rule_pairs(rule, name))
            found += [Restriction(server=s, tool=t, source=file, voids=void) for s, t in pairs]
    if listed := sanitize_line(", ".join(dict.fromkeys(allowed[:MAX_NAMED]))):
        report.note(path, f"allows nothing here: {listed}", key="rule")
    return found


def _rule_tools(rule: Mapping[str, Any]) -> list[str]:
    names = rule.get("toolName", "*")
    names = [names] if isinstance(names, str) else names
    if not isinstance(names, list) or len(names) > MAX_PATTERNS or not all(map(_is_name, names)):
        raise ValueError("toolName must be a name or a list of names")
    return names


def _rule_pairs(rule: Mapping[str, Any], name: str) -> Iterator[tuple[str, str]]:
    """Return what tools of what servers a rule means by a name."""
    if (server := rule.get("mcpName")) is None:
        yield from _meant(name)
    elif _is_name(server) and server:
        yield server, name or "*"
    else:
        raise ValueError("mcpName must be a name")


def _meant(name: str) -> Iterator[tuple[str, str]]:
    """Return the servers and tools that a whole name stands for: ``mcp_SERVER_TOOL``."""
    name = _bare(name)
    if name in {"*", f"{_PREFIX}*"}:
        yield "*", "*"
    elif name.startswith(_PREFIX) and name.endswith("_*"):
        yield name[len(_PREFIX) : -2], "*"
        yield name[:-2], "*"  # a server's name that begins like this is not given the prefix again
    elif name.startswith(_PREFIX):
        yield "*", name.replace(_CUT, "*")
    elif "__" in name.strip("_"):
        server, _, tool = name.partition("__")
        yield server or "*", tool or "*"


def _bare(name: str) -> str:
    """Return a name without what some names say in parentheses."""
    return name.partition("(")[0].strip() or name


def _is_name(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MAX_NAME
