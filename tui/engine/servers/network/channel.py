"""What carries messages over HTTP, and what it hands the answers to."""

import asyncio
from collections.abc import Coroutine
from typing import Final, Protocol

from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage, JSONRPCNotification

from tui.engine.servers.failures import ServerError

INITIALIZED: Final = "notifications/initialized"
CANCELLED: Final = "notifications/cancelled"


class Inlet(Protocol):
    """The side towards the session, as a channel sees it."""

    async def take(self, data: bytes) -> JSONRPCMessage | None:
        """Read what the server sent as a message, at a bearable pace; None if it is none."""

    async def take_lines(self, count: int) -> None:
        """Count lines of a stream, so that one that only keeps us busy is slowed down."""

    async def deliver(self, message: JSONRPCMessage) -> None:
        """Hand on a message of the server."""

    def spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Let something run for as long as the connection lasts."""

    async def end(self, error: ServerError) -> None:
        """Hear that the connection is of no use any longer."""

    def remark(self, text: str) -> None:
        """Put a word into the server's log."""


class Channel(Protocol):
    """One way to carry messages to a server over HTTP."""

    async def carry(self, outgoing: SessionMessage) -> None:
        """Carry a message, and deliver what answers it where that comes back the same way.

        Raises:
            ExchangeError: If that failed.
        """

    def cancels_by_abort(self) -> bool:
        """Tell whether breaking a request off is how the server hears of its cancellation."""

    async def close(self) -> None:
        """Take leave of the server.

        Raises:
            ExchangeError: If it cannot be told.
        """


def is_notification(message: JSONRPCMessage, method: str) -> bool:
    """Tell whether this is a notification of a certain kind."""
    return isinstance(message, JSONRPCNotification) and message.method == method
