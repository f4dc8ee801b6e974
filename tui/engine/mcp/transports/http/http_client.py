"""The HTTP client for one server: verified TLS, size limits, one origin; events."""

import asyncio
import ipaddress
import logging
import os
import re
import socket
import ssl
import time
import urllib.request
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from http import HTTPStatus
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path
from typing import Final

import httpx2

from tui import __version__
from tui.engine.definitions.definition import AUTHORIZATION
from tui.engine.files.atomic import read_regular
from tui.engine.mcp.errors import ServerError
from tui.engine.mcp.transports.http.http_errors import (
    ExchangeError,
    auth_error,
    converting_errors,
    cut_error,
    redirect_error,
)
from tui.engine.mcp.transports.http.pacing import CONNECT_TIMEOUT, pace, weight
from tui.engine.mcp.wire.tap import Tap
from tui.engine.sign_in.sign_in_record import (
    AuthError,
    ServerCredentials,
    Signature,
    read_challenge,
)
from tui.model.input.addresses import is_loopback
from tui.model.settings import TlsSettings
from tui.model.settings_rules import HEADER_NAME
from tui.model.wire import refusals
from tui.model.wire.frames import FrameFault
from tui.text import sanitize_line

USER_AGENT: Final = f"gemdeck/{__version__}"
"""Who asks; filters of bots refuse who does not say, and who names only a library."""

MAX_BODY: Final = 16 * 1024 * 1024
"""Largest response in bytes."""

MAX_CERTIFICATES: Final = 4 * 1024 * 1024
"""Largest file with certificates or a key, in bytes."""

MAX_EVENT: Final = 16 * 1024 * 1024
"""Largest event of a stream, in bytes."""

MAX_UNPACKED: Final = 64 * 1024
"""Bytes that a packed piece gives at a time."""

MAX_COOKIES: Final = 50
"""Most cookies of a server that are kept, for its connection."""

MAX_DISCARDED: Final = 64 * 1024
"""Bytes that are read only so that the connection can be reused."""

MAX_REDIRECTS: Final = 3
"""Most redirects within the origin for one request."""

MAX_REFUSALS: Final = 3
"""Most refusals of one request after which it is signed anew and sent again."""

WORDS_TIMEOUT: Final = 2.0
"""Seconds that a refusal's body may take."""

WRITE_TIMEOUT: Final = 30.0
"""Seconds that a server may leave a request unread."""

_CODINGS: Final = {
    "deflate": zlib.MAX_WBITS,
    **dict.fromkeys(("gzip", "x-gzip"), zlib.MAX_WBITS | 16),
}
"""Per content coding (RFC 9110, 8.4.1) what zlib unpacks it by."""

_FOREIGN: Final = frozenset({"br", "zstd", "compress", "x-compress"})
"""Other codings; what else servers write there, such as a charset, says nothing of packing."""

KEPT_CONNECTIONS: Final = 8
"""Most idle connections to one server."""

_FRAMING: Final = frozenset({"connection", "content-length", "transfer-encoding"})
"""Headers that say where a request ends; another would leave the server waiting."""

_TALKATIVE: Final = ("httpx2", "httpcore2")
_REFUSALS: Final = frozenset({401, 403})
_TIMES: Final = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
_KEEPALIVE: Final = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *((socket.IPPROTO_TCP, getattr(socket, n), v) for n, v in _TIMES if hasattr(socket, n)),
]
"""Options for TCP keep-alive that detect a dead peer within a minute."""

Headers = Mapping[str, str]
Tls = TlsSettings | None
Pausing = Callable[[], AbstractContextManager[None]]

EVENT_STREAM: Final = "text/event-stream"

PIECE_LINES: Final = 10
"""Lines of an event stream that a piece of it costs as much time as."""

CountLines = Callable[[int], Awaitable[None]]
"""Takes a number of lines, and waits if there are too many."""


class HttpClient:
    """A client for one server.

    Certificates are always verified. Proxies come from the environment; servers on this machine
    are reached without one. Reading has no timeout, since a tool may be silent for long: callers
    limit their waits, and TCP keep-alive detects dead connections.

    Args:
        url: The server's address.
        headers: Sent with each request.
        proxy: The proxy's address, or None.
        tls: Certificates beside those of the system, or None.

    Attributes:
        url: The server's address.
        proxy: Host and port of the proxy, or empty.
        credentials: Signs each request, or None.
        pausing: Stops the clocks of calls while a refused request is looked into.
        tap: Notes the statuses of exchanges, or None.
        learn: Takes the secrets in what signs a request, before it is sent.
    """

    def __init__(self, url: httpx2.URL, headers: Headers, proxy: str | None, tls: Tls) -> None:
        self.url = url
        self.credentials: ServerCredentials | None = None
        self.pausing: Pausing = nullcontext
        self.tap: Tap | None = None
        self.learn: Callable[[Iterable[tuple[str, str]]], object] = tuple
        self.proxy = ""
        via = httpx2.URL(proxy) if proxy is not None else None
        if via is not None:
            self.proxy = f"{via.host}:{via.port}" if via.port else via.host
        # a balancer may need its cookies back; those of a whole domain are none of this server's
        hosts = (url.host, f"{url.host}.local")  # as the library writes a name without a dot
        self._cookies = CookieJar(DefaultCookiePolicy(allowed_domains=hosts))
        sent = httpx2.Headers(dict(headers), encoding="latin-1")
        sent["accept-encoding"] = "identity"
        sent.setdefault("user-agent", USER_AGENT)
        self._client = httpx2.AsyncClient(
            headers=sent,
            timeout=httpx2.Timeout(None, connect=CONNECT_TIMEOUT, write=WRITE_TIMEOUT),
            cookies=self._cookies,
            follow_redirects=False,
            transport=httpx2.AsyncHTTPTransport(
                verify=_context(tls) if tls is not None else default_context(),
                proxy=str(via) if via is not None else None,
                limits=httpx2.Limits(max_keepalive_connections=KEPT_CONNECTIONS),
                socket_options=_KEEPALIVE,
            ),
        )
        pace(self._client)

    @classmethod
    async def make(cls, url: str, headers: Headers, tls: Tls = None) -> "HttpClient":
        """Make a client, in a thread as loading the CA certificates is slow.

        Raises:
            ServerError: If the address, a header, a certificate or the proxy cannot be used.
        """
        # They log addresses and headers, which may contain secrets and session ids.
        for name in _TALKATIVE:
            logging.getLogger(name).setLevel(logging.WARNING)
        address = _check_url(url)
        for name, value in headers.items():
            check_header(name, value)
        proxy = find_proxy(address)
        try:
            return await asyncio.to_thread(cls, address, headers, proxy, tls)
        except (ImportError, ValueError, httpx2.InvalidURL) as error:
            raise ServerError(
                "cannot be reached through the proxy in the environment variables",
                "Set HTTP_PROXY, HTTPS_PROXY and ALL_PROXY to an http:// proxy.",
                permanent=True,
            ) from error

    async def aclose(self) -> None:
        await self._client.aclose()

    @asynccontextmanager
    async def exchange(
        self, method: str, url: httpx2.URL, headers: Headers, content: bytes | None = None
    ) -> AsyncIterator[httpx2.Response]:
        """Send a request, signed, and yield the response, its body unread.

        Redirects are followed within the origin if they keep the method.

        Raises:
            ExchangeError: If there is no response, or it redirects elsewhere.
        """
        for attempt in range(MAX_REFUSALS + 1):
            signature = await self._signature()
            given = (*signature.headers.values(), *signature.secrets)
            self.learn((AUTHORIZATION, one) for one in given)
            signed = url.copy_merge_params(signature.query) if signature.query else url
            both = {**headers, **signature.headers}
            request = self._client.build_request(method, signed, headers=both, content=content)
            began = time.monotonic()
            async with self.send(request) as response:
                if self.tap is not None:
                    both, seconds = {**headers, **response.headers}, time.monotonic() - began
                    status = response.status_code
                    self.tap.http(method, str(url), both, status, attempt + 1, seconds)
                if response.status_code not in _REFUSALS or attempt == MAX_REFUSALS:
                    yield response
                    return
                if not await self._is_worth_another(response, signature, attempt):
                    yield response
                    return
                await discard(response)

    @asynccontextmanager
    async def send(self, request: httpx2.Request) -> AsyncIterator[httpx2.Response]:
        """Send a request as it is, and follow redirects; see `exchange`."""
        request.headers.setdefault("user-agent", USER_AGENT)
        for _ in range(MAX_REDIRECTS + 1):
            with converting_errors(request.url):
                response = await self._client.send(request, stream=True)
            if len(self._cookies) > MAX_COOKIES:
                self._cookies.clear()
            try:
                if response.next_request is None:
                    yield response
                    return
                following = response.next_request
                is_same = _is_same_place(request.url, following.url)
                if following.method != request.method or not is_same:
                    raise redirect_error(response)
                await discard(response)
            finally:
                await response.aclose()
            request = following
        raise redirect_error(response)

    async def _signature(self) -> Signature:
        if self.credentials is None:
            return Signature()
        try:
            return await self.credentials.signature()
        except AuthError as error:
            raise auth_error(error, HTTPStatus.UNAUTHORIZED) from error

    async def _is_worth_another(
        self, response: httpx2.Response, sent: Signature, attempt: int
    ) -> bool:
        """Return whether a refused request is to be sent again with other credentials."""
        if self.credentials is None:
            return False
        said = response.headers.get_list("www-authenticate")
        challenge = read_challenge(response.status_code, said)
        try:
            with self.pausing():
                return await self.credentials.refused(challenge, sent, attempt)
        except AuthError as error:
            raise auth_error(error, response.status_code) from error


def default_context() -> ssl.SSLContext:
    """Trust the system's authorities, and private ones that lack what Python 3.13 requires."""
    context = httpx2.create_ssl_context()
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _context(tls: TlsSettings) -> ssl.SSLContext:
    """Trust the system's authorities and the server's own, and have a certificate. Blocks.

    Raises:
        ServerError: If a file cannot be used; says which.
    """
    context, key = default_context(), ""
    files = {"caFile": tls.ca_file, "certFile": tls.cert_file, "keyFile": tls.key_file}
    named = {key: Path(path).expanduser() for key, path in files.items() if path}
    try:
        for key, path in named.items():  # noqa: B007 - the error names it
            read_regular(path, MAX_CERTIFICATES)
        if (key := "caFile") in named:
            context.load_verify_locations(named[key])
        if (key := "certFile") in named:  # without a password OpenSSL asks at the terminal
            context.load_cert_chain(named[key], named.get("keyFile"), password="")
    except OSError as error:
        why = getattr(error, "reason", None) or error.strerror
        reason = f"its tls.{key} cannot be used: {sanitize_line(str(named[key]))}: {why}"
        raise ServerError(reason, "Correct tls in its entry.", permanent=True) from error
    return context


async def read_body(response: httpx2.Response, limit: int = MAX_BODY) -> bytes:
    """Read the whole body of a response.

    Raises:
        ExchangeError: If it is larger than `limit` or incomplete.
    """
    announced = response.headers.get("content-length", "")
    if announced.isdigit() and (len(announced) > 18 or int(announced) > limit):
        raise _too_large(limit)
    pieces: list[bytes] = []
    size = 0
    async for piece in read_pieces(response):
        size += weight(piece)
        if size > limit:
            raise _too_large(limit)
        pieces.append(piece)
    return b"".join(pieces)


async def read_pieces(response: httpx2.Response) -> AsyncIterator[bytes]:
    """Read a body piece by piece; some servers pack it although they are asked not to.

    Raises:
        ExchangeError: If it is packed in another way than gzip and deflate, or breaks off.
    """
    coding = response.headers.get("content-encoding", "").strip().lower()
    if coding in _FOREIGN or "," in coding:
        reason = f"sent a compressed response ({sanitize_line(coding, 40)})"
        raise ExchangeError(ServerError(f"{reason}, which gemdeck did not accept"))
    window, unpacker = _CODINGS.get(coding, 0), None
    with converting_errors(response.url, response.status_code):
        async for piece in response.aiter_raw():
            if not window:
                yield piece
                continue
            if unpacker is None:  # some leave out the head that deflate has in HTTP
                is_bare = coding == "deflate" and piece[:1] != b"\x78"
                unpacker = zlib.decompressobj(-window if is_bare else window)
            rest, found = piece, b""
            while rest or len(found) == MAX_UNPACKED:  # it may hold more than it has to read
                found = unpacker.decompress(rest, MAX_UNPACKED)
                yield found
                rest = unpacker.unconsumed_tail
    if unpacker is not None and not unpacker.eof:
        raise cut_error(response.status_code)


async def read_words(response: httpx2.Response) -> bytes:
    """Read the beginning of a refusal's body, as much as is looked at for its words."""
    body = b""
    with suppress(ExchangeError, TimeoutError):
        async with asyncio.timeout(WORDS_TIMEOUT):
            async for piece in read_pieces(response):
                body += piece
                if len(body) >= refusals.MAX_BODY:
                    break
    return body


async def discard(response: httpx2.Response) -> None:
    """Read an unneeded body if it is short, so that the connection can be reused.

    Raises:
        ExchangeError: If it breaks off.
    """
    size = 0
    with converting_errors(response.url, response.status_code):
        async for piece in response.aiter_raw():
            size += weight(piece)
            if size > MAX_DISCARDED:
                return


def find_proxy(url: httpx2.URL) -> str | None:
    """Return the proxy for an address from the environment, or None.

    Servers on this machine never use a proxy.
    """
    if is_loopback(url.host):
        return None
    proxies = urllib.request.getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if not proxy or _goes_without_proxy(url):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _goes_without_proxy(url: httpx2.URL) -> bool:
    """Return whether NO_PROXY names an address; with masks and networks, as many write it."""
    place = f"{url.host}:{url.port}" if url.port else url.host
    if urllib.request.proxy_bypass(place):
        return True
    listed = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    names = [name.removeprefix("*") for name in re.split(r"[\s,]+", listed)]
    return any(_covers(name, url.host) or _covers(name, place) for name in names if name)


def _covers(name: str, host: str) -> bool:
    """Return whether a host is a name of NO_PROXY, below one, or in a network that it gives."""
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(name.strip("[]"), strict=False)
    except ValueError:
        return host == name or host.endswith(f".{name.removeprefix('.')}")


def _check_url(url: str) -> httpx2.URL:
    with suppress(httpx2.InvalidURL):
        address = httpx2.URL(url)
        is_complete = address.scheme in {"http", "https"} and address.host
        if is_complete and 0 < (address.port or 80) < 2**16:
            return address
    reason = "has an address that is not http:// or https:// with a host and a valid port"
    raise ServerError(reason, "Correct `url` in the settings.", permanent=True)


def check_header(name: str, value: str) -> None:
    """Refuse what would break a request; never show a header's value."""
    if name.lower() in _FRAMING:
        words = f"has a header {name!r}, which only the request itself can set"
        raise ServerError(words, "Remove it from `headers` in the settings.", permanent=True)
    fits = all(ord(one) <= 0xFF and (one.isprintable() or one == "\t") for one in value)
    if not HEADER_NAME.fullmatch(name) or not fits or value != value.strip():
        words = f"has a header {name!r} with characters that cannot be sent"
        raise ServerError(words, "Correct `headers` in the settings.", permanent=True)


def _is_same_place(origin: httpx2.URL, target: httpx2.URL) -> bool:
    """Return whether a redirect stays within the origin, or upgrades it to https."""
    if target.userinfo and target.userinfo != origin.userinfo:
        return False
    if (origin.scheme, origin.host, origin.port) == (target.scheme, target.host, target.port):
        return True
    is_upgrade = (origin.scheme, target.scheme) == ("http", "https")
    return is_upgrade and origin.host == target.host and origin.port is target.port is None


def _too_large(limit: int, what: str = "a response") -> ExchangeError:
    size = f"{limit // 2**20} MiB" if limit >= 2**20 else f"{limit // 2**10} KiB"
    return ExchangeError(ServerError(f"sent {what} larger than {size}"), told=FrameFault.TOO_LARGE)


async def read_events(
    response: httpx2.Response, count_lines: CountLines
) -> AsyncGenerator[httpx2.ServerSentEvent, None]:
    """Read the events of a response until it ends.

    Args:
        response: The response, its body unread.
        count_lines: Called for all lines, also those that are not part of an event.

    Raises:
        ExchangeError: If it breaks off, or an event is too large.
    """
    headers = {"content-type": f"{EVENT_STREAM}; charset=utf-8-sig"}
    body, code = _counted(response, count_lines), response.status_code
    plain = httpx2.Response(code, headers=headers, content=body, request=response.request)
    with converting_errors(response.url, response.status_code):
        try:
            async for event in httpx2.EventSource(plain, max_event_size=MAX_EVENT):
                yield event
        except httpx2.SSEError as error:
            raise _too_large(MAX_EVENT, "an event") from error
        finally:
            await plain.aclose()


async def _counted(response: httpx2.Response, count_lines: CountLines) -> AsyncIterator[bytes]:
    """Read a body piece by piece, its lines counted."""
    tail = b""
    async for piece in read_pieces(response):
        yield piece
        tail = (tail + piece[-4:])[-4:]
        await count_lines(PIECE_LINES + piece.count(b"\n") + piece.count(b"\r"))
    if tail.rstrip()[-1:] in {b"}", b"]"}:  # some leave out the blank line behind the last event
        yield b"\n\n"
