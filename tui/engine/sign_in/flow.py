"""One sign-in from beginning to end: discovery, registration, consent, code, token (OAuth 2.1).

The SDK's `OAuthClientProvider` runs all this inside a request, opens the browser unasked and puts
secrets into its errors; here its parts are used instead.
"""

import json
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.client.auth.extensions.client_credentials import SignedJWTParameters
from mcp.client.auth.oauth2 import PKCEParameters, check_registration_usable
from mcp.client.auth.utils import handle_registration_response, is_valid_client_metadata_url
from mcp.shared.auth import JWT_BEARER_GRANT_TYPE

from tui.engine.definitions.definition import ServerDefinition
from tui.engine.sign_in.callback import CallbackListener, Redirect
from tui.engine.sign_in.discovery import PKCE_METHOD, Discovery, SignInPlace
from tui.engine.sign_in.endpoints import MAX_ENDPOINT, checked_endpoint
from tui.engine.sign_in.server_credentials import Challenge
from tui.engine.sign_in.sign_in_record import (
    AuthError,
    DeclinedError,
    SignInRecord,
    canonical_address,
)
from tui.engine.sign_in.token_endpoint import MAX_SAID, Send, ask_for_token
from tui.model.frozen import dataclass
from tui.model.settings import GrantType, OAuthSettings
from tui.text import sanitize_line

_JWT_CLIENT: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_TOKEN_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"  # noqa: S105
_TOKEN_TYPE: Final = "urn:ietf:params:oauth:token-type:"  # noqa: S105


class UnattendedGrant:
    """Gets a token for a client of the settings, without a browser.

    Args:
        oauth: The settings.
        send: Sends requests.
        place: Where tokens come from.
        client: The client, without a token.
    """

    def __init__(
        self, oauth: OAuthSettings, send: Send, place: SignInPlace, client: SignInRecord
    ) -> None:
        self._oauth = oauth
        self._send = send
        self._place = place
        self._client = client

    async def token(self) -> SignInRecord:
        """Return the client with a token.

        Raises:
            AuthError: If there is none.
        """
        if self._oauth.grant_type is GrantType.IDENTITY_ASSERTION:
            assertion = await self._exchanged()
            form = {"grant_type": JWT_BEARER_GRANT_TYPE, "assertion": assertion}
        else:
            form = {"grant_type": "client_credentials", **await self._signed()}
        form["resource"] = self._place.resource
        if self._place.scope:
            form["scope"] = self._place.scope
        if self._oauth.audiences:
            form["audience"] = " ".join(self._oauth.audiences)
        return await ask_for_token(self._send, self._client, form)

    async def _exchanged(self) -> str:
        """Have the identity provider vouch for the user at this authorization server (RFC 8693)."""
        oauth = self._oauth
        token, url = oauth.identity_token, oauth.identity_token_url
        if token is None or not url:
            raise AuthError(
                "needs an identity token to be signed in to",
                "Set oauth.identityToken and oauth.identityTokenUrl.",
            )
        checked_endpoint(url, self._client.server, "identity provider", is_own=True)
        provider = self._client.model_copy(
            update={
                "client_id": oauth.identity_client_id or self._client.client_id,
                "client_secret": "",
                "auth_method": "none",
                "token_endpoint": url,
            }
        )
        form = {
            "grant_type": _TOKEN_EXCHANGE,
            "requested_token_type": f"{_TOKEN_TYPE}id-jag",
            "audience": self._place.issuer,
            "resource": self._place.resource,
            "subject_token": token.get_secret_value(),
            "subject_token_type": f"{_TOKEN_TYPE}id_token",
        }
        if self._place.scope:
            form["scope"] = self._place.scope
        return (await ask_for_token(self._send, provider, form, kind="n_a")).access_token

    async def _signed(self) -> dict[str, str]:
        """Return the client's signature in place of a secret (private_key_jwt), if it has a key."""
        key = self._oauth.private_key
        if key is None:
            return {}
        parameters = SignedJWTParameters(
            issuer=self._client.client_id,
            subject=self._client.client_id,
            signing_key=key.get_secret_value(),
            signing_algorithm=self._oauth.signing_algorithm,
        )
        try:
            assertion = await parameters.create_assertion_provider()(self._place.issuer)
        except Exception as error:  # noqa: BLE001 - its text may hold the key
            raise AuthError(
                f"got no token: the private key cannot sign ({type(error).__name__})",
                "Check oauth.privateKey (PEM) and oauth.signingAlgorithm.",
            ) from None
        return {"client_assertion_type": _JWT_CLIENT, "client_assertion": assertion}


CLIENT_NAME: Final = "gemdeck"

MAX_CLIENT_ID: Final = 2_048
"""Longest client id or secret that is accepted, in characters."""

_METHODS: Final = ("none", "client_secret_basic", "client_secret_post")
"""How a client that registers itself may authenticate, best first."""


@dataclass(frozen=True, slots=True)
class Consent:
    """What the person agrees to.

    Attributes:
        place: Where the sign-in happens.
        url: The address to open, or empty if nobody has to open one.
        listener: Takes the browser back, or None.
        note: What is unusual about it, or empty.
    """

    place: SignInPlace
    url: str = ""
    listener: CallbackListener | None = None
    note: str = ""


AskPerson = Callable[[Consent], Awaitable[Redirect]]
"""Asks the person, opens the address and waits until the browser, or the person, comes back.

Raises:
    AuthError: If the person does not want to, or does not come back.
"""

KeepClient = Callable[[SignInRecord], Awaitable[None]]
"""Keeps a client that has just registered, whatever comes of the sign-in."""


class SignInFlow:
    """One sign-in to one server.

    Args:
        definition: The server.
        send: Sends requests to authorization servers.
        ask: Asks the person.
        known: What is kept of an earlier sign-in, or None.
        keep: Keeps a new client.
    """

    def __init__(
        self,
        definition: ServerDefinition,
        send: Send,
        ask: AskPerson,
        known: SignInRecord | None,
        keep: KeepClient,
    ) -> None:
        self._definition = definition
        self._oauth = definition.sign_in.oauth
        self._send = send
        self._ask = ask
        self._known = known
        self._keep = keep

    async def run(self, challenge: Challenge) -> SignInRecord:
        """Sign in; return the record with its tokens.

        Raises:
            AuthError: If it did not work; the reason says what is wrong.
        """
        granted = self._known.scope if self._known is not None else ""
        place = await Discovery(self._definition, self._send).find(challenge, granted)
        if self._oauth.grant_type is not GrantType.AUTHORIZATION_CODE:
            return await self._with_credentials(place)
        may_move = not self._oauth.client_id or self._registers(place)
        async with CallbackListener(self._oauth.redirect_uri, may_move=may_move) as listener:
            client = await self._client(place, listener.redirect_uri)
            return await self._with_person(place, client, listener)

    async def _with_credentials(self, place: SignInPlace) -> SignInRecord:
        """Get a token with the client's own credentials; who gets them was agreed to."""
        if not (self._oauth.issuer or self._oauth.token_url):
            await self._ask(Consent(place))
        client = self._settings_client(place)
        return await UnattendedGrant(self._oauth, self._send, place, client).token()

    async def _with_person(
        self, place: SignInPlace, client: SignInRecord, listener: CallbackListener
    ) -> SignInRecord:
        """Have the person agree in the browser, and exchange the code for a token."""
        pkce, state = PKCEParameters.generate(), secrets.token_urlsafe(32)
        listener.expect(state)
        url = _with_query(
            place.authorization_endpoint,
            {
                "response_type": "code",
                "client_id": client.client_id,
                "redirect_uri": listener.redirect_uri,
                "state": state,
                "code_challenge": pkce.code_challenge,
                "code_challenge_method": PKCE_METHOD,
                "resource": place.resource,
                **({"scope": place.scope} if place.scope else {}),
                **({"prompt": "consent"} if "offline_access" in place.scope.split() else {}),
                **self._audience(),
            },
        )
        redirect = await self._ask(Consent(place, url, listener))
        _check_redirect(redirect, place)
        form = {
            "grant_type": "authorization_code",
            "code": redirect.code,
            "redirect_uri": listener.redirect_uri,
            "code_verifier": pkce.code_verifier,
            "resource": place.resource,
            **self._audience(),
        }
        return await ask_for_token(self._send, client, form)

    async def _client(self, place: SignInPlace, redirect_uri: str) -> SignInRecord:
        """Return the client to sign in as: that of the settings, a known one, or a new one."""
        if self._oauth.client_id and not self._registers(place):
            return self._settings_client(place)
        known = self._known
        is_same = (
            known is not None
            and known.is_registered
            and not known.has_ended
            and (known.issuer, known.redirect_uri) == (place.issuer, redirect_uri)
        )
        if known is not None and is_same:
            change = {**_endpoints(place), "resource": place.resource, "scope": place.scope}
            return known.without_tokens().model_copy(update=change)
        client = await self._register(place, redirect_uri)
        await self._keep(client)
        return client

    def _registers(self, place: SignInPlace) -> bool:
        """Return whether the client of the settings is a document that the server does not take."""
        is_document = is_valid_client_metadata_url(self._oauth.client_id)
        return is_document and not place.takes_documents and bool(place.registration_endpoint)

    def _settings_client(self, place: SignInPlace) -> SignInRecord:
        oauth = self._oauth
        if not oauth.client_id:
            raise AuthError(
                "needs a client id to be signed in to without a browser", "Set oauth.clientId."
            )
        secret = oauth.client_secret.get_secret_value() if oauth.client_secret else ""
        method = "none"
        if secret:
            offered = place.auth_methods or ("client_secret_basic",)
            method = next((m for m in _METHODS[1:] if m in offered), "client_secret_basic")
        return self._record(place, oauth.client_id, client_secret=secret, auth_method=method)

    async def _register(self, place: SignInPlace, redirect_uri: str) -> SignInRecord:
        """Register a client (RFC 7591)."""
        if not place.registration_endpoint:
            raise AuthError(
                "has an authorization server at which clients cannot register themselves",
                "Register gemdeck there and put the id into oauth.clientId.",
            )
        offered = place.auth_methods
        method = next((m for m in _METHODS if m in offered), "") if offered is not None else ""
        wanted = {
            "client_name": CLIENT_NAME,
            "redirect_uris": [redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "application_type": "native",
            **({"token_endpoint_auth_method": method} if method else {}),
            **({"scope": place.scope} if place.scope else {}),
        }
        headers = {"content-type": "application/json", "accept": "application/json"}
        body = json.dumps(wanted).encode()
        answer = await self._send("POST", place.registration_endpoint, headers, body)
        try:
            response = httpx2.Response(
                answer.status,
                content=answer.body,
                request=httpx2.Request("POST", place.registration_endpoint),
            )
            found = await handle_registration_response(response)
            check_registration_usable(found)
        except OAuthFlowError:  # its text may hold the client's secret
            raise AuthError(
                f"has an authorization server that did not register gemdeck (HTTP {answer.status})",
                "Register gemdeck there and put the id into oauth.clientId.",
            ) from None
        secret = found.client_secret or ""
        if max(len(found.client_id), len(secret)) > MAX_CLIENT_ID:
            raise AuthError("has an authorization server that gave a client id that is too long")
        method = found.token_endpoint_auth_method or ("client_secret_basic" if secret else "none")
        return self._record(
            place,
            found.client_id,
            client_secret=secret,
            secret_ends_at=(found.client_secret_expires_at or 0) if secret else 0,
            auth_method=method,
            redirect_uri=redirect_uri,
            is_registered=True,
        )

    def _record(self, place: SignInPlace, client_id: str, **more: str | int) -> SignInRecord:
        return SignInRecord.model_validate(
            {
                "server": canonical_address(self._definition.url),
                "issuer": place.issuer,
                "resource": place.resource,
                "client_id": client_id,
                "scope": place.scope,
                **_endpoints(place),
                **more,
            }
        )

    def _audience(self) -> dict[str, str]:
        words = " ".join(self._oauth.audiences)
        return {"audience": words} if words else {}


def _endpoints(place: SignInPlace) -> dict[str, str]:
    return {
        "token_endpoint": place.token_endpoint,
        "revocation_endpoint": place.revocation_endpoint,
    }


def _with_query(url: str, parameters: Mapping[str, str]) -> str:
    """Add parameters to an address, whose own stay."""
    parts = urlsplit(url)
    own = [pair for pair in parse_qsl(parts.query) if pair[0] not in parameters]
    query = urlencode([*own, *parameters.items()])
    whole = urlunsplit((parts.scheme, parts.netloc, parts.path, query, ""))
    if len(whole) > 2 * MAX_ENDPOINT:
        raise AuthError("wants a sign-in at an address that is too long")
    return whole


def _check_redirect(redirect: Redirect, place: SignInPlace) -> None:
    """Refuse an answer of another authorization server (RFC 9207), and one without a code."""
    if redirect.iss and redirect.iss != place.issuer:
        raise AuthError("was answered for by another authorization server than the one asked")
    if place.names_itself and not redirect.iss:
        advice = "" if redirect.is_whole else "Paste the whole address instead of the code."
        raise AuthError("got an answer that does not say which server it comes from", advice)
    if redirect.error:
        said = f"{redirect.error}: {redirect.description}".strip(": ")
        kind = DeclinedError if redirect.error == "access_denied" else AuthError
        raise kind(f"was not given access: {sanitize_line(said, MAX_SAID)}")
    if not redirect.code:
        raise AuthError("got an answer without a code")
