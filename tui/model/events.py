"""Events: frozen facts that the engine publishes and the store reduces."""

from collections.abc import Mapping
from dataclasses import field, replace
from time import time as now
from typing import Any, Final

from tui.model.catalog import Catalog, ResourceContent
from tui.model.chat import (
    ChatNotice,
    ConversationEvent,
    EntryId,
    ModelView,
    Picture,
    Progress,
    Severity,
    ToolCall,
    ToolCallStatus,
    TurnId,
    TurnOutcome,
    TurnPhase,
    Usage,
    UserMessage,
)
from tui.model.consent import GrantView, RequestId
from tui.model.frozen import Event as Event  # noqa: PLC0414 - as a name of this module
from tui.model.frozen import Frozen, StateEvent
from tui.model.requests import PendingRequest
from tui.model.servers import Failure, ServerId, ServerInfo, ServerStatus, ServerView, Transport
from tui.model.trust import FolderTrust

OWN_SOURCE: Final = "gemdeck"
"""The source of a log line that is our own remark."""


class ContextFile(Frozen):
    """A file such as ``GEMINI.md``.

    Attributes:
        place: Where it lies, as shown.
        text: What it says, as the model gets it.
        problem: Why it is not used, or an empty string.
    """

    place: str
    text: str
    problem: str = ""


class ContextRead(StateEvent):
    """The files of context were read, and are not what they were."""

    context: tuple[ContextFile, ...]


class LogLine(Frozen):
    """One line of a server's log; `time` is seconds since the epoch.

    `source` is ``stderr``, ``log`` (a logging notification) or `OWN_SOURCE`; `level` is the level
    of RFC 5424 that the server named, or an empty string.
    """

    time: float
    source: str
    severity: Severity
    text: str
    level: str = ""


class Notice(Frozen):
    """A message for the user outside any turn; `time` in seconds since the epoch.

    Attributes:
        is_answer: Whether the user asked for it, and so looks for it.
    """

    severity: Severity
    text: str
    advice: str = ""
    time: float = field(default_factory=now, compare=False)
    is_answer: bool = False


class ServersConfigured(Event):
    """The settings were read; these are the servers, in settings order."""

    servers: tuple[ServerView, ...]


class ServerStatusChanged(Event):
    """The status of a server changed; `info` comes with READY, the others as in `ServerView`."""

    server: ServerId
    status: ServerStatus
    failure: Failure | None = None
    retry_at: float | None = None
    info: ServerInfo | None = None
    since: float = 0.0
    restarted: str = ""
    transport: Transport | None = None
    lacks: str = ""


class CatalogChanged(Event):
    """The catalog of a server was listed again."""

    server: ServerId
    catalog: Catalog


class ServerTried(Event):
    """This happened to the server that is started on trial; None forgets all of it."""

    event: Event | None


class InstructionsSent(StateEvent):
    """The model got these instructions of servers with its last request."""

    instructions: Mapping[ServerId, str]


class ServerLogged(Event):
    """A server wrote log lines; batched, oldest first."""

    server: ServerId
    lines: tuple[LogLine, ...]


class NoticeRaised(Event):
    """A notice for the user."""

    notice: Notice


class ModelSelected(ConversationEvent, StateEvent):
    """The model of a conversation was chosen."""

    model: ModelView


class QueueChanged(ConversationEvent, StateEvent):
    """The messages that wait for the end of the running turn, in their order."""

    queued: tuple[str, ...]


class TurnStarted(ConversationEvent):
    """A turn started with the user's message. `time` is in seconds of `time.monotonic`."""

    turn: TurnId
    message: UserMessage
    time: float


class TurnPhaseChanged(ConversationEvent):
    """The phase of the running turn changed; the others are as in `TurnState`."""

    turn: TurnId
    phase: TurnPhase
    server: ServerId | None = None
    until: float | None = None


class TurnClockSet(ConversationEvent):
    """The user has answered: as if the turn had started later, at a `time.monotonic`."""

    turn: TurnId
    started_at: float


class MessageExpanded(ConversationEvent):
    """Servers and files added to the user's message what it named."""

    message: UserMessage


class TextStreamed(ConversationEvent):
    """Text of the answer arrived; the first delta of an entry creates it."""

    entry: EntryId
    delta: str


class ThoughtStreamed(ConversationEvent):
    """Text of a thought summary arrived; the first delta of an entry creates it."""

    entry: EntryId
    delta: str


class EntryCompleted(ConversationEvent):
    """A text or thought is complete, after so many seconds."""

    entry: EntryId
    seconds: float | None = None


class ToolCallRequested(ConversationEvent):
    """The model requested a tool call."""

    call: ToolCall


class ToolCallChanged(ConversationEvent):
    """The status of a call changed; `seconds`, `result` and `pictures` come with its end.

    `arguments` are set if the user edited them, as canonical indented JSON.
    """

    call: EntryId
    status: ToolCallStatus
    seconds: float | None = None
    result: str = ""
    arguments: str | None = None
    pictures: tuple[Picture, ...] = ()

    def applied(self, call: ToolCall) -> ToolCall:
        """Return a call as it stands after this."""
        given = call.arguments if self.arguments is None else self.arguments
        call = replace(call, arguments=given, progress=None, pictures=self.pictures)
        return replace(call, status=self.status, seconds=self.seconds, result=self.result)


class ToolCallDecided(Event):
    """A call was allowed or denied, or the question about it was withdrawn.

    `fingerprint` is the server's, `definition` the hash of the tool's definition; `arguments` are
    canonical JSON. `decision` is ``allow``, ``deny`` or ``withdrawn``, and `source` the reason,
    such as ``you: once`` or a settings file. `caller` is the other client that called, in words.
    """

    call: EntryId
    server: ServerId
    fingerprint: str
    tool: str
    definition: str
    arguments: str
    decision: str
    source: str
    caller: str = ""


class ToolCallProgressed(ConversationEvent):
    """A running call reported progress."""

    call: EntryId
    progress: Progress

    def applied(self, call: ToolCall) -> ToolCall:
        """Return a call as it stands after this."""
        return replace(call, progress=self.progress)


class TaskKept(ConversationEvent):
    """A call of the conversation runs as a task, which may outlive gemdeck; or it has ended.

    Attributes:
        key: Its id here.
        call: The call.
        server: Its server.
        fingerprint: That server's.
        tool: The tool, as the server spells it.
        task: Its id, as the server spells it; empty once it has ended.
        began: When, in seconds since the epoch.
        ttl: The seconds that it lives.
    """

    key: str
    call: EntryId
    server: ServerId
    fingerprint: str
    tool: str
    task: str
    began: float
    ttl: float


class UsageReported(ConversationEvent):
    """The service reported the token counts of one request to a model.

    `listed` is what it costs by the service's list price, in US dollars; None if unknown.
    """

    usage: Usage
    model: str = ""
    listed: float | None = None


class ChatNoticeAdded(ConversationEvent):
    """A message from gemdeck in the conversation."""

    notice: ChatNotice


class TurnFinished(ConversationEvent):
    """The turn ended, after so many seconds.

    `unsent` is the user's text that the model never answered.
    """

    turn: TurnId
    outcome: TurnOutcome
    unsent: str = ""
    seconds: float = 0.0


class MessageReturned(ConversationEvent):
    """A message was not sent and returns to the user."""

    text: str


class ConversationCleared(ConversationEvent):
    """The conversation was cleared."""


class RequestRaised(Event):
    """A question waits for the user; it replaces an earlier one with the same id."""

    request: PendingRequest


class RequestSettled(Event):
    """A question was answered or withdrawn."""

    request: RequestId


class RequestsQueued(StateEvent):
    """So many requests of servers wait behind those that are raised."""

    queued: int


class ResourceRead(StateEvent):
    """A resource was read for the user.

    Attributes:
        server: Its server.
        uri: Its address.
        content: Its content as shown.
        pictures: Those in it.
        failure: Why it could not be read, or an empty string.
        at: When, in seconds since the epoch.
        raw: The result as the server wrote it.
    """

    part = "resource"
    server: ServerId
    uri: str
    content: ResourceContent = ResourceContent()
    failure: str = ""
    pictures: tuple[Picture, ...] = ()
    at: float = field(default_factory=now)
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


class SubscriptionChanged(Event):
    """A resource was subscribed to or unsubscribed from."""

    server: ServerId
    uri: str
    subscribed: bool


class ResourceUpdated(Event):
    """A resource changed that another client follows."""

    server: ServerId
    uri: str


class ArgumentCompleted(StateEvent):
    """A server completed an argument; `token` identifies the request."""

    part = "completion"
    token: str
    values: tuple[str, ...]
    has_more: bool = False


class LogLevelChanged(Event):
    """The log level of a server was set; an RFC 5424 level in lower case."""

    server: ServerId
    level: str


class BranchRead(StateEvent):
    """The opened folder is on this git branch, or on none that can be read."""

    branch: str


class FoldersOpened(StateEvent):
    """These folders are open, the workspace first; servers are told of them as roots."""

    folders: tuple[str, ...]


class FolderTrustChanged(StateEvent):
    """The trust of the opened folder is known or has changed."""

    folder_trust: FolderTrust


class GrantsChanged(StateEvent):
    """The rules on tools changed; newest first."""

    grants: tuple[GrantView, ...]


class FramesNoted(StateEvent):
    """While somebody watches the wire: there are new frames, or old ones have changed.

    Told at most ten times a second; `wire_revision` grows with each of them.
    """

    wire_revision: int


class TerminalSet(StateEvent):
    """What the settings say of the bell, the title, the mouse and the own keys."""

    bell: bool
    title: bool
    keys: Mapping[str, str]
    mouse: bool = True
