"""How long calls may take, in the server's own time, and what they report meanwhile."""

import asyncio
import math
import time

import pytest

from tests.unit.engine.mcp.support import eventually
from tui.engine.mcp.session.call_timeout import CallTimeout, CallTimeoutError, ProgressReporter
from tui.model.chat import Progress


async def test_a_call_that_takes_too_long_is_cancelled() -> None:
    cancelled = False

    async def call() -> None:
        nonlocal cancelled
        async with CallTimeout(0.05).watch():
            try:
                await asyncio.sleep(10)
            except asyncio.CancelledError:
                cancelled = True
                raise

    with pytest.raises(CallTimeoutError, match=r"no result within 0\.05 s"):
        await call()
    assert cancelled


async def test_a_call_in_time_leaves_nothing_behind() -> None:
    dog = CallTimeout(60)
    async with dog.watch():
        await asyncio.sleep(0)
    with dog.pause():
        pass


async def test_a_connection_is_idle_while_nobody_asks_anything_of_anybody() -> None:
    dog = CallTimeout(60)
    await eventually(lambda: dog.idle() > 0.02)
    with dog.pause():  # a question of the server
        assert dog.idle() == 0
    async with dog.watch():
        async with dog.watch():
            pass
        assert dog.idle() == 0
        before = time.monotonic()
    assert 0 <= dog.idle() <= time.monotonic() - before
    await eventually(lambda: dog.idle() > 0.02)


async def test_E47_what_a_call_was_asked_is_counted_while_others_come_and_go() -> None:
    dog = CallTimeout(60)
    async with dog.watch():
        dog.asked[None].add(0)
        async with dog.watch():
            pass
        assert dog.asked[None] == {0}
    async with dog.watch():
        assert dog.asked[None] == set()


async def test_time_stands_still_while_the_user_is_asked() -> None:
    dog = CallTimeout(0.1)
    async with dog.watch():
        with dog.pause(), dog.pause():
            await asyncio.sleep(0.12)
        with dog.pause():
            await asyncio.sleep(0.06)
            async with dog.watch():
                await asyncio.sleep(0.12)


async def test_the_time_before_a_pause_is_not_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, passed = asyncio.get_running_loop(), 0.0
    clock = loop.time
    monkeypatch.setattr(loop, "time", lambda: clock() + passed)

    async def call() -> None:
        nonlocal passed
        dog = CallTimeout(50_000)
        async with dog.watch():
            passed += 30_000
            with dog.pause():
                passed += 70_000
            for seconds in (19_000, 2_000):
                passed += seconds
                before = dog.clock()
                for _ in range(20):
                    await asyncio.sleep(0)
            pytest.fail(f"it goes on after {before} s")

    with pytest.raises(CallTimeoutError):
        await call()
    assert passed == 121_000, "and not sooner"


async def test_a_timeout_of_somebody_else_stays_one() -> None:
    with pytest.raises(TimeoutError, match="other"):
        async with CallTimeout(60).watch():
            raise TimeoutError("other")


async def test_reports_are_thinned_out_and_the_latest_comes_through() -> None:
    seen: list[Progress] = []
    report = ProgressReporter(seen.append)
    for number in range(1_000):
        await report(float(number), 1_000.0, f"at {number}\x1b[2J")
    await eventually(lambda: len(seen) == 2)
    assert seen == [Progress(0.0, 1_000.0, "at 0"), Progress(999.0, 1_000.0, "at 999")]


async def test_what_is_no_progress_is_dropped() -> None:
    seen: list[Progress] = []
    report = ProgressReporter(seen.append)
    await report(math.nan, None, None)
    await report(-1.0, None, None)
    await report(1.0, math.inf, None)
    assert seen == [Progress(1.0, None, "")]
