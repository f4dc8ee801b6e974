"""`AppState`: everything the screen shows, in one frozen tree."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from tui.model.chat import BackendKind, Entry, ModelView, TurnState, Usage
from tui.model.consent import GrantView, ToolStanding
from tui.model.servers import ServerId, ServerView
from tui.model.trust import FolderTrust

if TYPE_CHECKING:  # loaded after the first frame, with the engine
    from tui.model.events import ArgumentCompleted, LogLine, Notice, ResourceRead
    from tui.model.requests import PendingRequest

MAX_LOG_LINES: Final = 1_000
"""Lines kept per server."""

MAX_NOTICES: Final = 100
"""Notices kept; the oldest go first."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """The conversation.

    Attributes:
        settled: Entries of turns that have ended; only old results are cut later on.
        live: Entries of the running turn, which is where all change happens, so that a
            text delta costs the length of the turn and not that of the conversation.
        epoch: Rises when a new conversation begins.
    """

    settled: tuple[Entry, ...] = ()
    live: tuple[Entry, ...] = ()
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class Unsent:
    """A user's text that a failed turn never delivered; `serial` tells two of them apart."""

    serial: int
    text: str


@dataclass(frozen=True, slots=True)
class AppState:
    """One moment of the app.

    Attributes:
        workspace: The folder gemdeck runs in, as shown.
        model: Which model answers.
        servers: All configured servers in settings order; empty until settings are read.
        configured: Whether the settings have been read.
        transcript: The conversation.
        turn: The running turn, if one runs.
        pending: Questions that wait for the user, oldest first.
        logs: Per server, its last lines, oldest first.
        notices: What the user should know, oldest first.
        notice_count: How many notices there have ever been; tells new ones from old.
        resource: The resource read last for the user, or None.
        subscriptions: Resources whose changes are announced, as (server, URI).
        completion: The last completion of an argument, or None.
        log_levels: Per server, the level it was told to log from.
        usage: Tokens of the last model step.
        unsent: Text to put back into the composer.
        folder_trust: What the user said of the folder gemdeck runs in.
        grants: The rules on tools, newest first.
        standing: How the tool that was asked about last stands, or None.
    """

    workspace: str = ""
    model: ModelView = ModelView(name="", backend=BackendKind.DEMO)
    servers: tuple[ServerView, ...] = ()
    configured: bool = False
    transcript: Transcript = Transcript()
    turn: TurnState | None = None
    pending: "tuple[PendingRequest, ...]" = ()
    logs: "Mapping[ServerId, tuple[LogLine, ...]]" = field(
        default_factory=lambda: MappingProxyType({})
    )
    notices: "tuple[Notice, ...]" = ()
    notice_count: int = 0
    resource: "ResourceRead | None" = None
    subscriptions: frozenset[tuple[ServerId, str]] = frozenset()
    completion: "ArgumentCompleted | None" = None
    log_levels: Mapping[ServerId, str] = field(default_factory=lambda: MappingProxyType({}))
    usage: Usage = Usage()
    unsent: Unsent | None = None
    folder_trust: FolderTrust = FolderTrust.UNKNOWN
    grants: tuple[GrantView, ...] = ()
    standing: ToolStanding | None = None
