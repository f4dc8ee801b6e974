"""How long calls may take, in the server's own time."""

import asyncio

import pytest

from tui.engine.mcp.session import call_timeout as module
from tui.engine.mcp.session.call_timeout import CallTimeout, CallTimeoutError


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
    async with dog.watch() as call:
        call.progress()
    with dog.pause():
        pass


async def test_without_progress_only_the_whole_time_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "IDLE_TIMEOUT", 0.02)
    async with CallTimeout(5).watch():
        await asyncio.sleep(0.1)


async def test_progress_extends_the_silence_and_never_the_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "IDLE_TIMEOUT", 0.1)

    async def report(limit: float, times: int) -> None:
        async with CallTimeout(limit).watch() as call:
            for _ in range(times):
                call.progress()
                await asyncio.sleep(0.01)
            await asyncio.sleep(10)

    with pytest.raises(CallTimeoutError, match=r"no result within 0\.4 s"):
        await report(0.4, 1_000)
    with pytest.raises(CallTimeoutError, match=r"no further progress within 0\.1 s"):
        await report(5, 1)


async def test_time_stands_still_while_the_user_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "IDLE_TIMEOUT", 0.05)
    dog = CallTimeout(0.1)
    async with dog.watch() as call:
        call.progress()
        with dog.pause(), dog.pause():
            await asyncio.sleep(0.2)
        with dog.pause():
            await asyncio.sleep(0.1)
            async with dog.watch():
                await asyncio.sleep(0.15)


async def test_the_time_before_a_pause_is_not_given_back() -> None:
    dog = CallTimeout(1)
    whole_time: list[asyncio.Task[None]] = []

    async def call() -> None:
        async with dog.watch():
            await asyncio.sleep(0.8)
            with dog.pause():
                await asyncio.sleep(0.1)
            whole_time.append(asyncio.create_task(asyncio.sleep(1)))
            await asyncio.sleep(10)

    with pytest.raises(CallTimeoutError):
        await call()
    assert whole_time[0].cancel()  # it would have ended first if all the time were given anew


async def test_a_cancelled_caller_is_no_timeout() -> None:
    async def call() -> None:
        async with CallTimeout(60).watch():
            await asyncio.sleep(60)

    task = asyncio.create_task(call())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_timeout_of_somebody_else_stays_one() -> None:
    with pytest.raises(TimeoutError, match="other"):
        async with CallTimeout(60).watch():
            raise TimeoutError("other")
