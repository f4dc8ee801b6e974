"""A message waits for servers that start for the first time, and says what it went without."""

import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import anyio
import pytest

from tests.fakes.gemini import KEY, FakeGemini
from tests.fakes.gemini_script import Say
from tests.support.waiting import PATIENCE, eventually
from tests.unit.engine.mcp.support import FOLDER
from tui.engine.engine import Engine, EngineOptions
from tui.model.chat import TurnPhase
from tui.model.events import ChatNoticeAdded, Event, ServerStatusChanged, TurnPhaseChanged
from tui.model.servers import ServerStatus


class Starting:
    """An engine with one server of the user's that starts in its own folder, and a model."""

    def __init__(self, folder: Path, fake: FakeGemini) -> None:
        self.gate = folder / "gate"
        self.fake = fake
        self.events: list[Event] = []
        self.engine = Engine(EngineOptions(folder, follow_settings=False), self.events.append)

    async def answered(self) -> list[str]:
        """Wait for the end of the turn; give the names of the tools that the model was offered."""
        with anyio.fail_after(PATIENCE):
            await self.engine.wait_idle()
        tools = self.fake.requests[-1].body.get("tools", ())
        return [one["name"] for some in tools for one in some["functionDeclarations"]]

    async def waits(self) -> None:
        """Wait until a turn waits for servers."""

        def phases() -> list[TurnPhase]:
            return [e.phase for e in self.events if isinstance(e, TurnPhaseChanged)]

        await eventually(lambda: TurnPhase.SERVERS in phases())

    @property
    def statuses(self) -> list[ServerStatus]:
        return [e.status for e in self.events if isinstance(e, ServerStatusChanged)]

    @property
    def notices(self) -> list[str]:
        return [event.notice.text for event in self.events if isinstance(event, ChatNoticeAdded)]


Starts = Callable[..., AbstractAsyncContextManager[Starting]]


@pytest.fixture
def starts(home: Path, monkeypatch: pytest.MonkeyPatch) -> Starts:
    """Give what runs the engine with a server that behaves as is said."""

    @asynccontextmanager
    async def starting(*behaviours: str, patience: float = PATIENCE) -> AsyncIterator[Starting]:
        folder = home / "server"
        folder.mkdir()
        arguments = [str(FOLDER / "raw.py"), *behaviours]
        entry = {"command": sys.executable, "args": arguments, "cwd": str(folder)}
        (home / ".gemini").mkdir()
        settings = {"mcpServers": {"late": entry}, "gemdeck": {"waitForServers": patience}}
        (home / ".gemini" / "settings.json").write_text(json.dumps(settings))
        async with FakeGemini([(Say("one"),), (Say("two"),)]) as fake:
            monkeypatch.setenv("GEMINI_API_KEY", KEY)
            monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", fake.url)
            made = Starting(folder, fake)
            async with made.engine:
                await made.engine.start()
                yield made
                made.gate.touch()  # or it does not hear that it is to end

    return starting


async def test_a_message_goes_out_with_the_tools_of_a_slow_server(starts: Starts) -> None:
    async with starts("gated") as it:
        it.engine.send("hello")
        await it.waits()
        assert it.fake.requests == []
        it.gate.touch()
        assert "echo" in await it.answered()
        assert it.notices == []


async def test_after_its_patience_a_message_goes_out_and_says_without_whom(starts: Starts) -> None:
    async with starts("gated", patience=0.05) as it:
        for text in ("hello", "again"):
            it.engine.send(text)
            assert await it.answered() == []
            assert it.notices == ["Sent without late, which is still starting."]


async def test_the_user_can_send_without_waiting(starts: Starts) -> None:
    async with starts("gated") as it:
        it.engine.send("hello")
        await it.waits()
        it.engine.send_without_waiting()
        assert await it.answered() == []
        assert it.notices == ["Sent without late, which is still starting."]


async def test_a_server_that_is_tried_again_is_not_waited_for(starts: Starts) -> None:
    again = [ServerStatus.RETRYING, ServerStatus.STARTING]
    async with starts("flaky", "gated") as it:
        await eventually(lambda: it.statuses[-2:] == again)
        it.engine.send("hello")
        assert await it.answered() == []
