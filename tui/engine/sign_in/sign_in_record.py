"""What signs requests to a server, and what is kept of a sign-in: client, tokens, server."""

import hashlib
import json
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Final, Protocol
from urllib.parse import urlsplit, urlunsplit

from pydantic import BaseModel, ConfigDict, Field

from tui.engine.definitions.definition import ServerDefinition
from tui.model.frozen import Frozen
from tui.model.input.addresses import is_loopback

MAX_CHALLENGE: Final = 8_192
"""Characters of the header that are read."""

_PARAMETER: Final = re.compile(r'([A-Za-z_]+)\s*=\s*(?:"([^"]*)"|([^\s,"]+))')

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class Challenge(Frozen):
    """A refusal.

    Attributes:
        status: The HTTP status, 401 or 403.
        resource_metadata: Where the server says how to sign in, or empty.
        scope: The scopes it wants, or empty.
        error: Its error code, or empty.
    """

    status: int = 401
    resource_metadata: str = ""
    scope: str = ""
    error: str = ""

    @property
    def is_step_up(self) -> bool:
        """Whether the token is good, but not for this."""
        return self.status == 403 and self.error == "insufficient_scope"


def read_challenge(status: int, headers: Iterable[str]) -> Challenge:
    """Read the challenge in all ``WWW-Authenticate`` headers; the first of each name counts."""
    found: dict[str, str] = {}
    for name, quoted, bare in _PARAMETER.findall(", ".join(headers)[:MAX_CHALLENGE]):
        found.setdefault(name.lower(), quoted or bare.strip("'"))
    names = ("resource_metadata", "scope", "error")
    return Challenge(status, *(found.get(name, "") for name in names))


class Signature(Frozen):
    """What is added to a request.

    Attributes:
        token: The bearer token, or empty.
        headers: Headers to add.
        query: Query parameters to add.
        secrets: Of these and of what else was kept for the server, what it must not repeat.
    """

    token: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)


class ServerCredentials(Protocol):
    """Signs requests to one server. Lives on one event loop."""

    async def signature(self) -> Signature:
        """Return what to add to the next request; nothing where there are no credentials.

        Raises:
            AuthError: If there should be some and cannot be now.
        """

    async def refused(self, challenge: Challenge, sent: Signature, attempt: int) -> bool:
        """Take in that the server refused a request; return whether to send it again.

        Args:
            challenge: What the server said.
            sent: What was added to the request.
            attempt: How often this request was refused before.

        Raises:
            AuthError: If other credentials were needed and could not be had.
        """


class AuthError(Exception):
    """A sign-in did not work, or its token cannot be used.

    Attributes:
        reason: One line that continues "The server"; it may hold text of the server.
        advice: One line that says what to do, or empty.
        is_transient: Whether a later attempt may well work with the same credentials.
        is_permanent: Whether another sign-in would not help either.
    """

    def __init__(
        self,
        reason: str,
        advice: str = "",
        *,
        is_transient: bool = False,
        is_permanent: bool = False,
    ) -> None:
        super().__init__(reason)
        self.reason, self.advice, self.is_transient = reason, advice, is_transient
        self.is_permanent = is_permanent


class ResourceError(AuthError):
    """An authorization server does not take the `resource` of a request (RFC 8707)."""


class DeclinedError(AuthError):
    """The person does not want to sign in; that says nothing against the client."""


class SignInRecord(BaseModel):
    """One sign-in. Without an access token it is only a registered client.

    Attributes:
        server: The server's canonical address.
        issuer: The authorization server's identifier.
        resource: What the tokens are for (RFC 8707).
        client_id: The client.
        account: The user's name for the account, or empty.
        client_secret: Its secret, or empty.
        secret_ends_at: When the secret expires, in seconds since the epoch; 0 for never.
        auth_method: How the client authenticates at the token endpoint.
        redirect_uri: The redirect URI it registered, or empty.
        token_endpoint: Where tokens come from.
        revocation_endpoint: Where they are revoked, or empty.
        access_token: The token, or empty.
        refresh_token: What gets the next one, or empty.
        scope: The scopes granted, separated by blanks.
        expires_at: When to get the next one, in seconds since the epoch; None if never said.
        is_registered: Whether the client registered itself, and is not from the settings.
        is_doubtful: Whether the server may have forgotten it: the next sign-in registers anew.
        names_resource: Whether requests for tokens name the resource.
        needs_consent: Whether the last sign-in gave no refresh token although it was asked for.
        lacking: The refusal of a request for want of scopes, which the next sign-in asks for.
    """

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True, extra="ignore")

    server: str
    issuer: str
    resource: str
    client_id: str
    account: str = ""
    client_secret: str = Field("", repr=False)
    secret_ends_at: float = 0.0
    auth_method: str = "none"
    redirect_uri: str = ""
    token_endpoint: str = ""
    revocation_endpoint: str = ""
    access_token: str = Field("", repr=False)
    refresh_token: str = Field("", repr=False)
    scope: str = ""
    expires_at: float | None = None
    is_registered: bool = False
    is_doubtful: bool = False
    names_resource: bool = True
    needs_consent: bool = False
    lacking: Challenge | None = None

    @property
    def key(self) -> str:
        """What the record is kept under: never the server's name."""
        named = [self.account] if self.account else []
        return digest(self.issuer, self.resource, self.client_id, *named)

    @property
    def is_due(self) -> bool:
        """Whether the next token should be got before this one is used.

        One that nothing renews is used until the server refuses it: clocks may be wrong.
        """
        ends_at = self.expires_at if self.refresh_token else None
        return ends_at is not None and ends_at <= time.time()

    @property
    def has_ended(self) -> bool:
        """Whether the client has to register anew."""
        return self.is_doubtful or 0 < self.secret_ends_at <= time.time()

    def secrets(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.access_token, self.refresh_token, self.client_secret)))

    def without_tokens(self) -> "SignInRecord":
        """Return what is left when the tokens are worth nothing: the client."""
        return self.model_copy(update={"access_token": "", "refresh_token": "", "expires_at": None})

    def fits(self, definition: ServerDefinition) -> bool:
        """Return whether it was made for this server, with these settings."""
        oauth = definition.endpoint.sign_in.oauth
        if self.server != canonical_address(definition.endpoint.url):
            return False
        if self.account != oauth.account:
            return False
        if oauth.issuer and not same_issuer(oauth.issuer, self.issuer):
            return False
        if oauth.token_url and oauth.token_url != self.token_endpoint:
            return False
        if not oauth.client_id or oauth.client_id == self.client_id:
            return True
        # Where a server does not take the address of a document, a client registers itself.
        return self.is_registered and oauth.client_id.startswith("https://")


def digest(*parts: str) -> str:
    """Return what stands for these texts in a key."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def canonical_address(url: str) -> str:
    """Return an address as RFC 8707 compares it: lower-case host, no default port or fragment."""
    parts = urlsplit(url)
    host, port = (parts.hostname or "").lower(), parts.port
    netloc = f"[{host}]" if ":" in host else host
    if port is not None and port != _DEFAULT_PORTS.get(parts.scheme):
        netloc += f":{port}"
    return urlunsplit((parts.scheme, netloc, parts.path, parts.query, ""))


def same_issuer(one: str, other: str) -> bool:
    """Compare issuers as text, but for the slash at the end of a bare host (RFC 8414, 3.3)."""
    shorter, longer = sorted((one, other), key=len)
    return one == other or (longer == f"{shorter}/" and urlsplit(shorter).path == "")


def may_carry_tokens(url: str) -> bool:
    """Return whether a token may be sent to an address: only encrypted, or on this machine."""
    parts = urlsplit(url)
    return parts.scheme == "https" or is_loopback(parts.hostname or "")
