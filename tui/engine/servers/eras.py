"""Which era of the protocol a server speaks, remembered across runs.

A server that knows only the handshake need not be probed again for the stateless protocol: some
leave the probe unanswered, which costs ten seconds. What is remembered is no more than a hint.
"""

import hashlib
import json
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tui.engine.settings.definitions import ServerDefinition
from tui.engine.state_file import Content, StateFile
from tui.model.servers import ProtocolEra

MAX_ENTRIES: Final = 500
"""Servers that are remembered; the oldest go first."""

LIFETIME: Final = 30 * 86_400.0
"""Seconds after which a server is probed again: it may have been updated meanwhile."""

LOCK_WAIT: Final = 2.0
"""Seconds to wait for another gemdeck that writes the same file."""

FILE_NAME: Final = "eras.json"

_log: Final = logging.getLogger(__name__)


class Eras:
    """Remembers eras in a file, or without one for this run only.

    Losing the file is no harm: where it cannot be read or written, servers are probed. The
    methods block on that file and may be called from any thread.

    Args:
        path: The file; its folder exists.
        clock: Gives seconds since the epoch.
    """

    def __init__(self, path: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        self._file = StateFile(path, version=1, on_problem=_log.warning, lock_wait=LOCK_WAIT)
        self._clock = clock
        self._entries: dict[str, tuple[ProtocolEra, float]] | None = None
        self._doubted: set[str] = set()
        self._lock = threading.Lock()

    def recall(self, definition: ServerDefinition) -> ProtocolEra:
        """Give the era a server spoke last; `ProtocolEra.AUTO` where that is not known."""
        key = target_hash(definition)
        with self._lock:
            era, since = self._known().get(key, (ProtocolEra.AUTO, 0.0))
            is_sure = key not in self._doubted and 0 <= self._clock() - since < LIFETIME
        return era if is_sure else ProtocolEra.AUTO

    def remember(self, definition: ServerDefinition, era: ProtocolEra) -> None:
        """Remember the era a server speaks."""
        key = target_hash(definition)
        with self._lock:
            self._doubted.discard(key)
            known, since = self._known().get(key, (ProtocolEra.AUTO, 0.0))
            if known is not era or self._clock() - since > LIFETIME / 2:
                self._change(key, era)

    def doubt(self, definition: ServerDefinition) -> None:
        """Recall nothing of a server until it is remembered anew: an attempt failed."""
        self._doubted.add(target_hash(definition))

    def _known(self) -> dict[str, tuple[ProtocolEra, float]]:
        if self._entries is None:
            self._entries = _parse(self._file.load() or {})
        return self._entries

    def _change(self, key: str, era: ProtocolEra) -> None:
        """Change one entry in memory and in the file, where others may have written meanwhile."""
        entry = {"era": era.value, "time": self._clock()}

        def change(content: Content) -> Content:
            known = {
                name: {"era": kept.value, "time": since}
                for name, (kept, since) in _parse(content).items()
            }
            newest = sorted((known | {key: entry}).items(), key=lambda item: item[1]["time"])
            return {**content, "eras": dict(newest[-MAX_ENTRIES:])}

        self._entries = _parse(self._file.update(change))


def target_hash(definition: ServerDefinition) -> str:
    """Hash what decides which program answers, and nothing that is secret: SHA-256 (hex)."""
    target = (
        definition.transport.value,
        definition.command,
        definition.args,
        str(definition.cwd or ""),
        definition.url.partition("?")[0],
    )
    return hashlib.sha256(json.dumps(target).encode()).hexdigest()


def _parse(content: Content) -> dict[str, tuple[ProtocolEra, float]]:
    """Read the file's content; what is odd in it is passed over."""
    eras: Any = content.get("eras")
    entries: dict[str, tuple[ProtocolEra, float]] = {}
    for key, entry in (eras if isinstance(eras, dict) else {}).items():
        match entry:
            case {"era": "handshake" | "stateless" as era, "time": int() | float() as since}:
                entries[key] = (ProtocolEra(era), float(since))
    return entries
