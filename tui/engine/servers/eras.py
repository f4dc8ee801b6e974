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

from tui.engine.files import locked, read_private_json, write_private
from tui.engine.settings.definitions import ServerDefinition
from tui.model.servers import ProtocolEra

MAX_ENTRIES: Final = 500
"""Servers that are remembered; the oldest go first."""

LIFETIME: Final = 30 * 86_400.0
"""Seconds after which a server is probed again: it may have been updated meanwhile."""

LOCK_WAIT: Final = 2.0
"""Seconds to wait for another gemdeck that writes the same file."""

FILE_NAME: Final = "eras.json"

_VERSION: Final = 1
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
        self._path = path
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
            self._entries = self._read()
        return self._entries

    def _read(self) -> dict[str, tuple[ProtocolEra, float]]:
        if self._path is None:
            return {}
        try:
            return _parse(read_private_json(self._path))
        except OSError as error:
            _log.warning("the protocol eras of servers could not be read: %s", error)
            return {}

    def _change(self, key: str, era: ProtocolEra) -> None:
        """Change one entry in memory and in the file, where others may have written meanwhile."""
        entry = {key: (era, self._clock())}
        self._entries = self._known() | entry
        if self._path is None:
            return
        try:
            with locked(self._path, LOCK_WAIT):
                self._entries = self._read() | entry
                newest = sorted(self._entries.items(), key=lambda item: item[1][1])[-MAX_ENTRIES:]
                eras = {name: {"era": kept.value, "time": since} for name, (kept, since) in newest}
                text = json.dumps({"version": _VERSION, "eras": eras}, indent=1)
                write_private(self._path, text.encode())
        except OSError as error:
            _log.warning("the protocol era of a server could not be kept: %s", error)


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


def _parse(value: object) -> dict[str, tuple[ProtocolEra, float]]:
    """Read the file's value; what is odd in it is passed over."""
    eras: Any = value.get("eras") if isinstance(value, dict) else None
    entries: dict[str, tuple[ProtocolEra, float]] = {}
    for key, entry in (eras if isinstance(eras, dict) else {}).items():
        match entry:
            case {"era": "handshake" | "stateless" as era, "time": int() | float() as since}:
                entries[key] = (ProtocolEra(era), float(since))
    return entries
