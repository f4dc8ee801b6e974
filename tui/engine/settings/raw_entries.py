"""Entries of ``mcpServers`` as they are written, merged over files and extensions."""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import Any, Final

from pydantic import ValidationError

from tui.engine.definitions.definition import SettingsProblem
from tui.engine.definitions.expansion import KeyPath
from tui.engine.settings.sources.source import Source, known_keys, validation_problems
from tui.model.frozen import dataclass
from tui.model.servers import Origin, ServerId
from tui.model.settings import OAuthSettings, ServerSettings
from tui.text import sanitize_line

MAX_NAME: Final = 64
"""Longest name of a server, in characters."""

_TARGETS: Final = ("command", "url", "httpUrl", "tcp")


@dataclass(frozen=True, slots=True)
class Entry:
    """One server's entry in a file.

    Attributes:
        name: Its raw name.
        raw: Its value.
        source: The file.
        path: Its key in that file.
        changes: The user's entry that changes it, for an extension's server.
    """

    name: str
    raw: object = field(repr=False)
    source: Source
    path: KeyPath
    changes: "Entry | None" = None

    @property
    def project(self) -> bool:
        return self.source.origin is Origin.PROJECT

    def changed_by(self, changes: "Entry") -> "Entry":
        """Return an extension's entry with the user's changes, merged as gemini-cli does."""
        raw, own = self.raw, changes.raw
        if not isinstance(raw, dict) or not isinstance(own, dict):
            return changes
        merged = {**raw, **own}
        if isinstance(env := raw.get("env"), dict) and isinstance(own.get("env"), dict):
            merged["env"] = {**env, **own["env"]}
        excluded, excluded_too = _names(raw.get("excludeTools")), _names(own.get("excludeTools"))
        if excluded is not None and excluded_too is not None:
            merged["excludeTools"] = [*excluded, *excluded_too]
        included, included_too = _names(raw.get("includeTools")), _names(own.get("includeTools"))
        if included is not None and included_too is not None:
            both = set(map(tool_name, included))
            merged["includeTools"] = [name for name in included_too if tool_name(name) in both]
        return replace(self, raw=merged, changes=changes)

    def problem(self, message: str, *keys: str | int) -> SettingsProblem:
        """Make a problem with a key, in the file where that key stands."""
        match self.changes:
            case Entry(raw=dict() as own) as changes if keys and keys[0] in own:
                return changes.problem(message, *keys)
        return self.source.problem((*self.path, *keys), message)


def reaches(raw: object) -> bool:
    """Return whether an entry says how to reach its server, or is none."""
    return not isinstance(raw, dict) or any(raw.get(key) for key in _TARGETS)


def _names(value: object) -> list[str] | None:
    """Return a list of names; None where it is none, or none is given."""
    value = [value] if isinstance(value, str) else value
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        return None
    return value


def server_entries(sources: Iterable[Source], problems: list[SettingsProblem]) -> Iterable[Entry]:
    """Merge the servers of files, lowest layer first: a higher layer replaces a whole entry."""
    merged: dict[str, Entry] = {}
    for source in sources:
        for name, raw in source.section("mcpServers", problems).items():
            merged[name] = Entry(name, raw, source, ("mcpServers", name))
    return merged.values()


def server_id(name: str) -> ServerId:
    """Return the id for a raw name; empty if nothing of the name can be displayed."""
    return ServerId(sanitize_line(name, MAX_NAME))


def tool_name(entry: str) -> str:
    """Take ``tool(…)`` for the tool, as gemini-cli does in `includeTools`."""
    return entry.partition("(")[0] or entry


_TARGET_ORDER: Final = ("httpUrl", "url", "command")
_SPARE: Final = frozenset({"authProviderType", "description", "tcp", "timeout", "trust"})
"""Keys without which a server is reached all the same, and may do no more."""

KNOWN: Final = known_keys(ServerSettings)
KNOWN_OAUTH: Final = known_keys(OAuthSettings)
_GRANTS: Final = frozenset(
    {"alwaysAllow", "alwaysAllowed", "autoApprove", "autoApproved", "autoAllow", "allowedTools"}
)
"""Keys by which other clients let tools run unasked."""


def known_part(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys that mean something."""
    known = {key: value for key, value in raw.items() if key in KNOWN}
    if isinstance(oauth := known.get("oauth"), dict):
        known["oauth"] = {key: value for key, value in oauth.items() if key in KNOWN_OAUTH}
    return known


def salvaged(raw: Mapping[str, Any]) -> tuple[ServerSettings, list[tuple[KeyPath, str]]]:
    """Validate an entry without what is wrong and neither reaches nor restricts the server.

    Returns:
        The settings, and what was left out, with the reasons.

    Raises:
        ValidationError: If anything else is wrong.
    """
    try:
        return ServerSettings.model_validate(raw), []
    except ValidationError as error:
        order = _TARGET_ORDER
        target = next((at for at, key in enumerate(order) if raw.get(key)), len(order))
        spare = _SPARE.union(_TARGET_ORDER[target + 1 :])
        slips = validation_problems(error)
        wrong = {keys[0] if keys else "" for keys, _ in slips}
        if not wrong <= spare:
            raise
    return ServerSettings.model_validate({key: raw[key] for key in raw if key not in wrong}), slips


def words_on(key: str, known: frozenset[str]) -> str:
    """Say what is wrong with a key that is not known."""
    if key in _GRANTS:
        return "has no effect; use gemdeck.alwaysAllow, or answer `always` when asked"
    near = difflib.get_close_matches(key[:MAX_NAME], known, n=1, cutoff=0.75)
    return f"unknown key, ignored; did you mean {near[0]}?" if near else "unknown key, ignored"
