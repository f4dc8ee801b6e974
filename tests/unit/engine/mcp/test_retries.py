"""When a supervisor tries a server again, and when it gives up."""

import asyncio
import time

import pytest

from tests.unit.engine.mcp.staging import on_stage
from tests.unit.engine.mcp.support import HASTY, LATER, eventually
from tui.engine.mcp.backoff import RetryPolicy
from tui.engine.mcp.errors import ServerError, SignInError
from tui.model.servers import Failure
from tui.model.servers import ServerStatus as S


async def test_a_server_that_goes_is_started_again_after_a_while() -> None:
    async with on_stage(retry=HASTY) as stage:
        stage.supervisor.start()
        await stage.reach(S.READY)
        stage.connection.ended.set()
        await eventually(lambda: stage.connection.opened == 2)
        await stage.reach(S.READY)
        expected = [S.STARTING, S.READY, S.RETRYING, S.STARTING, S.READY]
        assert stage.listener.statuses == expected


async def test_the_moment_of_the_retry_is_told() -> None:
    async with on_stage() as stage:
        stage.connection.refusal = ServerError("is tired")
        before = time.monotonic()
        stage.supervisor.start()
        await stage.reach(S.RETRYING)
        assert stage.supervisor.retry_at is not None
        least = LATER.first_delay * (1 - LATER.jitter)
        assert before + least <= stage.supervisor.retry_at <= time.monotonic() + 60
        stage.supervisor.stop()
        assert stage.supervisor.retry_at is None


async def test_a_crash_loop_ends_after_five_failures_with_the_last_one_and_advice() -> None:
    async with on_stage(retry=HASTY) as stage:
        stage.connection.refusal = ServerError("exited with code 3", "Look at its log.")
        stage.supervisor.start()
        await stage.reach(S.FAILED)
        assert stage.connection.opened == 5
        assert stage.listener.statuses == [S.STARTING, S.RETRYING] * 4 + [S.STARTING, S.FAILED]
        assert stage.supervisor.failure == Failure(
            "exited with code 3", "Look at its log. It failed 5 times within 60 s; r restarts it."
        )
        stage.supervisor.restart()
        await stage.reach(S.RETRYING)
        await stage.reach(S.FAILED)
        assert stage.connection.opened == 10


async def test_a_server_that_was_ready_long_enough_is_never_given_up() -> None:
    soon = RetryPolicy(first_delay=0.0, least_delay=0.0, max_failures=3, stable=0.0)
    async with on_stage(retry=soon) as stage:
        stage.supervisor.start()
        for opened in range(1, 8):
            await stage.reach_opening(opened)
            await stage.reach(S.READY)
            stage.connection.ended.set()
        await stage.reach_opening(8)
        assert S.FAILED not in stage.listener.statuses


async def test_what_cannot_get_better_is_not_tried_again() -> None:
    async with on_stage(retry=HASTY) as stage:
        stage.connection.refusal = ServerError("command not found", "Install it.", permanent=True)
        stage.supervisor.start()
        await stage.reach(S.FAILED)
        assert stage.connection.opened == 1
        assert stage.supervisor.failure == Failure("command not found", "Install it.")


async def test_a_server_that_wants_a_sign_in_waits_for_it_at_once_or_later() -> None:
    async with on_stage(retry=HASTY) as stage:
        stage.connection.refusal = SignInError("wants a sign-in")
        stage.supervisor.start()
        await stage.reach(S.NEEDS_SIGN_IN)
        stage.connection.refusal = None
        stage.supervisor.start()
        await stage.reach(S.READY)
        stage.connection.problem = SignInError("turned the token down")
        stage.connection.ended.set()
        await stage.reach(S.NEEDS_SIGN_IN)
        stage.supervisor.stop()
        assert stage.supervisor.status is S.STOPPED


async def test_restarting_a_waiting_server_starts_it_at_once() -> None:
    async with on_stage() as stage:
        stage.connection.refusal = ServerError("is tired")
        stage.supervisor.start()
        await stage.reach(S.RETRYING)
        stage.connection.refusal = None
        stage.supervisor.restart()
        await stage.reach(S.READY)
        assert stage.supervisor.retry_at is None


@pytest.mark.parametrize("way", ["stop", "disable"])
async def test_a_waiting_server_can_be_stopped_and_disabled(way: str) -> None:
    async with on_stage(retry=RetryPolicy(first_delay=0.05)) as stage:
        stage.connection.refusal = ServerError("is tired")
        stage.supervisor.start()
        await stage.reach(S.RETRYING)
        if way == "stop":
            stage.supervisor.stop()
        else:
            stage.supervisor.set_enabled(enabled=False)
        await asyncio.sleep(0.1)
        assert stage.supervisor.status is (S.STOPPED if way == "stop" else S.DISABLED)
        assert stage.connection.opened == 1
