"""What all connections share: our services, and state that outlives one connection."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tui.engine.bus import Publish
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.definitions.outside import Outside
from tui.engine.desk import Desk
from tui.engine.logs.redaction import Redactor
from tui.engine.mcp.backoff import StartQueue
from tui.engine.mcp.catalog.kept_catalogs import CatalogStore
from tui.engine.mcp.catalog.offered_tool import FunctionCall, PromptMessage
from tui.engine.mcp.catalog.registry import Budget, ToolVisibility
from tui.engine.mcp.session.era import EraCache
from tui.engine.mcp.transports.stdio.process import ServerProcess
from tui.engine.mcp.transports.stdio.sandbox import Sandboxes
from tui.engine.mcp.transports.stdio.zygote import Zygote
from tui.engine.mcp.wire.wire import Wire
from tui.engine.sign_in.sign_ins import SignIns
from tui.engine.trust.folder_identity import FolderIdentity
from tui.model.frozen import Frozen
from tui.model.servers import ServerId
from tui.text import AdvisedError

OpenUrl = Callable[[str], Awaitable[bool]]
"""Opens an address in the user's browser; returns whether that worked. Called only after the
user's consent, with an ASCII address that was shown in full."""


FormTaker = Callable[[ServerId, Mapping[str, Any]], Awaitable[Mapping[str, Any] | None]]
"""Lets another client answer a form, given and answered as in MCP; None if it may not."""

FORM_TAKER: ContextVar[FormTaker | None] = ContextVar("form_taker", default=None)
"""Who may take the forms that a call causes; None for calls of nobody else."""


class Prompt(Frozen):
    """A sampling prompt for the model.

    Attributes:
        messages: The messages; roles alternate, and the first and last are the user's.
        declarations: Function declarations of the tools that the model may call.
        system: The system prompt, or empty.
        max_tokens: Most tokens of the answer.
        must_call: Whether the answer has to be a call of one of the tools.
    """

    messages: Sequence[PromptMessage]
    declarations: Sequence[Mapping[str, Any]]
    system: str
    max_tokens: int
    must_call: bool = False


class Generation(Frozen):
    """What the model generated.

    Attributes:
        text: Its text, raw.
        calls: Its function calls, in order.
        model: Its name.
        is_cut: Whether it stopped at the token limit.
    """

    text: str
    calls: tuple[FunctionCall, ...]
    model: str
    is_cut: bool = False


class GenerationError(AdvisedError):
    """The model could not answer."""


class Generator(Frozen):
    """The model that answers sampling requests.

    Attributes:
        model: Returns its name; empty while none is chosen.
        generate: Answers a prompt or raises `GenerationError`. Cancelling the caller ends the
            request.
    """

    model: Callable[[], str]
    generate: Callable[[Prompt], Awaitable[Generation]]


async def open_nothing(_url: str) -> bool:
    """Open nothing: the default without a browser."""
    return False


Borrow = Callable[[ServerDefinition], Awaitable[ServerProcess | None]]
"""Returns a server of an open deck in place of a process; None if it is to be started here."""


@dataclass(slots=True)
class ClientContext:
    """What all connections share. Lives on one event loop.

    Attributes:
        publish: Takes events.
        desk: Asks the user.
        generator: The model that answers sampling requests, or None for no sampling.
        open_url: Opens an address after the user's consent.
        borrow: Finds a server in an open deck before it is started; None starts all.
        workspaces: The opened folder, and further ones that servers get as roots; absolute.
        opened: Which folder was judged; none starts in another that has come to its place.
        outside: Makes the folders in which servers start outside the opened one.
        sandboxes: Puts servers into sandboxes.
        subscriptions: Per server, the URIs, as shown, of the resources the user subscribed to.
        log_levels: Per server, the log level the user has set.
        resource_updated: Called when a server announces a change of a resource.
        visibility: Decides which of their tools the model must not see.
        client_version: Our version, as servers are told it.
        catalogs: Keeps what servers offer that start when they are needed.
        sleep_after: Seconds without use after which those sleep; 0 for never.
        starts: When servers start by themselves.
        eras: Remembers which servers speak which era of the protocol.
        zygote: Forks the parents of stdio servers; the manager of the servers closes it.
        gives_instructions: Whether the model gets what servers say about themselves.
        budget: How many tools the model holds at most.
        redactor: Masks the secrets of the run.
        sign_ins: Gives the credentials of servers over HTTP, or None.
        wire: Notes what is said between us and the servers.
    """

    publish: Publish = lambda _event: None
    desk: Desk = field(default_factory=lambda: Desk(lambda _event: None, attended=False))
    generator: Generator | None = None
    open_url: OpenUrl = open_nothing
    borrow: Borrow | None = None
    workspaces: tuple[Path, ...] = ()
    opened: FolderIdentity | None = None
    outside: Outside = field(default_factory=lambda: Outside(Path.cwd(), Path.home(), None))
    sandboxes: Sandboxes = field(default_factory=lambda: Sandboxes(Path.home(), None))
    subscriptions: dict[ServerId, set[str]] = field(default_factory=dict)
    log_levels: dict[ServerId, str] = field(default_factory=dict)
    resource_updated: Callable[[ServerId, str], None] = lambda _server, _uri: None
    visibility: ToolVisibility = field(default_factory=ToolVisibility)
    client_version: str = ""
    catalogs: CatalogStore = field(default_factory=CatalogStore)
    sleep_after: float = 0.0
    starts: StartQueue = field(default_factory=StartQueue)
    eras: EraCache = field(default_factory=EraCache)
    zygote: Zygote = field(default_factory=Zygote)
    gives_instructions: bool = True
    budget: Budget = field(default_factory=Budget)
    redactor: Redactor = field(default_factory=Redactor)
    sign_ins: SignIns | None = None
    wire: Wire = field(default_factory=Wire)
