"""What a connected server is to the rest of the engine, and how one is opened."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from tui.engine.servers.catalog import ServerOffer
from tui.engine.servers.eras import Eras
from tui.engine.servers.facilities import Facilities
from tui.engine.servers.failures import ServerError
from tui.engine.servers.features import Features
from tui.engine.servers.log import ServerLog
from tui.engine.settings.definitions import ServerDefinition
from tui.engine.tools import JsonObject, ToolCallError, ToolResult
from tui.model.chat import Progress
from tui.model.servers import ServerInfo


class CallNotTakenError(ToolCallError):
    """The server had forgotten the session and did not execute the call: it may be repeated."""


class LiveServer(Protocol):
    """A server that is connected.

    Attributes:
        info: What it says of itself.
        offer: What it offers.
        ended: Set when it is gone, also while nothing is asked of it.
        outdated: Set when this connection is to be replaced by a new one.
        features: What it can be asked for beside tools.
    """

    features: Features
    info: ServerInfo
    offer: ServerOffer
    ended: asyncio.Event
    outdated: asyncio.Event

    def ending(self) -> str:
        """Say in one line why it is gone."""

    def problem(self) -> ServerError | None:
        """Give the reason why it is gone, where that is known more exactly."""

    async def follow(self, on_offer: Callable[[ServerOffer], None]) -> None:
        """List anew what the server says has changed, for as long as it is connected.

        Args:
            on_offer: Takes each new offer.
        """

    async def call_tool(
        self, name: str, arguments: JsonObject, on_progress: Callable[[Progress], None]
    ) -> ToolResult:
        """Run a tool by its name on the server.

        Raises:
            CallNotTakenError: If a repetition on a new connection is safe.
            ToolCallError: If no result came back.
        """


@dataclass(frozen=True, slots=True)
class Host:
    """What connections have in common.

    Attributes:
        client_version: Our version, as servers are told it.
        eras: Remembers which servers speak which era of the protocol.
        facilities: What servers may use of us.
    """

    client_version: str
    eras: Eras = field(default_factory=Eras)
    facilities: Facilities = field(default_factory=Facilities)


class Attempt(AbstractAsyncContextManager[LiveServer], Protocol):
    """One attempt to connect: entering connects and lists, leaving closes; never used twice."""

    def kill(self) -> None:
        """Let go of everything at once, from wherever."""


Connect = Callable[[ServerDefinition, ServerLog, Host], Attempt]
"""Makes an attempt. Entering it raises `ServerError` or whatever the SDK raises."""
