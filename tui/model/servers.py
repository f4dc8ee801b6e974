"""Servers as the user sees them, and the one table of their status transitions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NewType

from tui.model.catalog import Catalog

ServerId = NewType("ServerId", str)
"""The sanitised settings key; unique among the servers of a run."""


class ServerStatus(StrEnum):
    """What a server is doing. The value is the word on the screen."""

    INVALID = "invalid"
    DISABLED = "disabled"
    UNTRUSTED = "untrusted"
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
    _S.STOPPED: frozenset({_S.STARTING, _S.DISABLED}),
    _S.STARTING: frozenset(
        {_S.READY, _S.NEEDS_SIGN_IN, _S.RETRYING, _S.FAILED, _S.STOPPING, _S.STOPPED}
    ),
    _S.NEEDS_SIGN_IN: frozenset({_S.STARTING, _S.STOPPED, _S.STOPPING, _S.DISABLED}),
    _S.READY: frozenset({_S.STOPPING, _S.RETRYING, _S.FAILED, _S.NEEDS_SIGN_IN}),
    _S.RETRYING: frozenset({_S.STARTING, _S.STOPPED, _S.FAILED, _S.DISABLED}),
    _S.FAILED: frozenset({_S.STARTING, _S.STOPPED, _S.DISABLED}),
    _S.STOPPING: frozenset({_S.STOPPED, _S.FAILED}),
}
"""From each status, those that may follow it."""

SETTLED: Final = frozenset(
    {
        _S.INVALID,
        _S.DISABLED,
        _S.UNTRUSTED,
        _S.STOPPED,
        _S.NEEDS_SIGN_IN,
        _S.READY,
        _S.RETRYING,
        _S.FAILED,
    }
)
"""Statuses in which a server's first discovery is over, whatever came of it."""


class Transport(StrEnum):
    """How a server is reached."""

    STDIO = "stdio"
    HTTP = "http"
    SSE = "sse"


class Origin(StrEnum):
    """Where a server's definition comes from. The value is the word on the screen."""

    SYSTEM_DEFAULTS = "system defaults"
    USER = "user"
    PROJECT = "project"
    SYSTEM = "system"
    DEMO = "demo"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a server is not there.

    Attributes:
        reason: One line that says what happened.
        advice: One line that says what to do, or nothing.
        stderr_tail: The last lines the server wrote to its standard error.
    """

    reason: str
    advice: str = ""
    stderr_tail: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What a connected server says of itself. A claim, never an identity.

    Attributes:
        name: Its own name; decoration.
        version: Its own version.
        protocol_version: The revision of MCP that the connection speaks.
        instructions: Its words to the model.
        log_levels: Whether it can be told from which level on to log.
        completions: Whether it completes arguments.
        subscriptions: Whether it announces changes of single resources.
    """

    name: str
    version: str
    protocol_version: str
    instructions: str = ""
    log_levels: bool = False
    completions: bool = False
    subscriptions: bool = False

    @property
    def is_stateless(self) -> bool:
        """Whether the connection is of the era that began with revision 2026-07-28."""
        return self.protocol_version >= "2026-07-28"


@dataclass(frozen=True, slots=True)
class ServerView:
    """One server, as it stands.

    Attributes:
        id: Its name in the settings.
        origin: The layer that defines it.
        transport: How it is reached.
        target: Its command line or URL, without secrets.
        description: The user's own words on it, from the settings.
        status: What it is doing.
        failure: Why it is invalid, untrusted, disabled, retrying or failed.
        retry_at: While retrying: when, in seconds of `time.monotonic`.
        info: While connected: what it says of itself.
        catalog: What it offers; kept while it is down so that the screen does not jump.
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
