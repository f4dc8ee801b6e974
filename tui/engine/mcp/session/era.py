"""A cache of the eras of the protocol that servers speak.

It saves probing servers that only know the handshake: some never answer the probe, which costs
seconds, and some end. It is only a hint.
"""

import hashlib
import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tui.engine.definitions.definition import ServerDefinition
from tui.engine.files.state_file import Content, StateFile
from tui.model.bounded_json import as_object
from tui.model.servers import Origin, ProtocolEra

MAX_ENTRIES: Final = 500
"""Most servers in the cache; the oldest are dropped."""

LIFETIME: Final = 30 * 86_400.0
"""Seconds after which a server is probed again, as it may have been updated."""

SUSPICION: Final = 86_400.0
"""The same for a server that failed when it was probed, perhaps for another reason."""

FILE_NAME: Final = "eras.json"

_log: Final = logging.getLogger(__name__)


class EraCache:
    """A cache of eras in a file, or without a file for this run only.

    If the file is lost, servers are probed again. The methods block on the file and may be called
    from any thread.

    Args:
        path: The file; its folder exists.
        clock: Returns seconds since the epoch.
        on_problem: Takes a sentence for the user; see `StateFile`.
    """

    def __init__(
        self,
        path: Path | None = None,
        clock: Callable[[], float] = time.time,
        on_problem: Callable[[str], None] = _log.warning,
    ) -> None:
        self._file = StateFile(path, on_problem=on_problem)
        self._clock = clock
        self._doubts: dict[str, ProtocolEra] = {}

    def recall(self, definition: ServerDefinition) -> ProtocolEra:
        """Return the era a server used last; `ProtocolEra.AUTO` if unknown."""
        key = target_hash(definition)
        return self._doubts.get(key) or self._known_era(key)

    def remember(self, definition: ServerDefinition, era: ProtocolEra) -> None:
        """Save an era, unless it is known: after a while each server is probed again."""
        key = target_hash(definition)
        self._save(key, era, is_guess=self._doubts.pop(key, None) is ProtocolEra.HANDSHAKE)

    def _save(self, key: str, era: ProtocolEra, *, is_guess: bool) -> None:
        if self._known_era(key) is era:
            return
        age = LIFETIME - SUSPICION if is_guess else 0
        entry = {"era": era.value, "time": self._clock() - age}

        def change(content: Content) -> Content:
            """Change one entry, keeping what others have written."""
            known = _parse(content) | {key: entry}
            newest = sorted(known.items(), key=lambda item: item[1]["time"])
            return {**content, "eras": dict(newest[-MAX_ENTRIES:])}

        self._file.update(change)

    def distrust(self, definition: ServerDefinition) -> None:
        self._doubts[target_hash(definition)] = ProtocolEra.AUTO

    def suspect(self, definition: ServerDefinition, *, is_kept: bool = False) -> bool:
        """Take a server that failed when it was probed for an older one; return if that is new.

        If `is_kept`, other runs do so too: none may have the time to find it out.
        """
        key = target_hash(definition)
        is_new = key not in self._doubts
        self._doubts[key] = ProtocolEra.HANDSHAKE
        if is_kept:
            self._save(key, ProtocolEra.HANDSHAKE, is_guess=True)
        return is_new

    def _known_era(self, key: str) -> ProtocolEra:
        entry = _parse(self._file.load() or {}).get(key)
        is_fresh = entry is not None and 0 <= self._clock() - entry["time"] < LIFETIME
        return ProtocolEra(entry["era"]) if entry and is_fresh else ProtocolEra.AUTO


def target_hash(definition: ServerDefinition) -> str:
    """Return the SHA-256 (hex) of what identifies the program, whichever folder is open."""
    written, is_project = definition.entry.written, definition.entry.origin is Origin.PROJECT
    target = (
        definition.transport.value,
        definition.entry.source if is_project else definition.entry.extension,
        written.get("command", definition.launch.command),
        written.get("args", definition.launch.args),
        definition.endpoint.url.partition("?")[0],
    )
    return hashlib.sha256(json.dumps(target, default=str).encode()).hexdigest()


def _parse(content: Content) -> dict[str, dict[str, Any]]:
    """Read the file's entries, skipping malformed ones."""
    entries: dict[str, dict[str, Any]] = {}
    for key, entry in as_object(content.get("eras")).items():
        match entry:
            case {"era": "handshake" | "stateless" as era, "time": int() | float() as since}:
                entries[key] = {"era": era, "time": since}
    return entries
