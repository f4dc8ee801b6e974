"""The parts of a server's entry in the settings that say how to sign in to it."""

from enum import StrEnum
from typing import Final

from pydantic import Field, SecretStr

from tui.model.sections.settings_types import Flag, Section, WebAddress, Words

DEFAULT_REDIRECT: Final = "http://localhost:7777/oauth/callback"
"""The default redirect URI of a sign-in."""


class AuthProviderType(StrEnum):
    """Where the credentials for a network server come from."""

    DYNAMIC_DISCOVERY = "dynamic_discovery"
    GOOGLE_CREDENTIALS = "google_credentials"
    SERVICE_ACCOUNT_IMPERSONATION = "service_account_impersonation"


class GrantType(StrEnum):
    """How to get a token: in a browser, as the client itself, or with an enterprise's word."""

    AUTHORIZATION_CODE = "authorization_code"
    CLIENT_CREDENTIALS = "client_credentials"
    IDENTITY_ASSERTION = "identity_assertion"


class OAuthSettings(Section):
    """``oauth`` of a server: how to sign in."""

    enabled: Flag | None = Field(
        None, description="Whether gemdeck may sign in. If not set, it may."
    )
    client_id: str | None = Field(
        None,
        description="OAuth client ID. If not set, gemdeck registers itself if possible. The https "
        "address of a client metadata document counts where the server takes one.",
    )
    client_secret: SecretStr | None = Field(
        None, description="OAuth client secret. Better a variable, such as $MY_SECRET."
    )
    authorization_url: WebAddress | None = Field(
        None, description="Authorization endpoint. Discovered if not set."
    )
    token_url: WebAddress | None = Field(None, description="Token endpoint. Discovered if not set.")
    issuer: WebAddress | None = Field(
        None, description="Issuer identifier of the authorization server."
    )
    registration_url: WebAddress | None = Field(
        None, description="Endpoint for dynamic client registration."
    )
    scopes: Words = Field((), description="Scopes to request.")
    audiences: Words = Field((), description="Audiences the token is meant for.")
    redirect_uri: WebAddress = Field(
        DEFAULT_REDIRECT, description="Address on this machine that the browser returns to."
    )
    token_param_name: str | None = Field(
        None, description="Query parameter that carries the token on SSE addresses."
    )
    grant_type: GrantType = Field(
        GrantType.AUTHORIZATION_CODE,
        description="How to get a token: a sign-in in the browser, client credentials, or the word "
        "of an enterprise's identity provider.",
    )
    private_key: SecretStr | None = Field(
        None,
        description="Private key (PEM) that signs the client's assertions (private_key_jwt) for "
        "client_credentials, instead of a secret. Better a variable, such as $MY_KEY.",
    )
    signing_algorithm: str = Field("RS256", description="Algorithm of `privateKey`.")
    identity_token: SecretStr | None = Field(
        None,
        description="For identity_assertion: your ID token at your enterprise's identity "
        "provider. Better a variable, such as $MY_ID_TOKEN.",
    )
    identity_token_url: WebAddress | None = Field(
        None, description="For identity_assertion: the identity provider's token endpoint."
    )
    identity_client_id: str | None = Field(
        None, description="For identity_assertion: the client ID there, if it is another one."
    )
