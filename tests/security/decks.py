"""A whole engine with a screenless user, a fake Gemini and servers that turn on them."""

import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio
import pytest

from tests.conftest import World
from tests.fakes.gemini import KEY, FakeGemini, Step
from tests.fakes.gemini_script import Call, Say
from tests.support.waiting import PATIENCE, whole_lines
from tests.unit.engine.mcp.support import FOLDER, eventually
from tui.engine.bus import EventBus
from tui.engine.engine import Engine, EngineOptions
from tui.model.chat import ToolCall
from tui.model.consent import Choice, Decision, GrantScope, ToolStanding
from tui.model.events import Event, RequestRaised
from tui.model.requests import (
    ConfirmationRequest,
    PendingRequest,
    Reply,
    ReplyAction,
    ToolChangeRequest,
)
from tui.model.servers import ServerId, ServerStatus
from tui.store.selectors import entries
from tui.store.store import Store

READY: Final = ServerStatus.READY
R = TypeVar("R", bound=PendingRequest)
Json = dict[str, Any]
Script = list[Step]


def tool(name: str, description: str = "", **more: object) -> Json:
    """Define a tool that takes ``{"text": string}``."""
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    described = description or f"Does {name}."
    return {"name": name, "description": described, "inputSchema": schema, **more}


def called(*calls: tuple[str, Json]) -> Script:
    """Let the model make these calls, one a turn."""
    return [step for call in calls for step in ([Call([call])], [Say("done")])]


def calling(name: str, times: int = 1) -> Script:
    """Let the model call a tool once a turn."""
    return called(*((name, {"text": f"{number}"}) for number in range(times)))


@dataclass
class Turncoat:
    """A server of `tests/servers/turncoat.py`: its tools can be changed, its calls be read."""

    name: str
    folder: Path
    monkeypatch: pytest.MonkeyPatch | None = None

    def deck(
        self,
        script: Script | None = None,
        *others: "Turncoat",
        **more: Any,  # noqa: ANN401 - as for `deck`
    ) -> AbstractAsyncContextManager["Deck"]:
        """Run an engine with this server and others, before a model that plays a script."""
        assert self.monkeypatch is not None
        return playing(self.monkeypatch, script or [], self, *others, **more)

    def offer(self, *tools: Json) -> None:
        """Let it list these tools from now on."""
        self._tools.write_text(json.dumps(tools), encoding="utf-8")

    @property
    def calls(self) -> list[tuple[str, Json]]:
        """What was called, in order, with the arguments that arrived."""
        return [(name, arguments) for name, arguments in map(json.loads, whole_lines(self._calls))]

    @property
    def entry(self) -> Json:
        """Its entry in the settings."""
        arguments = [str(FOLDER / "turncoat.py"), str(self._tools), str(self._calls)]
        return {"command": sys.executable, "args": arguments}

    @property
    def _tools(self) -> Path:
        return self.folder / f"{self.name}-tools.json"

    @property
    def _calls(self) -> Path:
        return self.folder / f"{self.name}-calls.jsonl"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Turncoat:
    server = Turncoat("shop", tmp_path, monkeypatch)
    server.offer(tool("look"), tool("buy"))
    return server


@pytest.fixture
def bank(tmp_path: Path) -> Turncoat:
    server = Turncoat("bank", tmp_path)
    server.offer(tool("look"), tool("send_all"))
    return server


def records(world: World) -> list[Json]:
    """Read the audit log."""
    text = (world.state / "audit.jsonl").read_text(encoding="ascii")
    return [json.loads(line) for line in text.splitlines()]


def write_settings(settings: Json) -> None:
    """Write the user's settings."""
    folder = Path.home() / ".gemini"
    folder.mkdir(exist_ok=True)
    (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")


@dataclass
class Deck:
    """A running engine and what it says."""

    engine: Engine
    fake: FakeGemini
    store: Store
    events: list[Event] = field(default_factory=list)

    async def ask(
        self, text: str = "go", *answers: Choice, scope: GrantScope = GrantScope.SESSION
    ) -> list[ConfirmationRequest]:
        """Send a message, answer what is asked, and wait for the end of the turn."""
        self.engine.send(text)
        asked = [await self.decide(answer, scope) for answer in answers]
        await self.idle()
        return asked

    async def answered(
        self, text: str, choice: Choice, scope: GrantScope = GrantScope.SESSION
    ) -> ConfirmationRequest:
        """Send a message, answer the question about its call, and wait for the end of the turn."""
        [asked] = await self.ask(text, choice, scope=scope)
        return asked

    async def idle(self) -> None:
        """Wait for the end of the turn."""
        with anyio.fail_after(PATIENCE):
            await self.engine.wait_idle()

    async def pending(self, kind: type[R]) -> R:
        """Wait for a question of a kind and give the first one that is open."""
        await eventually(lambda: self._open(kind))
        return self._open(kind)[0]

    def _open(self, kind: type[R]) -> list[R]:
        return [request for request in self.store.state.pending if isinstance(request, kind)]

    def raised(self, kind: type[R]) -> list[R]:
        """Give all questions of a kind that were ever put."""
        found = (event.request for event in self.events if isinstance(event, RequestRaised))
        return [request for request in found if isinstance(request, kind)]

    async def decide(
        self, choice: Choice, scope: GrantScope = GrantScope.SESSION, arguments: str | None = None
    ) -> ConfirmationRequest:
        """Answer the first open question about a call."""
        request = await self.pending(ConfirmationRequest)
        decision = Decision(choice, scope=scope, arguments=arguments)
        self.engine.desk.answer(request.id, decision)
        await eventually(lambda: request not in self.store.state.pending)
        return request

    async def accept_changes(self) -> ToolChangeRequest:
        """Accept the open question about changed tools."""
        request = await self.pending(ToolChangeRequest)
        self.engine.desk.answer(request.id, Reply(ReplyAction.ACCEPT))
        await eventually(lambda: request not in self.store.state.pending)
        return request

    async def restart(self, server: str) -> None:
        """Restart a server and wait until it is ready again."""
        self.engine.servers.restart(ServerId(server))
        await eventually(lambda: self.status(server) is not ServerStatus.READY)
        await eventually(lambda: self.status(server) is ServerStatus.READY)

    def status(self, server: str) -> ServerStatus:
        """Give the status of a server."""
        return next(v.status for v in self.store.state.servers if v.id == server)

    def offered(self) -> list[str]:
        """Name what the model may call now."""
        return [offered.name for offered in self.engine.servers.offered_tools()]

    def explained(self, server: str, name: str) -> ToolStanding:
        """Ask why a tool stands as it does."""
        return self.engine.tool_standing(ServerId(server), name)

    @property
    def calls(self) -> list[ToolCall]:
        """The rows of calls in the transcript."""
        return [entry for entry in entries(self.store.state) if isinstance(entry, ToolCall)]

    def seen(self, request: int = -1) -> str:
        """Give all that the model got in a request, as text."""
        return json.dumps(self.fake.requests[request].body)


@asynccontextmanager
async def deck(
    fake: FakeGemini,
    monkeypatch: pytest.MonkeyPatch,
    *,
    servers: Sequence[Turncoat] = (),
    settings: Json | None = None,
    folder: Path | None = None,
    allows_all: bool = False,
    private: bool = False,
    ready: bool = True,
    **more: Any,  # noqa: ANN401 - as for `EngineOptions`
) -> AsyncIterator[Deck]:
    """Run an engine with these servers in the user's settings, until the block ends."""
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", fake.url)
    own = {"mcpServers": {server.name: server.entry for server in servers}}
    write_settings({**own, **(settings or {})})
    bus, store = EventBus(), Store()
    place = folder or Path(os.environ["HOME"]) / "work"
    place.mkdir(exist_ok=True)
    events: list[Event] = []
    bus.subscribe(store.dispatch)
    bus.subscribe(events.append)
    options = EngineOptions(
        place,
        demo_without_key=False,
        attended=True,
        allows_all=allows_all,
        private=private,
        **{"follow_settings": False, **more},
    )
    async with Engine(options, bus.publish) as engine:
        await engine.start()
        made = Deck(engine, fake, store, events)
        if ready:
            names = {server.name for server in servers}
            await eventually(lambda: all(made.status(name) is READY for name in names))
        yield made


Play = Callable[..., AbstractAsyncContextManager[Deck]]
"""Runs an engine until a block ends: ``play(script, *servers, **what_deck_takes)``."""


@asynccontextmanager
async def playing(
    monkeypatch: pytest.MonkeyPatch,
    script: Script,
    *servers: Turncoat,
    **more: Any,  # noqa: ANN401
) -> AsyncIterator[Deck]:
    """Run an engine with these servers, before a model that plays a script."""
    async with (
        FakeGemini(script) as fake,
        deck(fake, monkeypatch, servers=servers, **more) as running,
    ):
        yield running


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Play:
    """Give what runs an engine whose model follows a script."""
    return partial(playing, monkeypatch)
