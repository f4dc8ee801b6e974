"""The conversation as the user sees it: a list of entries, and the turn that runs."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NewType

from tui.model.servers import ServerId

EntryId = NewType("EntryId", str)
"""Identifies one entry of the transcript for the life of a conversation."""

TurnId = NewType("TurnId", str)


class Severity(StrEnum):
    """How much a message matters."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class ToolCallStatus(StrEnum):
    """Where a tool call stands. The value is the word on the screen."""

    WAITING = "waiting"
    ASKING = "asking you"
    RUNNING = "running"
    OK = "ok"
    ERROR = "error"
    DENIED = "denied"
    CANCELLED = "cancelled"


class TurnPhase(StrEnum):
    """What a running turn is busy with. The value is the word on the screen."""

    SERVERS = "waiting for servers to start"
    WAITING = "waiting for the model"
    STREAMING = "answering"
    TOOLS = "running tools"


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What the user sent."""

    id: EntryId
    text: str


@dataclass(frozen=True, slots=True)
class ModelText:
    """A stretch of the model's answer; `complete` once nothing more will be added."""

    id: EntryId
    text: str
    complete: bool = False


@dataclass(frozen=True, slots=True)
class Thought:
    """A summary of the model's thinking; `complete` once nothing more will be added."""

    id: EntryId
    text: str
    complete: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a running call is; `total` is None where the server does not know."""

    progress: float
    total: float | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool.

    Attributes:
        id: Identifies the call and its entry.
        server: The server that runs it; empty for a tool that does not exist.
        tool: The tool's name on that server.
        arguments: The complete arguments as canonical indented JSON.
        status: Where the call stands.
        seconds: How long it ran, once it has ended.
        result: What came back, or why nothing did.
        progress: The last progress the server reported while running.
    """

    id: EntryId
    server: ServerId
    tool: str
    arguments: str
    status: ToolCallStatus = ToolCallStatus.WAITING
    seconds: float | None = None
    result: str = ""
    progress: Progress | None = None


@dataclass(frozen=True, slots=True)
class ChatNotice:
    """A word of gemdeck's own in the conversation: an error, a stop, a limit reached."""

    id: EntryId
    severity: Severity
    text: str
    advice: str = ""


Entry = UserMessage | ModelText | Thought | ToolCall | ChatNotice


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of the last model step, as the service counts them.

    `prompt` already holds the whole conversation, so it is also the fill of the context,
    whose size is `context_limit` (0 where unknown).
    """

    prompt: int = 0
    output: int = 0
    thoughts: int = 0
    cached: int = 0
    context_limit: int = 0


@dataclass(frozen=True, slots=True)
class TurnState:
    """The running turn: its phase and its start in seconds of `time.monotonic`."""

    id: TurnId
    phase: TurnPhase
    started_at: float


class TurnOutcome(StrEnum):
    """How a turn ended."""

    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"
    LIMITED = "too many tool calls"


class BackendKind(StrEnum):
    """Which model service answers. The value is the word on the screen."""

    DEMO = "demo"
    GEMINI = "Gemini"
    VERTEX = "Vertex"


@dataclass(frozen=True, slots=True)
class ModelView:
    """The model that answers, and whether the user still has to choose one."""

    name: str
    backend: BackendKind
    needs_setup: bool = False
