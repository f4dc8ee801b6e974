"""What servers offered last, kept for those that start when they are needed."""

import hashlib
import json
import logging
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from tui.engine.background import OrderedWorker
from tui.engine.files.entry_format import EntryFormat
from tui.engine.files.state_file import ServerFiles, StateFile
from tui.engine.mcp.catalog.offer import RawOffer
from tui.model.bounded_json import mapped, value_or_none
from tui.model.servers import ServerInfo
from tui.text import sanitize

FOLDER_NAME: Final = "catalogs"

MAX_CATALOG: Final = 4_000_000
"""Longest catalog that is kept, in characters of JSON; a server with a longer one does not start
asleep."""

MAX_TEXT: Final = 20_000
"""Characters of each text that a server says of itself."""

_CATALOG: Final = "catalog"
_REFUSED: Final = "refused"
_INFO: Final = "info"
_LISTS: Final = ("tools", "prompts", "resources", "templates", "skills")
_INFOS: Final = EntryFormat(ServerInfo, {})
_log: Final = logging.getLogger(__name__)

_Say = Callable[[str], None]

KeptCatalog = tuple[RawOffer, ServerInfo]
"""The lists of a server as it wrote them, and its claims about itself."""


class CatalogStore:
    """Keeps catalogs in a file for each server, which anybody may have edited since.

    What it gives is to be read like the word of a server, and believed less: of its tools those
    count that are pinned, and all else as long as its digest beside the pins is the same.

    Args:
        folder: The folder of the files; it is made. None keeps nothing.
        on_problem: Takes a sentence for the user, in the thread that uses a file.
        pins: The folder of the pins; None believes all but tools.
    """

    def __init__(
        self, folder: Path | None = None, on_problem: _Say = _log.warning, pins: Path | None = None
    ) -> None:
        self._files, self._pins = ServerFiles(folder, on_problem), ServerFiles(pins, on_problem)
        self._worker = OrderedWorker()

    def load(self, fingerprint: str) -> KeptCatalog | None:
        """Return what a server offered last; None if nobody knows it. Blocks on the files."""
        file, pins = self._files.of(fingerprint), self._pins.of(fingerprint)
        text, pin = (((one and one.load()) or {}).get(_CATALOG) for one in (file, pins))
        if not isinstance(text, str) or len(text) > MAX_CATALOG or (pins and not pin):
            return None
        found = value_or_none(text.encode("utf-8", "replace"))
        kept = _read(found) if isinstance(found, dict) else None
        if kept is None or pins is None or pin == _digest(*kept):
            return kept
        return RawOffer(kept[0].tools), ServerInfo("", "", "")

    def save(self, fingerprint: str, raw: RawOffer, info: ServerInfo) -> None:
        """Keep what a server offers; it is written in a thread, if it is new."""
        if (file := self._files.of(fingerprint)) is not None:
            self._worker.submit(partial(_write, file, self._pins.of(fingerprint), raw, info))

    def close(self, patience: float) -> None:
        """Wait until all is written, but at most `patience` seconds."""
        self._worker.close(patience)


def _digest(raw: RawOffer, info: ServerInfo) -> str:
    """Hash all but the tools, which have pins of their own."""
    said = [*(getattr(raw, name) for name in _LISTS[1:]), _INFOS.write(info)]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _write(file: StateFile, pins: StateFile | None, raw: RawOffer, info: ServerInfo) -> None:
    lists = {name: getattr(raw, name) for name in _LISTS}
    text = json.dumps({**lists, _REFUSED: sorted(raw.refused_tools), _INFO: _INFOS.write(info)})
    file.update(lambda _: {_CATALOG: text if len(text) <= MAX_CATALOG else ""})
    if pins is not None:
        pins.update(lambda known: known | {_CATALOG: _digest(raw, info)})


def _read(found: Mapping[str, Any]) -> KeptCatalog | None:
    """Read the content of a file; nothing if any of it has an odd form."""
    lists: dict[str, Any] = {name: found.get(name) for name in (*_LISTS, _REFUSED)}
    info = _INFOS.read(mapped(found.get(_INFO), str, partial(sanitize, limit=MAX_TEXT)))
    if info is None or not all(isinstance(one, list) for one in lists.values()):
        return None
    refused = frozenset(map(str, lists.pop(_REFUSED)))
    return RawOffer(**lists, refused_tools=refused), info
