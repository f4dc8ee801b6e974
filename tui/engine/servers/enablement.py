"""Which servers the user has disabled, kept across runs."""

import json
import logging
import threading
from pathlib import Path
from typing import Final

from tui.engine.files import locked, read_private_json, write_private
from tui.engine.settings.definitions import ServerDefinition

MAX_ENTRIES: Final = 2_000
"""Disabled servers that are read; nobody disables as many by hand."""

LOCK_WAIT: Final = 2.0
"""Seconds to wait for another gemdeck that writes the same file."""

FILE_NAME: Final = "disabled-servers.json"

_VERSION: Final = 1
_log: Final = logging.getLogger(__name__)

Key = tuple[str, str]
"""The layer a server comes from and its id: a project's server is not the user's of that name."""


class Enablement:
    """Remembers in a file, or without one for this run only, which servers are disabled.

    `load` and `save` block on the file and are for a thread; the others answer from memory.

    Args:
        path: The file; its folder exists.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._disabled: frozenset[Key] = frozenset()
        self._changes: dict[Key, bool] = {}
        self._lock = threading.Lock()

    def load(self) -> None:
        """Read the file. One that cannot be read counts as empty."""
        self._disabled = self._read()

    def is_enabled(self, definition: ServerDefinition) -> bool:
        """Tell whether the user lets a server run."""
        key = _key(definition)
        return self._changes.get(key, key not in self._disabled)

    def set_enabled(self, definition: ServerDefinition, *, enabled: bool) -> None:
        """Note the user's choice, until `save` keeps it."""
        self._changes[_key(definition)] = enabled

    def save(self) -> None:
        """Keep what was noted; choices that another gemdeck kept meanwhile stay."""
        if self._path is None:
            return
        with self._lock:
            changes = dict(self._changes)
            try:
                with locked(self._path, LOCK_WAIT):
                    kept = {key for key in self._read() if changes.get(key) is not True}
                    kept |= {key for key, enabled in changes.items() if not enabled}
                    listed = [{"origin": origin, "server": server} for origin, server in kept]
                    listed.sort(key=lambda entry: (entry["origin"], entry["server"]))
                    text = json.dumps({"version": _VERSION, "disabled": listed}, indent=1)
                    write_private(self._path, text.encode())
            except OSError as error:
                _log.warning("the choice of servers could not be kept: %s", error)

    def _read(self) -> frozenset[Key]:
        if self._path is None:
            return frozenset()
        try:
            value = read_private_json(self._path)
        except OSError as error:
            _log.warning("the choice of servers could not be read: %s", error)
            return frozenset()
        entries = value.get("disabled") if isinstance(value, dict) else None
        found: set[Key] = set()
        for entry in entries[:MAX_ENTRIES] if isinstance(entries, list) else ():
            match entry:
                case {"origin": str() as origin, "server": str() as server}:
                    found.add((origin, server))
        return frozenset(found)


def _key(definition: ServerDefinition) -> Key:
    return definition.origin.value, definition.id
