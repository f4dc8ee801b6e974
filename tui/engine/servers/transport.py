"""What a connection needs of a transport beyond the SDK's protocol: its end, and a hard stop."""

import asyncio
from types import TracebackType
from typing import Final, Protocol

from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage

from tui.engine.servers.failures import ServerError

EXCHANGE_FAILED: Final = -31_001
"""Code of an error reply that a transport gives in the server's stead, for one request.

Its message goes on from "The server" and says what became of the request.
"""

SESSION_LOST: Final = -31_002
"""The same where the server has forgotten the session: it did not execute the request."""

OWN_CODES: Final = frozenset({EXCHANGE_FAILED, SESSION_LOST})
"""Codes that are ours: a server does not get to say that a call was not executed."""

Streams = tuple[ReadStream[SessionMessage | Exception], WriteStream[SessionMessage]]
"""The two halves of a connection as `mcp.Client` takes them."""


class ServerTransport(Protocol):
    """A way to one server.

    Attributes:
        ended: Set when the other side is gone, also while nothing is asked of it.
    """

    ended: asyncio.Event

    async def __aenter__(self) -> Streams:
        """Open it.

        Raises:
            ServerError: If that is impossible.
        """

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it, within bounds, whatever cancels meanwhile."""

    def ending(self) -> str:
        """Say in one line why the other side is gone."""

    def problem(self) -> ServerError | None:
        """Give the reason why the server cannot be used, where the transport knows it."""

    def kill(self) -> None:
        """Let go of everything at once."""
