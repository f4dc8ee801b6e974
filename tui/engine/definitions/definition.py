"""Server definitions: validated, and ready to start."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from tui.engine.definitions.expansion import Expansion
from tui.engine.definitions.folder_files import FolderFile
from tui.engine.definitions.inheritance import Inheritance
from tui.engine.logs.secret_names import masked_address, masked_words, secrets_in_address
from tui.model.frozen import dataclass
from tui.model.sections.sign_in_settings import AuthProviderType, OAuthSettings
from tui.model.servers import Failure, Origin, ProtocolEra, ServerId, ServerStatus, Transport
from tui.text import sanitize_line

REVIEW_ADVICE: Final = "Press t to review it, or use “Review this folder” in the palette."
"""What the user can do about a server that waits for an answer."""


@dataclass(frozen=True, slots=True)
class Preview:
    """The effective values of an entry, computed before it takes effect.

    Attributes:
        shown: The entry with all filled in that its own file or folder chooses: defaults, and
            variables of a ``.env``. References to the user's variables stay.
        whole: The entry with everything filled in. Never for the screen.
        own: The user's variables that it reads, each with its value. Never for the screen.
        brought: The variables that it takes from its folder, each with its value.
        defaults: The defaults that count, each with the name of the variable that is not set.
    """

    shown: Mapping[str, object] = field(repr=False)
    whole: Mapping[str, object] = field(repr=False)
    own: Mapping[str, str] = field(repr=False)
    brought: Mapping[str, str] = field(repr=False)
    defaults: tuple[tuple[str, str], ...] = ()


def preview_of(
    raw: Mapping[str, Any],
    variables: Mapping[str, str],
    own: Mapping[str, str],
    blank: frozenset[str] = frozenset(),
) -> Preview:
    """Return the effective values of an entry.

    Args:
        raw: The entry.
        variables: All that its references stand for.
        own: Those of them that are the user's; their values stay off the screen.
        blank: Keys below which a variable that is not set is empty.
    """
    whole, shown = Expansion(variables, blank=blank), Expansion(variables, own, blank)
    entry_whole, entry_shown = whole.members(raw), shown.members(raw)
    return Preview(
        entry_shown,
        entry_whole,
        {name: value for name, value in whole.filled.items() if name in own},
        {name: value for name, value in whole.filled.items() if name not in own},
        tuple(whole.defaults),
    )


@dataclass(frozen=True, slots=True)
class SignInSettings:
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


@dataclass(frozen=True, slots=True)
class ServerDefinition:
    """One server as configured. Values are raw: they go to the server, never to the screen.

    What may hold a secret is left out of the representation, which crash reports show.

    Attributes:
        id: Its sanitized name.
        origin: The layer it comes from.
        transport: How it is reached; a bare ``url`` counts as HTTP with `sse_fallback`.
        command: The program, for stdio.
        args: Its arguments.
        env: Variables added to those it inherits.
        inheritance: Which it inherits.
        cwd: Its working folder, or None for gemdeck's.
        url: Its address, for HTTP and SSE.
        headers: HTTP headers to send.
        sign_in: How to sign in.
        sse_fallback: Whether SSE is to be tried where streamable HTTP is refused.
        protocol: The era of the protocol to speak, where the settings force one.
        extension: The name of the gemini-cli extension it belongs to, or "".
        timeout: Seconds a call may take.
        review_results: Whether the user sees results before the model does.
        trust: Whether its tools run unasked; never true for a project's server.
        description: The user's words on it, sanitized.
        include_tools: If set, only these tools are offered.
        exclude_tools: These tools are not offered, whatever `include_tools` says.
        withheld: The status it stays in instead of starting, or None.
        failure: Why it is withheld.
        developed: Whether the user develops it: then its entry alone says what it is.
        may_enable: Whether the user may let it run all the same, until the end of the run.
        secrets: Values that must not reach the screen or a log: those of variables and
            headers whose names say so.
        program: The file that is executed, resolved when the settings were read; empty where
            there was none.
        fingerprint: SHA-256 (hex) of all that says what this server is; consent binds to it.
        source: The file it stands in, as shown.
        line: Its line there, from 1; 0 where unknown.
        written: Its entry as written in that file, with its references.
        files: The files that its entry names in the folder where it starts and in the opened
            one, its program included; it starts with no other ones. What they load is not watched.
        starts_outside: Whether `cwd` is an empty folder of gemdeck's own.
        preview: What its entry comes to, or None where it stands in no file.
    """

    id: ServerId
    origin: Origin
    transport: Transport
    command: str = ""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    inheritance: Inheritance = field(default_factory=Inheritance)
    cwd: Path | None = None
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    sign_in: SignInSettings = SignInSettings()
    sse_fallback: bool = False
    protocol: ProtocolEra = ProtocolEra.AUTO
    extension: str = ""
    timeout: float = 600.0
    trust: bool = False
    review_results: bool = False
    developed: bool = False
    description: str = ""
    include_tools: frozenset[str] | None = None
    exclude_tools: frozenset[str] = frozenset()
    withheld: ServerStatus | None = None
    failure: Failure | None = None
    may_enable: bool = False
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    program: str = ""
    fingerprint: str = ""
    source: str = ""
    line: int = field(default=0, compare=False)
    written: Mapping[str, object] = field(
        default_factory=lambda: MappingProxyType({}), repr=False, compare=False
    )
    files: tuple[FolderFile, ...] = field(default=(), repr=False)
    starts_outside: bool = False
    preview: Preview | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class SettingsProblem:
    """Something wrong in a settings file.

    Attributes:
        file: The file, as shown.
        line: Its line, from 1; 0 where unknown.
        key: The dotted key, such as ``mcpServers.git.url``; empty for the file as a whole.
        message: What is wrong and what to do, one line.
        fatal: Whether a file could not be used at all that is the user's own or the system's.
    """

    file: str
    line: int
    key: str
    message: str
    fatal: bool = False

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.key}: {self.message}" if self.key else f"{place}: {self.message}"


def secrets_of(servers: Iterable[ServerDefinition]) -> Iterator[str]:
    """Return the secrets of servers that may run.

    An untrusted folder's "secrets" do not count: they could be any words,
    or so many that the user's own would be crowded out.
    """
    for server in servers:
        is_of_project = server.origin is Origin.PROJECT and server.withheld is not None
        if server.withheld is not ServerStatus.UNTRUSTED and not is_of_project:
            yield from server.secrets
            yield from secrets_in_address(server.url)


_BLANK_RUN: Final = re.compile(r"\s{2,}")
"""White space that could push the rest of a word off the screen."""

_ODD_BLANK: Final = re.compile(r"[^\S ]")
"""A line break, a tab or any other single blank that a line would show as a space."""


def shown_target(definition: ServerDefinition) -> str:
    """Return the command line or address of a server as one line, with secrets masked."""
    if definition.transport is not Transport.STDIO:
        return sanitize_line(masked_address(definition.url, definition.secrets))
    if not definition.command:
        return ""
    words = masked_words((definition.command, *definition.args), definition.secrets)
    return sanitize_line(" ".join(map(_quoted, words)))


def _quoted(word: str) -> str:
    """Quote a word whose ends would not be visible, and make its blanks visible."""
    plain = word.isprintable() and not set(word) & set(" '\"")
    return word if word and plain else _visible(shlex.quote(word))


def _visible(text: str) -> str:
    """Count blanks that come in a row, and write others than spaces as escapes."""
    counted = _BLANK_RUN.sub(lambda run: f"[{len(run.group()):,} blanks]", text)
    return _ODD_BLANK.sub(lambda blank: ascii(blank.group())[1:-1], counted)
