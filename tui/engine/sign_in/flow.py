"""One sign-in from beginning to end: discovery, registration, consent, code, token (OAuth 2.1).

The SDK's `OAuthClientProvider` runs all this inside a request, opens the browser unasked and puts
secrets into its errors; here its parts are used instead.
"""

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from mcp.client.auth.extensions.client_credentials import SignedJWTParameters
from mcp.client.auth.oauth2 import PKCEParameters
from mcp.client.auth.utils import is_valid_client_metadata_url
from mcp.shared.auth import JWT_BEARER_GRANT_TYPE

from tui.engine.definitions.definition import ServerDefinition, shown_target
from tui.engine.desk import Desk, WithdrawnError
from tui.engine.sign_in.callback import CallbackListener, Redirect
from tui.engine.sign_in.discovery import PKCE_METHOD, Discovery, SignInPlace
from tui.engine.sign_in.sign_in_record import (
    AuthError,
    Challenge,
    DeclinedError,
    ResourceError,
    SignInRecord,
    canonical_address,
)
from tui.engine.sign_in.token_endpoint import (
    LATER,
    LEAVE_OUT,
    MAX_ENDPOINT,
    AuthResponse,
    Send,
    about_resource,
    ask_for_token,
    checked_endpoint,
    content_of,
)
from tui.model.frozen import Frozen
from tui.model.input.addresses import AddressError, check_address
from tui.model.requests import Reply, SignInRequest
from tui.model.settings import GrantType, OAuthSettings
from tui.model.wire.refusals import clipped, error_code, words_of
from tui.text import sanitize_line

_JWT_CLIENT: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_TOKEN_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"  # noqa: S105
_TOKEN_TYPE: Final = "urn:ietf:params:oauth:token-type:"  # noqa: S105

CLIENT_NAME: Final = "gemdeck"

_REGISTER: Final = "Register gemdeck there and put the id into oauth.clientId."

MAX_CLIENT_ID: Final = 2_048
"""Longest client id or secret that is accepted, in characters."""

_METHODS: Final = ("none", "client_secret_post", "client_secret_basic")
"""How a client may authenticate, best first: what needs no secret, and what all servers read."""

_RETRIED: Final = frozenset({"invalid_client_metadata", "invalid_scope", ""})
"""Errors of a registration (RFC 7591, 3.2.2) that may be about what is not needed in it; "" for one
that is not named."""

_GRANTS: Final = ("authorization_code", "refresh_token")

PATIENCE: Final = 300.0
"""Seconds that the browser has to come back, from when it was opened."""

MAX_SCOPES: Final = 100
"""Most scopes that one sign-in may ask for."""

MAX_SCOPE: Final = 200
"""Characters of a scope that are shown; no real one is as long."""

MAX_FACT: Final = 500
"""Characters of an address or resource that are shown."""

WAITING: Final = (
    "Waiting for the browser. If nothing happens here, paste the address that it shows. "
    "If the page does not recognize gemdeck, cancel and sign in again to register it anew."
)
NO_BROWSER: Final = (
    "No browser was opened. Open the address above in one and paste the address where it ends."
)

OpenUrl = Callable[[str], Awaitable[bool]]


class Consent(Frozen):
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


@dataclass(eq=False, repr=False)
class SignInFlow:
    """One sign-in to one server.

    Attributes:
        definition: The server.
        send: Sends requests to authorization servers.
        ask: Asks the person.
        known: What is kept of an earlier sign-in, or None.
        keep: Keeps a new client.
    """

    definition: ServerDefinition
    send: Send
    ask: AskPerson
    known: SignInRecord | None
    keep: KeepClient

    def __post_init__(self) -> None:
        self._oauth = self.definition.endpoint.sign_in.oauth

    async def run(self, challenge: Challenge) -> SignInRecord:
        """Sign in; return the record with its tokens.

        Raises:
            AuthError: If it did not work; the reason says what is wrong.
        """
        granted = self.known.scope if self.known is not None else ""
        place = await Discovery(self.definition, self.send).find(challenge, granted)
        place = replace(place, names_resource=self._oauth.resource)
        if self._oauth.grant_type is not GrantType.AUTHORIZATION_CODE:
            if not (self._oauth.issuer or self._oauth.token_url):  # else the settings say who
                await self.ask(Consent(place))
            client = self._settings_client(place)
            return await unattended_token(self._oauth, self.send, place, client)
        try:
            return await self._with_person(place)
        except ResourceError:
            if not place.names_resource:
                raise
            note = (
                "The authorization server refused a request that named this resource. Without "
                "the name, the token may be valid for other servers too."
            )
            return await self._with_person(replace(place, names_resource=False), note)

    async def _with_person(self, place: SignInPlace, note: str = "") -> SignInRecord:
        """Have the person agree in the browser, and exchange the code for a token."""
        oauth, may_move = self._oauth, not self._oauth.client_id or self._registers(place)
        is_own = "redirect_uri" in oauth.model_fields_set
        async with CallbackListener(
            oauth.redirect_uri, may_move=may_move, is_own=is_own
        ) as listener:
            client = await self._client(place, listener.redirect_uri)
            return await self._agreed(place, client, listener, note)

    async def _agreed(
        self, place: SignInPlace, client: SignInRecord, listener: CallbackListener, note: str
    ) -> SignInRecord:
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
                "resource": place.resource if place.names_resource else "",
                "scope": place.scope,
                # it locks those out who may not consent, so only where there was no refresh token
                "prompt": "consent" if self.known and self.known.needs_consent else "",
                "audience": " ".join(self._oauth.audiences),
            },
        )
        redirect = await self.ask(Consent(place, url, listener, note))
        _check_redirect(redirect, place)
        form = {
            "grant_type": "authorization_code",
            "code": redirect.code,
            "redirect_uri": listener.redirect_uri,
            "code_verifier": pkce.code_verifier,
            "resource": place.resource,
            "audience": " ".join(self._oauth.audiences),
        }
        return await ask_for_token(self.send, client, form)

    async def _client(self, place: SignInPlace, redirect_uri: str) -> SignInRecord:
        """Return the client to sign in as: that of the settings, a known one, or a new one."""
        if self._oauth.client_id and not self._registers(place):
            return self._settings_client(place)
        known, here = self.known, (place.issuer, redirect_uri)
        is_usable = known is not None and known.is_registered and not known.has_ended
        if known is not None and is_usable and (known.issuer, known.redirect_uri) == here:
            return known.without_tokens().model_copy(update=_kept_of(place))
        client = await self._register(place, redirect_uri)
        await self.keep(client)
        return client

    def _registers(self, place: SignInPlace) -> bool:
        """Return whether the client of the settings is a document that the server does not take."""
        is_document = is_valid_client_metadata_url(self._oauth.client_id)
        return is_document and not place.takes_documents and bool(place.registration_endpoint)

    def _settings_client(self, place: SignInPlace) -> SignInRecord:
        oauth = self._oauth
        if not oauth.client_id:
            reason = "needs a client id for sign-in without a browser"
            raise AuthError(reason, "Set oauth.clientId.")
        secret = oauth.client_secret.get_secret_value() if oauth.client_secret else ""
        method = "none"
        if secret:
            offered = place.auth_methods or ("client_secret_basic",)
            method = next((m for m in _METHODS[1:] if m in offered), "client_secret_basic")
        return self._record(place, oauth.client_id, client_secret=secret, auth_method=method)

    async def _register(self, place: SignInPlace, redirect_uri: str) -> SignInRecord:
        """Register a client (RFC 7591)."""
        if not place.registration_endpoint:
            reason = "has an authorization server that does not let clients register"
            raise AuthError(reason, _REGISTER)
        offered = place.auth_methods
        method = next((m for m in _METHODS if m in offered), "") if offered is not None else ""
        wanted: dict[str, Any] = {
            "client_name": CLIENT_NAME,
            "redirect_uris": [redirect_uri],
            "grant_types": [*_GRANTS],
            "response_types": ["code"],
            "application_type": "native",
            **({"token_endpoint_auth_method": method} if method else {}),
            **({"scope": place.scope} if place.scope else {}),
        }
        answer = await self._ask_to_register(place, wanted)
        found, is_refused = content_of(answer), answer.status in {400, 422}
        if is_refused and error_code(found) in _RETRIED:
            grants = [grant for grant in _GRANTS if grant in (place.grant_types or _GRANTS)]
            wanted = {**wanted, "grant_types": grants or [*_GRANTS[:1]]}
            del wanted["application_type"]
            wanted.pop("scope", None)
            answer = await self._ask_to_register(place, wanted)
            found = content_of(answer)
        client_id, secret = found.get("client_id"), found.get("client_secret") or ""
        client_id = str(client_id) if type(client_id) in {int, str} else ""
        if answer.status not in {200, 201} or not client_id:
            said = words_of(answer.body) if answer.status not in {200, 201} else "no client_id"
            said = f"HTTP {answer.status}{said and ', '}{said}"
            words = f"has an authorization server that did not register gemdeck ({said})"
            busy = answer.status >= 500 or answer.status == 429
            raise AuthError(words, LATER if busy else _REGISTER, is_transient=busy)
        usual = "client_secret_basic" if secret else "none"
        method = found.get("token_endpoint_auth_method") or usual
        lacks_secret = method != "none" and not secret
        if not isinstance(secret, str) or method not in _METHODS or lacks_secret:
            words = "has an authorization server that registered gemdeck in an unusable way"
            raise AuthError(words, _REGISTER)
        if max(len(client_id), len(secret)) > MAX_CLIENT_ID:
            raise AuthError("has an authorization server that sent a client id that is too long")
        ends_at = found.get("client_secret_expires_at")
        ends_at = ends_at if secret and isinstance(ends_at, int | float) else 0
        own: dict[str, str | float] = {"client_secret": secret, "secret_ends_at": ends_at}
        own |= {"auth_method": method, "redirect_uri": redirect_uri, "is_registered": True}
        return self._record(place, client_id, **own)

    async def _ask_to_register(self, place: SignInPlace, wanted: Mapping[str, Any]) -> AuthResponse:
        headers = {"content-type": "application/json", "accept": "application/json"}
        body = json.dumps(wanted).encode()
        return await self.send("POST", place.registration_endpoint, headers, body)

    def _record(self, place: SignInPlace, client_id: str, **more: str | float) -> SignInRecord:
        own = {"server": canonical_address(self.definition.endpoint.url), "client_id": client_id}
        own["account"] = self.definition.endpoint.sign_in.oauth.account
        return SignInRecord.model_validate({**own, **_kept_of(place), **more})


def _kept_of(place: SignInPlace) -> dict[str, str | bool | None]:
    """Return what a record keeps of the place of a sign-in, which asks for all that was lacking."""
    names = ("issuer", "resource", "scope", "token_endpoint", "revocation_endpoint")
    kept = {name: getattr(place, name) for name in names}
    return kept | {"names_resource": place.names_resource, "lacking": None}


async def unattended_token(
    oauth: OAuthSettings, send: Send, place: SignInPlace, client: SignInRecord
) -> SignInRecord:
    """Get a token for a client of the settings, without a browser; return the client with it.

    Raises:
        AuthError: If there is none.
    """
    if oauth.grant_type is GrantType.IDENTITY_ASSERTION:
        assertion = await _identity_assertion(oauth, send, place, client)
        form = {"grant_type": JWT_BEARER_GRANT_TYPE, "assertion": assertion}
    else:
        form = {"grant_type": "client_credentials", **await _signed(oauth, place, client)}
    form |= {"resource": place.resource, "scope": place.scope}
    return await ask_for_token(send, client, {**form, "audience": " ".join(oauth.audiences)})


async def _identity_assertion(
    oauth: OAuthSettings, send: Send, place: SignInPlace, client: SignInRecord
) -> str:
    """Have the identity provider vouch for the user at an authorization server (RFC 8693)."""
    token, url = oauth.identity_token, oauth.identity_token_url
    if token is not None and oauth.identity_token_file and not url:
        return token.get_secret_value()  # of a workload, for the authorization server (RFC 7523)
    if token is None or not url:
        advice = "Set oauth.identityTokenFile, or oauth.identityToken and oauth.identityTokenUrl."
        raise AuthError("needs an identity token for sign-in", advice)
    checked_endpoint(url, client.server, "identity provider", is_own=True)
    client_id = oauth.identity_client_id or client.client_id
    change = {"client_id": client_id, "client_secret": "", "auth_method": "none"}
    provider = client.model_copy(update={**change, "token_endpoint": url})
    form = {
        "grant_type": _TOKEN_EXCHANGE,
        "requested_token_type": f"{_TOKEN_TYPE}id-jag",
        "audience": place.issuer,
        "resource": place.resource,
        "subject_token": token.get_secret_value(),
        "subject_token_type": f"{_TOKEN_TYPE}id_token",
        "scope": place.scope,
    }
    return (await ask_for_token(send, provider, form, kind="n_a")).access_token


async def _signed(oauth: OAuthSettings, place: SignInPlace, client: SignInRecord) -> dict[str, str]:
    """Return the client's signature in place of a secret (private_key_jwt), if it has a key."""
    if oauth.private_key is None:
        return {}
    parameters = SignedJWTParameters(
        issuer=client.client_id,
        subject=client.client_id,
        signing_key=oauth.private_key.get_secret_value(),
        signing_algorithm=oauth.signing_algorithm,
    )
    try:
        assertion = await parameters.create_assertion_provider()(place.issuer)
    except Exception as error:  # noqa: BLE001 - its text may hold the key
        reason = f"got no token: the private key cannot sign ({type(error).__name__})"
        advice = "Check oauth.privateKey (PEM) and oauth.signingAlgorithm."
        raise AuthError(reason, advice) from None
    return {"client_assertion_type": _JWT_CLIENT, "client_assertion": assertion}


def _with_query(url: str, parameters: Mapping[str, str]) -> str:
    """Add the parameters that say something to an address, whose own stay."""
    parts = urlsplit(url)
    given = {name: value for name, value in parameters.items() if value}
    own = [pair for pair in parse_qsl(parts.query) if pair[0] not in given]
    query = urlencode([*own, *given.items()])
    whole = urlunsplit((parts.scheme, parts.netloc, parts.path, query, ""))
    if len(whole) > 2 * MAX_ENDPOINT:
        raise AuthError("has an address for sign-in that is too long")
    return whole


def _check_redirect(redirect: Redirect, place: SignInPlace) -> None:
    """Refuse an answer of another authorization server (RFC 9207), and one without a code."""
    if redirect.iss and redirect.iss != place.issuer:
        raise AuthError("got a response from the wrong authorization server")
    if place.names_itself and not redirect.iss:
        advice = "If you pasted a code, paste the whole address."
        raise AuthError("got a response that does not name its authorization server", advice)
    if redirect.error:
        said = f"{redirect.error}: {redirect.description}".strip(": ")
        kind = DeclinedError if redirect.error == "access_denied" else AuthError
        words = f"did not grant access: {clipped(said)}"
        if (about := about_resource(redirect.error, said)) is not None:
            raise about(words, LEAVE_OUT)
        raise kind(words)
    if not redirect.code:
        raise AuthError("got a response without a code")


@dataclass(eq=False, repr=False)
class PersonAsker:
    """Asks the person about one sign-in; see `AskPerson`.

    Attributes:
        definition: The server.
        desk: Asks.
        open_url: Opens an address in the browser.
        kept: Where tokens are kept, as shown.
        before: The issuer of the last sign-in, or empty.
        is_away: Whether the browser was sent to the authorization server, and did not come back.
    """

    definition: ServerDefinition
    desk: Desk
    open_url: OpenUrl
    kept: str
    before: str = ""

    def __post_init__(self) -> None:
        self.is_away = False

    async def __call__(self, consent: Consent) -> Redirect:
        """Ask; the browser's answer or the person's ends the question."""
        request = self._request(consent)
        self._limit, self._pasted = asyncio.timeout(None), Redirect()

        async def check(reply: Reply) -> SignInRequest | None:
            problem = await self._take(reply, request, consent)
            return replace(request, problem=problem) if problem else None

        asking = asyncio.create_task(self.desk.ask(request, check))
        back = consent.listener.answer if consent.listener is not None else None
        try:
            async with self._limit:
                waits: list[asyncio.Future[Any]] = [asking, *((back,) if back else ())]
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            reason = f"was not signed in within {PATIENCE / 60:.0f} minutes"
            raise AuthError(reason, "Try again.") from None
        finally:
            if not asking.done():
                asking.cancel()
                await asyncio.wait({asking})
        if back is not None and back.done():
            self.is_away = False
            return back.result()
        try:
            reply = asking.result()
        except WithdrawnError as error:
            words = f"requires sign-in, which was not possible: {str(error).rstrip('.')}"
            raise DeclinedError(words) from None
        if not reply.allows:
            # A page that was opened may have said that it does not know the client.
            kind = DeclinedError if self._limit.when() is None else AuthError
            raise kind("is not signed in: you cancelled")
        self.is_away = False
        return self._pasted

    async def _take(self, reply: Reply, request: SignInRequest, consent: Consent) -> str:
        """Do what was answered; return why the question stays, or an empty string."""
        listener = consent.listener
        if listener is None:
            return ""
        if self._limit.when() is None:
            self._limit.reschedule(asyncio.get_running_loop().time() + PATIENCE)
        if reply.text is not None:
            try:
                self._pasted = listener.read_pasted(reply.text)
            except AuthError as error:
                return f"The pasted text {error.reason}."
            return ""
        self.is_away = True
        return WAITING if await self.open_url(request.url) else NO_BROWSER

    def _request(self, consent: Consent) -> SignInRequest:
        """Say what is asked for, in words that are safe to show."""
        place, definition = consent.place, self.definition
        try:
            address = check_address(consent.url or place.token_endpoint)
        except AddressError as error:
            raise AuthError(f"has an address for sign-in that is refused: {error}") from None
        scopes = place.scope.split()
        if len(scopes) > MAX_SCOPES:
            raise AuthError(f"requests {len(scopes)} scopes at once, which is refused")
        account = sanitize_line(definition.endpoint.sign_in.oauth.account)
        account = f"Sign in with the account that you call {account}." if account else ""
        notes = list(filter(None, (account, consent.note, address.warning)))
        if self.before and self.before != place.issuer:
            known = sanitize_line(urlsplit(self.before).hostname or self.before)
            notes.append(f"The sign-in was at {known} until now; the server names another place.")
        page, issuer, token = map(_host, (address.url, place.issuer, place.token_endpoint))
        if consent.url and page != issuer:
            words = f"The page is at {page}, its issuer at {issuer}"
            notes.append(f"{words}: continue only if you know that they belong together.")
        return SignInRequest(
            id=self.desk.new_id(),
            server=definition.id,
            address=sanitize_line(shown_target(definition), MAX_FACT),
            host=address.host,
            shown_host=address.shown_host,
            issuer=sanitize_line(place.issuer, MAX_FACT),
            token_host=token if token != page else "",
            resource=sanitize_line(place.resource, MAX_FACT),
            scopes=tuple(sanitize_line(scope, MAX_SCOPE) for scope in scopes),
            url=address.url if consent.url else "",
            notes=tuple(notes),
            kept=self.kept,
        )


def _host(url: str) -> str:
    """Return the host and port of an address, as shown."""
    return sanitize_line(urlsplit(canonical_address(url)).netloc, MAX_FACT)
