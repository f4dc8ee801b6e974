"""Takes the browser back from a sign-in: a listener on this machine for one answer.

It looks at the state before anything else. A request that is not the answer gets a refusal and
changes nothing, whoever sends it.
"""

import asyncio
import errno
import secrets
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from tui.engine.sign_in.sign_in_record import AuthError
from tui.model.frozen import Frozen
from tui.model.input.addresses import is_loopback
from tui.model.settings import DEFAULT_REDIRECT

MAX_HEAD: Final = 8_192
"""Largest request, in bytes."""

MAX_CLIENTS: Final = 16
"""Most connections at the same time."""

READ_TIMEOUT: Final = 5.0
"""Seconds for a request to arrive."""

_HOSTS: Final = ("127.0.0.1", "::1")
"""What a name of this machine stands for."""

_PAGE: Final = """<!doctype html><meta charset="utf-8"><title>gemdeck</title>
<p>{words}</p>"""
_THANKS: Final = "Done. You can close this tab and go back to the terminal."
_HEADERS: Final = (
    "Content-Type: text/html; charset=utf-8\r\n"
    "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n"
    "Referrer-Policy: no-referrer\r\nCache-Control: no-store\r\n"
    "X-Content-Type-Options: nosniff\r\nConnection: close\r\n"
)


class Redirect(Frozen):
    """The parameters with which an authorization server sends the browser back.

    Attributes:
        code: The code, or empty.
        iss: Who the server says it is (RFC 9207), or empty.
        error: Why there is no code, or empty.
        description: The server's words on that.
    """

    code: str = field(default="", repr=False)
    iss: str = ""
    error: str = ""
    description: str = ""


class CallbackListener:
    """Listens for the one answer to a sign-in; an async context manager.

    Args:
        redirect_uri: Where the browser is to return to, on this machine.
        may_move: Whether another port does as well.
        is_own: Whether the user's settings name it: then its host is sent as it is written.

    Attributes:
        redirect_uri: Where it really listens, once entered.
        answer: Gets the answer.
    """

    def __init__(self, redirect_uri: str, *, may_move: bool, is_own: bool = False) -> None:
        parts = urlsplit(redirect_uri)
        host = parts.hostname or ""
        if parts.scheme != "http" or not is_loopback(host) or parts.query or parts.fragment:
            reason = "cannot send the browser back: redirectUri is not a plain http address"
            advice = f"Set oauth.redirectUri to {DEFAULT_REDIRECT} or remove it."
            raise AuthError(f"{reason} of this computer", advice)
        self.redirect_uri = redirect_uri
        self.answer: asyncio.Future[Redirect] = asyncio.get_running_loop().create_future()
        if may_move and not is_own and _is_name(host):
            host = _HOSTS[0]  # a name may also lead to where somebody else listens (RFC 8252, 8.3)
        self._host, self._port = host, parts.port or 80
        self._path = parts.path or "/"
        self._may_move = may_move
        self._state = ""
        self._clients = 0
        self._servers: list[asyncio.Server] = []

    async def __aenter__(self) -> "CallbackListener":
        try:
            await self._listen(self._port)
        except OSError:
            self._close()
            if not self._may_move:
                reason = f"cannot send the browser back: port {self._port} is in use"
                advice = "Free that port, or set another one in oauth.redirectUri."
                raise AuthError(reason, advice) from None
            await self._listen(0)
        if self._may_move:
            shown = f"[{self._host}]" if ":" in self._host else self._host
            self.redirect_uri = f"http://{shown}:{self._port}{self._path}"
        return self

    async def __aexit__(self, *exception: object) -> None:
        self._close()
        self.answer.cancel()

    def _close(self) -> None:
        while self._servers:
            self._servers.pop().close()

    def expect(self, state: str) -> None:
        """Take an answer from now on, if it has this state."""
        self._state = state

    def read_pasted(self, text: str) -> Redirect:
        """Read what the user pasted: the address the browser ended at, or the code alone.

        Raises:
            AuthError: If it is neither, or of another sign-in.
        """
        text = "".join(text.split())
        if "://" not in text and "=" not in text:
            if not text or len(text) > MAX_HEAD or not text.isascii():
                raise AuthError("has no code that can be used")
            return Redirect(code=text)
        found = _parameters(urlsplit(text).query if "://" in text else text.lstrip("?"))
        if not self._is_ours(found):
            raise AuthError("is from another sign-in: its state does not match")
        return _redirect(found)

    async def _listen(self, port: int) -> None:
        """Listen on all the loopback addresses that the host stands for."""
        for host in _HOSTS if _is_name(self._host) else (self._host,):
            try:
                server = await asyncio.start_server(self._serve, host, port, limit=MAX_HEAD)
            except OSError as error:
                if not self._servers or error.errno == errno.EADDRINUSE:
                    raise
                continue  # many machines have no IPv6
            self._servers.append(server)
            self._port = port = server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients += 1
        try:
            if self._clients <= MAX_CLIENTS:
                async with asyncio.timeout(READ_TIMEOUT):
                    head = await reader.readuntil(b"\r\n\r\n")
                    status, words = self._judge(head.decode("latin-1").split("\r\n"))
                    writer.write(_response(status, words))
                    await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # it is not the browser
        finally:
            self._clients -= 1
            writer.close()

    def _judge(self, lines: list[str]) -> tuple[HTTPStatus, str]:
        """Take the answer if a request is it; return what the browser is told."""
        named = (line.lower().partition(":") for line in lines[1:])
        hosts = [value.strip() for name, _, value in named if name == "host"]
        method, _, rest = lines[0].partition(" ")
        with suppress(ValueError):
            parts = urlsplit(rest.rpartition(" ")[0])
            found = _parameters(parts.query)
            is_here = (parts.scheme, parts.netloc, parts.path) == ("", "", self._path)
            is_for_us = is_here and hosts == [urlsplit(self.redirect_uri).netloc.lower()]
            is_answer = self._is_ours(found) and ("code" in found or "error" in found)
            if method == "GET" and is_for_us and is_answer and not self.answer.done():
                self.answer.set_result(_redirect(found))
                return HTTPStatus.OK, _THANKS
        return HTTPStatus.BAD_REQUEST, "This belongs to no sign-in in progress."

    def _is_ours(self, found: Mapping[str, str]) -> bool:
        state = found.get("state", "").encode()
        return bool(self._state) and secrets.compare_digest(state, self._state.encode())


def _is_name(host: str) -> bool:
    """Return whether a loopback host is a name, and no address."""
    return host.removesuffix(".").endswith("localhost")


def _parameters(query: str) -> dict[str, str]:
    """Return the parameters of a query; one that stands twice counts as none (RFC 6749, 3.1)."""
    with suppress(ValueError):
        pairs = parse_qsl(query, max_num_fields=50)
        times = Counter(name for name, _ in pairs)
        return {name: value for name, value in pairs if times[name] == 1}
    return {}


def _redirect(found: Mapping[str, str]) -> Redirect:
    names = ("code", "iss", "error", "error_description")
    return Redirect(*(found.get(name, "") for name in names))


def _response(status: HTTPStatus, words: str) -> bytes:
    body = _PAGE.format(words=words).encode()
    head = f"HTTP/1.1 {status.value} {status.phrase}\r\n{_HEADERS}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
