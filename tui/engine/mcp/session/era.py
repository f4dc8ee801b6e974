"""Which era of the protocol a connection uses: from the settings, a cache, or a probe.

The cache saves probing servers that only know the handshake: some never answer the probe, which
costs ten seconds. It is only a hint.
"""

import asyncio
import hashlib
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

from tui.engine.definitions.definition import ServerDefinition
from tui.engine.files.state_file import Content, StateFile
from tui.engine.mcp.catalog.offered_tool import ToolCallError
from tui.engine.mcp.errors import ServerError
from tui.model.servers import ProtocolEra

MAX_ENTRIES: Final = 500
"""Most servers in the cache; the oldest are dropped."""

LIFETIME: Final = 30 * 86_400.0
"""Seconds after which a server is probed again, as it may have been updated."""

LOCK_WAIT: Final = 2.0
"""Seconds to wait for another gemdeck that is writing the same file."""

FILE_NAME: Final = "eras.json"

_LATEST: Final = 1e11
"""Seconds since the epoch beyond which a time makes no sense."""

_log: Final = logging.getLogger(__name__)
_REFUSAL: Final = "The server asked for input, which only the older protocol supports."
_SETTING: Final = "gemdeck.protocols"


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
        self._file = StateFile(path, on_problem=on_problem, lock_wait=LOCK_WAIT)
        self._clock = clock
        self._entries: dict[str, tuple[ProtocolEra, float]] | None = None
        self._distrusted: set[str] = set()
        self._lock = threading.Lock()

    def recall(self, definition: ServerDefinition) -> ProtocolEra:
        """Return the era a server used last; `ProtocolEra.AUTO` if unknown."""
        key = target_hash(definition)
        with self._lock:
            era, since = self._known().get(key, (ProtocolEra.AUTO, 0.0))
            is_sure = key not in self._distrusted and 0 <= self._clock() - since < LIFETIME
        return era if is_sure else ProtocolEra.AUTO

    def remember(self, definition: ServerDefinition, era: ProtocolEra) -> None:
        key = target_hash(definition)
        with self._lock:
            self._distrusted.discard(key)
            known, since = self._known().get(key, (ProtocolEra.AUTO, 0.0))
            if known is not era or self._clock() - since > LIFETIME / 2:
                self._change(key, era)

    def distrust(self, definition: ServerDefinition) -> None:
        self._distrusted.add(target_hash(definition))

    def _known(self) -> dict[str, tuple[ProtocolEra, float]]:
        if self._entries is None:
            self._entries = _parse(self._file.load() or {})
        return self._entries

    def _change(self, key: str, era: ProtocolEra) -> None:
        """Change one entry in memory and in the file, keeping what others have written."""
        entry = {"era": era.value, "time": self._clock()}

        def change(content: Content) -> Content:
            known = {
                name: {"era": kept.value, "time": since}
                for name, (kept, since) in _parse(content).items()
            }
            newest = sorted((known | {key: entry}).items(), key=lambda item: item[1]["time"])
            return {**content, "eras": dict(newest[-MAX_ENTRIES:])}

        self._entries = _parse(self._file.update(change))


class EraChoice:
    """The era of one connection.

    Args:
        definition: Which server.
        eras: The cache.

    Attributes:
        outdated: Set when the server needs the other era and no running call would be broken off
            by a new connection.
    """

    def __init__(self, definition: ServerDefinition, eras: EraCache) -> None:
        self._definition = definition
        self._eras = eras
        self._is_recalled = False
        self._is_wrong = False
        self._calls = 0
        self.outdated = asyncio.Event()

    async def choose(self) -> Literal["auto", "legacy"]:
        """Return the SDK's connection mode."""
        era = self._definition.protocol
        if era is ProtocolEra.AUTO:
            era = await asyncio.to_thread(self._eras.recall, self._definition)
            self._is_recalled = era is not ProtocolEra.AUTO
        return "legacy" if era is ProtocolEra.HANDSHAKE else "auto"

    def check(self, version: str) -> None:
        """Check the negotiated revision against the settings.

        Raises:
            ServerError: If the settings require the stateless protocol and it is not spoken.
        """
        if self._definition.protocol is ProtocolEra.STATELESS and version < "2026-07-28":
            raise ServerError(
                f"speaks revision {version}, but the settings require the stateless protocol",
                f"Set it to auto in {_SETTING}.",
                permanent=True,
            )

    def distrust(self) -> None:
        """Make the next attempt probe again, if this one relied on the cache."""
        if self._is_recalled:
            self._eras.distrust(self._definition)

    async def remember(self, era: ProtocolEra) -> None:
        """Remember the era of the server, unless the settings force one."""
        if self._definition.protocol is ProtocolEra.AUTO:
            await asyncio.to_thread(self._eras.remember, self._definition, era)

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Count a call while it runs."""
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1
            self._replace_when_idle()

    async def refuse_callback(self) -> ToolCallError:
        """Explain the error of a server that wants to send us a request and cannot.

        Servers written for the handshake send requests of their own. The stateless protocol has
        none, so the connection is replaced, unless the settings force it.
        """
        if self._definition.protocol is not ProtocolEra.AUTO:
            return ToolCallError(f"{_REFUSAL} Set it to auto or handshake in {_SETTING}.")
        await self.remember(ProtocolEra.HANDSHAKE)
        self._is_wrong = True
        self._replace_when_idle()
        return ToolCallError(f"{_REFUSAL} It is being reconnected that way: repeat the call.")

    def _replace_when_idle(self) -> None:
        if self._is_wrong and self._calls == 0:
            self.outdated.set()


def target_hash(definition: ServerDefinition) -> str:
    """Return the SHA-256 (hex) of what identifies the program, without secrets."""
    target = (
        definition.transport.value,
        definition.command,
        definition.args,
        str(definition.cwd or ""),
        definition.url.partition("?")[0],
    )
    return hashlib.sha256(json.dumps(target).encode()).hexdigest()


def _parse(content: Content) -> dict[str, tuple[ProtocolEra, float]]:
    """Read the file's content, skipping malformed entries."""
    eras: Any = content.get("eras")
    entries: dict[str, tuple[ProtocolEra, float]] = {}
    for key, entry in (eras if isinstance(eras, dict) else {}).items():
        match entry:
            case {"era": "handshake" | "stateless" as era, "time": int() | float() as since} if (
                0 <= since < _LATEST
            ):
                entries[key] = (ProtocolEra(era), float(since))
    return entries
