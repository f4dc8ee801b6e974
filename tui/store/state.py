"""`AppState`: everything the screen shows, as one frozen tree."""

from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Final

from tui.model.chat import (
    MAIN,
    BackendKind,
    ConversationId,
    Entry,
    EntryId,
    ModelView,
    ToolCall,
    TurnState,
    Usage,
)
from tui.model.frozen import Frozen
from tui.model.models import OWN_OPTIONS, ContextPart, Marks, ModelOptions, ModelsListed
from tui.model.servers import ServerId, ServerView
from tui.model.trust import FolderTrust

if TYPE_CHECKING:  # loaded after the first frame, with the engine
    from tui.model.consent import GrantView
    from tui.model.events import ArgumentCompleted, ContextFile, LogLine, Notice, ResourceRead
    from tui.model.requests import PendingRequest
    from tui.model.runs import PromptRendered, SavedCall, ToolRun
    from tui.model.sessions import (
        LastSessionFound,
        SessionPreviewed,
        SessionsSearched,
        SessionView,
    )
    from tui.model.settings import PriceSettings, Profile

MAX_LOG_LINES: Final = 1_000
"""Log lines kept per server."""

MAX_UNSENT: Final = 100
"""Messages kept that came back to the user; the oldest are dropped first."""

NO_MODEL: Final = ModelView(name="", backend=BackendKind.DEMO)
"""Stands until a model is found."""

MAX_NOTICES: Final = 100
"""Notices kept; the oldest are dropped first."""

MAX_RUNS: Final = 50
"""Calls by hand that are kept; the oldest that have ended are dropped first."""


class TranscriptState(Frozen):
    """The entries of a conversation.

    Attributes:
        settled: Entries of ended turns; only old results are clipped later, and tasks end.
        live: Entries of the running turn. Only these change, so that a text delta costs the
            length of the turn, not of the conversation.
        epoch: Incremented when a new conversation starts.
    """

    settled: tuple[Entry, ...] = ()
    live: tuple[Entry, ...] = ()
    epoch: int = 0


class Unsent(Frozen):
    """Messages that came back to the user: the last ones, and the number of all so far."""

    texts: tuple[str, ...] = ()
    count: int = 0


class ConversationState(Frozen):
    """One conversation.

    Attributes:
        transcript: Its entries.
        turn: The running turn, or None.
        queued: The messages that wait for its end.
        usage: Tokens of all requests since the last turn began.
        spent: Tokens of all requests.
        turn_cost: What those of the last turn cost; None if one went to a model without a price.
        cost: What all of them cost; likewise.
        unsent: Messages to return to the composer.
        model: The model that answers.
        options: How it answers.
        title: The title that the user gave it, or the first words.
        tasks: Its calls that run as tasks, as they stood last.
        has_news: Whether a turn ended while another conversation was on the screen.
    """

    transcript: TranscriptState = TranscriptState()
    turn: TurnState | None = None
    queued: tuple[str, ...] = ()
    usage: Usage = Usage()
    spent: Usage = Usage()
    turn_cost: float | None = 0.0
    cost: float | None = 0.0
    unsent: Unsent = Unsent()
    model: ModelView = NO_MODEL
    options: ModelOptions = OWN_OPTIONS
    title: str = ""
    tasks: Mapping[EntryId, ToolCall] = field(default_factory=dict)
    has_news: bool = False

    def with_usage(self, usage: Usage, cost: float | None) -> "ConversationState":
        """Return the conversation after one more request; its cost is None if not known."""
        return replace(
            self,
            usage=self.usage.plus(usage),
            spent=self.spent.plus(usage),
            turn_cost=_sum(self.turn_cost, usage, cost),
            cost=_sum(self.cost, usage, cost),
        )


def _sum(before: float | None, usage: Usage, cost: float | None) -> float | None:
    """Add a cost; a request without tokens costs nothing, and one unknown makes all unknown."""
    if not usage.total:
        return before
    return None if before is None or cost is None else before + cost


class AppState(Frozen):
    """A snapshot of the app.

    Attributes:
        workspace: The folder gemdeck runs in, as shown.
        servers: All configured servers in settings order; empty until the settings are read.
        configured: Whether the settings have been read.
        conversations: All conversations, in the order of their tabs.
        current: The conversation on the screen.
        pending: Questions that wait for the user, oldest first.
        queued: Number of requests of servers behind those.
        logs: The last log lines of each server, oldest first.
        notices: Notices, oldest first.
        notice_count: Number of notices so far, including dropped ones.
        resource: The resource that the user read last, or None.
        subscriptions: Subscribed resources, as (server, URI).
        trial: The server that is started on trial, as if it were alone, or None.
        completion: The last completion of an argument, or None.
        log_levels: The log level set for each server.
        instructions: The instructions of servers that the model got with the last request.
        context: The files of context that the model gets, or would but for a problem.
        folder_trust: The trust of the workspace folder.
        bell: Whether a question or the end of a long turn rings while the user looks elsewhere.
        title: Whether the terminal's title says what goes on.
        mouse: Whether the mouse is ours, and not the terminal's.
        keys: The user's own keys by the action's id, several with commas between.
        folders: The opened folders, as shown, the workspace first.
        branch: The git branch that the folder is on, or an empty string.
        grants: The rules on tools, newest first.
        models: The models of the service as they were listed last, or None.
        context_parts: What filled the context when it was measured last.
        sessions: The saved sessions of the folder as they were listed last, newest first.
        last_session: What an earlier run left to go on with, or None.
        preview: The end of a session as it was read last, or None.
        searched: What the last search in the text of sessions found, or None.
        prices: What models cost, or None.
        profiles: The profiles that can be chosen, and those in use, by name.
        marks: The servers and tools that the user marked for a profile.
        wire_revision: Grows with the frames of the wire while somebody watches it.
        runs: The calls that the user made by hand, oldest first.
        saved_calls: The calls that are saved, in the order of servers, tools and names.
        rendered: The prompt that a server rendered last for the user to look at, or None.
    """

    workspace: str = ""
    servers: tuple[ServerView, ...] = ()
    configured: bool = False
    conversations: Mapping[ConversationId, ConversationState] = field(
        default_factory=lambda: {MAIN: ConversationState()}
    )
    current: ConversationId = MAIN
    pending: "tuple[PendingRequest, ...]" = ()
    queued: int = 0
    logs: "Mapping[ServerId, tuple[LogLine, ...]]" = field(default_factory=dict)
    notices: "tuple[Notice, ...]" = ()
    notice_count: int = 0
    resource: "ResourceRead | None" = None
    subscriptions: frozenset[tuple[ServerId, str]] = frozenset()
    trial: "AppState | None" = None
    completion: "ArgumentCompleted | None" = None
    log_levels: Mapping[ServerId, str] = field(default_factory=dict)
    instructions: Mapping[ServerId, str] = field(default_factory=dict)
    context: "tuple[ContextFile, ...]" = ()
    folder_trust: FolderTrust = FolderTrust.UNKNOWN
    bell: bool = True
    title: bool = False
    mouse: bool = True
    keys: Mapping[str, str] = field(default_factory=dict)
    branch: str = ""
    folders: tuple[str, ...] = ()
    grants: "tuple[GrantView, ...]" = ()
    models: ModelsListed | None = None
    context_parts: tuple[ContextPart, ...] = ()
    sessions: "tuple[SessionView, ...]" = ()
    last_session: "LastSessionFound | None" = None
    preview: "SessionPreviewed | None" = None
    searched: "SessionsSearched | None" = None
    prices: "PriceSettings | None" = None
    profiles: "Mapping[str, Profile]" = field(default_factory=dict)
    marks: Marks = frozenset()
    wire_revision: int = 0
    runs: "Mapping[EntryId, ToolRun]" = field(default_factory=dict)
    saved_calls: "tuple[SavedCall, ...]" = ()
    rendered: "PromptRendered | None" = None

    @property
    def conversation(self) -> ConversationState:
        return self.conversations[self.current]

    @property
    def model(self) -> ModelView:
        return self.conversation.model

    @property
    def cost(self) -> str:
        """What was spent in this tab so far, in words; empty where that is not known."""
        return self.prices.words(self.conversation.cost) if self.prices is not None else ""

    @property
    def options(self) -> ModelOptions:
        return self.conversation.options

    def leaves_out(self, server: ServerId, tool: str = "") -> bool:
        """Return whether the profile of this tab leaves out a server, or a tool of it."""
        profile = self.profiles.get(self.options.profile)
        return profile is not None and not profile.includes(server, tool)
