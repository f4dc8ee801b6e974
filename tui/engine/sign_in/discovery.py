"""Finds out where and how to sign in to a server: RFC 9728, RFC 8414 and OpenID discovery.

The SDK knows the places and the documents; what it lets through is checked here.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar
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
from pydantic import BaseModel, ValidationError

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
from tui.model.wire.refusals import words_of
from tui.text import sanitize_line

M = TypeVar("M", bound=BaseModel)

PKCE_METHOD: Final = "S256"

MAX_URL: Final = 200
"""Characters of an address that are shown in an error."""

MAX_SAID: Final = 80
"""Characters of what an address sent in place of metadata that are shown."""

MAX_AUTHORITIES: Final = 3
"""Most authorization servers of a server that are asked for metadata."""

_OF_RESOURCE: Final = frozenset({"resource", "authorization_servers"})
_OF_AUTHORIZATION: Final = frozenset(
    {"issuer", "authorization_endpoint", "token_endpoint", "registration_endpoint"}
)
"""Members of metadata without which, or with others, there is no sign-in."""
_LISTS: Final = frozenset({"authorization_servers", "code_challenge_methods_supported"})

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
        grant_types: How it gives tokens; None if it does not say.
        names_resource: Whether requests name the resource.
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
    grant_types: tuple[str, ...] | None = None
    names_resource: bool = True


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
        self._sent: dict[str, str] = {}  # what came in place of metadata, by address
        self._is_failing = False

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
            reason = "has an authorization server that does not support PKCE with S256"
            advice = "If you know that it does, set oauth.authorizationUrl and oauth.tokenUrl."
            raise AuthError(f"{reason}, without which others could use the code", advice)
        place = self._place(resource, metadata)
        is_own = oauth.authorization_url and oauth.token_url
        if oauth.grant_type is GrantType.AUTHORIZATION_CODE and not is_own:
            await self._check_page(place)
        asked, grants = challenge.scope or None, ["authorization_code", "refresh_token"]
        found = get_client_metadata_scopes(asked, resource, metadata, grants)
        scope = " ".join(oauth.scopes) or found or ""
        if challenge.is_step_up:
            scope = union_scopes(granted, challenge.scope or scope) or ""
        # others are no scopes (RFC 6749, 3.3), and would be asked for unseen
        plain = [one for one in scope.split() if one.isascii() and one.isprintable()]
        return replace(place, scope=" ".join(plain))

    async def _resource(self, challenge: Challenge) -> ProtectedResourceMetadata | None:
        """Ask which authorization servers issue tokens for the server."""
        if self._oauth.authorization_url and self._oauth.token_url:
            return None
        named, odd = challenge.resource_metadata, ""
        if named.startswith("/") and not named.startswith("//"):  # some leave out their origin
            named = _origin(self._server) + named
        for url in build_protected_resource_metadata_discovery_urls(named or None, self._server):
            answer = await self._fetch(url, "resource metadata address")
            if answer.status != 200:
                self._note(url, answer)
                continue
            try:
                usual = {"authorization_servers": [_origin(self._server)]}  # itself
                found = _read(ProtectedResourceMetadata, answer.body, _OF_RESOURCE, usual)
            except _OddDocumentError as error:
                odd = odd or (error.member and str(error))
                self._note(url, answer, str(error))
                continue
            if not check_resource_allowed(self._server, str(found.resource)):
                other = sanitize_line(str(found.resource))
                raise AuthError(f"declares its tokens for {other}, which is another server")
            return found
        if odd:
            raise AuthError(f"sent invalid metadata for its sign-in: {odd}")
        return None

    async def _metadata(self, resource: ProtectedResourceMetadata | None) -> OAuthMetadata | None:
        """Ask the authorization server for its endpoints; None if a server of 2025-03-26 has none.

        Such a server is its own authorization server, with endpoints in fixed places. Of several
        that are named, the first counts that can be reached and says how.
        """
        oauth = self._oauth
        if oauth.authorization_url and oauth.token_url and not oauth.issuer:
            return None
        listed = resource.authorization_servers[:MAX_AUTHORITIES] if resource is not None else [""]
        named = [oauth.issuer] if oauth.issuer else [str(one) for one in listed]
        for issuer in named:
            try:
                if (found := await self._metadata_of(issuer)) is not None:
                    return found
            except AuthError as error:
                if issuer == named[-1] or not error.is_transient:
                    raise
        if named[0] or self._is_failing:
            words = f"names the authorization server {' and '.join(named)}, which fails"
            if not named[0]:
                words = "has a failing authorization server"
            raise AuthError(f"{words}: {self._told()}", is_transient=self._is_failing)
        return None

    async def _metadata_of(self, issuer: str) -> OAuthMetadata | None:
        """Ask an authorization server, by default the server's own; None if it does not say."""
        expected = (issuer,) if issuer else (_origin(self._server), self._server)
        exact, others = _metadata_places(issuer or self._server)
        without_pkce: OAuthMetadata | None = None
        for url in (*exact, *others):
            answer = await self._fetch(url, "authorization server")
            if answer.status != 200:
                self._note(url, answer)
                continue
            try:
                metadata = _read(OAuthMetadata, answer.body, _OF_AUTHORIZATION, {})
            except _OddDocumentError as error:
                self._note(url, answer, str(error))
                continue
            if any(same_issuer(str(metadata.issuer), one) for one in expected):
                if PKCE_METHOD in (metadata.code_challenge_methods_supported or []):
                    return metadata
                without_pkce = without_pkce or metadata  # another document may offer it
            elif url in exact:
                other = sanitize_line(str(metadata.issuer))
                raise AuthError(
                    f"names the authorization server {expected[0]}, which calls itself {other}"
                )
        return without_pkce

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
                other = f"opens a page of another authorization server, {sanitize_line(named)}"
                why = f"whose response would go to {sanitize_line(issuer)}; the sign-in is refused"
                advice = "Tell the operator of the server: it may be after your account there."
                raise AuthError(f"{other}, {why}", advice)

    def _place(
        self, resource: ProtectedResourceMetadata | None, metadata: OAuthMetadata | None
    ) -> SignInPlace:
        """Put together what was found and what the settings say."""
        oauth, origin = self._oauth, _origin(self._server)
        issuer = oauth.issuer or _origin(oauth.token_url or origin)
        if metadata is not None:
            issuer = str(metadata.issuer)
        endpoints: dict[str, Any] = {}
        for name, (what, setting, path) in _ENDPOINTS.items():
            usual = f"{origin}/{path}" if path else ""
            found = str(getattr(metadata, name) or "") if metadata is not None else usual
            if found:
                checked_endpoint(found, self._server, what)
            if setting and (own := getattr(oauth, setting)):
                found = checked_endpoint(own, self._server, what, is_own=True)
            endpoints[name] = found
        place = SignInPlace(
            issuer,
            str(resource.resource) if resource is not None else self._server,
            "",
            **endpoints,
        )
        if metadata is None:
            return place
        methods = metadata.token_endpoint_auth_methods_supported
        grants = metadata.grant_types_supported
        return replace(
            place,
            auth_methods=tuple(methods) if methods is not None else None,
            takes_documents=bool(metadata.client_id_metadata_document_supported),
            names_itself=bool(metadata.authorization_response_iss_parameter_supported),
            grant_types=tuple(grants) if grants is not None else None,
        )

    async def _fetch(self, url: str, what: str) -> AuthResponse:
        """Ask for a document."""
        named = filter(None, (self._oauth.issuer, self._oauth.authorization_url))
        is_own = any(url.startswith(f"{_origin(own)}/") for own in named)
        checked_endpoint(url, self._server, what, is_own=is_own)
        return await self._send("GET", url, _HEADERS, None)

    def _note(self, url: str, answer: AuthResponse, odd: str = "") -> None:
        """Note what an address sent in place of metadata."""
        said = sanitize_line(words_of(answer.body), MAX_SAID)
        self._sent[url] = odd or ", ".join(filter(None, (f"HTTP {answer.status}", said)))
        self._is_failing = self._is_failing or answer.status >= 500 or answer.status == 429

    def _told(self) -> str:
        """Say what each address sent that was asked for metadata."""
        return "; ".join(
            f"{sanitize_line(url, MAX_URL)} sent {it}" for url, it in self._sent.items()
        )


class _OddDocumentError(Exception):
    """A document is not what was asked for.

    Attributes:
        member: The member that is not valid, or "" if it is no JSON object.
    """

    def __init__(self, words: str, member: str = "") -> None:
        super().__init__(words)
        self.member = member


def _read(kind: type[M], body: bytes, needed: frozenset[str], usual: dict[str, Any]) -> M:
    """Read metadata; of optional members, those that are not valid are left out.

    What is empty counts as left out (RFC 8414, 3.2); then the usual value takes its place.

    Raises:
        _OddDocumentError: If it is no JSON object, or a member that is needed is not valid.
    """
    try:
        content = read_object(body, last_key_counts=True)
    except JsonError:
        page = "a web page" if body.lstrip()[:1] == b"<" else "no JSON"
        raise _OddDocumentError(page) from None
    said = {key: it for key, it in content.items() if it or (it != "" and key not in usual)}
    content = {**usual, **said}
    for key in _LISTS & content.keys():  # some write the only one as a text
        content[key] = [content[key]] if isinstance(content[key], str) else content[key]
    for _ in range(2):
        try:
            return kind.model_validate(content)
        except ValidationError as error:
            wrong = {str(one["loc"][0]) for one in error.errors(include_url=False) if one["loc"]}
            if not wrong or wrong & needed:
                break
            content = {name: value for name, value in content.items() if name not in wrong}
    member = min(wrong & needed, default="content")
    raise _OddDocumentError(f"its {member} is missing or not valid", member)


def _metadata_places(issuer: str) -> tuple[list[str], list[str]]:
    """Return where the metadata of an issuer is: its own places, and those of its whole host."""
    exact = build_oauth_authorization_server_metadata_discovery_urls(issuer, issuer)
    names = ("oauth-authorization-server", "openid-configuration")
    roots = [urljoin(_origin(issuer), f"/.well-known/{name}") for name in names]
    return exact, [url for url in roots if url not in exact]


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
