"""The conversation as shown: its entries and the running turn."""

from dataclasses import field
from enum import StrEnum
from typing import Final, NewType

from tui.model.frozen import Event, Frozen
from tui.model.servers import ServerId

ConversationId = NewType("ConversationId", str)
"""Identifies a conversation within the process."""

MAIN: Final = ConversationId("main")
"""The first conversation."""


class ConversationEvent(Event, kw_only=True):
    """An event of one conversation."""

    conversation: ConversationId = MAIN


EntryId = NewType("EntryId", str)
"""Identifies a transcript entry within a conversation."""

TurnId = NewType("TurnId", str)


def order_of(entry: EntryId) -> int:
    """Return a number that grows with each entry of this run; 0 for one that was restored."""
    return int(number) if (number := entry[1:]).isdecimal() and entry[0] in "ce" else 0


class Severity(StrEnum):
    """The severity of a message."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class ToolCallStatus(StrEnum):
    """The status of a tool call. The value is its name on the screen."""

    WAITING = "waiting"
    ASKING = "asking you"
    RUNNING = "running"
    OK = "ok"
    ERROR = "error"
    DENIED = "denied"
    CANCELLED = "cancelled"
    RUNS_ON = "runs on"

    @property
    def is_over(self) -> bool:
        """Whether the call has ended, will never run, or runs on without its turn."""
        return self not in {self.WAITING, self.ASKING, self.RUNNING}


class TurnPhase(StrEnum):
    """The phase of a running turn. The value is its name on the screen."""

    SERVERS = "waiting for servers to start"
    ASKING = "waiting for"
    WAITING = "waiting for the model"
    RETRYING = "retrying"
    STREAMING = "answering"
    TOOLS = "running tools"


ASKING_PHASES: Final = (TurnPhase.SERVERS, TurnPhase.ASKING, TurnPhase.TOOLS)
"""In which a turn waits for the answer to a question that is open."""


class UserMessage(Frozen):
    """A message of the user.

    Attributes:
        id: Its entry.
        text: The whole of it, with what servers and files added.
        as_typed: What was typed, once they did; else empty.
        servers: The servers whose data it contains.
    """

    id: EntryId
    text: str
    as_typed: str = ""
    servers: tuple[ServerId, ...] = ()

    @property
    def typed(self) -> str:
        return self.as_typed or self.text


class ModelText(Frozen):
    """A part of the model's answer; `complete` when it will not grow."""

    id: EntryId
    text: str
    complete: bool = False


class Thought(Frozen):
    """A thought summary; `complete` when it will not grow, with the seconds that it took."""

    id: EntryId
    text: str
    complete: bool = False
    seconds: float | None = None


class Progress(Frozen):
    """The progress of a running call; `total` is None if unknown."""

    progress: float
    total: float | None = None
    message: str = ""

    @property
    def words(self) -> str:
        """It in words, such as ``2 of 5 files read``."""
        of = f" of {self.total:g}" if self.total is not None else ""
        return f"{self.progress:g}{of} {self.message}".rstrip()


class TaskStatus(StrEnum):
    """What a server says of a task. The value is its word in the protocol."""

    WORKING = "working"
    INPUT_REQUIRED = "input_required"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_over(self) -> bool:
        return self not in {self.WORKING, self.INPUT_REQUIRED}

    @property
    def words(self) -> str:
        return self.value.replace("_", " ")


class TaskProgress(Progress):
    """How a call stands that its server runs as a task.

    Attributes:
        progress: The seconds that it runs.
        message: What the server says of it.
        status: Its status.
        left: The seconds until the server may forget it.
    """

    status: TaskStatus = TaskStatus.WORKING
    left: float = 0.0


class Picture(Frozen):
    """A picture that a server sent: its media type, its data in base64, and its pixels."""

    mime_type: str
    data: str = field(repr=False)
    width: int
    height: int


class ToolCall(Frozen):
    """One call of a tool.

    Attributes:
        id: The id of the call and its entry.
        server: The server that runs it; empty for a tool that does not exist.
        tool: The tool's name on that server.
        arguments: The complete arguments as canonical indented JSON.
        status: Its status.
        seconds: Its duration, once it has ended.
        result: The result, or why there is none.
        progress: The last progress that the server reported.
        pictures: The pictures of the result; a resumed session has none.
    """

    id: EntryId
    server: ServerId
    tool: str
    arguments: str
    status: ToolCallStatus = ToolCallStatus.WAITING
    seconds: float | None = None
    result: str = ""
    progress: Progress | None = None
    pictures: tuple[Picture, ...] = ()

    @property
    def task_keys(self) -> tuple[str, ...]:
        """What can be done with its task, if it has one: ``cancel`` it, or ``leave`` it."""
        if self.status is ToolCallStatus.RUNS_ON:
            return ("cancel",)
        return ("cancel", "leave") if isinstance(self.progress, TaskProgress) else ()


class ChatNotice(Frozen):
    """A message from gemdeck in the conversation: an error, a stop, a limit.

    Attributes:
        brief: What stands in place of a long text until it is opened, or an empty string.
        passes: Whether it goes with the end of its turn.
    """

    id: EntryId
    severity: Severity
    text: str
    advice: str = ""
    brief: str = ""
    passes: bool = False


class TurnEnd(Frozen):
    """The end of a turn: its tool calls, its seconds and the tokens and cost of its requests."""

    id: EntryId
    calls: int = 0
    seconds: float = 0.0
    tokens: int = 0
    cost: str = ""


Entry = UserMessage | ModelText | Thought | ToolCall | ChatNotice | TurnEnd


class Usage(Frozen):
    """Token counts of one request or of several, from the service.

    `context` is how full the context is after the last one, and `context_limit` its size; 0 if
    unknown.
    """

    prompt: int = 0
    output: int = 0
    thoughts: int = 0
    cached: int = 0
    context: int = 0
    context_limit: int = 0

    @property
    def total(self) -> int:
        return self.prompt + self.output + self.thoughts

    def plus(self, other: "Usage") -> "Usage":
        """Add the counts of a later request."""
        prompt, output = self.prompt + other.prompt, self.output + other.output
        thoughts, cached = self.thoughts + other.thoughts, self.cached + other.cached
        last = other.context or self.context, other.context_limit or self.context_limit
        return Usage(prompt, output, thoughts, cached, *last)

    def cleared(self) -> "Usage":
        """Return no counts, with the state of the context."""
        return Usage(context=self.context, context_limit=self.context_limit)


class TurnState(Frozen):
    """The running turn; its times are in seconds of `time.monotonic`.

    `server` is asked for a part of the user's message; `until` is when the service is asked again.
    """

    id: TurnId
    phase: TurnPhase
    started_at: float
    server: ServerId | None = None
    until: float | None = None


class TurnOutcome(StrEnum):
    """How a turn ended."""

    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"
    LIMITED = "too many tool calls"
    OUT_OF_REQUESTS = "too many requests"
    TOO_EXPENSIVE = "cost limit reached"


class BackendKind(StrEnum):
    """A model service that gemdeck knows. The value is its name on the screen."""

    DEMO = "demo"
    GEMINI = "Gemini"
    VERTEX = "Vertex"
    OTHER = "another service"


class ModelView(Frozen):
    """The current model.

    Attributes:
        name: Its name.
        backend: The service that runs it: a `BackendKind`, or the name of another one.
        needs_setup: Whether the demo stands in because no key was found.
        source: Where its credentials come from; empty for the demo.
        is_kept: Whether gemdeck keeps what it takes to ask it, so that it can be forgotten.
        choice: How many choices there were before, so that the same one twice is another.
        address: Where the service is, or an empty string for Google's own address.
    """

    name: str
    backend: str
    needs_setup: bool = False
    source: str = ""
    is_kept: bool = False
    choice: int = 0
    address: str = ""
