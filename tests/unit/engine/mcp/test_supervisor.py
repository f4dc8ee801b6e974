"""The supervisor over a pretended connection: commands, ends, retries, and when it gives up."""

import asyncio
import time
from dataclasses import replace

import pytest

from tests.unit.engine.mcp.staging import on_stage, orders, pairs, ready_stage, refusing_stage
from tests.unit.engine.mcp.support import HASTY, LATER, eventually
from tui.engine.mcp import supervisor as module
from tui.engine.mcp.backoff import RetryPolicy
from tui.engine.mcp.catalog.offer import ServerOffer
from tui.engine.mcp.errors import ServerError, SignInError
from tui.model.servers import Failure
from tui.model.servers import ServerStatus as S

TIRED = ServerError("is tired")


async def test_a_server_starts_serves_restarts_and_stops() -> None:
    async with ready_stage() as stage:
        assert stage.is_live()
        assert stage.supervisor.info == stage.connection.info
        stage.supervisor.restart()
        await stage.reach_opening(2)
        await stage.reach(S.READY)
        stage.supervisor.stop()
        assert not stage.is_live()
        await stage.reach(S.STOPPED)
        ways = [S.STARTING, S.READY, S.STOPPING, S.STOPPED]
        assert stage.listener.statuses == ways * 2
        assert stage.connection.closed == 2


async def test_a_start_while_a_lost_connection_still_closes_is_not_lost() -> None:
    async with ready_stage() as stage:
        stage.connection.may_close.clear()
        stage.connection.ended.set()
        await stage.reach(S.RETRYING)
        assert stage.connection.closed == 0, "that it ended is known before it is closed"
        assert stage.listener.failures[-1] == Failure("exited with code 1")
        stage.supervisor.start()
        stage.connection.may_close.set()
        await stage.reach(S.READY)
        assert stage.connection.opened == 2


async def test_stopping_breaks_off_a_start_that_hangs() -> None:
    async with on_stage() as stage:
        stage.connection.may_open.clear()
        stage.supervisor.start()
        await stage.reach_opening(1)
        stage.supervisor.stop()
        await stage.reach(S.STOPPED)
        assert stage.listener.statuses == [S.STARTING, S.STOPPING, S.STOPPED]


async def test_a_server_has_its_whole_timeout_to_be_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, passed = asyncio.get_running_loop(), 0.0
    clock = loop.time
    monkeypatch.setattr(loop, "time", lambda: clock() + passed)
    async with on_stage(limit=45_000) as stage:
        stage.connection.may_open.clear()
        stage.supervisor.start()
        await stage.reach_opening(1)
        for passed, status in ((44_000, S.STARTING), (45_001, S.RETRYING)):  # noqa: B007 - a clock
            for _ in range(20):
                await asyncio.sleep(0)
            assert stage.supervisor.status is status


async def test_a_server_that_hangs_at_each_start_is_given_up_like_any_other() -> None:
    async with on_stage(retry=HASTY, limit=0.02) as stage:
        stage.connection.may_open.clear()
        stage.supervisor.start()
        assert "was not ready within 0.02 s" in await stage.reason(S.FAILED)
        assert stage.connection.opened == HASTY.max_failures
        assert stage.supervisor.failure is not None
        assert "after 5 attempts" in stage.supervisor.failure.advice
        stage.connection.may_open.set()
        stage.supervisor.restart()
        await stage.reach(S.READY)


async def test_a_server_that_came_back_says_how_often_and_why() -> None:
    async with ready_stage(retry=HASTY) as stage:
        stage.connection.exit_code = 137  # SIGKILL, as a shell counts
        assert stage.supervisor.restarted == ""
        for number in (1, 2):
            stage.connection.ended.set()
            await stage.reach_opening(number + 1)
            await stage.reach(S.READY)
            assert stage.supervisor.restarted == f"restarted {number} ×, exit 137"
        assert stage.listener.statuses[1:5] == [S.READY, S.RETRYING, S.STARTING, S.READY]
        stage.supervisor.restart()
        await stage.reach_opening(4)
        await stage.reach(S.READY)
        assert stage.supervisor.restarted == "", "the user knows"


async def test_why_a_server_came_back_holds_no_secret() -> None:
    refusal = ServerError("no hunter22 at https://u:pass5@h/?token=t0ken")
    secrets = frozenset({"hunter22"})
    patient = replace(HASTY, max_failures=10_000)
    async with refusing_stage(refusal, retry=patient, secrets=secrets) as stage:
        await eventually(lambda: stage.connection.opened >= 2)
        stage.connection.refusal = None
        await stage.reach(S.READY)
        assert stage.supervisor.restarted.endswith("×, no *** at https://***@h/?token=***")


@pytest.mark.parametrize("hangs", [False, True])
async def test_a_server_without_tools_fails(hangs: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CLOSE_TIMEOUT", 0.05)
    async with on_stage() as stage:
        stage.connection.offer = ServerOffer()
        if hangs:
            stage.connection.may_close.clear()
        stage.supervisor.start()
        assert (await stage.reason(S.FAILED)).startswith("offers nothing"), "and not late"
        assert stage.connection.closed == (not hangs)
        assert S.READY not in stage.listener.statuses


async def test_a_secret_reaches_no_failure_and_no_log(caplog: pytest.LogCaptureFixture) -> None:
    async with on_stage(secrets=frozenset({"hunter22"})) as stage:
        for problem in (ServerError("no hunter22", "hunter22?"), RuntimeError("hunter22")):
            stage.connection.refusal = problem
            stage.supervisor.start()
            await stage.reach(S.RETRYING)
            assert "***" in str(stage.supervisor.failure)
            assert "hunter22" not in str(stage.supervisor.failure)
            stage.supervisor.stop()
    assert "RuntimeError: ***" in caplog.text
    assert "hunter22" not in caplog.text


async def test_whatever_goes_wrong_is_a_failure_of_that_server() -> None:
    async with on_stage() as stage:
        for problem, reason in [
            (ServerError("command not found: x", "Install it."), "command not found: x"),
            (RuntimeError("odd\x1b[2J"), "RuntimeError: odd"),
            (ExceptionGroup("group", [ValueError("inner")]), "ValueError: inner"),
        ]:
            stage.connection.refusal = problem
            stage.supervisor.start()
            assert await stage.reason(S.RETRYING) == reason
            stage.supervisor.stop()
            assert stage.supervisor.status is S.STOPPED


async def test_disabling_stops_a_server_and_enabling_starts_it() -> None:
    async with ready_stage() as stage:
        it = stage.supervisor
        it.set_enabled(enabled=False)
        await stage.reach(S.DISABLED)
        for command in (it.start, it.restart, it.stop):
            command()
            assert it.status is S.DISABLED
        it.set_enabled(enabled=True)
        await stage.reach(S.READY)
        stage.listener.statuses.clear()
        it.set_enabled(enabled=False)
        it.set_enabled(enabled=True)  # while it stops
        await stage.reach_opening(3)
        await stage.reach(S.READY)
        assert S.DISABLED not in stage.listener.statuses


@pytest.mark.parametrize("withheld", [S.INVALID, S.UNTRUSTED, S.DISABLED])
async def test_a_withheld_server_stays_withheld(withheld: S) -> None:
    async with on_stage(withheld=withheld) as stage:
        for command in orders(stage)[:5]:
            command()
        await asyncio.sleep(0)
        assert stage.supervisor.status is withheld
        assert stage.supervisor.failure == Failure("not trusted")
        assert stage.connection.opened == 0


async def test_a_new_offer_of_a_ready_server_is_passed_on() -> None:
    async with ready_stage() as stage:
        changed = ServerOffer()
        stage.connection.announced.put_nowait(changed)
        await eventually(lambda: stage.listener.offers[-1] is changed)
        assert stage.supervisor.status is S.READY


async def test_an_outdated_connection_is_replaced() -> None:
    async with ready_stage() as stage:
        stage.connection.outdated.set()
        await stage.reach_opening(2)
        await stage.reach(S.READY)
        assert stage.listener.statuses[2:5] == [S.STOPPING, S.STOPPED, S.STARTING]


async def test_commands_in_any_order_never_break_the_table() -> None:
    async with on_stage() as stage:
        async for _ in pairs(orders(stage), 0, 1, 3):
            pass
        stage.supervisor.set_enabled(enabled=True)
        stage.supervisor.restart()
        await stage.reach(S.READY)


async def test_a_crash_loop_ends_after_five_failures_with_the_last_one_and_advice() -> None:
    refusal = ServerError("exited with code 3", "See its log.")
    async with refusing_stage(refusal, retry=HASTY) as stage:
        await stage.reach(S.FAILED)
        assert stage.connection.opened == 5
        assert stage.listener.statuses == [S.STARTING, S.RETRYING] * 4 + [S.STARTING, S.FAILED]
        advice = "See its log. Gave up after 5 attempts: press r to restart it."
        assert stage.supervisor.failure == Failure("exited with code 3", advice)
        stage.supervisor.restart()
        await stage.reach(S.RETRYING)
        await stage.reach(S.FAILED)
        assert stage.connection.opened == 10


async def test_what_cannot_get_better_is_not_tried_again() -> None:
    refusal = ServerError("command not found", "Install it.", permanent=True)
    async with refusing_stage(refusal, retry=HASTY) as stage:
        await stage.reach(S.FAILED)
        assert stage.connection.opened == 1
        assert stage.supervisor.failure == Failure("command not found", "Install it.")


async def test_a_server_that_wants_a_sign_in_waits_for_it_at_once_or_later() -> None:
    async with refusing_stage(SignInError("wants a sign-in"), retry=HASTY) as stage:
        await stage.reach(S.NEEDS_SIGN_IN)
        stage.connection.refusal = None
        stage.supervisor.start()
        await stage.reach(S.READY)
        stage.connection.problem = SignInError("turned the token down")
        stage.connection.ended.set()
        await stage.reach(S.NEEDS_SIGN_IN)
        stage.supervisor.stop()
        assert stage.supervisor.status is S.STOPPED


async def test_the_moment_of_the_retry_is_told_and_a_start_or_a_close_do_not_wait_for_it() -> None:
    before = time.monotonic()
    async with refusing_stage(TIRED) as stage:
        await stage.reach(S.RETRYING)
        least, moment = LATER.first_delay * (1 - LATER.jitter), stage.supervisor.retry_at
        assert moment is not None
        assert before + least <= moment <= time.monotonic() + 60
        stage.connection.refusal = None
        stage.supervisor.restart()
        await stage.reach(S.READY)
        assert stage.supervisor.retry_at is None
        stage.connection.ended.set()
        await stage.reach(S.RETRYING)
    assert stage.supervisor.status is S.STOPPED


@pytest.mark.parametrize("status", [S.STOPPED, S.DISABLED])
async def test_a_waiting_server_can_be_stopped_and_disabled(status: S) -> None:
    async with refusing_stage(TIRED, retry=RetryPolicy(first_delay=0.05)) as stage:
        await stage.reach(S.RETRYING)
        if status is S.STOPPED:
            stage.supervisor.stop()
        else:
            stage.supervisor.set_enabled(enabled=False)
        tried = stage.connection.opened
        await asyncio.sleep(0.1)
        assert stage.supervisor.status is status
        assert stage.connection.opened == tried
