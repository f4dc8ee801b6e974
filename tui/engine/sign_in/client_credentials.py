"""Tokens that nobody has to agree to in a browser: client credentials, and an enterprise's word."""

from typing import Final

from mcp.client.auth.extensions.client_credentials import SignedJWTParameters
from mcp.shared.auth import JWT_BEARER_GRANT_TYPE

from tui.engine.sign_in.discovery import SignInPlace
from tui.engine.sign_in.endpoints import checked_endpoint
from tui.engine.sign_in.sign_in_record import AuthError, SignInRecord
from tui.engine.sign_in.token_endpoint import Send, ask_for_token
from tui.model.sections.sign_in_settings import GrantType, OAuthSettings

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
