"""Server definitions: validated, and ready to start."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from tui.engine.definitions.expansion import Expansion
from tui.engine.files.paths import shown_path
from tui.engine.logs.redaction import (
    has_secret_part,
    masked_address,
    masked_words,
    named_words,
    secrets_in_address,
)
from tui.model.frozen import Frozen
from tui.model.input.arguments import spelled
from tui.model.servers import (
    Failure,
    Origin,
    ProtocolEra,
    SandboxView,
    ServerId,
    ServerStatus,
    StartMode,
    Transport,
)
from tui.model.settings import AuthProviderType, OAuthSettings, TlsSettings
from tui.model.trust import Boxes
from tui.text import sanitize_line

_SMALL: Final = frozenset({"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "USER"})
"""What every program needs to find its home, its language and other programs."""

_PROXIES: Final = frozenset(
    {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY", "SOCKS_PROXY", "NO_PROXY"}
)
_PASSED: Final = frozenset(
    {"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"}
    | {"CURL_CA_BUNDLE", "SSH_AUTH_SOCK", "XAUTHORITY", "AWS_DEFAULT_REGION"}
    | {"GOOGLE_CLOUD_PROJECT"}
)
_WITHHELD: Final = frozenset(
    {"CLIENT_ID", "DB_URI", "CONNECTION_STRING", "DATABASE_URL", "SLACK_WEBHOOK_URL"}
    | {"AZURE_CLIENT_ID", "AZURE_TENANT_ID", "TWILIO_ACCOUNT_SID"}
    | {"GOOGLE_CLOUD_ACCOUNT", "FIREBASE_PROJECT_ID"}
)
_PASSWORD: Final = re.compile(r"//[^\s:@]{0,1024}:[^\s@]{1,1024}@")
_SECRET_VALUE: Final = re.compile(
    r"""
      -----BEGIN\ [A-Z0-9 ]{0,40}(?:PRIVATE\ KEY|CERTIFICATE)
    | :(?://[^\s:@]{0,1024}:[^\s@]{1,1024}@)
    | (?:gh[pousr]|github_pat)_\w{36}
    | AIzaSy[\w-]{33}
    | AKIA[A-Z0-9]{16}
    | eyJ[\w-]*\.[\w-]*\.[\w-]*
    | [sr]k_(?:live|test)_[0-9A-Za-z]{24}
    | xox[abpr]-[\w-]+
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_SHELL_FUNCTION: Final = "()"

AUTHORIZATION: Final = "authorization"
"""The name of what signs requests, in what is masked of a server."""

REVIEW_ADVICE: Final = (
    "Press t to review it (F2, then t), or type “Review this folder” in the palette (Ctrl+P)."
)
"""What the user can do about a server that waits for an answer."""


class Inheritance(Frozen):
    """The user's own rules on what servers inherit; names in capitals.

    Attributes:
        allow: Names that pass whatever they look like. They are all that a project's server gets
            beyond the small set.
        block: Names that never pass, whatever else is said of them.
    """

    allow: frozenset[str] = frozenset()
    block: frozenset[str] = frozenset()

    def narrowed(self, other: "Inheritance") -> "Inheritance":
        """Return what passes by both."""
        return Inheritance(self.allow & other.allow, self.block | other.block)

    def added(self) -> list[str]:
        """Name what a project's server gets beyond the small set, where it is set."""
        return sorted(self.allow - self.block - _SMALL)

    def of(self, environ: Mapping[str, str], *, is_small: bool) -> dict[str, str]:
        """Return what a server inherits; a project's gets the small set."""
        return {
            name: value
            for name, value in environ.items()
            if self._passes(name.upper(), value, is_small=is_small)
        }

    def _passes(self, name: str, value: str, *, is_small: bool) -> bool:
        if name in self.block or value.startswith(_SHELL_FUNCTION):
            return False
        if is_small and not (name in _SMALL | self.allow or name.startswith("LC_")):
            return False
        if name.startswith("GEMINI_CLI_"):
            return True
        if name in _PROXIES:
            address = value if "//" in value else f"//{value}"
            return name in self.allow or not _PASSWORD.search(address)
        if _SECRET_VALUE.search(value):
            return False
        if name in self.allow | _PASSED or name.startswith("GIT_CONFIG_"):
            return True
        is_own = name.startswith("GEMDECK_")
        return not (is_own or name in _WITHHELD or has_secret_part(name))


class Preview(Frozen):
    """The effective values of an entry, computed before it takes effect.

    Attributes:
        shown: The entry with all filled in that its own file or folder chooses: defaults, and
            variables of a ``.env``. References to the user's variables stay.
        whole: The entry with everything filled in. Never for the screen.
        own: The user's variables that it reads, each with its value. Never for the screen.
        brought: The variables that it takes from its folder, each with its value.
        defaults: The defaults that count, each with the name of the variable that is not set.
    """

    shown: Mapping[str, Any] = field(repr=False)
    whole: Mapping[str, Any] = field(repr=False)
    own: Mapping[str, str] = field(repr=False)
    brought: Mapping[str, str] = field(repr=False)
    defaults: tuple[tuple[str, str], ...] = ()


def preview_of(raw: Mapping[str, Any], whole: Expansion, own: Mapping[str, str]) -> Preview:
    """Return the effective values of an entry.

    Args:
        raw: The entry.
        whole: Expands it with all that its references stand for.
        own: The variables of these that are the user's; their values stay off the screen.
    """
    shown = Expansion(whole.environ, own, whole.blank)
    entry_whole, entry_shown = whole.members(raw), shown.members(raw)
    return Preview(
        entry_shown,
        entry_whole,
        {name: value for name, value in whole.filled.items() if name in own},
        {name: value for name, value in whole.filled.items() if name not in own},
        tuple(whole.defaults),
    )


class SignInSettings(Frozen):
    """How to sign in to a server.

    Attributes:
        oauth: What the settings say of OAuth.
        provider: Where credentials come from.
        audience: For an impersonated service account: the audience of the ID token.
        account: The account to act as.
    """

    oauth: OAuthSettings = field(default_factory=OAuthSettings)
    provider: AuthProviderType = AuthProviderType.DYNAMIC_DISCOVERY
    audience: str = ""
    account: str = ""

    @property
    def is_off(self) -> bool:
        """Whether the entry forbids a sign-in in the browser."""
        is_own = self.provider is AuthProviderType.DYNAMIC_DISCOVERY
        return is_own and self.oauth.enabled is False


class Entry(Frozen):
    """A server's entry in the settings, as written.

    Attributes:
        origin: The layer it comes from.
        source: The file it is in, as shown.
        line: Its line there, from 1; 0 where unknown.
        extension: The name of the gemini-cli extension it belongs to, or "".
        named: The names of the user's secrets that it refers to; they are still references.
        written: The entry with its references.
        preview: What the entry comes to, or None where it is in no file.
    """

    origin: Origin
    source: str = ""
    line: int = field(default=0, compare=False)
    extension: str = ""
    named: frozenset[str] = frozenset()
    written: Mapping[str, object] = field(
        default_factory=lambda: MappingProxyType({}), repr=False, compare=False
    )
    preview: Preview | None = field(default=None, repr=False, compare=False)


class Sandbox(Frozen):
    """What a sandboxed program gets beyond the system and the opened folder.

    Attributes:
        read: Files and folders that it can read; absolute.
        write: Those that it can change as well; likewise.
        network: Whether it has the network.
        env: Names of the user's variables, in capitals, that pass whatever they look like.
    """

    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    network: bool = False
    env: tuple[str, ...] = ()


class Launch(Frozen):
    """The program of a server, ready to start: the server, or what prints headers for one.

    Attributes:
        command: The program as configured, or "".
        args: Its arguments.
        env: Variables added to those it inherits.
        inheritance: Which it inherits.
        cwd: Its working directory, or None for gemdeck's.
        program: The file that is executed, resolved when the settings were read; empty where
            there was none.
        keychain: The service under which the keyring has the secrets of the server's extension.
        kept: The names of these secrets, each with the user's own value for want of one. They
            are still references.
        sandbox: The sandbox that it runs in, or None.
    """

    command: str = ""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    inheritance: Inheritance = field(default_factory=Inheritance)
    cwd: Path | None = None
    program: str = ""
    keychain: str = ""
    kept: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    sandbox: Sandbox | None = None

    def inherited(self, environ: Mapping[str, str], *, is_small: bool) -> dict[str, str]:
        """Return what it inherits, as `Inheritance.of`, with what its sandbox lets pass."""
        allow = self.inheritance.allow.union(self.sandbox.env if self.sandbox is not None else ())
        return replace(self.inheritance, allow=allow).of(environ, is_small=is_small)


class Endpoint(Frozen):
    """Where a server answers over the network.

    Attributes:
        url: Its address, or "" for a local server.
        headers: HTTP headers to send.
        sign_in: How to sign in.
        tls: Certificates for it and its sign-in, or None.
        sse_fallback: Whether SSE is to be tried where streamable HTTP is refused.
    """

    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    sign_in: SignInSettings = SignInSettings()
    tls: TlsSettings | None = None
    sse_fallback: bool = False


class ServerDefinition(Frozen):
    """One server as configured. Values are raw: they go to the server, never to the screen.

    What may hold a secret is left out of the representation, which crash reports show.

    Attributes:
        id: Its sanitized name.
        transport: How it is reached; a bare ``url`` is HTTP with `Endpoint.sse_fallback`.
        entry: Its entry in the settings.
        launch: The program to start.
        endpoint: Where it answers over the network.
        protocol: The era of the protocol to speak, where the settings force one.
        timeout: Seconds a call may take.
        trust: Whether its tools run unasked; never true for a project's server.
        review_results: Whether the user sees results before the model does.
        start: When it starts.
        description: The user's words on it, sanitized.
        include_tools: If set, only these tools are offered.
        exclude_tools: These tools are not offered, whatever `include_tools` says.
        withheld: The status in which it stays instead of starting, or None.
        failure: Why it is withheld, and what the user can do.
        may_enable: Whether it is withheld, and the user may let it run all the same, until the
            end of the run.
        is_outside: Whether it runs outside the opened folder: in an empty folder of gemdeck's, or
            over the network, without the opened folder as a root.
        secrets: Values that must not reach the screen or a log: those of variables and
            headers whose names say so.
        fingerprint: SHA-256 (hex) of all that says what this server is; consent binds to it.
    """

    id: ServerId
    transport: Transport
    entry: Entry
    launch: Launch = field(default_factory=Launch)
    endpoint: Endpoint = field(default_factory=Endpoint)
    protocol: ProtocolEra = ProtocolEra.AUTO
    timeout: float = 600.0
    trust: bool = False
    review_results: bool = False
    start: StartMode | None = None
    description: str = ""
    include_tools: frozenset[str] | None = None
    exclude_tools: frozenset[str] = frozenset()
    withheld: ServerStatus | None = None
    failure: Failure | None = None
    may_enable: bool = False
    is_outside: bool = False
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    fingerprint: str = ""

    @property
    def is_lazy(self) -> bool:
        """Whether it starts only when it is needed."""
        return self.start is StartMode.LAZY

    def given(self, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Yield what the server is given that may be a secret, each value with its name.

        Args:
            environ: The environment that it inherits from; empty for names of the entry alone.
        """
        is_small = self.entry.origin is Origin.PROJECT
        inherited = self.launch.inherited(environ, is_small=is_small)
        own = inherited | {**self.launch.kept, **self.launch.env}
        more = {"url": self.endpoint.url, AUTHORIZATION: ""}  # may also be the names of headers
        yield from (
            *own.items(),
            *self.endpoint.headers.items(),
            *more.items(),
            *named_words(self.launch.args),
        )

    def boxed(self, boxes: Boxes, *, can_box: bool = True) -> "ServerDefinition":
        """Return a project's server in the sandbox that it gets.

        Args:
            boxes: What the user chose.
            can_box: Whether there can be one.
        """
        may_lack = boxes is Boxes.IF_POSSIBLE and "sandbox" not in self.entry.written
        is_boxed = boxes is not Boxes.NONE and (can_box or not may_lack)
        if is_boxed and self.transport is Transport.STDIO:
            return self
        return replace(self, launch=replace(self.launch, sandbox=None))

    def with_oauth(self, oauth: OAuthSettings) -> "ServerDefinition":
        """Return the same server, which signs in as these settings say."""
        sign_in = replace(self.endpoint.sign_in, oauth=oauth)
        return replace(self, endpoint=replace(self.endpoint, sign_in=sign_in))

    def held(
        self, status: ServerStatus, reason: str, advice: str, *, may_enable: bool = False
    ) -> "ServerDefinition":
        """Return the same server, which stays in a status instead of starting."""
        failure = Failure(sanitize_line(reason), sanitize_line(advice))
        return replace(self, withheld=status, failure=failure, may_enable=may_enable)


class SettingsProblem(Frozen):
    """Something wrong in a settings file.

    Attributes:
        file: The file, as shown.
        line: Its line, from 1; 0 where unknown.
        key: The dotted key, such as ``mcpServers.git.url``; empty for the file as a whole.
        message: What is wrong and what to do, one line.
        fatal: Whether a file could not be used at all that is the user's own or the system's.
        quiet: Whether nothing depends on it, so that only who asks what is wrong is told.
    """

    file: str
    line: int
    key: str
    message: str
    fatal: bool = False
    quiet: bool = False

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.key}: {self.message}" if self.key else f"{place}: {self.message}"


def secrets_of(servers: Iterable[ServerDefinition]) -> Iterator[str]:
    """Return the secrets of servers that may run.

    An untrusted folder's "secrets" do not count: they could be any words,
    or so many that the user's own would be crowded out.
    """
    for server in servers:
        is_of_project = server.entry.origin is Origin.PROJECT and server.withheld is not None
        if server.withheld is not ServerStatus.UNTRUSTED and not is_of_project:
            yield from server.secrets
            yield from secrets_in_address(server.endpoint.url)


def shown_sandbox(definition: ServerDefinition) -> SandboxView | None:
    """Return what the sandbox of a server lets it do."""
    if (box := definition.launch.sandbox) is None:
        return None
    read, write = (tuple(shown_path(x, Path.home()) for x in one) for one in (box.read, box.write))
    return SandboxView(read, write, box.network)


def shown_target(definition: ServerDefinition) -> str:
    """Return the command line or address of a server as one line, with secrets masked."""
    if definition.transport is not Transport.STDIO:
        return sanitize_line(masked_address(definition.endpoint.url, definition.secrets))
    if not definition.launch.command:
        return ""
    words = masked_words((definition.launch.command, *definition.launch.args), definition.secrets)
    return sanitize_line(" ".join(map(_quoted, words)))


def _quoted(word: str) -> str:
    """Quote a word whose ends would not be visible, and make what hides in it visible."""
    plain = word.isprintable() and not set(word) & set(" '\"")
    return word if word and plain else spelled(shlex.quote(word))
