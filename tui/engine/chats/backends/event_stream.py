"""Read the event streams of model services: by the standard, and as they are really sent.

The standard is https://html.spec.whatwg.org/multipage/server-sent-events.html, 9.2.
"""

import json
import re
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Sequence
from typing import Final, NamedTuple

import httpx2

_HEADERS: Final = {"content-type": "text/event-stream; charset=utf-8-sig"}
"""Whatever a service says: the standard knows no other, and leaves out a byte order mark."""

_REQUEST: Final = httpx2.Request("GET", "http://stream.invalid")
_DOCUMENT: Final = re.compile(rb"[\r\n](?:\xef\xbb\xbf)?(?=[{\[<])")
_BETWEEN: Final = re.compile(r"[\s,]*")
_DECODER: Final = json.JSONDecoder()


class StreamEvent(NamedTuple):
    """One event of a stream.

    Attributes:
        name: Its ``event`` field, or ``message``.
        data: Its ``data`` fields, one a line; never empty.
        is_ended: Whether a blank line ended it. If not, the stream may have been cut within it.
    """

    name: str
    data: str
    is_ended: bool


async def read_events(
    pieces: AsyncIterable[bytes], max_event: int
) -> AsyncGenerator[StreamEvent, None]:
    """Read the events of a body that have data, one by one.

    What begins a line as JSON or as a web page is no field of an event. From there on the body is
    one document, an answer in one piece or an error in mid-stream: it comes as a last event.

    Args:
        pieces: The body, split anywhere.
        max_event: The greatest size of an event, in bytes.

    Raises:
        httpx2.SSEError: If an event is larger.
    """
    lines = _Lines(pieces)
    body = httpx2.Response(200, headers=_HEADERS, stream=lines, request=_REQUEST)
    async for event in httpx2.EventSource(body, max_event_size=max_event):
        if event.data:
            yield StreamEvent(event.event, event.data, not lines.are_over)


class _Lines(httpx2.AsyncByteStream):
    """The lines of a body, with those of a document as data, and a last one that ends all."""

    def __init__(self, pieces: AsyncIterable[bytes]) -> None:
        self._pieces, self.are_over = pieces, False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        is_document, before = False, b"\n"
        async for piece in self._pieces:
            if not is_document and (found := _DOCUMENT.search(before + piece)):
                is_document, start = True, found.end() - len(before)
                yield piece[:start] + b"\n\ndata:"
                piece = piece[start:]  # noqa: PLW2901 - the rest of it
            before = (before + piece)[-4:]  # a line end and a byte order mark
            if is_document:
                piece = piece.replace(b"\r", b"\n").replace(b"\n", b"\ndata:")  # noqa: PLW2901
            yield piece
        self.are_over = True
        yield b"\n\n"


def read_values(data: str) -> Sequence[object]:
    """Return the JSON values with which the data of an event begins.

    Usually it is one. A document may have several; those of a list count singly. None is there if
    the first cannot be read, as in ``[DONE]``.
    """
    values: list[object] = []
    at = 0
    try:
        while (start := _BETWEEN.match(data, at).end()) < len(data):  # type: ignore[union-attr] # it matches always
            value, at = _DECODER.raw_decode(data, start)
            values += value if isinstance(value, list) else [value]
    except (ValueError, RecursionError):
        pass
    return values
