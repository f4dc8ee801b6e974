"""Servers as shown, and the table of their status transitions."""

import json
from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Final, NewType

from tui.model.catalog import Catalog
from tui.model.frozen import Event, Frozen

ServerId = NewType("ServerId", str)
"""The sanitized name from the settings; unique within a run."""


class ServerStatus(StrEnum):
    """The status of a server. The value is its name on the screen."""

    INVALID = "invalid"
    DISABLED = "disabled"
    UNTRUSTED = "untrusted"
    ASLEEP = "asleep"
    STOPPED = "stopped"
    STARTING = "starting"
    NEEDS_SIGN_IN = "needs sign-in"
    READY = "ready"
    RETRYING = "retrying"
    FAILED = "failed"
    STOPPING = "stopping"


_S = ServerStatus

TRANSITIONS: Final[Mapping[ServerStatus, frozenset[ServerStatus]]] = {
    _S.INVALID: frozenset(),
    _S.UNTRUSTED: frozenset({_S.STOPPED, _S.DISABLED}),
    _S.DISABLED: frozenset({_S.STOPPED}),
    _S.ASLEEP: frozenset({_S.STARTING, _S.STOPPED, _S.DISABLED}),
    _S.STOPPED: frozenset({_S.STARTING, _S.DISABLED}),
    _S.STARTING: frozenset(
        {_S.READY, _S.NEEDS_SIGN_IN, _S.RETRYING, _S.FAILED, _S.STOPPING, _S.STOPPED, _S.ASLEEP}
    ),
    _S.NEEDS_SIGN_IN: frozenset({_S.STARTING, _S.STOPPED, _S.STOPPING, _S.DISABLED}),
    _S.READY: frozenset({_S.STOPPING, _S.RETRYING, _S.FAILED, _S.NEEDS_SIGN_IN}),
    _S.RETRYING: frozenset({_S.STARTING, _S.STOPPED, _S.FAILED, _S.DISABLED}),
    _S.FAILED: frozenset({_S.STARTING, _S.STOPPED, _S.DISABLED}),
    _S.STOPPING: frozenset({_S.STOPPED, _S.FAILED, _S.ASLEEP}),
}
"""The allowed next statuses of each status."""


def advance(current: ServerStatus, following: ServerStatus) -> ServerStatus:
    """Return `following`.

    Raises:
        RuntimeError: If it cannot follow the current status; only a bug raises it.
    """
    if following not in TRANSITIONS[current]:
        raise RuntimeError(f"{following.value} cannot follow {current.value}")
    return following


ATTEMPTED: Final = frozenset({_S.RETRYING, _S.FAILED})
"""Statuses whose reason is that of an attempt."""

TROUBLED: Final = frozenset({_S.RETRYING, _S.FAILED, _S.INVALID, _S.UNTRUSTED})
"""Statuses that have a reason."""

DISCOVERY: Final[Mapping[ServerStatus, str]] = {
    **dict.fromkeys(ServerStatus, "completed"),
    **dict.fromkeys((_S.INVALID, _S.UNTRUSTED, _S.DISABLED, _S.STOPPED), "not started"),
    _S.STARTING: "in progress",
}
"""How far the first listing of what a server offers has come."""

USABLE: Final = frozenset({_S.READY, _S.ASLEEP})
"""Statuses in which what a server offers can be used; one that sleeps wakes for it."""

UNDECIDED: Final = frozenset({_S.STARTING, _S.STOPPING})
"""Statuses that keep the last failure; in all others the first discovery is over."""


class Transport(StrEnum):
    """The transport of a server."""

    STDIO = "stdio"
    HTTP = "http"
    SSE = "sse"


class ProtocolEra(StrEnum):
    """The protocol of a server. The value is its name in the settings.

    HANDSHAKE stands for revisions 2024-11-05 to 2025-11-25, STATELESS for 2026-07-28; AUTO
    detects which.
    """

    AUTO = "auto"
    HANDSHAKE = "handshake"
    STATELESS = "stateless"


class StartMode(StrEnum):
    """When a server starts: with gemdeck, or once it is needed. The value is that of the settings.

    A lazy server starts once so that what it offers is known.
    """

    EAGER = "eager"
    LAZY = "lazy"


class Origin(StrEnum):
    """Where a server is defined. The value is its name on the screen."""

    SYSTEM_DEFAULTS = "system defaults"
    USER = "user"
    PROJECT = "project"
    SYSTEM = "system"
    EXTENSION = "extension"
    DEMO = "demo"


class Failure(Frozen):
    """Why a server is not available.

    Attributes:
        reason: One line that says what happened.
        advice: One line that says what to do, or an empty string.
        stderr_tail: The last lines of the server's standard error.
    """

    reason: str
    advice: str = ""
    stderr_tail: tuple[str, ...] = ()


class ServerInfo(Frozen):
    """A connected server's claims about itself; never an identity.

    Attributes:
        name: Its own name; for display only.
        version: Its own version.
        protocol_version: The MCP revision of the connection.
        instructions: Its instructions for the model.
        title: Its name for people, or an empty string.
        website: Its address of a website, or an empty string; not checked.
        capabilities: The capabilities and extensions of the protocol that it declares.
        announced: Those that gemdeck told it of.
        log_levels: Whether its log level can be set.
        completions: Whether it completes arguments.
        subscriptions: Whether resources can be subscribed to.
    """

    name: str
    version: str
    protocol_version: str
    instructions: str = ""
    title: str = ""
    website: str = ""
    capabilities: tuple[str, ...] = ()
    announced: tuple[str, ...] = ()
    log_levels: bool = False
    completions: bool = False
    subscriptions: bool = False

    @property
    def is_stateless(self) -> bool:
        return self.protocol_version >= "2026-07-28"

    @property
    def era(self) -> ProtocolEra:
        return ProtocolEra.STATELESS if self.is_stateless else ProtocolEra.HANDSHAKE


class ServerUsage(Frozen):
    """What was measured of a server in this run; a snapshot.

    Attributes:
        starts: How often it was started, not counting when it was woken.
        pid: Its process while it is connected; 0 over HTTP.
        processes: That and its descendants; 0 where the system does not tell.
        memory: Bytes that those have resident; pages that several share count for each.
        calls: The calls of its tools.
        failed: Those of them that gave an error or no result.
        seconds: How long the newest calls took, without the time that the server waited for us.
        connected: Seconds until it had answered the first request, while it is connected.
        listed: Seconds that its lists took after that.
        change: How its offer differs from that of the connection before: the kind and name of
            all that is gained, lost or changed, under these words.
    """

    starts: int = 0
    pid: int = 0
    processes: int = 0
    memory: int = 0
    calls: int = 0
    failed: int = 0
    seconds: tuple[float, ...] = ()
    connected: float = 0.0
    listed: float = 0.0
    change: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class SandboxView(Frozen):
    """What a server in a sandbox may do; paths as shown.

    Attributes:
        read: The paths that it may read beside the system's.
        write: Those that it may write.
        network: Whether it reaches the network.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    network: bool = False

    @property
    def words(self) -> str:
        """It in one line, such as ``no network; reads ~/a; writes ~/b``."""
        lists = {"reads": ", ".join(self.read), "writes": ", ".join(self.write)}
        given = "".join(f"; {verb} {names}" for verb, names in lists.items() if names)
        return f"{'with' if self.network else 'no'} network{given}"


class RefusedAccess(Frozen):
    """An access that a server in a sandbox reports as refused; its claim.

    Attributes:
        key: The key of `sandbox` that would allow it: ``read``, ``write`` or ``network``.
        path: The whole path, without links, as shown; empty for the network.
        is_offered: Whether gemdeck offers to allow it.
    """

    key: str
    path: str = ""
    is_offered: bool = True

    @property
    def entry(self) -> str:
        """The member of ``sandbox`` that would allow it."""
        value = json.dumps([self.path], ensure_ascii=False) if self.path else "true"
        return f'"{self.key}": {value}'

    @property
    def words(self) -> str:
        """It in one line."""
        what = f"{self.key} access to {self.path}" if self.path else "network"
        how = f"To allow it: {self.entry}" if self.is_offered else "gemdeck never offers that."
        return f"Sandbox: the server reports no {what}. {how}"


class AccessRefused(Event):
    """A server in a sandbox reports an access as refused; None once it starts without."""

    server: ServerId
    refused: RefusedAccess | None


class ServerView(Frozen):
    """The current state of one server.

    Attributes:
        id: Its name from the settings.
        origin: The layer that defines it.
        transport: Its transport; while connected that in use.
        target: Its command line or URL, without secrets.
        description: The user's description, from the settings.
        status: Its status.
        failure: Why it is invalid, untrusted, disabled, retrying or failed.
        retry_at: The time of the next retry, in seconds of `time.monotonic`.
        info: Its claims about itself, while connected or asleep.
        catalog: Its features; kept while it is down so that the screen does not jump.
        last_failure: Why the last attempt failed; kept during the next one.
        since: When it reached its status, in seconds of `time.monotonic`.
        restarted: How often it was started again by itself and why, or an empty string.
        lacks: What it was started without, why, and what to do; or an empty string.
        last_words: The last line that it wrote while it was starting.
        environment: The names of the variables that it gets, for stdio.
        variables: The names of those that its entry sets.
        withheld: The names of the user's variables that it does not get.
        is_outside: Whether it runs outside the opened folder: in an empty one of gemdeck's, or
            over the network, and in both cases without that folder among its roots.
        left_out: The names of the variables that it does not get there since they name the folder.
        cwd: The folder where it starts; empty for the opened one, and over HTTP.
        timeout: Seconds that one of its calls may take.
        trusted: Whether its tools run unasked.
        account: The user's name for the account that it is signed in to with, or empty.
        source: The file that defines it, with the line.
        extension: The gemini-cli extension that it belongs to, or an empty string.
        sandbox: What its sandbox lets it do, or None where it runs in none.
        refused: What it last reported as refused by its sandbox, or None.
    """

    id: ServerId
    origin: Origin
    transport: Transport
    target: str
    description: str = ""
    status: ServerStatus = ServerStatus.STOPPED
    failure: Failure | None = None
    retry_at: float | None = None
    info: ServerInfo | None = None
    catalog: Catalog = field(default_factory=Catalog)
    last_failure: Failure | None = None
    since: float = 0.0
    restarted: str = ""
    lacks: str = ""
    last_words: str = ""
    environment: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()
    is_outside: bool = False
    left_out: tuple[str, ...] = ()
    cwd: str = ""
    timeout: float = 0.0
    trusted: bool = False
    account: str = ""
    source: str = ""
    extension: str = ""
    sandbox: SandboxView | None = None
    refused: RefusedAccess | None = None

    @property
    def runs_outside(self) -> bool:
        """Whether it is a program of the user's that starts outside the opened folder."""
        is_held = self.status in {_S.INVALID, _S.UNTRUSTED, _S.DISABLED}
        is_own = self.transport is Transport.STDIO and self.origin is not Origin.DEMO
        return is_own and self.is_outside and not is_held

    @property
    def is_known(self) -> bool:
        """Whether it is or was ready, so that nothing offered means that it offers nothing."""
        return self.status is _S.READY or self.info is not None

    @property
    def is_troubled(self) -> bool:
        return self.status in TROUBLED or self.last_failure is not None
