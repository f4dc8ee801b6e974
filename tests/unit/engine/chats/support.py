"""A conversation over real HTTP, with tools that run in this process."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest
from pydantic import SecretStr

from tests.fakes.completions import KEY as COMPLETIONS_KEY
from tests.fakes.completions import FakeCompletions
from tests.fakes.gemini import KEY, FakeGemini
from tests.support.waiting import PATIENCE
from tui.engine.approval.gate import Gate
from tui.engine.approval.grants import GrantBook
from tui.engine.approval.inquiry import Edit, Inquiry, TurnRecord, UnusableEditError
from tui.engine.approval.policy import Policy
from tui.engine.approval.tool_review import PinStore
from tui.engine.background import TaskSet
from tui.engine.bus import EventBus
from tui.engine.chats.backends.backend import ModelBackend
from tui.engine.chats.backends.completions import CompletionsBackend
from tui.engine.chats.backends.gemini import GeminiBackend, create_gemini_backend
from tui.engine.chats.conversations import Conversation
from tui.engine.chats.history import History
from tui.engine.chats.sessions.recorder import Recorder
from tui.engine.chats.skills import Skills
from tui.engine.chats.turn import Message, MessageContent, RetryWait, TurnContext, TurnSetup
from tui.engine.desk import Desk
from tui.engine.keys.credentials import ModelAccess
from tui.engine.keys.services import ModelService
from tui.engine.logs.audit import AuditLog
from tui.engine.logs.redaction import Redactor
from tui.engine.mcp.catalog.offered_tool import JsonObject, OfferedTool, TextPart, ToolResult
from tui.engine.mcp.catalog.permit import Permit
from tui.engine.mcp.catalog.registry import Registry, ToolVisibility
from tui.engine.mcp.manager import ServerManager
from tui.engine.mcp.tasks import RemoteTasks
from tui.engine.mcp.wire.wire import Wire
from tui.model import chat as chat_model
from tui.model.catalog import Catalog, ToolId, ToolView
from tui.model.consent import Choice, Decision
from tui.model.events import Event, RequestRaised, TurnFinished
from tui.model.input.arguments import canonical_json, read_arguments
from tui.model.servers import ServerId
from tui.model.settings import (
    EVERYTHING,
    GemdeckSettings,
    Profile,
    ServiceModel,
    ToolPattern,
)
from tui.store.selectors import entries
from tui.store.store import Store

MODEL = "gemini-3.8-flash"
E = TypeVar("E")
Run = Callable[[JsonObject], Awaitable[ToolResult]]


async def open_completions(
    url: str,
    key: str = COMPLETIONS_KEY,
    model: str = "large",
    said: dict[str, Any] | None = None,
    **more: Any,  # noqa: ANN401 - settings
) -> CompletionsBackend:
    """Open a model of a service on loopback; `said` is what the user says of it."""
    settings = GemdeckSettings(model=f"fake/{model}", **{"idle_timeout": PATIENCE, **more})
    models = {model: ServiceModel.model_validate(said or {})}
    service = ModelService("fake", url, models=models)
    secret = SecretStr(key) if key else None
    access = ModelAccess(
        *(chat_model.BackendKind.OTHER, secret), service=service, secrets=frozenset({key} - {""})
    )
    return await asyncio.to_thread(CompletionsBackend, access, settings)


async def open_backend(url: str, key: str = KEY, model: str = MODEL, **more: Any) -> GeminiBackend:  # noqa: ANN401
    more = {"idle_timeout": PATIENCE, **more}
    access = ModelAccess(chat_model.BackendKind.GEMINI, SecretStr(key), base_url=url)
    settings = GemdeckSettings(model=model, **more)
    return await asyncio.to_thread(create_gemini_backend, access, settings)


def make_tool(
    name: str,
    server: str = "notes",
    *,
    definition_hash: str = "",
    trusted: bool = False,
    fingerprint: str | None = None,
) -> OfferedTool:
    """A tool that takes ``{"text": string}``."""
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    return OfferedTool(
        id=ToolId(name),
        server=ServerId(server),
        name=name,
        view=ToolView(ToolId(name), name, description=f"Does {name}.", claims=("read-only",)),
        declaration={"name": name, "description": "d", "parametersJsonSchema": schema},
        schema={**schema, "additionalProperties": False},
        definition_hash=definition_hash or f"hash-of-{name}",
        trusted=trusted,
        fingerprint=f"what {server} is" if fingerprint is None else fingerprint,
    )


def make_policy(book: GrantBook | None = None, *, allows_all: bool = False) -> Policy:
    """Make a policy for ``/work`` that nobody hears."""
    return Policy(book or GrantBook(), "/work", lambda _: None, allows_all=allows_all)


def rule(server: str, tool: str) -> ToolPattern:
    """Make a rule on tools as the settings have it."""
    return ToolPattern(server=server, tool=tool)


async def read_any_edit(text: str) -> Edit:
    """Read edited arguments of a tool that takes whatever there is."""
    try:
        arguments = read_arguments(text)
    except ValueError as error:
        raise UnusableEditError(str(error)) from error
    return Edit(arguments, canonical_json(arguments))


def make_inquiry(
    tool: OfferedTool,
    *others: OfferedTool,
    arguments: JsonObject | None = None,
    turn: TurnRecord | None = None,
    call: str = "e1",
) -> Inquiry:
    """A call of a tool that was offered with others."""
    arguments = arguments or {}
    return Inquiry(
        call=chat_model.EntryId(call),
        tool=tool,
        arguments=arguments,
        shown=canonical_json(arguments),
        offered=(tool, *others),
        turn=turn or TurnRecord(),
        read_edit=read_any_edit,
    )


def text_result(text: str, *, is_error: bool = False) -> ToolResult:
    return ToolResult((TextPart(text),), display=text, is_error=is_error)


@dataclass
class InProcessTools(ServerManager):
    """Stands for servers; `runs` says what a tool does, else it echoes its name."""

    tools: list[OfferedTool] = field(default_factory=list)
    runs: dict[str, Run] = field(default_factory=dict)
    called: list[tuple[str, JsonObject]] = field(default_factory=list)
    said: Sequence[tuple[ServerId, str]] = ()
    catalogs: dict[ServerId, Catalog] = field(default_factory=dict)
    wire: Wire = field(default_factory=Wire)
    redactor: Redactor = field(default_factory=Redactor)
    registry: Registry = field(default_factory=lambda: Registry(lambda _: True, ToolVisibility()))
    publish: Callable[[Event], None] = lambda _: None

    def __post_init__(self) -> None:
        self.tasks = RemoteTasks(self._reach, self.publish)

    def offered_tools(self, profile: Profile = EVERYTHING) -> Sequence[OfferedTool]:
        return tuple(tool for tool in self.tools if profile.includes(tool.server, tool.name))

    def held_tools(self, profile: Profile = EVERYTHING) -> Sequence[OfferedTool]:
        return self.offered_tools(profile)

    def instructions(self) -> Sequence[tuple[ServerId, str]]:
        return self.said

    async def call_tool(
        self, permit: Permit, on_progress: Callable[[chat_model.Progress], None]
    ) -> ToolResult:
        permit.use()
        name, arguments = permit.tool.name, permit.arguments
        self.called.append((name, arguments))
        on_progress(chat_model.Progress(1.0, 2.0))
        return await self.runs[name](arguments) if name in self.runs else text_result(f"{name} ran")


@dataclass
class Chat:
    """A running conversation and everything it said."""

    conversation: Conversation
    context: TurnContext
    tools: InProcessTools
    bus: EventBus
    fake: FakeGemini
    store: Store = field(default_factory=Store)
    events: list[Event] = field(default_factory=list)
    desk: Desk | None = None

    def __post_init__(self) -> None:
        self._heard = asyncio.Event()
        self.bus.subscribe(self.store.dispatch)
        self.bus.subscribe(self._hear)

    def _hear(self, event: Event) -> None:
        self.events.append(event)
        self._heard.set()

    def send(self, text: str) -> None:
        self.conversation.send(Message(text))

    async def say(self, text: str, *choices: Choice) -> None:
        """Send a message, answer the questions of its turn in order, and wait for its end."""
        before = len(self.all(RequestRaised))
        self.send(text)
        for number, choice in enumerate(choices, before + 1):
            await self.decide(choice, count=number)
        await self.idle()

    async def play(self, *steps: Sequence[Any]) -> None:
        """Begin anew, with a model that does this, and send it a message."""
        self.conversation.clear()
        self.fake.steps[:] = steps
        self.fake.requests.clear()
        self.events.clear()
        await self.say("x")

    async def idle(self) -> None:
        with anyio.fail_after(PATIENCE):
            await self.conversation.wait_idle()

    async def wait_for(self, kind: type[E], count: int = 1) -> E:
        """Wait for the given event number of a kind."""
        with anyio.fail_after(PATIENCE):
            while len(found := self.all(kind)) < count:
                self._heard.clear()
                await self._heard.wait()
        return found[count - 1]

    def all(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    def entries(self, kind: type[E]) -> list[E]:
        return [entry for entry in entries(self.store.state) if isinstance(entry, kind)]

    @property
    def transcript(self) -> tuple[chat_model.Entry, ...]:
        return entries(self.store.state)

    @property
    def answer(self) -> str:
        return "".join(entry.text for entry in self.entries(chat_model.ModelText))

    @property
    def notices(self) -> list[chat_model.ChatNotice]:
        return self.entries(chat_model.ChatNotice)

    @property
    def calls(self) -> list[chat_model.ToolCall]:
        return self.entries(chat_model.ToolCall)

    def responses(self, request: int = 1) -> list[dict[str, str]]:
        """What the model was told of its calls."""
        parts = self.fake.requests[request].contents[-1]["parts"]
        return [part["functionResponse"]["response"] for part in parts]

    @property
    def last_turn(self) -> TurnFinished:
        return self.all(TurnFinished)[-1]

    async def decide(
        self, choice: Choice, note: str = "", *, count: int = 1, arguments: str | None = None
    ) -> None:
        """Answer the given question number, counted over the whole conversation."""
        asked = await self.wait_for(RequestRaised, count)
        assert self.desk is not None
        self.desk.answer(asked.request.id, Decision(choice, note, arguments=arguments))


def fetched(text: str, content: MessageContent) -> Message:
    """Make a message that says something else than what was typed."""

    async def fetch(_: object) -> MessageContent:
        return content

    return Message(text, fetch)


@dataclass(frozen=True)
class Provider:
    """A kind of service.

    Attributes:
        fake: Its stand-in.
        open: Opens a model of it.
        model: The model that is usually opened.
        recitation: How the user is told that it stops an answer that exists already.
        unreadable: Events that cannot be read.
    """

    fake: type[FakeGemini]
    open: Callable[..., Awaitable[ModelBackend]]
    model: str
    recitation: str
    unreadable: Sequence[str]


_PART = '{"candidates": [{"content": {"parts": [{"text": %s}]}}]}'
GEMINI = Provider(
    *(FakeGemini, open_backend, MODEL, "existing text"),
    ('{"candidates": 5}', _PART % 5, _PART % ("[" * 5_000)),
)
COMPLETIONS = Provider(
    *(FakeCompletions, open_completions, "large", "safety filters"),
    ('{"choices": [5]}', "5", '{"choices": [{"delta": [5]}]}', "[" * 5_000, "nonsense"),
)
chosen = GEMINI
"""With which kind of service tests run."""

both = pytest.mark.usefixtures("each_service")
"""Runs a test with each kind of service."""


@asynccontextmanager
async def chatting(
    fake: FakeGemini,
    *tools: OfferedTool,
    model: str = "",
    asks: bool = False,
    gate: Gate | None = None,
    max_tool_calls: int = 20,
    retry: RetryWait | None = None,
) -> AsyncIterator[Chat]:
    """Run a conversation against the fake; `asks` puts questions instead of allowing all."""
    bus = EventBus()
    host = InProcessTools(list(tools))
    desk = Desk(bus.publish, attended=asks)
    gate = gate or Gate(desk, bus.publish, make_policy(allows_all=not asks))
    bus.subscribe(gate.heed)
    settings = GemdeckSettings(max_tool_calls=max_tool_calls)
    skills = Skills(
        host, desk, PinStore(None, pytest.fail), bus.publish, AuditLog(None, on_problem=pytest.fail)
    )
    setup = TurnSetup(host, gate, skills, lambda: asyncio.sleep(0, ()), settings=settings)
    backend = await chosen.open(fake.url, model=model or chosen.model)
    context = TurnContext(setup, backend, bus.publish, History(), retry=retry or RetryWait())
    recorder = Recorder(None, Path(), Redactor(), lambda _: None)
    tasks = TaskSet("a turn broke down")
    conversation = Conversation(chat_model.MAIN, bus.publish, recorder, context.retry, tasks)
    conversation.context = context
    bus.subscribe(conversation.heed)
    chat = Chat(conversation, context, host, bus, fake, desk=desk)
    try:
        yield chat
    finally:
        await tasks.aclose()
        await context.backend.aclose()


@asynccontextmanager
async def talking(
    steps: Iterable[Sequence[Any]],
    *tools: OfferedTool,
    **more: Any,  # noqa: ANN401 - as for `chatting`
) -> AsyncIterator[Chat]:
    """Run a conversation with a model that plays a script, and finds no request at fault."""
    async with chosen.fake(steps) as fake, chatting(fake, *tools, **more) as chat:
        yield chat
    assert fake.violations == []
