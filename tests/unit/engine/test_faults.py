"""Errors that nobody foresaw: told, ended with what they belong to, and logged without secrets."""

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import eventually
from tui.engine.approval.gate import Gate
from tui.engine.approval.tool_review import ToolReview
from tui.engine.chats.turn import Turn
from tui.engine.demo import model
from tui.engine.demo.model import DemoBackend
from tui.engine.engine import Engine, EngineOptions
from tui.engine.files.paths import log_dir
from tui.engine.logs.log_file import prepare_process
from tui.engine.mcp.manager import ServerManager
from tui.engine.mcp.session.connection import Connection
from tui.engine.mcp.supervisor import Supervisor
from tui.engine.mcp.transports.jsonrpc_lines import FlowControl
from tui.model.chat import TurnOutcome
from tui.model.events import Event, Notice, NoticeRaised, TurnFinished
from tui.model.servers import ServerId, ServerStatus, ServerView
from tui.store import reducer
from tui.store.selectors import entries
from tui.store.store import Store

SECRETS = {
    "MY_TOKEN": "tok-aaaaaaaa1",
    "MY_DSN": "dsn-bbbbbbbb2",
    "DATABASE_URL": "postgres://u:cccccccc3@h/db",
    "SESSION_COOKIE": "cookie-dddd4",
    "BACKUP_PASSPHRASE": "phrase\nof two lines 5",
}
WORDS = " | ".join(SECRETS.values())
FORBIDDEN = ("aaaaaaaa1", "bbbbbbbb2", "cccccccc3", "dddd4", "two lines")


async def boom(*_: object, **__: object) -> Any:  # noqa: ANN401 - stands for any coroutine
    raise RuntimeError(WORDS)


def bang(*_: object, **__: object) -> Any:  # noqa: ANN401 - stands for any function
    raise RuntimeError(WORDS)


@pytest.fixture(autouse=True)
def logged(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Log to the file, with secrets in the environment, which no line may show."""
    monkeypatch.setattr(model, "WORD_PACE", 0)
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    yield
    root.handlers[:] = before
    root.setLevel(level)
    logging.captureWarnings(capture=False)
    text = "".join(path.read_text() for path in log_dir().iterdir())
    assert [word for word in FORBIDDEN if word in text] == []


class Run:
    """An engine with the demo's server, and the state that its events make."""

    def __init__(self, folder: Path) -> None:
        self.store = Store()
        self.events: list[Event] = []
        options = EngineOptions(folder, demo=True, attended=True, follow_settings=False)
        self.engine = Engine(options, self._take, redactor=prepare_process())

    def _take(self, event: Event) -> None:
        self.events.append(event)
        self.store.dispatch(event)

    @property
    def notices(self) -> list[Notice]:
        return [event.notice for event in self.events if isinstance(event, NoticeRaised)]

    def server(self, name: str = "notes") -> ServerView:
        return next(view for view in self.store.state.servers if view.id == name)

    async def say(self, text: str) -> TurnOutcome:
        before = len(self.ends)
        self.engine.send(text)
        await eventually(lambda: len(self.ends) > before)
        return self.ends[-1].outcome

    @property
    def ends(self) -> list[TurnFinished]:
        return [event for event in self.events if isinstance(event, TurnFinished)]


@asynccontextmanager
async def running() -> AsyncIterator[Run]:
    run = Run(Path.home())
    async with run.engine:
        yield run


def log() -> str:
    return (log_dir() / "gemdeck.log").read_text()


async def test_the_state_the_model_and_the_begin_of_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as run:
        await run.engine.start()
        with monkeypatch.context() as broken:
            broken.setattr(reducer, "TurnEnd", bang)
            await run.say("hello")
            assert run.store.state.conversation.turn is None
            told = "An event could not be shown (RuntimeError)."
            assert run.store.state.notices[-1].text == told
            assert "TurnFinished could not be shown" in log()
        assert await run.say("again") is TurnOutcome.COMPLETED
        with monkeypatch.context() as broken:
            broken.setattr(DemoBackend, "stream", bang)
            assert await run.say("hello") is TurnOutcome.FAILED
        assert "failed unexpectedly (RuntimeError)" in str(entries(run.store.state)[-2])
        assert await run.say("again") is TurnOutcome.COMPLETED
        with monkeypatch.context() as broken:
            broken.setattr(Turn, "begin", bang)
            assert await run.say("never begun") is TurnOutcome.FAILED
        assert "The turn failed unexpectedly (RuntimeError)." in [n.text for n in run.notices]
        assert run.store.state.conversation.unsent.texts == ("hello", "never begun")
        assert await run.say("again") is TurnOutcome.COMPLETED


@pytest.mark.parametrize(
    ("owner", "method", "fault"),
    [(Supervisor, "_serve", boom), (Supervisor, "_settle", bang), (ToolReview, "prepare", boom)],
)
async def test_a_supervisor(
    monkeypatch: pytest.MonkeyPatch, owner: type, method: str, fault: object
) -> None:
    async with running() as run:
        with monkeypatch.context() as broken:
            broken.setattr(owner, method, fault)
            await run.engine.start()
            if method == "_settle":
                await run.engine.wait_ready()
                run.engine.servers.restart(ServerId("notes"))
            ended = {ServerStatus.FAILED, ServerStatus.RETRYING}
            await eventually(lambda: run.server().status in ended)
            failure = run.server().failure
            assert failure is not None
            assert "RuntimeError" in failure.reason
            assert [word for word in FORBIDDEN if word in str(run.store.state)] == []
            assert "Traceback" in log()
        run.engine.servers.start(ServerId("notes"))
        await eventually(lambda: run.server().status is ServerStatus.READY)


async def test_connecting(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as run:
        monkeypatch.setattr(Connection, "_open", boom)
        await run.engine.start()
        await eventually(lambda: run.server().failure)
        await eventually(lambda: run.store.state.logs.get(ServerId("notes")))
        assert [word for word in FORBIDDEN if word in str(run.store.state)] == []


async def test_a_call_its_question_and_reading_its_server(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as run:
        await run.engine.start()
        await run.engine.wait_ready()
        with monkeypatch.context() as broken:
            broken.setattr(Gate, "decide", boom)
            assert await run.say("add a note: x") is TurnOutcome.COMPLETED
        assert "Not run: the question failed (RuntimeError)" in str(run.events)
        assert "the question about a call failed" in log()
        notes = ServerId("notes")
        with monkeypatch.context() as broken:
            broken.setattr(ServerManager, "_call_once", boom)
            result = await run.engine.call_tool(notes, "list_notes", {}, by_user=True)
        assert result.is_error
        assert result.display == "The call failed unexpectedly (RuntimeError)."
        assert "a call failed" in log()
        monkeypatch.setattr(FlowControl, "take", boom)
        result = await run.engine.call_tool(notes, "list_notes", {}, by_user=True)
        assert result.is_error
        await eventually(lambda: "could not be read (RuntimeError)" in str(run.server().failure))
        assert run.server().status is not ServerStatus.READY
