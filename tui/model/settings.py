"""The schema of ``settings.json``: what each key means, which values it takes, its default.

The keys are those of gemini-cli's MCP settings, so that an existing file serves both programs,
and gemdeck's own under ``gemdeck``. The descriptions are published as JSON Schema for editors.
"""

from enum import StrEnum
from typing import Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator
from pydantic.alias_generators import to_camel

from tui.model.limits import DEFAULT_RESULT_SIZE
from tui.model.servers import ProtocolEra
from tui.model.settings_types import (
    Flag,
    Headers,
    ModelName,
    Number,
    Transport,
    TransportName,
    Variables,
    WebAddress,
    WholeNumber,
    Word,
    Words,
)

DEFAULT_MODEL: Final = "gemini-3.8-flash"
"""The model that answers where the settings name none."""

DEFAULT_TIMEOUT: Final = 600_000
"""Milliseconds that a call may take where a server's entry does not say."""

DEFAULT_REDIRECT: Final = "http://localhost:7777/oauth/callback"
"""Where the browser returns to after a sign-in, unless a server's entry says otherwise."""

MAX_TIMEOUT: Final = 2_147_483_647
"""Longest timeout in milliseconds: the longest that JavaScript readers of the file can wait."""

MAX_TOOL_CALLS: Final = 1_000
"""Highest number of calls in one turn that can be set."""

MIN_RESULT_SIZE: Final = 1_000
"""Lowest limit on the text of one result that can be set, in characters."""

MAX_RESULT_SIZE: Final = 1_000_000
"""Highest limit on the text of one result that can be set, in characters."""

MAX_IDLE_TIMEOUT: Final = 3_600
"""Longest silence of a stream that can be set, in seconds."""

MAX_PATTERNS: Final = 1_000
"""Most rules on tools in one list."""

MAX_INSTRUCTION: Final = 100_000
"""Longest system instruction, in characters."""

_EMPTY_IS_ABSENT: Final = ("command", "url", "httpUrl", "tcp")


class AuthProviderType(StrEnum):
    """Where the credentials for a network server come from."""

    DYNAMIC_DISCOVERY = "dynamic_discovery"
    GOOGLE_CREDENTIALS = "google_credentials"
    SERVICE_ACCOUNT_IMPERSONATION = "service_account_impersonation"


class _Section(BaseModel):
    """One object of the settings: camelCase keys, frozen; unknown keys are left out.

    The published schema calls unknown keys wrong, so that an editor marks a misspelt one.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
        json_schema_extra={"additionalProperties": False},
    )

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, data: Any) -> Any:  # noqa: ANN401  (pydantic: anything can come)
        """Take null for a key that is not there."""
        if not isinstance(data, dict):
            return data
        return {key: value for key, value in data.items() if value is not None}


class OAuthSettings(_Section):
    """``oauth`` of a server: how gemdeck signs in to it."""

    enabled: Flag | None = Field(
        None,
        description="Whether to sign in when connecting. Without it, sign-in starts when the "
        "server asks for it.",
    )
    client_id: str | None = Field(
        None, description="OAuth client id. Without one, gemdeck registers itself if it can."
    )
    client_secret: SecretStr | None = Field(
        None, description="OAuth client secret. Name a variable, such as $MY_SECRET, instead."
    )
    authorization_url: WebAddress | None = Field(
        None, description="Authorization endpoint; discovered where it is left out."
    )
    token_url: WebAddress | None = Field(
        None, description="Token endpoint; discovered where it is left out."
    )
    issuer: WebAddress | None = Field(
        None, description="Issuer identifier of the authorization server."
    )
    registration_url: WebAddress | None = Field(
        None, description="Endpoint for dynamic client registration."
    )
    scopes: Words = Field((), description="Scopes to ask for.")
    audiences: Words = Field((), description="Audiences the token is meant for.")
    redirect_uri: WebAddress = Field(
        DEFAULT_REDIRECT, description="Where the browser returns to; on this machine."
    )
    token_param_name: str | None = Field(
        None, description="Query parameter that carries the token on SSE addresses."
    )


class ServerSettings(_Section):
    """One entry of ``mcpServers``: exactly one of `command`, `url` and `httpUrl`."""

    command: Word | None = Field(
        None, description="Program to start; the server speaks MCP over its standard streams."
    )
    args: Words = Field(
        (), description="Arguments of the program. No shell reads them.", repr=False
    )
    env: Variables = Field(
        default_factory=dict,
        description="Environment variables for the program, added to a small safe set.",
        repr=False,
    )
    cwd: Word | None = Field(None, description="Working folder of the program.")
    url: WebAddress | None = Field(
        None,
        description="Address of a network server. `type` names the transport; without it, "
        "streamable HTTP is tried first and SSE after it.",
        repr=False,
    )
    http_url: WebAddress | None = Field(
        None,
        description="Address of a streamable HTTP server: an older spelling of `url` with "
        '`"type": "http"`. Wins over `url`.',
        repr=False,
    )
    type: Transport | None = Field(None, description="Transport of `url`.")
    transport_type: Transport | None = Field(None, description="Another spelling of `type`.")
    tcp: str | None = Field(None, description="Accepted and not supported: a WebSocket address.")
    headers: Headers = Field(
        default_factory=dict, description="HTTP headers sent with every request.", repr=False
    )
    timeout: Number = Field(
        DEFAULT_TIMEOUT,
        gt=0,
        le=MAX_TIMEOUT,
        allow_inf_nan=False,
        description="Milliseconds that a request may take.",
    )
    trust: Flag = Field(
        False,
        description="Run this server's tools without asking. Has no effect in a project's file.",
    )
    description: str = Field("", description="A word of your own, shown beside the server.")
    include_tools: Words | None = Field(
        None, description="Offer only these tools to the model. All where it is left out."
    )
    exclude_tools: Words = Field(
        (), description="Never offer these tools to the model. Wins over `includeTools`."
    )
    oauth: OAuthSettings | None = Field(None, description="How to sign in.")
    auth_provider_type: AuthProviderType = Field(
        AuthProviderType.DYNAMIC_DISCOVERY,
        description="Where credentials come from: the server's own OAuth, Google Application "
        "Default Credentials, or an impersonated service account.",
    )
    target_audience: str | None = Field(
        None, description="For service_account_impersonation: the audience of the ID token."
    )
    target_service_account: str | None = Field(
        None, description="For service_account_impersonation: the account to act as."
    )

    @model_validator(mode="before")
    @classmethod
    def _drop_empty(cls, data: Any) -> Any:  # noqa: ANN401  (pydantic: anything can come)
        """Take an empty command or address for a key that is not there."""
        if not isinstance(data, dict):
            return data
        return {key: data[key] for key in data if data[key] != "" or key not in _EMPTY_IS_ABSENT}

    @model_validator(mode="after")
    def _one_way_to_reach_it(self) -> Self:
        """Hold the rules that span several keys."""
        network = self.http_url or self.url
        if self.command and network:
            raise ValueError("has a command and an address; keep one of them")
        if not self.command and not network:
            raise ValueError(
                "tcp is not supported; use command, url or httpUrl"
                if self.tcp
                else "needs one of command, url and httpUrl"
            )
        if self.type and self.transport_type and self.type != self.transport_type:
            raise ValueError("type and transportType contradict each other; keep one of them")
        self._check_provider()
        return self

    def _check_provider(self) -> None:
        match self.auth_provider_type:
            case AuthProviderType.GOOGLE_CREDENTIALS if not (self.oauth and self.oauth.scopes):
                raise ValueError("google_credentials needs oauth.scopes")
            case AuthProviderType.SERVICE_ACCOUNT_IMPERSONATION if not (
                self.target_audience and self.target_service_account
            ):
                raise ValueError(
                    "service_account_impersonation needs targetAudience and targetServiceAccount"
                )

    @property
    def named_transport(self) -> TransportName | None:
        """The transport as named under either spelling."""
        return self.type or self.transport_type


class McpSettings(_Section):
    """``mcp``: rules over all servers."""

    server_command: str | None = Field(
        None, description="Command line of one more server, which is then called `mcp`."
    )
    allowed: Words | None = Field(
        None, description="If set, only servers with these names are started."
    )
    excluded: Words = Field((), description="Servers with these names are never started.")


class ModelSettings(_Section):
    """``model`` as gemini-cli writes it."""

    name: ModelName | None = Field(
        None, description="Model that answers, unless `gemdeck.model` names another."
    )


class ToolPattern(_Section):
    """One rule on tools. ``*`` stands for any characters, within the one name it is part of."""

    server: str = Field("*", min_length=1, max_length=200, description="Name of the server.")
    tool: str = Field("*", min_length=1, max_length=200, description="Name of the tool.")


class GemdeckSettings(_Section):
    """``gemdeck``: keys of gemdeck's own."""

    model: ModelName = Field(DEFAULT_MODEL, description="Model that answers.")
    max_tool_calls: WholeNumber = Field(
        50, ge=1, le=MAX_TOOL_CALLS, description="Tool calls that one turn may make."
    )
    max_result_size: WholeNumber = Field(
        DEFAULT_RESULT_SIZE,
        ge=MIN_RESULT_SIZE,
        le=MAX_RESULT_SIZE,
        description="Characters of text of one tool result that the model gets: of more, the "
        "beginning and the end.",
    )
    api_version: str = Field(
        "v1beta",
        pattern=r"^v[0-9]{1,2}((alpha|beta)[0-9]{0,2})?$",
        description="Version of the Gemini API.",
    )
    idle_timeout: Number = Field(
        120,
        gt=0,
        le=MAX_IDLE_TIMEOUT,
        allow_inf_nan=False,
        description="Seconds of silence after which an answer counts as cut off.",
    )
    thoughts: Flag = Field(True, description="Show summaries of the model's thinking.")
    system_instruction: str = Field(
        "", max_length=MAX_INSTRUCTION, description="Standing orders for the model."
    )
    protocols: dict[str, ProtocolEra] = Field(
        default_factory=dict,
        description="How to speak to a server, by its name: `handshake` forces the revisions up "
        "to 2025-11-25 and `stateless` the one of 2026-07-28; `auto` finds out.",
    )
    always_allow: tuple[ToolPattern, ...] = Field(
        (),
        max_length=MAX_PATTERNS,
        description="Tools that run without asking. Has no effect in a project's file.",
    )
    always_deny: tuple[ToolPattern, ...] = Field(
        (),
        max_length=MAX_PATTERNS,
        description="Tools that never run and that the model does not see. Wins over every "
        "permission; those of all files add up.",
    )


class Settings(_Section):
    """A whole ``settings.json``. Keys of other programs may stand beside these."""

    model_config = ConfigDict(
        title="gemdeck settings", json_schema_extra={"additionalProperties": True}
    )

    mcp_servers: dict[str, ServerSettings] = Field(
        default_factory=dict, description="The MCP servers, by name."
    )
    mcp: McpSettings = Field(default_factory=McpSettings, description="Rules over all servers.")
    gemdeck: GemdeckSettings = Field(
        default_factory=GemdeckSettings, description="Keys of gemdeck's own."
    )
    model: ModelSettings = Field(
        default_factory=ModelSettings, description="The model, as gemini-cli writes it."
    )
