"""What has happened: one frozen fact an event. The engine publishes, the store reduces."""

from dataclasses import dataclass

from tui.model.catalog import Catalog, ResourceContent
from tui.model.chat import (
    ChatNotice,
    EntryId,
    ModelView,
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
from tui.model.consent import GrantView, RequestId, ToolStanding
from tui.model.requests import PendingRequest
from tui.model.servers import Failure, ServerId, ServerInfo, ServerStatus, ServerView
from tui.model.trust import FolderTrust


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a server's log; `time` is seconds since the epoch.

    `source` is ``stderr``, ``log`` (a logging notification) or ``gemdeck`` (our own word).
    """

    time: float
    source: str
    severity: Severity
    text: str


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the user should know that belongs to no turn, such as a settings problem."""

    severity: Severity
    text: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class ServersConfigured:
    """The settings were read; these servers exist now, in settings order."""

    servers: tuple[ServerView, ...]


@dataclass(frozen=True, slots=True)
class ServerStatusChanged:
    """A server moved along the transition table; `info` comes with READY."""

    server: ServerId
    status: ServerStatus
    failure: Failure | None = None
    retry_at: float | None = None
    info: ServerInfo | None = None


@dataclass(frozen=True, slots=True)
class CatalogChanged:
    """A server's offer was listed anew."""

    server: ServerId
    catalog: Catalog


@dataclass(frozen=True, slots=True)
class ServerLogged:
    """A server wrote these lines; batched, oldest first."""

    server: ServerId
    lines: tuple[LogLine, ...]


@dataclass(frozen=True, slots=True)
class ModelSelected:
    """This model answers from now on."""

    model: ModelView


@dataclass(frozen=True, slots=True)
class NoticeRaised:
    """The user should know something."""

    notice: Notice


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """The user's message was accepted; the model is being asked. `time`: `time.monotonic`."""

    turn: TurnId
    message: UserMessage
    time: float


@dataclass(frozen=True, slots=True)
class TurnPhaseChanged:
    """The running turn is busy with something else now."""

    turn: TurnId
    phase: TurnPhase


@dataclass(frozen=True, slots=True)
class TextStreamed:
    """More of the answer arrived; the first delta of an entry creates it."""

    entry: EntryId
    delta: str


@dataclass(frozen=True, slots=True)
class ThoughtStreamed:
    """More of a thought summary arrived; the first delta of an entry creates it."""

    entry: EntryId
    delta: str


@dataclass(frozen=True, slots=True)
class EntryCompleted:
    """Nothing more will be added to this text or thought."""

    entry: EntryId


@dataclass(frozen=True, slots=True)
class ToolCallRequested:
    """The model asked for this call."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolCallChanged:
    """A call moved on; `seconds` and `result` come with its end.

    `arguments` are given where the user changed them: what is sent, as canonical indented JSON.
    """

    call: EntryId
    status: ToolCallStatus
    seconds: float | None = None
    result: str = ""
    arguments: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCallProgressed:
    """A running call reported how far it is."""

    call: EntryId
    progress: Progress


@dataclass(frozen=True, slots=True)
class UsageReported:
    """The service counted the tokens of the last step."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class ChatNoticeAdded:
    """gemdeck said something in the conversation."""

    notice: ChatNotice


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """The turn ended. `unsent` is the user's text where the model never took it in."""

    turn: TurnId
    outcome: TurnOutcome
    unsent: str = ""


@dataclass(frozen=True, slots=True)
class ConversationCleared:
    """A new, empty conversation began."""


@dataclass(frozen=True, slots=True)
class RequestRaised:
    """A question waits for the user; one of the same id replaces the question that stands."""

    request: PendingRequest


@dataclass(frozen=True, slots=True)
class RequestSettled:
    """A question was answered or withdrawn; it must not be shown any longer."""

    request: RequestId


@dataclass(frozen=True, slots=True)
class ResourceRead:
    """A resource was read for the user, or could not be: then `failure` says why."""

    server: ServerId
    uri: str
    content: ResourceContent = ResourceContent()
    failure: str = ""


@dataclass(frozen=True, slots=True)
class SubscriptionChanged:
    """Changes of a resource are announced from now on, or no longer."""

    server: ServerId
    uri: str
    subscribed: bool


@dataclass(frozen=True, slots=True)
class ArgumentCompleted:
    """A server completed what the user typed; `token` is the asker's own."""

    token: str
    values: tuple[str, ...]
    has_more: bool = False


@dataclass(frozen=True, slots=True)
class LogLevelChanged:
    """A server was told from which level on to log; a level of RFC 5424 in lower case."""

    server: ServerId
    level: str


@dataclass(frozen=True, slots=True)
class FolderTrustChanged:
    """What the user says of the opened folder is known, or is another now."""

    trust: FolderTrust


@dataclass(frozen=True, slots=True)
class GrantsChanged:
    """These are the rules on tools now, newest first."""

    grants: tuple[GrantView, ...]


@dataclass(frozen=True, slots=True)
class ToolExplained:
    """The engine says how a tool stands; it was asked to."""

    standing: ToolStanding


Event = (
    ServersConfigured
    | ServerStatusChanged
    | CatalogChanged
    | ServerLogged
    | ModelSelected
    | NoticeRaised
    | TurnStarted
    | TurnPhaseChanged
    | TextStreamed
    | ThoughtStreamed
    | EntryCompleted
    | ToolCallRequested
    | ToolCallChanged
    | ToolCallProgressed
    | UsageReported
    | ChatNoticeAdded
    | TurnFinished
    | ConversationCleared
    | RequestRaised
    | RequestSettled
    | ResourceRead
    | SubscriptionChanged
    | ArgumentCompleted
    | LogLevelChanged
    | FolderTrustChanged
    | GrantsChanged
    | ToolExplained
)
