"""Requests to the authorization servers that servers name: small, short, and only where allowed.

The name of a host is looked up once, and the connection goes to the very address that was checked,
so that a second look-up cannot lead elsewhere.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

import httpx2

from tui.engine.definitions.definition import ServerDefinition
from tui.engine.mcp.errors import ServerError
from tui.engine.mcp.transports.http.http_client import HttpClient, find_proxy, read_body
from tui.engine.mcp.transports.http.http_errors import ExchangeError
from tui.engine.sign_in.sign_in_record import AuthError
from tui.engine.sign_in.token_endpoint import AuthResponse, RefusedAddressError, Send, may_reach
from tui.model.input.addresses import is_number
from tui.model.servers import Origin
from tui.text import sanitize_line

MAX_ANSWER: Final = 256 * 1024
"""Largest answer of an authorization server, in bytes."""

AUTH_TIMEOUT: Final = 20.0
"""Seconds for one request to an authorization server."""


def make_send(definition: ServerDefinition) -> Send:
    """Return what sends requests for the sign-in to one server."""
    return _AuthRequests(definition).send


class _AuthRequests:
    """Sends requests for the sign-in to one server; see `Send`."""

    def __init__(self, definition: ServerDefinition) -> None:
        self._server_host = urlsplit(definition.endpoint.url).hostname or ""
        self._tls = definition.endpoint.tls
        oauth = definition.endpoint.sign_in.oauth
        named = (oauth.authorization_url, oauth.token_url, oauth.registration_url, oauth.issuer)
        is_own = definition.entry.origin is not Origin.PROJECT
        self._own = {urlsplit(url).hostname for url in named if url} if is_own else set()

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> AuthResponse:
        """Send a request and read the whole answer."""
        address = httpx2.URL(url)
        host = sanitize_line(address.host)
        try:
            async with asyncio.timeout(AUTH_TIMEOUT):
                return await self._send(method, address, headers, body)
        except TimeoutError:
            reason = f"has an authorization server, {host}, that does not respond"
            raise AuthError(reason, is_transient=True) from None
        except ExchangeError as fault:
            told = _told(fault.error, host)
            if fault.status // 100 == 3:
                told.advice = ""  # what a server's redirect names could go into `url`; not this
            raise told from fault
        except ServerError as error:
            raise _told(error, host) from error

    async def _send(
        self, method: str, url: httpx2.URL, headers: Mapping[str, str], body: bytes | None
    ) -> AuthResponse:
        tls = self._tls
        if tls is not None and url.host not in {*self._own, self._server_host}:
            # only the server names this host, which must not learn who the user is
            tls = tls.model_copy(update={"cert_file": None, "key_file": None})
        http = await HttpClient.make(str(url), {}, tls)
        try:
            is_direct = is_number(url.host) or not find_proxy(url)
            places = await self._places(url) if is_direct else [""]
            for place in places:
                try:
                    return await _exchange(http, (method, url, headers, body), place)
                except ExchangeError as fault:
                    if not fault.is_gone or place == places[-1]:
                        raise
            raise AuthError(f"has an authorization server at an unknown address, {url.host}")
        finally:
            await http.aclose()

    async def _places(self, url: httpx2.URL) -> list[str]:
        """Look up a host; return its addresses if all of them may be reached."""
        port = url.port or (443 if url.scheme == "https" else 80)
        found = await _look_up(url.host, port)
        if url.host in self._own:
            return found
        around: list[str] = []
        if not all(may_reach(one, url.host, self._server_host, around) for one in found):
            with suppress(OSError):
                around = await _look_up(self._server_host, port)
        if not all(may_reach(one, url.host, self._server_host, around) for one in found):
            named = f"names {sanitize_line(url.host)} for the sign-in"
            reason = "which is refused: it is a bare number or leads into a private network"
            names = "oauth.issuer, or oauth.authorizationUrl and oauth.tokenUrl"
            advice = f"If you trust it, set it yourself: {names}."
            raise RefusedAddressError(f"{named}, {reason}", advice)
        return found


async def _look_up(host: str, port: int) -> list[str]:
    with suppress(ValueError):
        return [str(ipaddress.ip_address(host))]
    try:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        reason = f"names {sanitize_line(host)} for the sign-in, which was not found"
        raise AuthError(reason, "Check the network.", is_transient=True) from error
    return list(dict.fromkeys(str(one[4][0]) for one in found))


async def _exchange(
    http: HttpClient, order: tuple[str, httpx2.URL, Mapping[str, str], bytes | None], place: str
) -> AuthResponse:
    """Send one request to one address; empty leaves the way to the proxy."""
    method, url, headers, body = order
    target = url.copy_with(host=place) if place else url
    sent = {"accept-encoding": "identity", **headers, "host": url.netloc.decode("ascii")}
    tls = {"sni_hostname": url.host} if place else {}
    request = httpx2.Request(method, target, headers=sent, content=body, extensions=tls)
    async with http.send(request) as response:
        return AuthResponse(response.status_code, await read_body(response, MAX_ANSWER))


def _told(error: ServerError, host: str) -> AuthError:
    """Return why an authorization server could not be asked."""
    reason = f"has an authorization server, {host}, that {error.reason}"
    return AuthError(reason, error.advice, is_transient=not error.permanent)
