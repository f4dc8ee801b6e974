"""The schema of ``settings.json``: keys, values, defaults and descriptions.

The keys are those of gemini-cli's MCP settings, so that an existing file serves both programs,
and gemdeck's own under ``gemdeck``.
"""

from enum import StrEnum
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    SecretStr,
    model_validator,
)
from pydantic.alias_generators import to_camel

from tui.model import settings_rules as rules
from tui.model.chat import Usage
from tui.model.consent import MAX_CONDITIONS, Condition, ConditionKind, exact_text
from tui.model.input.addresses import check_key_address
from tui.model.servers import ProtocolEra, StartMode, Transport
from tui.model.settings_rules import (
    ANY,
    DEFAULT_MAX_TOOLS,
    DEFAULT_RESULT_SIZE,
    DEFAULT_TOOL_SHARE,
    MAX_PRICE,
    MAX_WAIT,
    check_model_name,
    check_service_name,
    matches,
)

DEFAULT_REDIRECT: Final = "http://localhost:7777/oauth/callback"
"""The default redirect URI of a sign-in."""

MAX_MODELS: Final = 200
"""Most models with a price."""

MAX_CONTEXT: Final = 100_000_000
"""Largest context of a model, in tokens."""

MILLION: Final = 1_000_000

DOLLARS: Final = "USD"
"""The currency of list prices."""

MAX_KEEP_DAYS: Final = 36_500
"""Largest value of `sessions.keepDays`."""

DEFAULT_TIMEOUT: Final = 600_000
"""Default timeout of a request, in milliseconds."""

MAX_TOOL_CALLS: Final = 1_000
"""Largest value of `maxToolCalls`."""

MAX_OFFERED_TOOLS: Final = 10_000
"""Largest value of `maxTools`."""

MAX_TOOL_SHARE: Final = 50
"""Largest value of `maxToolShare`, in percent."""

MIN_RESULT_SIZE: Final = 1_000
"""Smallest value of `maxResultSize`, in characters."""

MAX_RESULT_SIZE: Final = 1_000_000
"""Largest value of `maxResultSize`, in characters."""

MAX_PROFILES: Final = 100
"""Most profiles."""

PROFILE_NAME: Final = r"^\w[\w .-]{0,39}$"
"""What a profile can be called: words of any script, in one line."""

MAX_INSTRUCTION: Final = 100_000
"""Longest system instruction, in characters."""

MAX_CONTEXT_NAMES: Final = 20
"""Most names in `context.fileName`."""

MAX_PATTERNS: Final = 1_000
"""Most names in a list, or rules in `alwaysAllow` or `alwaysDeny`."""

_EMPTY_IS_ABSENT: Final = ("command", "url", "httpUrl", "tcp")


Flag = Annotated[bool, BeforeValidator(rules.read_flag)]
Word = Annotated[str, BeforeValidator(rules.read_word), AfterValidator(rules.check_nul)]
WholePath = Annotated[Word, AfterValidator(rules.check_whole_path)]
Words = Annotated[
    tuple[Word, ...], BeforeValidator(rules.check_few), BeforeValidator(rules.read_words)
]
Names = Annotated[
    tuple[Word, ...],
    Field(max_length=MAX_PATTERNS),
    BeforeValidator(rules.check_few),
    BeforeValidator(rules.read_words),
]
NamePattern = Annotated[str, Field(min_length=1, max_length=200)]
Variables = Annotated[
    dict[str, Word], BeforeValidator(rules.check_few), AfterValidator(rules.check_variables)
]
Headers = Annotated[
    dict[str, Word], BeforeValidator(rules.check_few), AfterValidator(rules.check_headers)
]
HiddenHeaders = Annotated[
    Headers, PlainSerializer(lambda headers: dict.fromkeys(headers, "**********"))
]
WebAddress = Annotated[str, AfterValidator(rules.check_web_address)]
Number = Annotated[float, BeforeValidator(rules.read_number)]
Price = Annotated[float, Field(ge=0, le=MAX_PRICE), BeforeValidator(rules.read_number)]
WholeNumber = Annotated[int, BeforeValidator(rules.read_number)]
NamedTransport = Annotated[Transport, BeforeValidator(rules.read_transport)]
ContextName = Annotated[str, AfterValidator(rules.check_context_name)]
ContextNames = Annotated[
    tuple[ContextName, ...], Field(max_length=MAX_CONTEXT_NAMES), BeforeValidator(rules.read_words)
]
ModelName = Annotated[str, AfterValidator(check_model_name)]


class Section(BaseModel):
    """One object of the settings: camelCase keys, frozen; unknown keys are left out."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, data: Any) -> Any:  # noqa: ANN401  (pydantic: anything can come)
        """Treat null as a missing key."""
        if not isinstance(data, dict):
            return data
        return {key: value for key, value in data.items() if value is not None}


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


OAUTH_SECRETS: Final = ("clientSecret", "privateKey", "identityToken")
"""Keys of ``oauth`` whose values are secrets."""


class OAuthSettings(Section):
    """``oauth`` of a server: how to sign in."""

    enabled: Flag | None = None
    """Whether gemdeck may sign in. If not set, it may."""
    account: str = Field("", max_length=100)
    """Your name for the account, where several entries have one address: each account signs in by
    itself. A project's file cannot name one.
    """
    client_id: str | None = None
    """OAuth client ID. If not set, gemdeck registers itself if possible. For servers that support
    it, the https address of a client metadata document.
    """
    client_secret: SecretStr | None = None
    """OAuth client secret. Prefer a reference: `${keyring:NAME}` or `$MY_SECRET`."""
    authorization_url: WebAddress | None = None
    """Authorization endpoint. Discovered if not set."""
    token_url: WebAddress | None = None
    """Token endpoint. Discovered if not set."""
    issuer: WebAddress | None = None
    """Issuer identifier of the authorization server."""
    registration_url: WebAddress | None = None
    """Endpoint for dynamic client registration."""
    scopes: Words = ()
    """Scopes to request."""
    audiences: Words = ()
    """Audiences of the token."""
    resource: Annotated[Flag, BeforeValidator(lambda value: value or False)] = True
    """Whether to send the server's address as `resource` (RFC 8707). Many Entra ID tenants need
    `false`.
    """
    redirect_uri: WebAddress = DEFAULT_REDIRECT
    """Address on this computer that the browser is redirected to."""
    token_param_name: str | None = None
    """Query parameter for the token, for SSE addresses."""
    grant_type: GrantType = GrantType.AUTHORIZATION_CODE
    """How to get a token: a sign-in in the browser, client credentials, or an assertion of your
    enterprise's identity provider.
    """
    private_key: SecretStr | None = None
    """For client_credentials: private key (PEM) that signs client assertions (private_key_jwt),
    instead of a secret. Prefer a variable, such as $MY_KEY.
    """
    signing_algorithm: str = "RS256"
    """Algorithm of `privateKey`."""
    identity_token: SecretStr | None = None
    """For identity_assertion: your ID token from your enterprise's identity provider. Prefer a
    variable, such as $MY_ID_TOKEN.
    """
    identity_token_file: WholePath | None = None
    """For identity_assertion: a file with the ID token, such as a workload's, read at each sign-in.
    Without `identityTokenUrl` its content is the assertion.
    """
    identity_token_url: WebAddress | None = None
    """For identity_assertion: the identity provider's token endpoint."""
    identity_client_id: str | None = None
    """For identity_assertion: the client ID at the identity provider, if it differs."""

    def secrets(self) -> dict[str, SecretStr]:
        """Return the secrets that are given, by the names of their attributes."""
        return {name: value for name, value in self if isinstance(value, SecretStr)}


class TlsSettings(Section):
    """``tls`` of a server: files in PEM format."""

    model_config = ConfigDict(extra="forbid")  # a slip must not leave one out

    ca_file: WholePath | None = None
    """CA certificates to trust for this server, in addition to the system's."""
    cert_file: WholePath | None = None
    """Client certificate."""
    key_file: WholePath | None = None
    """Unencrypted key of the client certificate, if `certFile` does not contain it."""

    @model_validator(mode="after")
    def _check_key(self) -> Self:
        if self.key_file and not self.cert_file:
            raise ValueError("keyFile needs certFile, which is missing")
        return self


def _checked_pattern(name: str) -> str:
    start = name.removesuffix(ANY)
    return name if start != name and not start else check_model_name(start) and name


class ModelPrice(Section):
    """The prices of one model, for a million tokens each."""

    input: Price
    """Price of a million tokens sent."""
    cached: Price | None = None
    """Price of a million cached tokens. If not set, the price of `input`."""
    output: Price
    """Price of a million output tokens, including thoughts."""


class PriceSettings(Section):
    """``gemdeck.prices``."""

    currency: str = Field(DOLLARS, pattern=r"^[A-Za-z$€£¥]{1,8}$")
    """Currency shown after a cost."""
    models: dict[Annotated[str, AfterValidator(_checked_pattern)], ModelPrice] = Field(
        default_factory=dict, max_length=MAX_MODELS
    )
    """Prices by model name, or by a prefix followed by `*`. A full name is preferred, then the
    longest prefix. Without one, the service's list price applies if the currency is `USD`.
    """

    def cost(self, model: str, usage: Usage, listed: float | None = None) -> float | None:
        """Return what a request has cost, or None if the model has no price.

        Args:
            model: Its name.
            usage: What the service counted.
            listed: What it costs by the service's list price, in US dollars.
        """
        fitting = [name for name in self.models if name[-1] == ANY and model.startswith(name[:-1])]
        name = model if model in self.models else max(fitting, key=len, default="")
        if (price := self.models.get(name)) is None:
            return listed if self.currency == DOLLARS else None
        cached = price.input if price.cached is None else price.cached
        asked, said = max(0, usage.prompt - usage.cached), usage.output + usage.thoughts
        spent = asked * price.input + usage.cached * cached + said * price.output
        return spent / MILLION

    def words(self, cost: float | None) -> str:
        """Write a cost; nothing if it is not known or nothing was spent."""
        if not cost:
            return ""
        digits = 2 if cost >= 1 else 4
        least = 10**-digits
        return f"{'<' if cost < least else ''}{max(cost, least):,.{digits}f} {self.currency}"


class ServiceModel(Section):
    """What the user says of a model of a service."""

    context: WholeNumber = Field(0, ge=0, le=MAX_CONTEXT)
    """Size of its context in tokens, if the service does not report it; 0 if unknown."""
    options: dict[str, Any] = Field(default_factory=dict, max_length=MAX_PATTERNS)
    """Additional fields for each request to it, as documented by the service."""


class ServiceSettings(Section):
    """One of ``gemdeck.services``: a service that speaks chat completions."""

    model_config = ConfigDict(extra="forbid")  # a slip must not leave the key or a header out

    url: Annotated[str, AfterValidator(check_key_address)]
    """Address of the service, before `/chat/completions`: https, or http on this computer."""
    key: SecretStr | None = None
    """Its API key. Prefer a reference: `${keyring:NAME}` or `$MY_KEY`. If not set, the key that
    `gemdeck key set --service NAME` stored.
    """
    headers: HiddenHeaders = Field(default_factory=dict, repr=False)
    """Additional HTTP headers. `${keyring:NAME}` inserts a secret."""
    models: dict[ModelName, ServiceModel] = Field(default_factory=dict, max_length=MAX_MODELS)
    """Settings of its models, by their names on the service."""


class SessionSettings(Section):
    """``gemdeck.sessions``: which conversations are kept."""

    save: Flag = True
    """Save sessions, so that you can resume them."""
    keep_days: Number = Field(30, ge=0, le=MAX_KEEP_DAYS)
    """Days without a change after which a saved session is deleted; 0 keeps all."""


DEFAULT_MODEL: Final = "gemini-3.8-flash"
"""The default model."""


class SandboxSettings(Section):
    """``sandbox`` of a server or of all: what it gets beyond the system and the opened folder."""

    model_config = ConfigDict(extra="forbid")  # a slip must not go unnoticed

    read: Words = ()
    """Files and folders it can read."""
    write: Words = ()
    """Files and folders it can read and change."""
    network: Annotated[bool, BeforeValidator(rules.read_network)] = False
    """Whether it has the network, this computer's own services included: `true` or `false`; hosts
    cannot be allowed by name.
    """
    env: Names = ()
    """Names of your environment variables that it gets although they look secret. Has no effect
    in a project's file.
    """


SandboxChoice = Annotated[SandboxSettings | None, BeforeValidator(rules.read_sandbox)]
"""A sandbox; None where it is not set, or set to none."""


MAX_TIMEOUT: Final = 2_147_483_647
"""Longest timeout in milliseconds, the maximum of JavaScript timers."""


MAX_SLEEP_AFTER: Final = 86_400
"""Largest value of `sleepAfter`, in seconds."""


MAX_IDLE_TIMEOUT: Final = 3_600
"""Largest value of `idleTimeout`, in seconds."""


class ServerSettings(Section):
    """One entry of ``mcpServers``: of `httpUrl`, `url` and `command` the first counts."""

    command: Word | None = None
    """Program to start. It speaks MCP over stdin and stdout."""
    args: Words = Field((), repr=False)
    """Arguments of the program. They are not passed through a shell."""
    env: Variables = Field(default_factory=dict, repr=False)
    """Environment variables of the program, in addition to those it inherits."""
    cwd: Word | None = None
    """Working directory of the program."""
    url: WebAddress | None = Field(None, repr=False)
    """Address of a network server. `type` selects the transport; without it, streamable HTTP is
    tried first, then SSE.
    """
    http_url: WebAddress | None = Field(None, repr=False)
    """Address of a streamable HTTP server: an older spelling of `url` with `"type": "http"`.
    Overrides `url`.
    """
    type: NamedTransport | None = None
    """Transport of `url`."""
    transport_type: NamedTransport | None = None
    """Another spelling of `type`."""
    tcp: str | None = None
    """WebSocket address. Accepted but not supported."""
    headers: Headers = Field(default_factory=dict, repr=False)
    """HTTP headers sent with every request."""
    headers_command: Words = Field((), repr=False)
    """Program and arguments, without a shell, that prints additional headers for a network server
    as a JSON object. Runs before connecting, and again after a 401.
    """
    timeout: Number = Field(DEFAULT_TIMEOUT, gt=0, le=MAX_TIMEOUT)
    """Timeout for connecting and for each request, in milliseconds."""
    start: StartMode | None = None
    """`lazy` starts it when it is needed, `eager` with gemdeck. Default: `gemdeck.start`."""
    trust: Flag = False
    """Run this server's tools without asking. Has no effect in a project's file."""
    review_results: Flag = False
    """Show you each result of its tools before the model gets it: pass, shorten or withhold it."""
    description: str = ""
    """Your description, shown on its page."""
    include_tools: Words | None = None
    """Offer only these tools to the model. If not set, all are offered."""
    exclude_tools: Words = ()
    """Never offer these tools to the model. Overrides `includeTools`."""
    sandbox: SandboxChoice = None
    """Sandbox of its program: `true`, or an object with what else it gets. It needs Linux and
    bubblewrap. `false` runs it without. Default: `gemdeck.sandbox`; a project's server has one if
    possible.
    """
    oauth: OAuthSettings | None = None
    """How to sign in."""
    tls: TlsSettings | None = None
    """Certificates for a network server and its sign-in."""
    auth_provider_type: AuthProviderType = AuthProviderType.DYNAMIC_DISCOVERY
    """Where credentials come from: the server's own OAuth, Google Application Default Credentials,
    or an impersonated service account.
    """
    target_audience: str | None = None
    """For service_account_impersonation: the audience of the ID token."""
    target_service_account: str | None = None
    """For service_account_impersonation: the account to act as."""

    @model_validator(mode="before")
    @classmethod
    def _drop_empty(cls, data: Any) -> Any:  # noqa: ANN401  (pydantic: anything can come)
        """Treat an empty command or address as a missing key."""
        if not isinstance(data, dict):
            return data
        return {key: data[key] for key in data if data[key] != "" or key not in _EMPTY_IS_ABSENT}

    @model_validator(mode="after")
    def _check_combinations(self) -> Self:
        """Check the rules that span several keys."""
        if not (self.command or self.url or self.http_url):
            tcp = "tcp is not supported; use command, url or httpUrl"
            raise ValueError(tcp if self.tcp else "needs one of command, url and httpUrl")
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
                words = "needs targetAudience and targetServiceAccount"
                raise ValueError(f"service_account_impersonation {words}")

    @property
    def named_transport(self) -> Transport | None:
        return self.type or self.transport_type


class McpSettings(Section):
    """``mcp``: rules for all servers."""

    server_command: str | None = None
    """Command line of an additional server, named `mcp`."""
    allowed: Words | None = None
    """If set, only these servers start."""
    excluded: Words = ()
    """These servers never start."""


class ModelSettings(Section):
    """gemini-cli's ``model``."""

    name: ModelName | None = None
    """Model to use, unless `gemdeck.model` is set."""
    max_session_turns: WholeNumber | None = None
    """Maximum model requests per run; negative means no limit."""


class ContextSettings(Section):
    """gemini-cli's ``context``."""

    file_name: ContextNames | None = None
    """Names of the context files that the model gets in every turn, from `~/.gemini` and trusted
    projects. Default: GEMINI.md and AGENTS.md. In a project, its own names are added.
    """
    include_directories: Words = ()
    """Additional folders that servers may work in. A project's own folders, if inside its
    repository, are searched for context files only.
    """


class ToolNames(Section):
    """The names of tools. ``*`` matches any characters within a name."""

    server: NamePattern = "*"
    """Name of the server; * matches any characters."""
    tool: NamePattern = "*"
    """Name of the tool; * matches any characters."""

    def matches(self, server: str, tool: str) -> bool:
        """Return whether it is about a tool, by the exact characters of its names."""
        return matches(self.server, server) and matches(self.tool, tool)


class ToolPattern(ToolNames):
    """One rule on tools, or on calls of them with certain arguments."""

    arguments: dict[str, dict[ConditionKind, Any]] = Field(
        default_factory=dict, min_length=1, max_length=MAX_CONDITIONS
    )
    """Conditions on arguments, by name: `{"is": VALUE}`, `{"folder": PATH}`, `{"starts": TEXT}` or
    `{"any": true}`. A rule that allows covers no call with other arguments.
    """

    @model_validator(mode="after")
    def _check_arguments(self) -> Self:
        is_one = all(len(one) == 1 for one in self.arguments.values())
        if not is_one or not all(condition.is_valid for condition in self.conditions):
            raise ValueError("each of the arguments needs one of is, folder, starts and any")
        return self

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return tuple(
            Condition(name, kind, _condition_text(kind, value))
            for name, one in self.arguments.items()
            for kind, value in one.items()
        )

    @property
    def key(self) -> tuple[object, ...]:
        """All that it says: equal for rules that say the same."""
        return self.server, self.tool, self.conditions


class AllowedPattern(ToolPattern):
    """One rule that allows: a key that were left out of it would make it wider."""

    model_config = ConfigDict(extra="forbid")


def _condition_text(kind: ConditionKind, value: object) -> str:
    """Return what a `Condition` has for a value; one that is not valid where it cannot have it."""
    if kind is ConditionKind.IS:
        return exact_text(value)
    return value if isinstance(value, str) else "" if value is True else "\ud800"


class Profile(Section):
    """One of ``gemdeck.profiles``. It leaves out servers and tools, and allows nothing."""

    model_config = ConfigDict(extra="forbid")  # a list by a wrong name would leave nothing out

    description: str = ""
    """Your description, shown where you choose a profile."""
    servers: Names | None = None
    """Servers of the profile. If not set, all."""
    tools: tuple[ToolNames, ...] | None = Field(None, max_length=MAX_PATTERNS)
    """Tools of these servers that the model gets. If not set, all."""

    def includes(self, server: str, tool: str = "") -> bool:
        """Return whether it has a server, or a tool of it, by its name as the server spells it."""
        if self.servers is not None and server not in self.servers:
            return False
        return not tool or self.tools is None or any(p.matches(server, tool) for p in self.tools)


EVERYTHING: Final = Profile()
"""Stands where there is no profile."""

NOTHING: Final = Profile(servers=())
"""Stands for a profile that nobody knows any more."""


class GemdeckSettings(Section):
    """``gemdeck``: gemdeck's own settings."""

    model: ModelName = DEFAULT_MODEL
    """Model to use."""
    max_tool_calls: WholeNumber = Field(50, ge=1, le=MAX_TOOL_CALLS)
    """Maximum tool calls in one turn."""
    max_result_size: WholeNumber = Field(
        DEFAULT_RESULT_SIZE, ge=MIN_RESULT_SIZE, le=MAX_RESULT_SIZE
    )
    """Maximum characters of one tool result for the model. It gets the beginning and the end of a
    longer one, and can read the rest.
    """
    max_tools: WholeNumber = Field(DEFAULT_MAX_TOOLS, ge=1, le=MAX_OFFERED_TOOLS)
    """Maximum tools that the model gets at once, from all servers. It can search for the others and
    load them.
    """
    max_tool_share: Number = Field(DEFAULT_TOOL_SHARE, gt=0, le=MAX_TOOL_SHARE)
    """Maximum share of the model's context for these tools, in percent."""
    server_instructions: Flag = True
    """Send the instructions of servers to the model with every request, marked as coming from the
    servers.
    """
    api_version: str = Field("v1beta", pattern=r"^v[0-9]{1,2}((alpha|beta)[0-9]{0,2})?$")
    """Version of the Gemini API."""
    wait_for_servers: Number = Field(30, ge=0, le=MAX_WAIT)
    """Maximum seconds that a message waits for starting servers."""
    start: StartMode = StartMode.EAGER
    """When servers start, unless their entry sets it: `eager` with gemdeck, `lazy` when they are
    needed.
    """
    sleep_after: Number = Field(600, ge=0, le=MAX_SLEEP_AFTER)
    """Seconds without use after which a lazy server is stopped (asleep); 0 for never."""
    idle_timeout: Number = Field(120, gt=0, le=MAX_IDLE_TIMEOUT)
    """Seconds without data after which an answer is aborted."""
    bell: Flag = True
    """Ring the bell for a question or the end of a long turn while the terminal has no focus."""
    title: Flag = True
    """Show the current state in the terminal's title and the progress in its tab."""
    mouse: Flag = True
    """Use the mouse; `false` leaves selecting and scrolling to the terminal."""
    thoughts: Flag = True
    """Show summaries of the model's thinking."""
    system_instruction: str = Field("", max_length=MAX_INSTRUCTION)
    """Instructions for the model, sent with every request."""
    protocols: dict[str, ProtocolEra] = Field(default_factory=dict)
    """Protocol by server name: `handshake` forces the revisions up to 2025-11-25, `stateless`
    forces 2026-07-28, `auto` detects it.
    """
    environment_allow: Names = ()
    """Names of your environment variables that stdio servers get although they look secret. A
    project's servers get only these and a small default set.
    """
    environment_block: Names = ()
    """Names of your environment variables that no server inherits. The lists of all files apply."""
    keys: dict[str, Words] = Field(default_factory=dict, max_length=MAX_PATTERNS)
    """Your own keys by action id, several in a list or separated by commas. The manual's page on
    keys lists the ids.
    """
    sessions: SessionSettings = Field(default_factory=SessionSettings)
    """Which sessions are kept."""
    services: dict[Annotated[str, AfterValidator(check_service_name)], ServiceSettings] = Field(
        default_factory=dict, max_length=MAX_PATTERNS
    )
    """Model services with a chat completions API, by name; their models are called `NAME/MODEL`.
    Has no effect in a project's file.
    """
    prices: PriceSettings = Field(default_factory=PriceSettings)
    """Prices of models. They override the list prices of the services."""
    max_cost: Number | None = Field(None, gt=0, le=MAX_PRICE)
    """Maximum cost of all model requests per run, in the currency of `prices`. A turn ends before
    its next request once the limit is reached; `-p` refuses models without a known price. Has no
    effect in a project's file.
    """
    profiles: dict[Annotated[str, Field(pattern=PROFILE_NAME)], Profile] = Field(
        default_factory=dict, max_length=MAX_PROFILES
    )
    """Servers and tools for a task, by the name to use with `--profile` and `/profile`. Has no
    effect in a project's file.
    """
    project_hooks: Literal["ask", "ignore"] = "ask"
    """Whether gemdeck asks before running tools that a project's `BeforeTool` hook would check:
    `ask` or `ignore`."""
    sandbox: SandboxChoice = None
    """Sandbox of your servers without an own one; `none`: start them even if gemini-cli is
    configured to use a sandbox.
    """
    always_allow: tuple[AllowedPattern, ...] = Field((), max_length=MAX_PATTERNS)
    """Tools that run without asking. Has no effect in a project's file."""
    always_deny: tuple[ToolPattern, ...] = Field((), max_length=MAX_PATTERNS)
    """Tools that never run and are hidden from the model, or calls with certain arguments.
    Overrides every permission. The rules of all files apply.
    """
