"""One event of every kind, and a state in which each of them means something."""

import sys
from typing import Final

from tui.model import chat, models, runs, servers, sessions
from tui.model import events as e
from tui.model.catalog import Catalog, Parameter, ResourceContent, ToolId, ToolView
from tui.model.consent import Effect, GrantId, GrantView, RequestId, ToolRuleChanged
from tui.model.events import BranchRead, ContextFile, ContextRead, FoldersOpened, TerminalSet
from tui.model.frozen import Event, StateEvent
from tui.model.requests import ConfirmationRequest
from tui.model.settings import PriceSettings, Profile
from tui.model.trust import FolderTrust
from tui.store.reducer import reduce
from tui.store.state import AppState

SERVER: Final = servers.ServerId("notes")
OTHER: Final = chat.ConversationId("other")
TURN: Final = chat.TurnId("turn-1")
TEXT: Final = chat.EntryId("text-1")
THOUGHT: Final = chat.EntryId("thought-1")
CALL: Final = chat.EntryId("call-1")
REQUEST: Final = RequestId("request-1")
SESSION: Final = sessions.SessionView(
    sessions.SessionId("20260102-030405-abcdef"), "/work", first="hello"
)

EVENT_TYPES: Final = {
    kind
    for name, module in sys.modules.items()
    if name.startswith("tui.model")
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, Event)
} - {Event, StateEvent, chat.ConversationEvent}
"""Every kind of event."""

RECORDED: Final[tuple[type, ...]] = (
    e.ToolCallDecided,
    ToolRuleChanged,
    e.TaskKept,
    e.ResourceUpdated,
)
"""Events for the audit log, sessions or other clients, which leave the state alone."""


def server_view(
    name: str = SERVER, status: servers.ServerStatus = servers.ServerStatus.STOPPED
) -> servers.ServerView:
    """Make a server as the settings would give it."""
    return servers.ServerView(
        servers.ServerId(name),
        servers.Origin.DEMO,
        servers.Transport.STDIO,
        "python -m notes",
        status=status,
    )


def tool_call(entry: chat.EntryId = CALL) -> chat.ToolCall:
    """Make a call that waits."""
    return chat.ToolCall(entry, SERVER, "add_note", '{\n  "text": "buy milk"\n}')


def confirmation(request: RequestId = REQUEST) -> ConfirmationRequest:
    """Make a question about `tool_call`."""
    return ConfirmationRequest(request, CALL, SERVER, "add_note", "Adds a note.", "{}")


def log_line(text: str = "listening") -> e.LogLine:
    """Make one line of a server's log."""
    return e.LogLine(1.0, "stderr", chat.Severity.INFO, text)


def populated_state() -> AppState:
    """Make a state in the middle of a turn, in which every event of `one_of_each` has an effect."""
    state = AppState()
    history: tuple[e.Event, ...] = (
        e.ServersConfigured((server_view(), server_view("other", servers.ServerStatus.READY))),
        e.TurnStarted(TURN, chat.UserMessage(chat.EntryId("user-1"), "add a note: buy milk"), 10.0),
        e.ThoughtStreamed(THOUGHT, "The user wants"),
        e.TextStreamed(TEXT, "I will"),
        e.ToolCallRequested(tool_call()),
        e.RequestRaised(confirmation()),
        sessions.ConversationOpened(OTHER),
    )
    for event in history:
        state = reduce(state, event)
    return state


def one_of_each() -> dict[type, e.Event]:
    """Make one event of every kind; all but the recorded ones change `populated_state`."""
    tool = ToolView(
        ToolId("add_note"), "add_note", parameters=(Parameter("text", "string", required=True),)
    )
    grant = GrantView(GrantId("g1"), Effect.ALLOW, "notes", "add_note", "this session", "you")
    made: tuple[e.Event, ...] = (
        e.ServersConfigured((server_view("changed"),)),
        e.ServerStatusChanged(
            SERVER,
            servers.ServerStatus.FAILED,
            servers.Failure("it ended", "restart it", ("Traceback",)),
            None,
            servers.ServerInfo("notes", "1", "2026-07-28"),
        ),
        servers.AccessRefused(SERVER, servers.RefusedAccess("write", "~/notes")),
        e.CatalogChanged(SERVER, Catalog(tools=(tool,))),
        e.ServerLogged(SERVER, (log_line(),)),
        e.ModelSelected(chat.ModelView("gemini", chat.BackendKind.GEMINI)),
        e.NoticeRaised(e.Notice(chat.Severity.WARNING, "settings")),
        e.QueueChanged(("and this",)),
        e.TurnStarted(
            chat.TurnId("turn-2"), chat.UserMessage(chat.EntryId("user-2"), "again"), 20.0
        ),
        e.TurnPhaseChanged(TURN, chat.TurnPhase.STREAMING),
        e.TurnClockSet(TURN, 99.0),
        e.MessageExpanded(
            chat.UserMessage(chat.EntryId("user-1"), "add a note: buy milk and more")
        ),
        e.TextStreamed(TEXT, " add it."),
        e.ThoughtStreamed(THOUGHT, " a note."),
        e.EntryCompleted(TEXT),
        e.ToolCallRequested(tool_call(chat.EntryId("call-2"))),
        e.ToolCallChanged(CALL, chat.ToolCallStatus.OK, 0.04, "added"),
        e.ToolCallDecided(CALL, SERVER, "ab", "add_note", "cd", "{}", "allow", "you: once"),
        e.ToolCallProgressed(CALL, chat.Progress(1, 3, "working")),
        e.TaskKept("ab12", CALL, SERVER, "ab", "add_note", "task 1", 1_780_000_000.0, 60.0),
        e.UsageReported(chat.Usage(prompt=12, output=3, context_limit=1_000)),
        e.ChatNoticeAdded(chat.ChatNotice(chat.EntryId("notice-1"), chat.Severity.ERROR, "no key")),
        e.TurnFinished(TURN, chat.TurnOutcome.FAILED, "add a note: buy milk"),
        e.MessageReturned("/hlep"),
        e.ConversationCleared(),
        e.RequestRaised(confirmation(RequestId("request-2"))),
        e.RequestSettled(REQUEST),
        e.RequestsQueued(3),
        e.ResourceRead(SERVER, "notes://all", ResourceContent("buy milk", "text/plain")),
        e.SubscriptionChanged(SERVER, "notes://all", subscribed=True),
        e.ResourceUpdated(SERVER, "notes://all"),
        e.ServerTried(e.ServersConfigured((server_view(),))),
        e.ArgumentCompleted("token-1", ("home", "hello")),
        e.LogLevelChanged(SERVER, "warning"),
        ContextRead((ContextFile("~/.gemini/GEMINI.md", "Be brief."),)),
        e.InstructionsSent({SERVER: "Ask before you write."}),
        e.FolderTrustChanged(FolderTrust.TRUSTED),
        TerminalSet(bell=False, title=True, mouse=False, keys={"deck.tools": "f12"}),
        BranchRead("main"),
        FoldersOpened(("~/shop", "~/more")),
        e.GrantsChanged((grant,)),
        ToolRuleChanged(SERVER, "ab", "add_note", "cd", "revoke"),
        sessions.ConversationRestored(
            (chat.UserMessage(chat.EntryId("r1"), "hello"),), session=SESSION.id
        ),
        sessions.ConversationRewound(chat.EntryId("e1")),
        sessions.ConversationOpened(chat.ConversationId("third")),
        sessions.ConversationSelected(OTHER),
        sessions.ConversationNamed("Milk"),
        sessions.ConversationClosed(OTHER),
        sessions.SessionsListed((SESSION,)),
        sessions.LastSessionFound(SESSION, is_cut=True),
        models.PricesSet(PriceSettings(currency="EUR")),
        models.ProfilesSet({"review": Profile(servers=("git",))}),
        models.MarksSet(frozenset({(SERVER, "look")})),
        models.ModelsListed((models.ModelOffer("gemini-3.8-flash"),)),
        models.ModelOptionsChanged(models.ModelOptions(temperature=1.0)),
        models.ContextMeasured((models.ContextPart("messages", 5),)),
        sessions.SessionPreviewed(SESSION.id, (chat.UserMessage(chat.EntryId("r1"), "hello"),)),
        sessions.SessionsSearched("hello", (sessions.SessionMatch(SESSION, "…hello…"),)),
        runs.ToolRunChanged(runs.ToolRun(tool_call(chat.EntryId("call-3")), {"content": []})),
        runs.SavedCallsChanged((runs.SavedCall(SERVER, "milk", "add_note", "{}"),)),
        runs.PromptRendered("token-2", (runs.RenderedMessage("user", ("Greet me.",)),)),
        e.FramesNoted(7),
    )
    return {type(event): event for event in made}
