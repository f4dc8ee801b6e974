"""A message waits for servers that start for the first time, and says what it went without."""

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from tests.fakes.gemini_script import Say
from tests.security.decks import Deck, Play, play
from tests.support.waiting import PATIENCE, eventually
from tests.unit.engine.mcp.support import FOLDER
from tui.model.chat import TurnPhase
from tui.model.events import ChatNoticeAdded, ServerStatusChanged, TurnPhaseChanged
from tui.model.servers import ServerStatus

__all__ = ["play"]

Starts = Callable[..., AbstractAsyncContextManager[Deck]]


@pytest.fixture
def gate(home: Path) -> Path:
    """Give the file without which a server that is gated does not start."""
    (home / "server").mkdir()
    return home / "server" / "gate"


@pytest.fixture
def starts(gate: Path, play: Play) -> Starts:
    """Give what runs an engine with a server that behaves as is said."""

    @asynccontextmanager
    async def starting(*behaviours: str, patience: float = PATIENCE) -> AsyncIterator[Deck]:
        arguments = [str(FOLDER / "raw.py"), *behaviours]
        entry = {"command": sys.executable, "args": arguments, "cwd": str(gate.parent)}
        settings = {"mcpServers": {"late": entry}, "gemdeck": {"waitForServers": patience}}
        async with play([[Say("one")], [Say("two")]], settings=settings) as it:
            yield it
            gate.touch()  # noqa: ASYNC240 - or it does not hear that it is to end

    return starting


async def answered(it: Deck) -> list[str]:
    """Wait for the end of the turn; give the names of the tools that the model was offered."""
    await it.idle()
    return it.fake.requests[-1].declared


async def begin_to_wait(it: Deck) -> None:
    """Send a message, and wait until its turn waits for servers."""
    it.engine.send("hello")
    waiting = TurnPhase.SERVERS
    await eventually(
        lambda: waiting in [e.phase for e in it.events if isinstance(e, TurnPhaseChanged)]
    )


def notices(it: Deck) -> list[str]:
    return [event.notice.text for event in it.events if isinstance(event, ChatNoticeAdded)]


async def test_a_message_goes_with_the_tools_of_a_slow_server(starts: Starts, gate: Path) -> None:
    async with starts("gated") as it:
        await begin_to_wait(it)
        assert it.fake.requests == []
        gate.touch()  # noqa: ASYNC240 - quick
        assert "echo" in await answered(it)
        assert notices(it) == []


async def test_after_its_patience_a_message_goes_out_and_says_without_whom(starts: Starts) -> None:
    async with starts("gated", patience=0.05) as it:
        for text in ("hello", "again"):
            it.engine.send(text)
            assert await answered(it) == []
            assert notices(it) == ["Sent without late, which is still starting."]


async def test_the_user_can_send_without_waiting(starts: Starts) -> None:
    async with starts("gated") as it:
        await begin_to_wait(it)
        it.engine.send_without_waiting()
        assert await answered(it) == []
        assert notices(it) == ["Sent without late, which is still starting."]


async def test_a_server_that_is_tried_again_is_not_waited_for(starts: Starts) -> None:
    async with starts("flaky", "gated") as it:

        def statuses() -> list[ServerStatus]:
            return [e.status for e in it.events if isinstance(e, ServerStatusChanged)]

        again = [ServerStatus.RETRYING, ServerStatus.STARTING]
        await eventually(lambda: statuses()[-2:] == again)
        it.engine.send("hello")
        assert await answered(it) == []
