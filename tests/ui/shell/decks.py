"""States of the app for tests and pictures of the screen around the chat."""

from dataclasses import replace

from tui.model import events as e
from tui.model.catalog import (
    Catalog,
    Parameter,
    PromptArgument,
    PromptView,
    ResourceTemplateView,
    ResourceView,
    ToolId,
    ToolView,
)
from tui.model.chat import (
    MAIN,
    BackendKind,
    EntryId,
    ModelView,
    Progress,
    Severity,
    ToolCall,
    ToolCallStatus,
    TurnId,
    TurnPhase,
    Usage,
    UserMessage,
)
from tui.model.requests import FieldKind, FieldOption, FormField
from tui.model.runs import SavedCall, SavedCallsChanged, ToolForm, ToolRun, ToolRunChanged
from tui.model.servers import (
    Failure,
    Origin,
    ServerId,
    ServerInfo,
    ServerStatus,
    ServerUsage,
    ServerView,
    Transport,
)
from tui.model.trust import FolderTrust
from tui.store.reducer import reduce
from tui.store.state import AppState, ConversationState
from tui.store.store import Store

GIT = ServerId("git")
EVERYTHING = ServerId("everything")
SEARCH = ServerId("search")
LEGACY = ServerId("legacy")
WEATHER = ServerId("weather")
DRIVE = ServerId("drive")
TEAM = ServerId("team-notes")

EPOCH = 1_767_225_600.0

USAGE = ServerUsage(
    starts=3,
    pid=4242,
    processes=2,
    memory=84_200_000,
    calls=12,
    failed=1,
    seconds=(0.042, 0.04, 0.051, 0.038, 0.3, 0.12, 0.05, 0.045, 0.04, 0.039, 0.061, 0.044),
    connected=0.412,
    listed=0.031,
    change={"gained": ("tool stash", "prompt review"), "changed": ("tool commit",)},
)
"""What was measured of a server."""


def tool(name: str, description: str = "", **changes: object) -> ToolView:
    defaults: dict[str, object] = {"id": ToolId(name), "name": name, "description": description}
    return ToolView(**{**defaults, **changes})  # type: ignore[arg-type]


def server(
    server_id: ServerId,
    status: ServerStatus = ServerStatus.STOPPED,
    *,
    failure: Failure | None = None,
    transport: Transport = Transport.STDIO,
    target: str = "uvx mcp-server",
    origin: Origin = Origin.USER,
) -> ServerView:
    return ServerView(server_id, origin, transport, target, status=status, failure=failure)


GIT_TOOLS = (
    tool(
        "branch_list",
        "List the branches of a repository, local and remote, with the commit each points at.",
        title="List branches",
        parameters=(
            Parameter("repo_path", "string", required=True, description="The repository."),
            Parameter("pattern", "string", required=False, description="A glob for the names."),
            Parameter("limit", "integer", required=False),
        ),
        schema='{\n  "type": "object",\n  "required": ["repo_path"]\n}',
        claims=("read-only", "idempotent"),
        claims_to_read=True,
    ),
    tool("commit", "Record changes to the repository."),
    tool("diff", "Show changes between commits."),
    tool("log", "Show the commit log."),
    tool("show", "Show one commit."),
    tool("status", "Show the working tree."),
)
EVERYTHING_TOOLS = (
    tool("echo", "Echoes the message back.", parameters=(Parameter("message", "string", True),)),
    tool("add", "Adds two numbers."),
    tool("longRunningOperation", "Runs for a while and reports progress."),
    tool("printEnv", "Prints the environment."),
    tool("getTinyImage", "Gives a small picture."),
    tool("annotatedMessage", "Shows annotations."),
    tool("broken_schema", "A tool that cannot be offered.", problem="its schema is not valid"),
)
EVERYTHING_PROMPTS = (
    PromptView("simple_prompt", description="A prompt without arguments."),
    PromptView(
        "complex_prompt",
        description="A prompt with arguments.",
        arguments=(
            PromptArgument("temperature", required=True, description="How warm."),
            PromptArgument("style", required=False),
        ),
    ),
)
EVERYTHING_RESOURCES = (
    ResourceView("test://static/resource/1", "Resource 1", mime_type="text/plain", size=42),
    ResourceView("test://static/resource/2", "Resource 2", mime_type="application/octet-stream"),
)
EVERYTHING_TEMPLATES = (
    ResourceTemplateView("test://static/resource/{id}", "Static resource", description="By id."),
)


def headed(model: ModelView, usage: Usage = Usage(), **known: object) -> AppState:
    """Give a state for the header alone."""
    conversations = {MAIN: ConversationState(model=model, usage=usage)}
    defaults: dict[str, object] = {"workspace": "~/shop", "configured": True}
    return AppState(**{**defaults, "conversations": conversations, **known})  # type: ignore[arg-type]


def new_store(*, needs_setup: bool = False, workspace: str = "~/shop") -> Store:
    """Give the store of an app whose settings were not read yet."""
    model = ModelView("gemini-3.8-flash", BackendKind.DEMO, needs_setup=needs_setup)
    state = AppState(workspace=workspace, folder_trust=FolderTrust.TRUSTED)
    return Store(reduce(state, e.ModelSelected(model)))


def configure(store: Store, *servers: ServerView) -> None:
    store.dispatch(e.ServersConfigured(tuple(servers)))


def start(store: Store, server_id: ServerId) -> None:
    store.dispatch(e.ServerStatusChanged(server_id, ServerStatus.STARTING))


def make_ready(
    store: Store, server_id: ServerId, catalog: Catalog, *, completions: bool = True
) -> None:
    """Let a server start and list what it offers."""
    info = ServerInfo(
        server_id,
        "1.4.0",
        "2025-11-25",
        instructions="Ask before you write.",
        log_levels=True,
        completions=completions,
        subscriptions=True,
    )
    start(store, server_id)
    store.dispatch(e.CatalogChanged(server_id, catalog))
    store.dispatch(e.ServerStatusChanged(server_id, ServerStatus.READY, info=info))


def full_store(*, retry_at: float | None = None) -> Store:
    """Give a store with a server in each kind of status, logs and a conversation's usage."""
    store = new_store()
    configure(
        store,
        server(GIT, target="uvx mcp-server-git --repository ~/shop"),
        server(EVERYTHING, target="npx -y @modelcontextprotocol/server-everything"),
        server(SEARCH, transport=Transport.HTTP, target="https://search.example/mcp"),
        server(WEATHER, target="python weather.py"),
        server(DRIVE, transport=Transport.HTTP, target="https://drive.example/mcp"),
        server(LEGACY, ServerStatus.DISABLED, target="node old.js"),
        server(TEAM, ServerStatus.UNTRUSTED, origin=Origin.PROJECT, target="./notes"),
    )
    make_ready(store, GIT, Catalog(tools=GIT_TOOLS))
    make_ready(
        store,
        EVERYTHING,
        Catalog(EVERYTHING_TOOLS, EVERYTHING_PROMPTS, EVERYTHING_RESOURCES, EVERYTHING_TEMPLATES),
    )
    refused = Failure("connection refused")
    store.dispatch(e.ServerStatusChanged(SEARCH, ServerStatus.RETRYING, refused, retry_at=retry_at))
    failure = Failure(
        "The server ended with exit code 1 before it answered.",
        advice="Look at its log with l, then restart it with r.",
        stderr_tail=(
            "Traceback (most recent call last):",
            '  File "weather.py", line 3, in <module>',
            "ModuleNotFoundError: No module named 'pandas'",
        ),
    )
    store.dispatch(e.ServerStatusChanged(WEATHER, ServerStatus.FAILED, failure))
    store.dispatch(e.ServerStatusChanged(DRIVE, ServerStatus.NEEDS_SIGN_IN))
    log(store, GIT, "Starting", "Serving ~/shop")
    log(store, WEATHER, "ModuleNotFoundError: No module named 'pandas'", severity=Severity.ERROR)
    store.dispatch(e.ModelSelected(ModelView("gemini-3.8-flash", BackendKind.GEMINI)))
    store.dispatch(e.UsageReported(Usage(prompt=12_400, context=12_400, context_limit=1_000_000)))
    return store


def paged_store() -> Store:
    """Give a store whose first server says all that it can of itself."""
    store = full_store()
    info = ServerInfo(
        "mcp-server-git",
        "1.4.0",
        "2025-11-25",
        instructions="Ask before you write.",
        title="Git",
        website="https://git.example/mcp",
        capabilities=("logging", "prompts", "resources", "tools", "io.example/notes"),
        announced=("elicitation", "roots", "sampling"),
    )
    git = replace(
        store.state.servers[0],
        info=info,
        environment=("GIT_TOKEN", "HOME", "PATH"),
        variables=("GIT_TOKEN",),
        withheld=("AWS_TOKEN",),
        timeout=600.0,
        source="~/.gemini/settings.json, line 4",
    )
    configure(store, git, *store.state.servers[1:])
    return store


def log(store: Store, server_id: ServerId, *texts: str, severity: Severity = Severity.INFO) -> None:
    lines = tuple(e.LogLine(EPOCH + i, "stderr", severity, text) for i, text in enumerate(texts))
    store.dispatch(e.ServerLogged(server_id, lines))


def start_turn(store: Store) -> None:
    message = UserMessage(EntryId("m1"), "hello")
    store.dispatch(e.TurnStarted(TurnId("t1"), message, 0.0))


def change_phase(store: Store, phase: TurnPhase) -> None:
    store.dispatch(e.TurnPhaseChanged(TurnId("t1"), phase))


_PAY = (FieldOption("0", "card"), FieldOption("1", "invoice"))

ORDER = ToolForm(
    (
        FormField("/what", FieldKind.TEXT, "what", "What to order", True, "tea"),
        FormField("/many", FieldKind.INTEGER, "many", "", False, 1),
        FormField("/gift", FieldKind.BOOLEAN, "gift", "", False, False),
        FormField("/tags", FieldKind.JSON, "tags"),
        FormField("/to/city", FieldKind.TEXT, "to · city"),
        FormField("/pay?", FieldKind.CHOICE, "pay", "", False, "1", _PAY),
        FormField("/pay/customer", FieldKind.TEXT, "pay · customer", "", True),
    ),
    '{\n  "gift": false,\n  "many": 1,\n  "what": "tea"\n}',
)
"""A form of a tool with a field of each kind but the several ones."""


def run_store() -> Store:
    """Give a store with a saved call, and calls by hand: two have ended, and one runs."""
    store = full_store()
    destroys = tool("wipe", "Wipe all.", claims=("destructive",))
    store.dispatch(e.CatalogChanged(GIT, Catalog((destroys, *GIT_TOOLS))))
    store.dispatch(SavedCallsChanged((SavedCall(GIT, "main", "wipe", "{}"),)))
    raw = {"structuredContent": {"branches": ["main", "dev"]}}
    faults = ("result.branches: ['main', 'dev'] is too short",)
    ok, at = ToolCallStatus.OK, '{\n  "repo_path": "%s"\n}'
    first = ToolCall(EntryId("c1"), GIT, "branch_list", at % "shop", ok, 0.042, "main\ndev")
    second = replace(first, id=EntryId("c2"), arguments=at % "~/shop", result="main\ndev\nfix")
    going = ToolCall(EntryId("c3"), GIT, "branch_list", at % "shop", ToolCallStatus.RUNNING)
    for run in (
        ToolRun(first, raw),
        ToolRun(second, raw, faults),
        ToolRun(replace(going, progress=Progress(3, 12, "reading"))),
    ):
        store.dispatch(ToolRunChanged(run))
    return store
