"""Which servers the user has disabled, kept across runs."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tui.engine.definitions.definition import ServerDefinition
from tui.engine.files.state_file import Content, StateFile

MAX_ENTRIES: Final = 2_000
"""Most entries that are read; nobody disables as many by hand."""

LOCK_WAIT: Final = 2.0
"""Seconds to wait for another gemdeck that is writing the same file."""

FILE_NAME: Final = "disabled-servers.json"

_log: Final = logging.getLogger(__name__)

Key = tuple[str, str]
"""A server's origin and id: a project's server is not the user's server of the same name."""


class Enablement:
    """Remembers which servers are disabled, in a file or only for this run.

    `load` and `save` block on the file and belong in a thread; the others use memory only.

    Args:
        path: The file; its folder exists.
        on_problem: Takes a sentence for the user if the file cannot be read or written; see
            `StateFile`.
    """

    def __init__(
        self, path: Path | None = None, on_problem: Callable[[str], None] = _log.warning
    ) -> None:
        self._file = StateFile(path, on_problem=on_problem, lock_wait=LOCK_WAIT)
        self._disabled: frozenset[Key] = frozenset()
        self._changes: dict[Key, bool] = {}

    def load(self) -> None:
        """Read the file; an unreadable one counts as empty."""
        self._disabled = _disabled(self._file.load() or {})

    def is_enabled(self, definition: ServerDefinition) -> bool:
        """Return whether the user has left a server enabled."""
        key = _key(definition)
        return self._changes.get(key, key not in self._disabled)

    def set_enabled(self, definition: ServerDefinition, *, enabled: bool) -> None:
        self._changes[_key(definition)] = enabled

    def save(self) -> None:
        """Write the changes of this run; those that another gemdeck has written stay."""
        changes = dict(self._changes)

        def change(content: Content) -> Content:
            kept = {key for key in _disabled(content) if changes.get(key) is not True}
            kept |= {key for key, enabled in changes.items() if not enabled}
            listed = [{"origin": origin, "server": server} for origin, server in sorted(kept)]
            return {**content, "disabled": listed}

        self._file.update(change)


def _disabled(content: Content) -> frozenset[Key]:
    """Read the file's content, skipping malformed entries."""
    entries = content.get("disabled")
    found: set[Key] = set()
    for entry in entries[:MAX_ENTRIES] if isinstance(entries, list) else ():
        match entry:
            case {"origin": str() as origin, "server": str() as server}:
                found.add((origin, server))
    return frozenset(found)


def _key(definition: ServerDefinition) -> Key:
    return definition.origin.value, definition.id
