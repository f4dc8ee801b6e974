"""Where requests of a sign-in may go, and what a token endpoint answers; all of it is checked.

A server names the addresses of its sign-in, and gemdeck fetches them and sends secrets there. They
must not become a way to reach what only this machine can reach.
"""

import base64
import ipaddress
import math
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import field
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from tui.engine.logs.redaction import Redactor
from tui.engine.sign_in.sign_in_record import AuthError, ResourceError, SignInRecord
from tui.model.bounded_json import JsonError, read_object
from tui.model.frozen import Frozen
from tui.model.input.addresses import is_loopback, is_number
from tui.model.wire.refusals import error_code, words_of
from tui.text import sanitize_line

MAX_ENDPOINT: Final = 2_048
"""Longest address of a sign-in, in characters."""

_PLAIN: Final = re.compile(r"[A-Za-z0-9._~:/?#\[\]@!&()*+,;=%-]+")
"""Characters of an address; quotes, blanks, dollars and the like are none."""

_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

MAX_TOKEN: Final = 16_384
"""Longest token, in characters."""

MAX_SCOPE: Final = 4_096
"""Longest list of scopes, in characters."""

MIN_LIFE: Final = 30.0
"""Shortest life of a token in seconds; a shorter one would be refreshed without end."""

MAX_LIFE: Final = 30 * 86_400.0
"""Longest life of a token in seconds."""

EARLY: Final = 60.0
"""Seconds before the end of its life that a token is replaced, or a tenth of its life."""

MAX_FIELDS: Final = 32
"""Most fields of an answer that is a form."""

LATER: Final = "Try again later."
LEAVE_OUT: Final = "If you trust this server, set oauth.resource to false in its entry."

OFFLINE: Final = "offline_access"
"""The scope that asks for a refresh token (OpenID Connect Core, 11)."""

_SECRET_FIELDS: Final = frozenset(
    {"code", "code_verifier", "refresh_token", "assertion", "client_assertion", "subject_token"}
)
_FORM: Final = "application/x-www-form-urlencoded"
_TOKEN: Final = re.compile(r"[\x21-\x7e]+")
_SCOPE: Final = re.compile(r"[\x20-\x7e]+")
_PASSING: Final = frozenset({"temporarily_unavailable", "server_error", "slow_down"})
"""Errors of a server that may be well again soon, which some send with status 400."""

_REJECTED: Final = frozenset(
    {
        *("invalid_grant", "invalid_client", "unauthorized_client", "unsupported_grant_type"),
        *("invalid_scope", "invalid_target", "access_denied"),
    }
)
"""Errors (RFC 6749, 5.2) after which the same credentials will not work again."""


class RefusedAddressError(AuthError):
    """A host leads to where a sign-in may not lead."""


def checked_endpoint(url: str, server: str, what: str, *, is_own: bool = False) -> str:
    """Return the address of an endpoint if it may be used.

    Args:
        url: The address.
        server: The server's own address; only one on this machine may name others here.
        what: What the endpoint is, such as "token endpoint".
        is_own: Whether the user's own settings name it.

    Raises:
        AuthError: If it may not; the reason says what is wrong.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    if not host or port == 0 or len(url) > MAX_ENDPOINT or not _PLAIN.fullmatch(url):
        raise _refused(what, "is not a valid address")
    shown = sanitize_line(host)
    if "@" in parts.netloc:
        raise _refused(what, f"hides its host {shown} behind a user name")
    if parts.fragment:
        raise _refused(what, f"contains a fragment, at {shown}")
    is_local = is_loopback(host)
    if parts.scheme != "https" and not (parts.scheme == "http" and is_local):
        raise _refused(what, f"is not encrypted (https), at {shown}")
    if is_local and not is_own and not is_loopback(urlsplit(server).hostname or ""):
        raise _refused(what, f"is on this computer, at {shown}, but the server is not")
    return url


def may_reach(address: str, host: str, server_host: str, server_addresses: list[str]) -> bool:
    """Return whether a request for a server's sign-in may go to an address.

    Public ones with a name may be reached, the server's own host may, and within a private network
    those of the same network's other hosts.

    Args:
        address: Where the host's name leads.
        host: The host of the endpoint.
        server_host: The server's host.
        server_addresses: Where that leads; empty if unknown.
    """
    if host.lower() == server_host.lower():
        return True
    target = _unwrapped(address)
    if target.is_loopback:
        return is_loopback(server_host)
    if target.is_global and not target.is_multicast:
        return not is_number(host)
    around = [_unwrapped(known) for known in server_addresses]
    return _is_private(target) and any(_is_private(known) for known in around)


def _is_private(address: IpAddress) -> bool:
    odd = address.is_loopback or address.is_link_local or address.is_unspecified
    return address.is_private and not odd and not address.is_reserved


def _unwrapped(address: str) -> IpAddress:
    """Return the IPv4 address inside an IPv6 one, if there is one."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        if found in _NAT64:
            return ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        return found.ipv4_mapped or found.sixtofour or found
    return found


def _refused(what: str, why: str) -> AuthError:
    article = "an" if what[0] in "aeiou" else "a"
    return AuthError(f"names {article} {what} that {why}; it is refused")


class AuthResponse(Frozen):
    """The answer of an authorization server, complete."""

    status: int
    body: bytes = field(repr=False)


Send = Callable[[str, str, Mapping[str, str], bytes | None], Awaitable[AuthResponse]]
"""Sends a request (method, address, headers, body) to an authorization server.

Raises:
    AuthError: If it may not go there, or nothing came back.
"""


class RejectedError(AuthError):
    """An authorization server does not accept these credentials.

    Attributes:
        is_of_client: Whether it is the client that it does not know or accept.
    """

    is_of_client = False


async def ask_for_token(
    send: Send, record: SignInRecord, form: Mapping[str, str], kind: str = "bearer"
) -> SignInRecord:
    """Ask a token endpoint for a token of a kind; return the record with it.

    Empty fields of the form are left out, and so is the resource where it is not taken.

    Raises:
        RejectedError: If the credentials are worth nothing.
        AuthError: If there is no usable token for another reason.
    """
    fields = {name: value for name, value in form.items() if value}
    if not record.names_resource:
        fields.pop("resource", None)
    try:
        content = await _answered(send, record, fields)
    except ResourceError:
        if fields.pop("resource", None) is None:
            raise
        content = await _answered(send, record, fields)
        record = record.model_copy(update={"names_resource": False})
    return _with_token(record, content, kind)


async def _answered(
    send: Send, record: SignInRecord, fields: Mapping[str, str]
) -> Mapping[str, Any]:
    """Return what a token endpoint grants; some write it as a form, as the first drafts did."""
    answer = await _post(send, record.token_endpoint, record, fields)
    content = content_of(answer)
    if answer.status not in {200, 201} or (content.get("error") and "access_token" not in content):
        redactor = Redactor()  # it may quote the request
        basic = authenticated(record, {})[1].get("authorization", "").removeprefix("Basic ")
        sent = (fields[name] for name in _SECRET_FIELDS & fields.keys())
        redactor.register(*record.secrets(), *sent, basic)
        said = words_of(answer.body, redactor.redact_known)
        raise _refusal(answer.status, error_code(content), said)
    if "access_token" not in content:
        wrong = "has no access_token" if content else "is not JSON"
        raise AuthError(f"got no token: the authorization server's response {wrong}")
    return content


def content_of(answer: AuthResponse) -> Mapping[str, Any]:
    """Return the members of an answer that is JSON or a form; none of another one."""
    try:
        return read_object(answer.body, last_key_counts=True)
    except JsonError:
        text = answer.body.decode("ascii", "replace").strip()
        with suppress(ValueError):  # it has more fields
            return dict(parse_qsl(text, max_num_fields=MAX_FIELDS))
        return {}


async def refresh(send: Send, record: SignInRecord, audience: str = "") -> SignInRecord:
    """Get the next token of a sign-in; see `ask_for_token`."""
    form = {"grant_type": "refresh_token", "refresh_token": record.refresh_token}
    form |= {"resource": record.resource, "audience": audience}
    return await ask_for_token(send, record, form)


async def revoke(send: Send, record: SignInRecord) -> bool:
    """Revoke the tokens of a sign-in (RFC 7009); return whether the server did it.

    With its refresh token a sign-in has ended, even if an access token cannot be revoked.
    """
    done: list[bool] = []
    for kind in ("refresh_token", "access_token"):
        token: str = getattr(record, kind)
        if token and record.revocation_endpoint:
            form = {"token": token, "token_type_hint": kind}
            answer = await _post(send, record.revocation_endpoint, record, form)
            done.append(answer.status // 100 == 2)
    return done[:1] == [True]


async def _post(
    send: Send, url: str, record: SignInRecord, form: Mapping[str, str]
) -> AuthResponse:
    """Post a form with the client's credentials.

    Who authenticates with Basic and is not recognized names its id in the form as well: some, the
    MCP SDK's own server among them, look for it there alone.
    """
    fields, headers = authenticated(record, form)
    answer = await send("POST", url, headers, urlencode(fields).encode())
    if "authorization" in headers and content_of(answer).get("error") == "invalid_client":
        fields["client_id"] = record.client_id
        answer = await send("POST", url, headers, urlencode(fields).encode())
    return answer


def authenticated(
    record: SignInRecord, form: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the fields and headers of a request with the client's credentials (RFC 6749, 2.3)."""
    headers = {"content-type": _FORM, "accept": "application/json"}
    if record.auth_method == "client_secret_basic" and record.client_secret:
        pair = f"{quote(record.client_id, safe='')}:{quote(record.client_secret, safe='')}"
        headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        return dict(form), headers
    fields = {**form, "client_id": record.client_id}
    if record.auth_method == "client_secret_post" and record.client_secret:
        fields["client_secret"] = record.client_secret
    return fields, headers


def about_resource(code: str, words: str) -> type[AuthError] | None:
    """Return the kind of an error that is about the resource (RFC 8707, 2), else None.

    Entra ID binds its tokens by their scopes, so that they are asked for once without a resource.
    Elsewhere only the settings leave it out: an honest server that does not know this resource
    would else give a token that other servers take.
    """
    if "AADSTS9010010" in words:
        return ResourceError
    return AuthError if code == "invalid_target" else None


def _refusal(status: int, code: str, said: str) -> AuthError:
    """Return the error of a refused request; `said` is what the server says of it."""
    if status >= 500 or status == 429 or (status == 400 and code in _PASSING):
        words = ", ".join(filter(None, (f"HTTP {status}", said)))
        reason = f"got no token: the authorization server failed ({words})"
        return AuthError(reason, LATER, is_transient=True)
    reason = f"got no token: the authorization server refused ({said or f'HTTP {status}'})"
    if (kind := about_resource(code, said)) is not None:
        return kind(reason, LEAVE_OUT)
    if code not in _REJECTED:
        return AuthError(reason)
    error = RejectedError(reason)
    error.is_of_client = code in {"invalid_client", "unauthorized_client"}
    return error


def _with_token(record: SignInRecord, content: Mapping[str, Any], kind: str) -> SignInRecord:
    """Return the record with the token of an answer; what is left out stays as it was."""
    if str(content.get("token_type") or kind).strip().lower() != kind:
        raise AuthError("got a token of an unknown type; only bearer tokens are supported")
    token = checked_token(content.get("access_token"))
    refresh_token, scope = content.get("refresh_token"), content.get("scope")
    if not isinstance(scope, str) or len(scope) > MAX_SCOPE or not _SCOPE.fullmatch(scope.strip()):
        scope = record.scope
    renewal = checked_token(refresh_token) if refresh_token else record.refresh_token
    expires_at = _end_of_life(content.get("expires_in"))
    change: dict[str, Any] = {"access_token": token, "refresh_token": renewal, "scope": scope}
    change |= {"expires_at": expires_at, "is_doubtful": False}
    needs_consent = not renewal and OFFLINE in record.scope.split()
    return record.model_copy(update={**change, "needs_consent": needs_consent})


def checked_token(token: object) -> str:
    """Return a token that can be sent.

    Raises:
        AuthError: If it cannot be.
    """
    if not isinstance(token, str) or not _TOKEN.fullmatch(token) or len(token) > MAX_TOKEN:
        raise AuthError("got a token that cannot be sent: it is empty, too long or malformed")
    return token


def _end_of_life(expires_in: object) -> float | None:
    """Return when to replace a token, in seconds since the epoch; None where that is not said.

    A life that makes no sense is none that was said: the server's refusal then ends it.
    """
    try:
        life = float(expires_in) if isinstance(expires_in, int | float | str) else math.nan
    except (ValueError, OverflowError):
        life = math.nan
    if isinstance(expires_in, bool) or not life > 0:
        return None
    life = min(max(life, MIN_LIFE), MAX_LIFE)
    return time.time() + life - min(EARLY, life / 10)
