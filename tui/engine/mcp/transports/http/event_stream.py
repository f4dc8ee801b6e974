"""Reads server-sent events, limited in size, with the position to resume a stream."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import httpx2

from tui.engine.mcp.errors import ServerError
from tui.engine.mcp.transports.http.http_client import MAX_EVENT, read_pieces
from tui.engine.mcp.transports.http.http_errors import (
    ExchangeError,
    content_error,
    converting_errors,
    media_type,
)

EVENT_STREAM: Final = "text/event-stream"

MAX_EVENT_ID: Final = 1_024
"""Longest event id that is sent back to resume a stream."""

MIN_RETRY: Final = 0.5
"""Shortest pause before a stream is resumed, in seconds."""

MAX_RETRY: Final = 60.0
"""Longest such pause, in seconds."""

CountLines = Callable[[int], Awaitable[None]]
"""Takes a number of lines, and waits if there are too many."""


@dataclass(slots=True)
class StreamPosition:
    """How far a stream was read.

    Attributes:
        event_id: The id of the last event, for ``Last-Event-ID``; empty if there is none.
        retry: Seconds that the server wants us to wait before resuming, or None.
    """

    event_id: str = ""
    retry: float | None = None

    def note(self, event: httpx2.ServerSentEvent) -> None:
        """Update the position after an event."""
        fits_a_header = event.id.isascii() and event.id.isprintable()
        if 0 < len(event.id) <= MAX_EVENT_ID and fits_a_header:
            self.event_id = event.id
        if event.retry is not None:
            self.retry = min(max(event.retry / 1000, MIN_RETRY), MAX_RETRY)


async def read_events(
    response: httpx2.Response, count_lines: CountLines
) -> AsyncGenerator[httpx2.ServerSentEvent, None]:
    """Read the events of a response until it ends.

    Args:
        response: The response, its body unread.
        count_lines: Called for all lines, also those that are not part of an event.

    Raises:
        ExchangeError: If it is not an event stream, breaks off, or an event is too large.
    """
    if media_type(response) != EVENT_STREAM:
        raise content_error(response)
    plain = httpx2.Response(
        response.status_code,
        headers={"content-type": f"{EVENT_STREAM}; charset=utf-8"},
        stream=_Pieces(response, count_lines),
        request=response.request,
    )
    with converting_errors(response.url, response.status_code):
        try:
            async for event in httpx2.EventSource(plain, max_event_size=MAX_EVENT):
                yield event
        except httpx2.SSEError as error:
            size = f"{MAX_EVENT // 2**20} MiB"
            raise ExchangeError(ServerError(f"sent an event of more than {size}")) from error
        finally:
            await plain.aclose()


class _Pieces(httpx2.AsyncByteStream):
    """The decompressed body of another response."""

    def __init__(self, response: httpx2.Response, count_lines: CountLines) -> None:
        self._response = response
        self._count_lines = count_lines

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in read_pieces(self._response):
            if piece:
                yield piece
            await self._count_lines(piece.count(b"\n") + piece.count(b"\r"))
