"""Which era of the protocol a connection speaks: by the settings, by memory, or as found out."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal

import mcp_types as types
from mcp import MCPError

from tui.engine.servers.eras import Eras
from tui.engine.servers.failures import ServerError
from tui.engine.settings.definitions import ServerDefinition
from tui.engine.tools import ToolCallError
from tui.model.servers import ProtocolEra

_NO_BACK_CHANNEL: Final = "back-channel"
_SETTING: Final = "gemdeck.protocols"


class EraChoice:
    """The choice for one connection.

    Args:
        definition: Which server.
        eras: What is remembered of servers.

    Attributes:
        outdated: Set when the server turned out to need the other era and no call runs that
            a new connection would break off.
    """

    def __init__(self, definition: ServerDefinition, eras: Eras) -> None:
        self._definition = definition
        self._eras = eras
        self._is_recalled = False
        self._is_wrong = False
        self._calls = 0
        self.outdated = asyncio.Event()

    async def choose(self) -> Literal["auto", "legacy"]:
        """Give the way to connect, as the SDK calls it."""
        era = self._definition.protocol
        if era is ProtocolEra.AUTO:
            era = await asyncio.to_thread(self._eras.recall, self._definition)
            self._is_recalled = era is not ProtocolEra.AUTO
        return "legacy" if era is ProtocolEra.HANDSHAKE else "auto"

    def check(self, version: str) -> None:
        """Hold the server to what the settings say.

        Raises:
            ServerError: If the stateless protocol is demanded and it does not speak it.
        """
        if self._definition.protocol is ProtocolEra.STATELESS and version < "2026-07-28":
            raise ServerError(
                f"speaks revision {version}, and the settings demand the stateless protocol",
                f"Set it to auto in {_SETTING}.",
                permanent=True,
            )

    def doubt(self) -> None:
        """Let the next attempt find out anew, where this one went by what was remembered."""
        if self._is_recalled:
            self._eras.doubt(self._definition)

    async def remember(self, era: ProtocolEra) -> None:
        """Remember which era the server speaks, unless the settings force one."""
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

    async def refusal(self, error: MCPError) -> ToolCallError | None:
        """Explain the error of a server that wants to ask back and cannot; None for others.

        Servers that were written for the handshake ask with requests of their own. Over the
        stateless protocol there are none, so the connection is to be replaced.
        """
        if error.code != types.INVALID_REQUEST or _NO_BACK_CHANNEL not in error.error.message:
            return None
        words = "The server wanted to ask back, which it can only over the older protocol."
        if self._definition.protocol is not ProtocolEra.AUTO:
            return ToolCallError(f"{words} Set it to auto or handshake in {_SETTING}.")
        await self.remember(ProtocolEra.HANDSHAKE)
        self._is_wrong = True
        self._replace_when_idle()
        return ToolCallError(f"{words} It is being connected anew that way: repeat the call.")

    def _replace_when_idle(self) -> None:
        if self._is_wrong and self._calls == 0:
            self.outdated.set()
