"""Errors of HTTP exchanges as messages: what happened, and what to do."""

import os
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from http import HTTPStatus
from typing import Final, Self

import httpx2
from mcp_types import JSONRPCError

from tui.engine.mcp.errors import ServerError, SessionLostError, SignInError, leaves
from tui.engine.mcp.transports.http.pacing import CONNECT_TIMEOUT
from tui.engine.sign_in.sign_in_record import AuthError
from tui.model.wire.frames import FrameFault
from tui.model.wire.refusals import wait_in

_HEADERS: Final = (
    'or put a token into `headers` in the settings, such as "Authorization": "Bearer …".'
)
_SIGN_IN: Final = f"Press a to sign in, {_HEADERS}"
_USE_HEADERS: Final = f"Sign in with an account that has access, {_HEADERS}"
CERTIFICATE_ADVICE: Final = (
    "gemdeck never connects without a valid certificate. To accept one of a private authority, "
    "set SSL_CERT_FILE to the certificate of that authority."
)
_BREAKS: Final = {"closed", "disconnected"}  # in what the library says of a connection
_NAMED: Final = (ssl.SSLError, socket.gaierror, ConnectionRefusedError)
_CHECK_NETWORK: Final = "Check the address, the network and the proxy settings."
_LATER: Final = "The server or a proxy in front of it is at fault; try again later."
_NOTHING_HERE: Final = (
    "offers nothing at this address",
    "Check the path in `url`; many servers use /mcp or /sse.",
)
_REFUSALS: Final[Mapping[int, tuple[str, str]]] = {
    403: ("refused access", _USE_HEADERS),
    404: _NOTHING_HERE,
    405: (
        "accepts no messages at this address",
        'Check `url`, and whether `type` should be "http" or "sse".',
    ),
    407: ("could not be reached: the proxy requires sign-in", "Check HTTP_PROXY and HTTPS_PROXY."),
    410: _NOTHING_HERE,
    413: ("refused the request because it is too large", ""),
    429: ("limits the rate of requests", "Try again later."),
}
"""Per status: what happened, and what to do."""


class Outcome(StrEnum):
    """What is known of a request without an answer; the value continues a reason."""

    NOT_EXECUTED = "the request had no effect"
    UNKNOWN = "whether the request had any effect is unknown"


class ExchangeError(Exception):
    """A failed HTTP exchange.

    Attributes:
        error: What happened and what to do; its reason continues "The server".
        outcome: What is known of the request.
        status: The HTTP status of the response, or 0 if there was none.
        is_gone: Whether no connection could be made.
        is_cut: Whether a response broke off.
        told: What the wire's frame says of it.
        reply: The server's own error reply, or None.
        pause: Seconds after which the server wants the request again, or 0.
    """

    pause = 0.0

    def __init__(
        self,
        error: ServerError,
        outcome: Outcome = Outcome.UNKNOWN,
        *,
        status: int = 0,
        is_gone: bool = False,
        is_cut: bool = False,
        told: FrameFault = FrameFault.FAILED,
        reply: JSONRPCError | None = None,
    ) -> None:
        super().__init__(error.reason)
        self.error, self.outcome, self.status = error, outcome, status
        self.is_gone, self.is_cut, self.told = is_gone, is_cut, told
        self.reply = reply

    def quoting(self, said: str) -> Self:
        """Add what the server says in place of a response."""
        if said:
            self.error.reason += f". Response: {said}"
        return self


@contextmanager
def converting_errors(url: httpx2.URL, status: int = 0) -> Iterator[None]:
    """Convert errors of the HTTP library to `ExchangeError`.

    Args:
        url: The requested address.
        status: The HTTP status of the response, once known.
    """
    try:
        yield
    except ExchangeError:
        raise
    except Exception as error:  # the library also raises errors of sockets, TLS and DNS
        raise network_error(error, url, status) from error


def network_error(error: Exception, url: httpx2.URL, status: int = 0) -> ExchangeError:
    """Return the error of a request with no response or an incomplete one."""
    match error:
        case httpx2.ConnectTimeout():
            reason = f"did not accept a connection within {CONNECT_TIMEOUT:.0f} s"
            return _unreachable(reason, _CHECK_NETWORK)
        case httpx2.ConnectError():
            return _no_connection(error, url)
        case httpx2.ProxyError():
            advice = "Check HTTP_PROXY, HTTPS_PROXY and NO_PROXY."
            return _unreachable("could not be reached: the proxy refused the connection", advice)
        case httpx2.UnsupportedProtocol() | httpx2.LocalProtocolError() | httpx2.InvalidURL():
            # The library's own message may contain a header's value.
            reason = "cannot be reached: its address or a header is not valid"
            advice = "Check `url` and `headers` in the settings."
            return ExchangeError(ServerError(reason, advice, permanent=True), Outcome.NOT_EXECUTED)
        case httpx2.RemoteProtocolError() if _BREAKS.isdisjoint(str(error).split()):
            # What the library says quotes what the server sent.
            return ExchangeError(ServerError("sent a response that is not valid HTTP", _LATER))
        case httpx2.TimeoutException():
            return ExchangeError(ServerError("accepted the request too slowly", _LATER))
        case _:
            return cut_error(status)


def cut_error(status: int = 0) -> ExchangeError:
    """Return the error of a response that broke off."""
    reason = "closed the connection before its response was complete"
    return ExchangeError(ServerError(reason), status=status, is_cut=True)


def status_error(response: httpx2.Response) -> ExchangeError:
    """Return the error of a response with a failure status."""
    status = response.status_code
    outcome = Outcome.UNKNOWN if status >= 500 else Outcome.NOT_EXECUTED
    error = _refused(status)
    if isinstance(error, SignInError) and "authorization" in response.request.headers:
        error.reason = f"rejected the token (HTTP {status})"
    fault = ExchangeError(error, outcome, status=status)
    if status in {429, 503}:
        fault.pause = wait_in(response.headers.get("retry-after")) or 0.0
    error.reason += f"; it asks to wait {fault.pause:,.0f} s" if fault.pause else ""
    return fault


def auth_error(problem: AuthError, status: int) -> ExchangeError:
    """Return the error of a request for which there were no usable credentials."""
    is_final = status == HTTPStatus.UNAUTHORIZED and not problem.is_transient
    kind = SignInError if is_final else ServerError
    advice = problem.advice or (_SIGN_IN if is_final else "")
    error = kind(problem.reason, advice, permanent=problem.is_permanent)
    return ExchangeError(error, Outcome.NOT_EXECUTED, status=status)


def session_error(status: int) -> ExchangeError:
    """Return the error of a lost session."""
    error = SessionLostError("no longer knows this session: it restarted, or the session expired")
    return ExchangeError(error, Outcome.NOT_EXECUTED, status=status)


def redirect_error(response: httpx2.Response) -> ExchangeError:
    """Return the error of a redirect that is not followed."""
    place = "nowhere"
    if response.next_request is not None:
        # Without user, query and fragment, which may contain secrets.
        there = response.next_request.url
        place = str(there.copy_with(userinfo=b"", query=None, fragment=None))
    advice = "If you trust that address, put it into `url` in the settings."
    error = ServerError(f"redirects to {place}, which is not followed", advice, permanent=True)
    return ExchangeError(error, Outcome.NOT_EXECUTED, status=response.status_code)


def content_error(response: httpx2.Response) -> ExchangeError:
    """Return the error of a response with a content type that MCP does not use."""
    kind = media_type(response)
    advice = "Check `url`."
    if kind == "text/html":
        kind = "a web page (text/html)"
        advice = "Check `url`; a sign-in page or a proxy may be in the way."
    reason = f"responded with {kind or 'content of no type'} instead of MCP"
    return ExchangeError(ServerError(reason, advice), status=response.status_code)


def media_type(response: httpx2.Response) -> str:
    """Return the media type of a response in lower case, without parameters."""
    kind: str = response.headers.get("content-type", "")  # some send the header twice
    return kind.partition(";")[0].partition(",")[0].strip().lower()


def _unreachable(reason: str, advice: str, *, permanent: bool = False) -> ExchangeError:
    error = ServerError(reason, advice, permanent=permanent)
    return ExchangeError(error, Outcome.NOT_EXECUTED, is_gone=True)


def _no_connection(error: Exception, url: httpx2.URL) -> ExchangeError:
    """Return the reason why no connection was made."""
    place = f"{url.host}:{url.port or (443 if url.scheme == 'https' else 80)}"
    match telling_cause(error):
        case ssl.SSLCertVerificationError() as cause:
            reason = f"has a certificate that cannot be trusted: {cause.verify_message}"
            return _unreachable(reason, CERTIFICATE_ADVICE, permanent=True)
        case ssl.SSLError():
            advice = "Check whether `url` should begin with http:// rather than https://."
            return _unreachable(f"does not use TLS correctly at {place}", advice)
        case socket.gaierror():
            reason = f"was not found: there is no host {url.host}"
            return _unreachable(reason, "Check the name in `url`, and the network.")
        case ConnectionRefusedError():
            reason = f"refused the connection: nothing is listening at {place}"
            return _unreachable(reason, "Check that it is running, and the port in `url`.")
        case OSError(errno=int() as number):
            return _unreachable(f"cannot be reached: {os.strerror(number)}", _CHECK_NETWORK)
    return _unreachable(f"cannot be reached at {place}", _CHECK_NETWORK)


def telling_cause(error: BaseException | None) -> OSError | None:
    """Return the cause of a failed connection that tells most, if one does."""
    causes: list[OSError] = []
    while error is not None:
        causes += (one for one in leaves(error) if isinstance(one, OSError))
        error = error.__cause__ or error.__context__
    named = [cause for cause in causes if isinstance(cause, _NAMED)]
    numbered = [cause for cause in causes if cause.errno is not None and cause.errno > 0]
    return next(iter(named + numbered), None)


def _refused(status: int) -> ServerError:
    if status == HTTPStatus.UNAUTHORIZED:
        return SignInError("requires sign-in (HTTP 401)", _SIGN_IN)
    if status in _REFUSALS:
        reason, advice = _REFUSALS[status]
        is_permanent = status == HTTPStatus.METHOD_NOT_ALLOWED
        return ServerError(f"{reason} (HTTP {status})", advice, permanent=is_permanent)
    if status >= 500:
        return ServerError(f"failed with HTTP {status}", _LATER)
    return ServerError(f"refused the request (HTTP {status})", "Check `url`.")
