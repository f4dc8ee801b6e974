"""The HTTP client for model services, and the limits on what they send."""

import asyncio
import os
import re
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import httpx2

from tui.engine.chats.backends.backend import ModelError
from tui.engine.chats.backends.service_errors import BodyTooLongError
from tui.engine.mcp.transports.http.pacing import CONNECT_TIMEOUT, LEAST_PIECE, pace
from tui.model.input.addresses import is_loopback

MAX_MODELS: Final = 500
"""Most models that are listed."""

CHECK_TIMEOUT: Final = 15.0
"""Seconds that the service gets to accept a key."""

WRITE_TIMEOUT: Final = 60.0
"""Seconds the service may stop reading a request."""

MAX_STEP_BYTES: Final = 64 * 1024 * 1024
"""Longest body of one streamed answer, in bytes; large ones are mostly images."""

MAX_ERROR_BYTES: Final = 1024 * 1024
"""Longest body of an error; it is parsed as a whole, which takes the time of the event loop."""

MAX_COST: Final = 256 * 1024
"""Most values in one event, which is parsed as a whole.

Four characters of an error or of an event that is no data are as much: each of them is looked at.
"""

_DATA: Final = b"\ndata: "
_BLANK_LINE: Final = re.compile(rb"\n\r?\n")
_PARTS: Final = (b"[", b"{", b",")

_CERTIFICATE_VARIABLES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_PROXY_VARIABLES: Final = tuple(
    spelling
    for name in ("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")
    for spelling in (name, name.lower())
)


class _BoundedStream(httpx2.AsyncByteStream):
    """Forwards a body until it exceeds the limit, or one event of it the most that is parsed.

    Args:
        inner: The body.
        limit: Its greatest length, in bytes.
        is_document: Whether it is one JSON document, and no error.
    """

    def __init__(self, inner: httpx2.AsyncByteStream, limit: int, *, is_document: bool) -> None:
        self._inner, self._limit, self._is_document = inner, limit, is_document

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left, cost, start = self._limit, 0, b"\n"  # of the line that is not over yet
        async for piece in self._inner:
            left -= max(len(piece), LEAST_PIECE * (1 + piece.count(b"\n")))
            text = start + piece
            line = text[max(text.rfind(b"\n"), 0) :]
            start = line[: len(_DATA)]
            cost = 0 if _BLANK_LINE.search(text) else cost
            is_looked_at = start != _DATA and not self._is_document
            cost += sum(map(piece.count, _PARTS)) + len(line) // 4 * is_looked_at
            if left < 0 or cost > MAX_COST:
                limit = f"longer than {self._limit // 1024**2} MiB"
                raise BodyTooLongError(f"it is {limit if left < 0 else 'too complex to be read'}")
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()


def is_stream(response: httpx2.Response) -> bool:
    """Return whether a response is, or was asked to be, a stream of events."""
    kind: str = response.headers.get("content-type", "")
    return b"alt=sse" in response.url.query or kind.lower().startswith("text/event-stream")


@asynccontextmanager
async def answering(read: Callable[[Exception], ModelError]) -> AsyncIterator[None]:
    """Limit the time that a question to a service takes, and let its errors be read."""
    try:
        async with asyncio.timeout(CHECK_TIMEOUT):
            yield
    except TimeoutError:
        raise ModelError(f"The service did not answer within {CHECK_TIMEOUT:.0f} s.") from None
    except Exception as error:  # noqa: BLE001 - the SDK raises many types
        raise read(error) from None


def open_http(
    idle_timeout: float,
    address: str = "",
    on_response: Callable[[httpx2.Response], None] = lambda _: None,
) -> tuple[httpx2.AsyncClient, ssl.SSLContext]:
    """Create the client that a model service is asked with.

    It reads the proxy and certificate variables; no proxy hears of a service on this computer.
    Timeouts are set on each request, because google-genai overrides the client's and sends its
    own to the service as a deadline for the whole answer. Redirects are not followed, so that
    the key reaches only the configured address.

    Args:
        idle_timeout: Seconds without data from the service.
        address: Where the service is, or an empty string for Google's own address.
        on_response: Told each response before its body is read.

    Returns:
        The client, and the certificates that it trusts.

    Raises:
        ModelError: If one of them cannot be used. The message names the variable but not its
            value, since a proxy address may contain a password.
    """

    async def limit_request(request: httpx2.Request) -> None:
        limits = httpx2.Timeout(CONNECT_TIMEOUT, read=idle_timeout, write=WRITE_TIMEOUT)
        request.extensions["timeout"] = limits.as_dict()
        request.headers["accept-encoding"] = "identity"

    async def limit_response(response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "").lower() not in {"", "identity"}:
            # A little of it may become gigabytes, so it is not even unpacked to be counted.
            raise httpx2.DecodingError(f"HTTP {response.status_code}")
        if isinstance(response.stream, httpx2.AsyncByteStream):
            limit = MAX_ERROR_BYTES if response.is_error else MAX_STEP_BYTES
            is_document = not response.is_error and not is_stream(response)
            response.stream = _BoundedStream(response.stream, limit, is_document=is_document)
        on_response(response)

    uses_proxy = not is_loopback(httpx2.URL(address).host)
    try:
        tls = httpx2.create_ssl_context()
        client = httpx2.AsyncClient(follow_redirects=False, verify=tls, trust_env=uses_proxy)
    except Exception as error:  # noqa: BLE001 - each variable fails with another type
        is_file = isinstance(error, OSError)
        variables = _CERTIFICATE_VARIABLES if is_file else _PROXY_VARIABLES
        names = " or ".join([name for name in variables if os.environ.get(name)] or variables)
        what = "certificates" if is_file else "proxy"
        words = f"The {what} named by {names} cannot be used ({type(error).__name__})."
        more = "; SOCKS proxies are not supported" if isinstance(error, ImportError) else ""
        raise ModelError(words, advice=f"Correct or unset {names}{more}.") from None
    client.event_hooks = {"request": [limit_request], "response": [limit_response]}
    return pace(client), tls
