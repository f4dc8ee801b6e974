"""What ten conversations cost, three of them streaming, beside one, through engine and screen."""

import asyncio
import gc
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import psutil
import pytest

from tests.benchmarks import streaming_service
from tests.benchmarks.test_chat import lags, p99
from tests.fakes.gemini import KEY
from tests.support.measures import Measure
from tests.support.waiting import PATIENCE
from tests.ui.engine_deck import over_an_engine
from tests.unit.engine.mcp.support import eventually
from tui.engine.engine import EngineOptions
from tui.model.chat import ModelText
from tui.store.state import ConversationState
from tui.store.store import Store

OPEN = 10
STREAMING = 3
SECONDS = 4.0
"""How long the loop is watched while they stream."""


@dataclass(frozen=True)
class Cost:
    """What so many conversations cost.

    Attributes:
        lag: By how much the loop lags, in seconds (p99), on this machine with its other work.
        held: How long it is held up by its own work (p99), in seconds of CPU.
        share: Share of a core.
        megabytes: Memory of each conversation but the first.
        characters: What was streamed.
    """

    lag: float
    held: float
    share: float
    megabytes: float
    characters: int


@asynccontextmanager
async def service() -> AsyncIterator[str]:
    """Give the address of a fake service that leaves this process alone."""
    process = await anyio.open_process(
        [sys.executable, "-m", streaming_service.__name__],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stderr=None,
    )
    async with process:
        assert process.stdout is not None
        with anyio.fail_after(PATIENCE):
            yield (await process.stdout.receive()).decode().strip()
        process.terminate()


async def cost(folder: Path, count: int, streaming: int, seconds: float = SECONDS) -> Cost:
    """Open so many conversations, let some of them stream, and watch the loop."""
    options = EngineOptions(folder, follow_settings=False, attended=True, demo_without_key=False)
    async with over_an_engine(options) as (engine, store, _, pilot):
        await pilot.pause()
        gc.collect()
        gc.freeze()  # what was imported, as the app does
        before = psutil.Process().memory_info().rss
        for _ in range(count - 1):
            engine.conversations.open()
            await pilot.pause()
        grown = psutil.Process().memory_info().rss - before
        for key in list(store.state.conversations)[-streaming:]:
            engine.send("tell me", key)
        await eventually(lambda: len(running(store)) == streaming)
        used = time.process_time()
        async with lags() as found, lags(time.thread_time) as held:
            await asyncio.sleep(seconds)
        share = (time.process_time() - used) / seconds
        told = sum(len(one.text) for chat in running(store) for one in texts(chat))
        for key in store.state.conversations:
            engine.cancel_turn(key)
            await engine.wait_idle(key)
    gc.unfreeze()
    megabytes = grown / 2**20 / max(1, count - 1)
    return Cost(p99(found), p99(held), share, megabytes, told)


def running(store: Store) -> list[ConversationState]:
    return [chat for chat in store.state.conversations.values() if texts(chat)]


def texts(chat: ConversationState) -> list[ModelText]:
    return [entry for entry in chat.transcript.live if isinstance(entry, ModelText)]


@pytest.mark.timeout(120)
async def test_ten_conversations_of_which_three_stream_leave_the_loop_free(
    tmp_path: Path, measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with service() as url:
        monkeypatch.setenv("GEMINI_API_KEY", KEY)
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", url)
        await cost(tmp_path, 1, 1, seconds=0.1)  # what is made once
        one = await cost(tmp_path, 1, 1)
        many = await cost(tmp_path, OPEN, STREAMING)
    measure(
        f"{OPEN} conversations, {STREAMING} streaming: {many.share:.0%} of a core, the loop is "
        f"held for {many.held * 1000:.0f} ms of CPU (p99) and lags {many.lag * 1000:.0f} ms; with "
        f"one: {one.share:.0%}, {one.held * 1000:.0f} ms, {one.lag * 1000:.0f} ms; "
        f"ratio {many.held / one.held:.1f}; {many.megabytes:.2f} MB each"
    )
    assert many.characters > one.characters  # they all go on
    assert many.share < (STREAMING + 1) * one.share
