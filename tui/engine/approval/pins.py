"""The definitions of tools that the user has accepted, stored per server."""

import hashlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from tui.engine.files.entry_format import EntryFormat
from tui.engine.files.state_file import StateFile, private_file
from tui.model.frozen import dataclass

FOLDER_NAME: Final = "pins"

MAX_PINNED: Final = 2_000
"""Tools of one server that are remembered; further ones are not.

A server that shows many new tools must not make those forgotten that the user knows.
"""

MAX_DEFINITION: Final = 64_000
"""Longest definition that is kept, in characters of JSON; of a longer one only its hash is."""

MAX_KEPT: Final = 8_000_000
"""Characters of definitions that are kept for one server; of further tools only the hashes."""

_KEY: Final = "tools"
_FINGERPRINT: Final = re.compile(r"[0-9a-f]{32,128}")

PinKey = str
"""SHA-256 (hex) of a tool's name as the server spells it, which may be no valid Unicode."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A tool's definition as the user knew it.

    Attributes:
        definition_hash: Its hash.
        definition: It as JSON text; empty where that is too long to be kept.
    """

    definition_hash: str
    definition: str = ""


_PINS: Final = EntryFormat(Pin, {"definition_hash": "hash"})


def pin_key(name: str) -> PinKey:
    """Return the key under which a tool's pin is kept."""
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


class PinStore:
    """Keeps pins in a file for each server. Its methods block on that file.

    Args:
        folder: The folder of the files; it is made. None keeps nothing.
        on_problem: Takes a sentence for the user, in the thread that uses a file.
    """

    def __init__(self, folder: Path | None, on_problem: Callable[[str], None]) -> None:
        self._folder = folder
        self._on_problem = on_problem
        self._files: dict[str, StateFile] = {}

    def load(self, fingerprint: str) -> dict[PinKey, Pin]:
        """Return the pins of a server."""
        file = self._file(fingerprint)
        return _read(file.load() or {}) if file is not None else {}

    def save(self, fingerprint: str, pins: Mapping[PinKey, Pin], *, replacing: bool) -> None:
        """Add pins of a server.

        Args:
            fingerprint: The server.
            pins: The pins.
            replacing: Whether they take the place of others of the same tools. A first sight
                does not: another gemdeck may have seen an earlier definition.
        """

        def change(content: dict[str, Any]) -> dict[str, Any]:
            known = _read(content)
            merged = {**known, **pins} if replacing else {**pins, **known}
            order = [*known, *(key for key in pins if key not in known)]
            return {**content, _KEY: _write({key: merged[key] for key in order})}

        file = self._file(fingerprint)
        if file is not None:
            file.update(change)

    def _file(self, fingerprint: str) -> StateFile | None:
        """Return the file of a server; None if it has no fingerprint."""
        if self._folder is None or not _FINGERPRINT.fullmatch(fingerprint):
            return None
        if fingerprint not in self._files:
            name = f"{fingerprint}.json"
            self._files[fingerprint] = private_file(self._folder, name, self._on_problem)
        return self._files[fingerprint]


def _write(pins: Mapping[PinKey, Pin]) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    room = MAX_KEPT
    for key in list(pins)[:MAX_PINNED]:
        pin = pins[key]
        if len(pin.definition) > min(room, MAX_DEFINITION):
            pin = Pin(pin.definition_hash)
        room -= len(pin.definition)
        entries[key] = _PINS.write(pin)
    return entries


def _read(content: Mapping[str, Any]) -> dict[PinKey, Pin]:
    """Read the pins of a file; an entry that is odd in any way is passed over."""
    entries = content.get(_KEY)
    found = entries.items() if isinstance(entries, dict) else ()
    return {key: pin for key, entry in found if (pin := _PINS.read(entry)) is not None}
