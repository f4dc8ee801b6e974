"""A message waits for servers that start for the first time, and says what it went without."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from tests import servers
from tests.fakes.gemini import KEY, FakeGemini, Request
from tests.fakes.gemini_script import Say
from tests.support.waiting import PATIENCE, eventually
from tui.engine.engine import Engine, EngineOptions
from tui.model.chat import TurnPhase
from tui.model.events import ChatNoticeAdded, Event, ServerStatusChanged, TurnPhaseChanged
from tui.model.servers import ServerId, ServerStatus

RAW = Path(servers.__file__).with_name("raw.py")


@asynccontextmanager
async def deck(
    home: Path, monkeypatch: pytest.MonkeyPatch, *behaviours: str, patience: float = PATIENCE
) -> AsyncIterator[tuple[Engine, FakeGemini, list[Event]]]:
    """Run the engine with one server of the user's, which starts in its own folder."""
    folder = home / "server"
    folder.mkdir()
    entry = {"command": sys.executable, "args": [str(RAW), *behaviours], "cwd": str(folder)}
    (home / ".gemini").mkdir()
    settings = {"mcpServers": {"late": entry}, "gemdeck": {"waitForServers": patience}}
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings))
    events: list[Event] = []
    async with FakeGemini([(Say("one"),), (Say("two"),)]) as fake:
        monkeypatch.setenv("GEMINI_API_KEY", KEY)
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", fake.url)
        async with Engine(EngineOptions(folder, follow_settings=False), events.append) as engine:
            await engine.start()
            yield engine, fake, events


async def answered(engine: Engine) -> None:
    with anyio.fail_after(PATIENCE):
        await engine.wait_idle()


def tools(request: Request) -> list[str]:
    """Give the names of the tools that the model was offered."""
    return [d["name"] for t in request.body.get("tools", ()) for d in t["functionDeclarations"]]


def notices(events: list[Event]) -> list[str]:
    return [event.notice.text for event in events if isinstance(event, ChatNoticeAdded)]


def waits(events: list[Event]) -> bool:
    return any(isinstance(e, TurnPhaseChanged) and e.phase is TurnPhase.SERVERS for e in events)


async def test_a_message_goes_out_with_the_tools_of_a_server_that_takes_its_time(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with deck(home, monkeypatch, "gated") as (engine, fake, events):
        engine.send("hello")
        await eventually(lambda: waits(events))
        assert fake.requests == []
        (home / "server" / "gate").touch()
        await answered(engine)
        assert "echo" in tools(fake.requests[0])
        assert notices(events) == []


async def test_after_its_patience_a_message_goes_out_and_says_without_whom(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with deck(home, monkeypatch, "gated", patience=0.05) as (engine, fake, events):
        engine.send("hello")
        await answered(engine)
        assert tools(fake.requests[0]) == []
        assert notices(events) == ["Sent without late, which is still starting."]
        engine.send("again")
        await answered(engine)
        assert len(notices(events)) == 1


async def test_the_user_can_send_without_waiting(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with deck(home, monkeypatch, "gated") as (engine, fake, events):
        engine.send("hello")
        await eventually(lambda: waits(events))
        engine.send_without_waiting()
        await answered(engine)
        assert tools(fake.requests[0]) == []
        assert notices(events) == ["Sent without late, which is still starting."]


async def test_a_server_that_is_tried_again_is_not_waited_for(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with deck(home, monkeypatch, "flaky", "gated") as (engine, fake, events):
        await eventually(
            lambda: (
                [
                    event.status
                    for event in events
                    if isinstance(event, ServerStatusChanged) and event.server == ServerId("late")
                ][-2:]
                == [ServerStatus.RETRYING, ServerStatus.STARTING]
            )
        )
        engine.send("hello")
        await answered(engine)
        assert tools(fake.requests[0]) == []
