"""What servers offered last, kept for those that start when they are needed."""

import json
import logging
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from tui.engine.background import OrderedWorker
from tui.engine.files.entry_format import EntryFormat
from tui.engine.files.state_file import Content, ServerFiles, StateFile
from tui.engine.mcp.catalog.offer import RawOffer
from tui.model.bounded_json import mapped, read_value
from tui.model.frozen import Frozen
from tui.model.servers import ServerInfo
from tui.text import sanitize

FOLDER_NAME: Final = "catalogs"

MAX_CATALOG: Final = 4_000_000
"""Longest catalog that is kept, in characters of JSON; a server with a longer one does not start
asleep."""

MAX_TEXT: Final = 20_000
"""Characters of each text that a server says of itself."""

_CATALOG: Final = "catalog"
_LISTS: Final = ("tools", "prompts", "resources", "templates", "skills")
_log: Final = logging.getLogger(__name__)


class KeptCatalog(Frozen):
    """What a server offered last.

    Attributes:
        raw: Its lists as it wrote them.
        info: Its claims about itself.
        as_of: When it was listed, in seconds since the epoch.
    """

    raw: RawOffer
    info: ServerInfo
    as_of: float


_INFOS: Final = EntryFormat(ServerInfo, {})


class CatalogStore:
    """Keeps catalogs in a file for each server, which anybody may have edited since.

    What it gives is to be read like the word of a server, and believed less.

    Args:
        folder: The folder of the files; it is made. None keeps nothing.
        on_problem: Takes a sentence for the user, in the thread that uses a file.
    """

    def __init__(
        self, folder: Path | None = None, on_problem: Callable[[str], None] = _log.warning
    ) -> None:
        self._files = ServerFiles(folder, on_problem)
        self._worker = OrderedWorker()

    def load(self, fingerprint: str) -> KeptCatalog | None:
        """Return what a server offered last; None if it is not known. Blocks on the file."""
        file = self._files.of(fingerprint)
        text = (file.load() or {}).get(_CATALOG) if file is not None else None
        if not isinstance(text, str) or len(text) > MAX_CATALOG:
            return None
        try:
            found = read_value(text.encode())
        except ValueError:
            return None
        return _read(found) if isinstance(found, dict) else None

    def save(self, fingerprint: str, raw: RawOffer, info: ServerInfo) -> None:
        """Keep what a server offers; it is written in a thread, if it is new."""
        if (file := self._files.of(fingerprint)) is not None:
            self._worker.submit(partial(_write, file, raw, info))

    def close(self, patience: float) -> None:
        """Wait until all is written, but at most `patience` seconds."""
        self._worker.close(patience)


def _write(file: StateFile, raw: RawOffer, info: ServerInfo) -> None:
    offered = {name: getattr(raw, name) for name in _LISTS}
    content = {
        **offered,
        "refused": sorted(raw.refused_tools),
        "info": _INFOS.write(info),
        "time": int(time.time()),
    }
    text = json.dumps(content)
    if len(text) > MAX_CATALOG:
        text = ""

    def change(_: Content) -> Content:
        return {_CATALOG: text}

    file.update(change)


def _read(found: Mapping[str, Any]) -> KeptCatalog | None:
    """Read the content of a file; nothing if any of it has an odd form."""
    lists: dict[str, Any] = {name: found.get(name) for name in _LISTS}
    refused, as_of = found.get("refused"), found.get("time")
    info = _INFOS.read(mapped(found.get("info"), _clean))
    if info is None or not isinstance(as_of, int) or not isinstance(refused, list):
        return None
    if not all(isinstance(one, list) for one in lists.values()):
        return None
    raw = RawOffer(**lists, refused_tools=frozenset(map(str, refused)))
    return KeptCatalog(raw, info, max(0, min(as_of, time.time())))


def _clean(value: object) -> object:
    return sanitize(value, MAX_TEXT) if isinstance(value, str) else value
