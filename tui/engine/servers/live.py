"""What a connected server is to the rest of the engine, and how one is opened."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tui.engine.servers.catalog import ServerOffer
from tui.engine.servers.log import ServerLog
from tui.engine.settings.definitions import ServerDefinition
from tui.engine.tools import JsonObject, ToolResult
from tui.model.chat import Progress
from tui.model.servers import ServerInfo


class LiveServer(Protocol):
    """A server that is connected.

    Attributes:
        info: What it says of itself.
        offer: What it offers.
        ended: Set when it is gone, also while nothing is asked of it.
    """

    info: ServerInfo
    offer: ServerOffer
    ended: asyncio.Event

    def ending(self) -> str:
        """Say in one line why it is gone."""

    async def call_tool(
        self, name: str, arguments: JsonObject, on_progress: Callable[[Progress], None]
    ) -> ToolResult:
        """Run a tool by its name on the server.

        Raises:
            ToolCallError: If no result came back.
        """


@dataclass(frozen=True, slots=True)
class Host:
    """What servers are told of us: our version, and the workspace as the only root."""

    client_version: str
    workspace: Path


class Attempt(AbstractAsyncContextManager[LiveServer], Protocol):
    """One attempt to connect: entering connects and lists, leaving closes; never used twice."""

    def kill(self) -> None:
        """Let go of everything at once, from wherever."""


Connect = Callable[[ServerDefinition, ServerLog, Host], Attempt]
"""Makes an attempt. Entering it raises `ServerError` or whatever the SDK raises."""
