"""The HTTP client for google-genai: idle timeouts, bounded bodies as sent, no redirects."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Final

import httpx2

CONNECT_TIMEOUT: Final = 15.0
"""Connect timeout in seconds."""

WRITE_TIMEOUT: Final = 60.0
"""Seconds the service may stop reading a request."""

MAX_STEP_BYTES: Final = 64 * 1024 * 1024
"""Longest body of one streamed answer, in bytes; large ones are mostly images."""

MAX_ERROR_BYTES: Final = 1024 * 1024
"""Longest body of an error; it is parsed as a whole, which takes the time of the event loop."""

_open_responses: ContextVar[list[httpx2.Response] | None] = ContextVar(
    "_open_responses", default=None
)


class BodyTooLongError(httpx2.ReadError):
    """The service sent more than the limit, which the message names."""


class _BoundedStream(httpx2.AsyncByteStream):
    """Forwards a body until it exceeds the limit."""

    def __init__(self, inner: httpx2.AsyncByteStream, limit: int) -> None:
        self._inner = inner
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._limit
        async for piece in self._inner:
            left -= len(piece)
            if left < 0:
                raise BodyTooLongError(f"it is longer than {self._limit // 1024**2} MiB")
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()


def make_http_client(idle_timeout: float) -> httpx2.AsyncClient:
    """Create the client that google-genai uses.

    Timeouts are set on each request, because google-genai overrides the client's and sends its
    own to the service as a deadline for the whole answer. Redirects are not followed, so that
    the key reaches only the configured address.

    Args:
        idle_timeout: Seconds without data from the service.
    """

    async def limit_request(request: httpx2.Request) -> None:
        request.extensions["timeout"] = {
            "connect": CONNECT_TIMEOUT,
            "read": idle_timeout,
            "write": WRITE_TIMEOUT,
            "pool": CONNECT_TIMEOUT,
        }
        request.headers["accept-encoding"] = "identity"

    async def limit_response(response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "").lower() not in {"", "identity"}:
            # A little of it may become gigabytes, so it is not even unpacked to be counted.
            raise httpx2.DecodingError(f"HTTP {response.status_code}")
        if isinstance(response.stream, httpx2.AsyncByteStream):
            limit = MAX_ERROR_BYTES if response.is_error else MAX_STEP_BYTES
            response.stream = _BoundedStream(response.stream, limit)
        responses = _open_responses.get()
        if responses is not None:
            responses.append(response)

    return httpx2.AsyncClient(
        event_hooks={"request": [limit_request], "response": [limit_response]},
        follow_redirects=False,
    )


@asynccontextmanager
async def closing_responses() -> AsyncIterator[None]:
    """On exit, close every response that the current task received in the block.

    google-genai keeps a response in a reference cycle and closes it only after it was read to
    the end or the read itself was cancelled.
    """
    responses: list[httpx2.Response] = []
    token = _open_responses.set(responses)
    try:
        yield
    finally:
        _open_responses.reset(token)
        for response in responses:
            await response.aclose()
