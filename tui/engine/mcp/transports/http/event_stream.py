"""Server-sent events as the messages they carry, bounded in size, with what resumes a stream."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import httpx2

from tui.engine.servers.failures import ServerError
from tui.engine.servers.network.client import MAX_EVENT, read_pieces
from tui.engine.servers.network.errors import ExchangeError, content_error, media_type, told

EVENT_STREAM: Final = "text/event-stream"

MAX_EVENT_ID: Final = 1_024
"""Longest event id that is sent back to resume a stream."""

MIN_RETRY: Final = 0.5
"""Shortest pause before a stream is asked for again, in seconds, whatever the server wants."""

MAX_RETRY: Final = 60.0
"""Longest such pause, in seconds."""

CountLines = Callable[[int], Awaitable[None]]
"""Takes the number of lines that came, and waits where they are too many."""


@dataclass(slots=True)
class Place:
    """How far a stream was read.

    Attributes:
        event_id: The id of the last event, for ``Last-Event-ID``; empty where there is none.
        retry: Seconds the server wants us to wait before we ask again, or None.
    """

    event_id: str = ""
    retry: float | None = None

    def note(self, event: httpx2.ServerSentEvent) -> None:
        """Take in an event that was read."""
        if event.id and len(event.id) <= MAX_EVENT_ID and _is_header_text(event.id):
            self.event_id = event.id
        if event.retry is not None:
            self.retry = min(max(event.retry / 1000, MIN_RETRY), MAX_RETRY)


async def read_events(
    response: httpx2.Response, count_lines: CountLines
) -> AsyncGenerator[httpx2.ServerSentEvent, None]:
    """Read the events of an answer until it ends.

    Args:
        response: The answer, its body unread.
        count_lines: Hears of all lines, also of those that make no event.

    Raises:
        ExchangeError: If it is no stream of events, breaks off, or an event is too large.
    """
    if media_type(response) != EVENT_STREAM:
        raise content_error(response)
    plain = httpx2.Response(
        response.status_code,
        headers={"content-type": f"{EVENT_STREAM}; charset=utf-8"},
        stream=_Pieces(response, count_lines),
        request=response.request,
    )
    with told(response.url, response.status_code):
        try:
            async for event in httpx2.EventSource(plain, max_event_size=MAX_EVENT):
                yield event
        except httpx2.SSEError as error:
            size = f"{MAX_EVENT // 2**20} MiB"
            raise ExchangeError(ServerError(f"sent an event of more than {size}")) from error
        finally:
            await plain.aclose()


class _Pieces(httpx2.AsyncByteStream):
    """The body of another response, unpacked."""

    def __init__(self, response: httpx2.Response, count_lines: CountLines) -> None:
        self._response = response
        self._count_lines = count_lines

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in read_pieces(self._response):
            if piece:
                yield piece
            await self._count_lines(piece.count(b"\n") + piece.count(b"\r"))


def _is_header_text(text: str) -> bool:
    return text.isascii() and text.isprintable()
