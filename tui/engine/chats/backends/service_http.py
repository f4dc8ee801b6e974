"""The HTTP client for model services, and the limits on what they send."""

import asyncio
import math
import os
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final

import httpx2

from tui.engine.chats.backends.backend import ModelError
from tui.engine.chats.backends.service_errors import BodyTooLongError
from tui.engine.mcp.transports.http.http_client import default_context, find_proxy
from tui.engine.mcp.transports.http.pacing import CONNECT_TIMEOUT, LEAST_PIECE, pace
from tui.text import sanitize_line

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
"""Most values in one event or document, which is parsed as a whole."""

STREAM: Final = "text/event-stream"
"""What an answer in events is asked for by."""

_CERTIFICATE_VARIABLES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_PROXY_VARIABLES: Final = ("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY")


class Body(httpx2.AsyncByteStream):
    """Another form of a body, which is closed with it."""

    def __init__(self, inner: httpx2.AsyncByteStream, pieces: AsyncIterator[bytes]) -> None:
        self._inner, self._pieces = inner, pieces

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces

    async def aclose(self) -> None:
        await self._inner.aclose()


async def _bounded(
    body: httpx2.AsyncByteStream, limit: int, most_values: float
) -> AsyncIterator[bytes]:
    """Forward a body until it has more than so many bytes, or values of JSON."""
    left, values = limit, 0
    async for piece in body:
        lines = piece.count(b"\n") + piece.count(b"\r")
        left -= max(len(piece), LEAST_PIECE * (1 + lines))
        values += sum(map(piece.count, (b"[", b"{", b",")))
        if left < 0:
            raise BodyTooLongError(f"it is longer than {limit // 1024**2} MiB")
        if values > most_values:
            raise BodyTooLongError("it is too complex to be read")
        yield piece


def check_cost(data: str) -> None:
    """Refuse what would take long to parse as a whole.

    Raises:
        BodyTooLongError: If it has too many values.
    """
    if sum(map(data.count, "[{,")) > MAX_COST:
        raise BodyTooLongError("it is too complex to be read")


@asynccontextmanager
async def answering(read: Callable[[Exception], ModelError]) -> AsyncIterator[None]:
    """Limit the time that a question to a service takes, and let its errors be read."""
    try:
        async with asyncio.timeout(CHECK_TIMEOUT):
            yield
    except TimeoutError:
        raise ModelError(f"The service did not answer within {CHECK_TIMEOUT:.0f} s.") from None
    except Exception as error:  # noqa: BLE001 - google-genai raises many types
        raise read(error) from None


def open_http(
    idle_timeout: float, address: str, heed: Callable[[httpx2.Response], None] = lambda _: None
) -> tuple[httpx2.AsyncClient, ssl.SSLContext, str]:
    """Create the client that a model service is asked with.

    It obeys the proxy and certificate variables; no proxy hears of a service on this computer.
    Timeouts are set on each request, because google-genai overrides the client's and sends its
    own to the service as a deadline for the whole answer. Redirects are not followed, so that
    the key reaches only the configured address.

    Args:
        idle_timeout: Seconds without data from the service.
        address: Where the service is.
        heed: Told each response before its body is read.

    Returns:
        The client, the certificates that it trusts, and the proxy's place and variable, if any.

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
        if isinstance(body := response.stream, httpx2.AsyncByteStream):
            limit = MAX_ERROR_BYTES if response.is_error else MAX_STEP_BYTES
            most = math.inf if is_stream(response) else MAX_COST
            response.stream = Body(body, _bounded(body, limit, most))
        heed(response)

    try:
        tls, proxy = default_context(), find_proxy(httpx2.URL(address))
        via = httpx2.URL(proxy or "")
        shown = f"{via.host}:{via.port or 80} ({_set(_PROXY_VARIABLES)})" if proxy else ""
        client = httpx2.AsyncClient(
            follow_redirects=False, verify=tls, proxy=proxy, trust_env=False
        )
    except Exception as error:  # noqa: BLE001 - each variable fails with another type
        is_file = isinstance(error, OSError)
        names = _set(_CERTIFICATE_VARIABLES if is_file else _PROXY_VARIABLES)
        what = "certificates" if is_file else "proxy"
        words = f"The {what} set in {names} cannot be used ({type(error).__name__})."
        more = "; SOCKS proxies are not supported" if isinstance(error, ImportError) else ""
        raise ModelError(words, advice=f"Correct or unset {names}{more}.") from None
    client.event_hooks = {"request": [limit_request], "response": [limit_response]}
    return pace(client), tls, sanitize_line(shown, 200)


def is_stream(response: httpx2.Response) -> bool:
    """Return whether events were asked for, each of which is looked at before it is parsed."""
    is_asked = response.request.headers.get("accept", "").startswith(STREAM)
    is_asked = is_asked or b"alt=sse" in response.url.query
    return is_asked and response.status_code == HTTPStatus.OK


def _set(variables: Sequence[str]) -> str:
    """Name those that are set, in either case."""
    both = [name for one in variables for name in (one, one.lower())]
    return " or ".join([name for name in both if os.environ.get(name)] or variables)
