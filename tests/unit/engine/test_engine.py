"""The engine as a whole, with a model that is only chosen and never asked."""

import asyncio
import gc
import json
import os
import sys
import threading
import weakref
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path

import anyio
import keyring
import pytest
from keyring.backend import KeyringBackend

from tests.fakes.gemini import KEY, FakeGemini
from tests.fakes.gemini_script import Say
from tests.security.decks import deck
from tests.support.google_account import google_account
from tests.support.waiting import PATIENCE
from tests.unit.engine.mcp.support import eventually, find_tool
from tui.engine import model_choice
from tui.engine.demo import notes_server
from tui.engine.demo.model import DemoBackend
from tui.engine.engine import Engine, EngineOptions
from tui.engine.keys import credentials, key_store
from tui.engine.keys.key_store import KeyStore
from tui.model.chat import BackendKind
from tui.model.events import (
    Event,
    MessageReturned,
    ModelSelected,
    NoticeRaised,
    ServersConfigured,
    TextStreamed,
)


@asynccontextmanager
async def started(folder: Path) -> AsyncIterator[tuple[Engine, list[Event]]]:
    events: list[Event] = []
    options = EngineOptions(folder, server_patience=0)
    async with Engine(options, events.append) as engine:
        await engine.start()
        yield engine, events


@asynccontextmanager
async def service(monkeypatch: pytest.MonkeyPatch, *keys: str) -> AsyncIterator[FakeGemini]:
    """Run a service that accepts these keys."""
    async with FakeGemini(keys=keys) as fake:
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", fake.url)
        yield fake


def backends(events: Sequence[Event]) -> list[str]:
    """Give the services that were chosen, in order."""
    return [event.model.backend for event in events if isinstance(event, ModelSelected)]


def write_notes_server(home: Path) -> None:
    entry = {
        "command": sys.executable,
        "args": ["-I", "-S", notes_server.__file__],
        "env": {"GEMDECK_NOTES_DB": str(home / "notes.db")},
    }
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").write_text(json.dumps({"mcpServers": {"notes": entry}}))


async def test_the_demo_answers_again_with_its_servers_after_a_key_and_leaves_them_alone_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.engine.demo.model.WORD_PACE", 0)
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    async with started(tmp_path) as (engine, events):
        assert backends(events) == ["Gemini"]
        before = len(events)
        engine.choice.use_demo()
        selected, configured = events[before : before + 2]
        assert backends([selected]) == [BackendKind.DEMO]
        assert isinstance(configured, ServersConfigured)
        assert [view.id for view in configured.servers] == ["notes"]
        engine.send("hello")
        with anyio.fail_after(PATIENCE):
            await engine.wait_idle()
        assert "demo" in "".join(e.delta for e in events if isinstance(e, TextStreamed))
        before = len(events)
        engine.choice.use_demo()
        [selected] = events[before:]
        assert isinstance(selected, ModelSelected)
        assert (selected.model.backend, selected.model.needs_setup) == (BackendKind.DEMO, False)


async def test_the_events_come_in_order_and_end_with_the_engine(tmp_path: Path) -> None:
    async with Engine(EngineOptions(tmp_path, demo=True)) as engine:
        events = engine.events()
        await engine.start()
    kinds = [type(event) async for event in events]
    assert kinds[0] is ModelSelected
    assert ServersConfigured in kinds


async def test_a_stream_of_events_that_was_closed_is_not_kept(tmp_path: Path) -> None:
    async with Engine(EngineOptions(tmp_path, demo=True)) as engine:
        with closing(engine.events()) as events:
            kept = weakref.ref(events)
        del events
        gc.collect()
        assert kept() is None


async def test_with_no_model_servers_start_and_messages_return(home: Path, tmp_path: Path) -> None:
    write_notes_server(home)
    events = list[Event]()
    options = EngineOptions(tmp_path, demo_without_key=False, follow_settings=False)
    async with Engine(options, events.append) as engine:
        await engine.start()
        await engine.wait_ready()
        assert {tool.server for tool in engine.servers.offered_tools()} == {"notes"}
        engine.send("nobody\nhears this")
        await engine.wait_idle()
        await eventually(lambda: MessageReturned("nobody\nhears this") in events)
    told = [event.notice.text for event in events if isinstance(event, NoticeRaised)]
    assert "Not sent, because there is no model." in told


class StubbornKeyring(KeyringBackend):
    """A keyring that does not answer until its gate is opened."""

    priority = 5

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.gate, self.asked = threading.Event(), threading.Event()
        self.written: list[str] = []

    def get_password(self, service: str, username: str) -> str | None:
        del service, username
        self.asked.set()
        self.gate.wait(PATIENCE)
        return None

    def set_password(self, service: str, username: str, password: str) -> None:
        self.get_password(service, username)
        self.written.append(password)

    def delete_password(self, service: str, username: str) -> None:
        raise NotImplementedError


@pytest.fixture
def stubborn(monkeypatch: pytest.MonkeyPatch) -> Iterator[StubbornKeyring]:
    monkeypatch.delenv("GEMDECK_HOME")  # it would put a file in the keyring's place
    before, ring = keyring.get_keyring(), StubbornKeyring()
    keyring.set_keyring(ring)
    yield ring
    ring.gate.set()
    keyring.set_keyring(before)


async def test_a_key_that_a_keyring_holds_up_does_not_replace_a_later_one(
    stubborn: StubbornKeyring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_store, "KEYRING_LIMIT", 0.05)
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    first, second = "A" * len(KEY), "B" * len(KEY)
    async with service(monkeypatch, first, second), started(tmp_path) as (engine, events):
        engine.choice.use_api_key(first)
        await eventually(lambda: "did not answer" in str(events))
        engine.choice.use_api_key(second)
        await eventually(lambda: str(events).count("did not answer") == 2)
        assert stubborn.written == []
        stubborn.gate.set()
    assert stubborn.written == [first, second]  # it waited for them when it was left


async def test_a_key_that_is_never_stored_does_not_keep_the_engine(
    stubborn: StubbornKeyring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_choice, "CLOSE_PATIENCE", 0.05)
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    key = "A" * len(KEY)
    async with service(monkeypatch, key), started(tmp_path) as (engine, _):
        engine.choice.use_api_key(key)
        await asyncio.to_thread(stubborn.asked.wait)
    assert not stubborn.gate.is_set()
    assert stubborn.written == []


async def test_servers_start_while_the_keyring_has_not_answered(
    stubborn: StubbornKeyring, home: Path, tmp_path: Path
) -> None:
    write_notes_server(home)
    options = EngineOptions(tmp_path, follow_settings=False)
    async with Engine(options) as engine:
        starting = asyncio.create_task(engine.start())
        await eventually(lambda: find_tool(engine.servers, "add_note"))
        await eventually(stubborn.asked.is_set)
        assert not starting.done()
        stubborn.gate.set()
        await starting


async def test_a_choice_while_the_first_model_is_found_is_the_one_that_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, chosen = threading.Event(), threading.Event()

    def find_slowly(*_: object) -> None:
        asked.set()
        chosen.wait(PATIENCE)

    monkeypatch.setattr(credentials, "find_access", find_slowly)
    events = list[Event]()
    async with (
        FakeGemini() as fake,
        google_account(tmp_path, monkeypatch),
        Engine(EngineOptions(tmp_path, follow_settings=False), events.append) as engine,
    ):
        monkeypatch.setenv("GOOGLE_VERTEX_BASE_URL", fake.url)
        starting = asyncio.create_task(engine.start())
        await asyncio.to_thread(asked.wait)
        engine.choice.use_vertex("shop", "world")
        await eventually(lambda: any(isinstance(event, ModelSelected) for event in events))
        chosen.set()
        await starting
    assert backends(events) == [BackendKind.VERTEX]


@pytest.mark.writes_secrets("credentials.json")
async def test_the_model_of_a_key_that_is_chosen_over_while_it_is_stored_is_closed(
    stubborn: StubbornKeyring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = list[bool]()

    class Checked(DemoBackend):
        async def check(self) -> None:
            pass

        async def aclose(self) -> None:
            closed.append(True)

    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    async with started(tmp_path) as (engine, _):
        monkeypatch.setattr("tui.engine.late.open_backend", lambda *_: Checked())
        stubborn.asked.clear()
        engine.choice.use_api_key("A" * len(KEY))
        await asyncio.to_thread(stubborn.asked.wait)
        engine.choice.use_demo()
        await eventually(lambda: closed)
        stubborn.gate.set()


@pytest.mark.writes_secrets("credentials.json")
async def test_a_dropped_choice_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opening, cancelled, closed = threading.Event(), threading.Event(), list[bool]()

    class Slow(DemoBackend):
        async def aclose(self) -> None:
            closed.append(True)

    def open_slowly(*_: object) -> Slow:
        opening.set()
        cancelled.wait(20)
        return Slow()

    monkeypatch.setattr("tui.engine.late.open_backend", open_slowly)
    async with started(tmp_path) as (engine, _):
        engine.choice.use_api_key(KEY)
        await asyncio.to_thread(opening.wait)
        engine.choice.use_demo()
        await asyncio.sleep(0)
        cancelled.set()
        await eventually(lambda: closed)


async def test_a_task_that_breaks_down_is_logged_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(KeyStore, "set", broken)
    async with service(monkeypatch, "any"), started(tmp_path) as (engine, events):
        engine.choice.use_api_key("any")
        await eventually(lambda: "ZeroDivisionError" in str(events))
    told = [event.notice for event in events if isinstance(event, NoticeRaised)]
    assert ["ZeroDivisionError" in one.text for one in told if one.severity == "error"] == [True]
    assert "ZeroDivisionError: a bug" in caplog.text


@pytest.mark.writes_secrets("credentials.json")
async def test_the_last_choice_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        google_account(tmp_path, monkeypatch),
        FakeGemini([[Say("hi")]]) as fake,
        deck(fake, monkeypatch, ready=False) as it,
    ):
        models, store = it.engine.choice, it.store

        async def answers_with(backend: BackendKind) -> None:
            await eventually(lambda: store.state.model.backend is backend)

        await answers_with(BackendKind.GEMINI)
        models.use_demo()
        await answers_with(BackendKind.DEMO)
        models.use_api_key(KEY)
        await eventually(lambda: store.state.model.is_kept)
        models.forget_key()
        await eventually(lambda: not store.state.model.is_kept)
        address = os.environ["GOOGLE_GEMINI_BASE_URL"]
        models.use_address(address, KEY)
        await eventually(lambda: store.state.model.is_kept)
        monkeypatch.setenv("GOOGLE_VERTEX_BASE_URL", address)
        models.use_vertex("project", "")
        await answers_with(BackendKind.VERTEX)
