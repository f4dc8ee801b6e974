"""Entries of ``mcpServers`` as they are written, merged over files and extensions."""

from collections.abc import Iterable
from dataclasses import field, replace
from typing import Final

from tui.engine.definitions.definition import SettingsProblem
from tui.engine.definitions.expansion import KeyPath
from tui.engine.settings.sources.source import Source
from tui.model.frozen import dataclass
from tui.model.servers import Origin, ServerId
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
