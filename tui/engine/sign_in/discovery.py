"""Finds out where and how to sign in to a server: RFC 9728, RFC 8414 and OpenID discovery.

The SDK knows the places and the documents; what it lets through is checked here.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import urljoin, urlsplit

from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
    get_client_metadata_scopes,
    union_scopes,
)
from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata
from mcp.shared.auth_utils import check_resource_allowed
from mcp_types import LATEST_PROTOCOL_VERSION
from pydantic import ValidationError

from tui.engine.definitions.definition import ServerDefinition
from tui.engine.sign_in.sign_in_record import AuthError, Challenge, canonical_address, same_issuer
from tui.engine.sign_in.token_endpoint import (
    AuthResponse,
    RefusedAddressError,
    Send,
    checked_endpoint,
)
from tui.model.bounded_json import JsonError, read_object
from tui.model.frozen import Frozen
from tui.model.settings import GrantType, OAuthSettings
from tui.text import sanitize_line

PKCE_METHOD: Final = "S256"

_HEADERS: Final = {"accept": "application/json", "mcp-protocol-version": LATEST_PROTOCOL_VERSION}
_PAGE: Final = "authorization endpoint"
_ENDPOINTS: Final[Mapping[str, tuple[str, str, str]]] = {
    "authorization_endpoint": (_PAGE, "authorization_url", "authorize"),
    "token_endpoint": ("token endpoint", "token_url", "token"),
    "registration_endpoint": ("registration endpoint", "registration_url", "register"),
    "revocation_endpoint": ("revocation endpoint", "", ""),
}
"""What each is, the setting that overrides it, and its path where a server has no metadata."""


class SignInPlace(Frozen):
    """Where and how to sign in to a server.

    Attributes:
        issuer: The authorization server.
        resource: What the token is for.
        scope: The scopes to ask for, separated by blanks.
        authorization_endpoint: Where the person agrees.
        token_endpoint: Where tokens come from.
        registration_endpoint: Where clients register, or empty.
        revocation_endpoint: Where tokens are revoked, or empty.
        auth_methods: How clients may authenticate, best first; None if it does not say.
        takes_documents: Whether it takes addresses of client metadata documents.
        names_itself: Whether its answers say who it is (RFC 9207).
    """

    issuer: str
    resource: str
    scope: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str = ""
    revocation_endpoint: str = ""
    auth_methods: tuple[str, ...] | None = None
    takes_documents: bool = False
    names_itself: bool = False


class Discovery:
    """Finds the place to sign in to one server.

    Args:
        definition: The server; what its entry sets counts instead of what is found.
        send: Sends requests.
    """

    def __init__(self, definition: ServerDefinition, send: Send) -> None:
        self._oauth: OAuthSettings = definition.endpoint.sign_in.oauth
        self._server = canonical_address(definition.endpoint.url)
        self._send = send

    async def find(self, challenge: Challenge, granted: str = "") -> SignInPlace:
        """Find the place.

        Args:
            challenge: What the server said when it refused.
            granted: The scopes held so far, which a step-up keeps.

        Raises:
            AuthError: If there is none that may be used.
        """
        oauth = self._oauth
        resource = await self._resource(challenge)
        metadata = await self._metadata(resource)
        offered = metadata.code_challenge_methods_supported if metadata is not None else None
        with_code = metadata is not None and oauth.grant_type is GrantType.AUTHORIZATION_CODE
        if with_code and PKCE_METHOD not in (offered or []):
            raise AuthError(
                "has an authorization server that does not offer PKCE with S256, "
                "without which others could use the code"
            )
        place = self._place(resource, metadata)
        is_own = oauth.authorization_url and oauth.token_url
        if oauth.grant_type is GrantType.AUTHORIZATION_CODE and not is_own:
            await self._check_page(place)
        found = get_client_metadata_scopes(
            challenge.scope or None, resource, metadata, ["authorization_code", "refresh_token"]
        )
        scope = " ".join(oauth.scopes) or found or ""
        if challenge.is_step_up:
            scope = union_scopes(granted, challenge.scope or scope) or ""
        return replace(place, scope=scope)

    async def _resource(self, challenge: Challenge) -> ProtectedResourceMetadata | None:
        """Ask which authorization servers issue tokens for the server."""
        if self._oauth.authorization_url and self._oauth.token_url:
            return None
        named = challenge.resource_metadata or None
        rejected = False
        for url in build_protected_resource_metadata_discovery_urls(named, self._server):
            answer = await self._fetch(
                url, "resource metadata address", "failed to say where to sign in"
            )
            if answer.status != 200:
                continue
            try:
                found = ProtectedResourceMetadata.model_validate_json(answer.body)
            except ValidationError:
                rejected = True
                continue
            if not check_resource_allowed(self._server, str(found.resource)):
                other = sanitize_line(str(found.resource))
                raise AuthError(f"says that its tokens are for {other}, which it is not")
            return found
        if rejected:
            raise AuthError("sent metadata for its sign-in that is not valid")
        return None

    async def _metadata(self, resource: ProtectedResourceMetadata | None) -> OAuthMetadata | None:
        """Ask the authorization server for its endpoints; None if a server of 2025-03-26 has none.

        Such a server is its own authorization server, with endpoints in fixed places.
        """
        oauth = self._oauth
        if oauth.authorization_url and oauth.token_url and not oauth.issuer:
            return None
        issuer = oauth.issuer or ""
        if resource is not None and not issuer:
            issuer = str(resource.authorization_servers[0])
        expected = (issuer,) if issuer else (_origin(self._server), self._server)
        exact, others = _metadata_places(issuer or self._server)
        for url in (*exact, *others):
            answer = await self._fetch(
                url, "authorization server", "has an authorization server that fails"
            )
            if answer.status != 200:
                continue
            try:
                metadata = OAuthMetadata.model_validate_json(answer.body)
            except ValidationError:
                raise AuthError("has an authorization server whose metadata is not valid") from None
            if any(same_issuer(str(metadata.issuer), one) for one in expected):
                return metadata
            if url in exact:
                other = sanitize_line(str(metadata.issuer))
                raise AuthError(
                    f"names the authorization server {expected[0]}, which calls itself {other}"
                )
        if issuer:
            raise AuthError(f"names the authorization server {issuer}, which does not say how")
        return None

    async def _check_page(self, place: SignInPlace) -> None:
        """Refuse a page of another authorization server: its code would go to this one (mix-up)."""
        page, issuer = place.authorization_endpoint, place.issuer
        if _origin(canonical_address(page)) == _origin(canonical_address(issuer)):
            return
        for url in _metadata_places(_origin(page))[0]:
            try:
                answer = await self._fetch(url, _PAGE)
                named = read_object(answer.body).get("issuer") if answer.status == 200 else None
            except RefusedAddressError:
                raise
            except (AuthError, JsonError):
                continue
            if isinstance(named, str):
                if same_issuer(named, issuer):
                    return
                raise AuthError(
                    f"opens a page of another authorization server, {sanitize_line(named)}, whose "
                    f"answer would go to {sanitize_line(issuer)}; the sign-in is refused",
                    "Tell whoever runs the server: it may want to use what you have there.",
                )

    def _place(
        self, resource: ProtectedResourceMetadata | None, metadata: OAuthMetadata | None
    ) -> SignInPlace:
        """Put together what was found and what the settings say."""
        oauth, origin = self._oauth, _origin(self._server)
        issuer = oauth.issuer or _origin(oauth.token_url or origin)
        if metadata is not None:
            issuer = str(metadata.issuer)
        endpoints: dict[str, str] = {}
        for name, (what, setting, path) in _ENDPOINTS.items():
            usual = f"{origin}/{path}" if path else ""
            found = str(getattr(metadata, name) or "") if metadata is not None else usual
            if found:
                checked_endpoint(found, self._server, what)
            if setting and (own := getattr(oauth, setting)):
                found = checked_endpoint(own, self._server, what, is_own=True)
            endpoints[name] = found
        methods = metadata.token_endpoint_auth_methods_supported if metadata is not None else None
        return SignInPlace(
            issuer,
            str(resource.resource) if resource is not None else self._server,
            "",
            **endpoints,
            auth_methods=tuple(methods) if methods is not None else None,
            takes_documents=bool(metadata and metadata.client_id_metadata_document_supported),
            names_itself=bool(metadata and metadata.authorization_response_iss_parameter_supported),
        )

    async def _fetch(self, url: str, what: str, failing: str = "") -> AuthResponse:
        """Ask for a document; a server that fails for now is an error if there are words."""
        named = filter(None, (self._oauth.issuer, self._oauth.authorization_url))
        is_own = any(url.startswith(f"{_origin(own)}/") for own in named)
        checked_endpoint(url, self._server, what, is_own=is_own)
        answer = await self._send("GET", url, _HEADERS, None)
        if failing and (answer.status >= 500 or answer.status == 429):
            raise AuthError(f"{failing} (HTTP {answer.status})", is_transient=True)
        return answer


def _metadata_places(issuer: str) -> tuple[list[str], list[str]]:
    """Return where the metadata of an issuer is: its own places, and those of its whole host."""
    exact = build_oauth_authorization_server_metadata_discovery_urls(issuer, issuer)
    names = ("oauth-authorization-server", "openid-configuration")
    roots = [urljoin(_origin(issuer), f"/.well-known/{name}") for name in names]
    return exact, [url for url in roots if url not in exact]


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
