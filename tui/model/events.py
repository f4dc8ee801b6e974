"""Events: frozen facts that the engine publishes and the store reduces."""

from collections.abc import Mapping
from dataclasses import field, replace
from time import time as now
from typing import Any, Final

from tui.model.catalog import Catalog, ResourceContent
from tui.model.chat import (
    MAIN,
    ChatNotice,
    ConversationId,
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
from tui.model.consent import GrantView, RequestId, ToolRuleChanged, ToolStanding
from tui.model.frozen import dataclass
from tui.model.models import ModelEvents
from tui.model.requests import PendingRequest, TerminalSet
from tui.model.runs import RunEvents
from tui.model.servers import Failure, ServerId, ServerInfo, ServerStatus, ServerView, Transport
from tui.model.sessions import SessionEvents
from tui.model.trust import BranchRead, FoldersOpened, FolderTrust

OWN_SOURCE: Final = "gemdeck"
"""The source of a log line that is our own remark."""


@dataclass(frozen=True, slots=True)
class ContextFile:
    """A file such as ``GEMINI.md``.

    Attributes:
        place: Where it lies, as shown.
        text: What it says, as the model gets it.
        problem: Why it is not used, or an empty string.
    """

    place: str
    text: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ContextRead:
    """The files of context were read, and are not what they were."""

    files: tuple[ContextFile, ...]


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a server's log; `time` is seconds since the epoch.

    `source` is ``stderr``, ``log`` (a logging notification) or `OWN_SOURCE`; `level` is the level
    of RFC 5424 that the server named, or an empty string.
    """

    time: float
    source: str
    severity: Severity
    text: str
    level: str = ""


@dataclass(frozen=True, slots=True)
class Notice:
    """A message for the user outside any turn; `time` in seconds since the epoch.

    Attributes:
        is_answer: Whether the user asked for it, and so looks for it.
    """

    severity: Severity
    text: str
    advice: str = ""
    time: float = field(default_factory=now, compare=False)
    is_answer: bool = False


@dataclass(frozen=True, slots=True)
class ServersConfigured:
    """The settings were read; these are the servers, in settings order."""

    servers: tuple[ServerView, ...]


@dataclass(frozen=True, slots=True)
class ServerStatusChanged:
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


@dataclass(frozen=True, slots=True)
class CatalogChanged:
    """The catalog of a server was listed again."""

    server: ServerId
    catalog: Catalog


@dataclass(frozen=True, slots=True)
class ServerTried:
    """This happened to the server that is started on trial; None forgets all of it."""

    event: "Event | None"


@dataclass(frozen=True, slots=True)
class InstructionsSent:
    """The model got these instructions of servers with its last request."""

    texts: tuple[tuple[ServerId, str], ...]


@dataclass(frozen=True, slots=True)
class ServerLogged:
    """A server wrote log lines; batched, oldest first."""

    server: ServerId
    lines: tuple[LogLine, ...]


@dataclass(frozen=True, slots=True)
class NoticeRaised:
    """A notice for the user."""

    notice: Notice


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationEvent:
    """An event of one conversation."""

    conversation: ConversationId = MAIN


@dataclass(frozen=True, slots=True)
class ModelSelected(ConversationEvent):
    """The model of a conversation was chosen."""

    model: ModelView


@dataclass(frozen=True, slots=True)
class QueueChanged(ConversationEvent):
    """The messages that wait for the end of the running turn, in their order."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TurnStarted(ConversationEvent):
    """A turn started with the user's message. `time` is in seconds of `time.monotonic`."""

    turn: TurnId
    message: UserMessage
    time: float


@dataclass(frozen=True, slots=True)
class TurnPhaseChanged(ConversationEvent):
    """The phase of the running turn changed; the others are as in `TurnState`."""

    turn: TurnId
    phase: TurnPhase
    server: ServerId | None = None
    until: float | None = None


@dataclass(frozen=True, slots=True)
class MessageExpanded(ConversationEvent):
    """Servers and files added to the user's message what it named."""

    message: UserMessage


@dataclass(frozen=True, slots=True)
class TextStreamed(ConversationEvent):
    """Text of the answer arrived; the first delta of an entry creates it."""

    entry: EntryId
    delta: str


@dataclass(frozen=True, slots=True)
class ThoughtStreamed(ConversationEvent):
    """Text of a thought summary arrived; the first delta of an entry creates it."""

    entry: EntryId
    delta: str


@dataclass(frozen=True, slots=True)
class EntryCompleted(ConversationEvent):
    """A text or thought is complete, after so many seconds."""

    entry: EntryId
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class ToolCallRequested(ConversationEvent):
    """The model requested a tool call."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
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
        return replace(
            call,
            status=self.status,
            seconds=self.seconds,
            result=self.result,
            progress=None,
            pictures=self.pictures,
            arguments=call.arguments if self.arguments is None else self.arguments,
        )


@dataclass(frozen=True, slots=True)
class ToolCallDecided:
    """A call was allowed or denied, or the question about it was withdrawn.

    `fingerprint` is the server's, `definition` the hash of the tool's definition; `arguments` are
    canonical JSON. `decision` is ``allow``, ``deny`` or ``withdrawn``, and `source` the reason,
    such as ``you: once`` or a settings file.
    """

    call: EntryId
    server: ServerId
    fingerprint: str
    tool: str
    definition: str
    arguments: str
    decision: str
    source: str


@dataclass(frozen=True, slots=True)
class ToolCallProgressed(ConversationEvent):
    """A running call reported progress."""

    call: EntryId
    progress: Progress


@dataclass(frozen=True, slots=True)
class UsageReported(ConversationEvent):
    """The service reported the token counts of one request to a model."""

    usage: Usage
    model: str = ""


@dataclass(frozen=True, slots=True)
class ChatNoticeAdded(ConversationEvent):
    """A message from gemdeck in the conversation."""

    notice: ChatNotice


@dataclass(frozen=True, slots=True)
class TurnFinished(ConversationEvent):
    """The turn ended, after so many seconds.

    `unsent` is the user's text that the model never answered.
    """

    turn: TurnId
    outcome: TurnOutcome
    unsent: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class MessageReturned(ConversationEvent):
    """A message was not sent and returns to the user."""

    text: str


@dataclass(frozen=True, slots=True)
class ConversationCleared(ConversationEvent):
    """The conversation was cleared."""


@dataclass(frozen=True, slots=True)
class RequestRaised:
    """A question waits for the user; it replaces an earlier one with the same id."""

    request: PendingRequest


@dataclass(frozen=True, slots=True)
class RequestSettled:
    """A question was answered or withdrawn."""

    request: RequestId


@dataclass(frozen=True, slots=True)
class RequestsQueued:
    """So many requests of servers wait behind those that are raised, or were declined unasked."""

    count: int
    declined: int = 0


@dataclass(frozen=True, slots=True)
class ResourceRead:
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

    server: ServerId
    uri: str
    content: ResourceContent = ResourceContent()
    failure: str = ""
    pictures: tuple[Picture, ...] = ()
    at: float = field(default_factory=now)
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class SubscriptionChanged:
    """A resource was subscribed to or unsubscribed from."""

    server: ServerId
    uri: str
    subscribed: bool


@dataclass(frozen=True, slots=True)
class ArgumentCompleted:
    """A server completed an argument; `token` identifies the request."""

    token: str
    values: tuple[str, ...]
    has_more: bool = False


@dataclass(frozen=True, slots=True)
class LogLevelChanged:
    """The log level of a server was set; an RFC 5424 level in lower case."""

    server: ServerId
    level: str


@dataclass(frozen=True, slots=True)
class FolderTrustChanged:
    """The trust of the opened folder is known or has changed."""

    trust: FolderTrust


@dataclass(frozen=True, slots=True)
class GrantsChanged:
    """The rules on tools changed; newest first."""

    grants: tuple[GrantView, ...]


@dataclass(frozen=True, slots=True)
class ToolExplained:
    """The requested explanation of a tool's permission."""

    standing: ToolStanding


ConversationEvents = (
    ModelSelected
    | QueueChanged
    | TurnStarted
    | TurnPhaseChanged
    | MessageExpanded
    | TextStreamed
    | ThoughtStreamed
    | EntryCompleted
    | ToolCallRequested
    | ToolCallChanged
    | ToolCallProgressed
    | UsageReported
    | ChatNoticeAdded
    | TurnFinished
    | MessageReturned
    | ConversationCleared
)

Event = (
    ServersConfigured
    | ServerStatusChanged
    | CatalogChanged
    | ServerLogged
    | ServerTried
    | NoticeRaised
    | ConversationEvents
    | ToolCallDecided
    | RequestRaised
    | RequestSettled
    | RequestsQueued
    | ResourceRead
    | SubscriptionChanged
    | ArgumentCompleted
    | ContextRead
    | LogLevelChanged
    | InstructionsSent
    | FolderTrustChanged
    | TerminalSet
    | BranchRead
    | FoldersOpened
    | GrantsChanged
    | ToolRuleChanged
    | ToolExplained
    | RunEvents
    | SessionEvents
    | ModelEvents
)
