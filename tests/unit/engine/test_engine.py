"""The engine as a whole, with a model that is only chosen and never asked."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from tests.fakes.gemini import KEY
from tui.engine.consent.headless import HeadlessConsent
from tui.engine.engine import Engine, EngineOptions
from tui.model.chat import BackendKind, ModelView
from tui.model.events import Event, ModelSelected, ServersConfigured, TextStreamed

DEMO = ModelView("demo", BackendKind.DEMO)


@asynccontextmanager
async def started(folder: Path) -> AsyncIterator[tuple[Engine, list[Event]]]:
    events: list[Event] = []
    options = EngineOptions(folder, server_patience=0)
    async with Engine(options, events.append, HeadlessConsent(())) as engine:
        await engine.start()
        yield engine, events


async def test_the_demo_answers_again_with_its_servers_after_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    async with started(tmp_path) as (engine, events):
        assert [e.model.backend for e in events if isinstance(e, ModelSelected)] == ["Gemini"]
        before = len(events)
        engine.use_demo()
        selected, configured = events[before : before + 2]
        assert selected == ModelSelected(DEMO)
        assert isinstance(configured, ServersConfigured)
        assert [view.id for view in configured.servers] == ["notes", "slow"]
        engine.send("hello")
        with anyio.fail_after(10):
            await engine.wait_idle()
        assert "demo" in "".join(e.delta for e in events if isinstance(e, TextStreamed))


async def test_staying_with_the_demo_leaves_its_servers_alone(tmp_path: Path) -> None:
    async with started(tmp_path) as (engine, events):
        before = len(events)
        engine.use_demo()
        assert events[before:] == [ModelSelected(DEMO)]
