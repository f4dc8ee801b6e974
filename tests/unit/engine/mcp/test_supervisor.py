"""The supervisor over a pretended connection: every command in every status."""

import asyncio
from collections.abc import Callable

import pytest

from tests.support.waiting import PATIENCE
from tests.unit.engine.mcp.staging import Stage, definition, on_stage
from tests.unit.engine.mcp.support import HASTY, eventually
from tui.engine.mcp import supervisor as module
from tui.engine.mcp.catalog.offer import ServerOffer
from tui.engine.mcp.context import ClientContext
from tui.engine.mcp.errors import ServerError
from tui.engine.mcp.supervisor import Supervisor
from tui.model.servers import Failure
from tui.model.servers import ServerStatus as S


async def test_a_server_starts_serves_and_stops() -> None:
    async with on_stage() as stage:
        stage.supervisor.start()
        await stage.reach(S.READY)
        assert stage.is_live()
        assert stage.supervisor.info == stage.connection.info
        stage.supervisor.stop()
        assert not stage.is_live()
        await stage.reach(S.STOPPED)
        assert stage.listener.statuses == [S.STARTING, S.READY, S.STOPPING, S.STOPPED]
        assert stage.connection.closed == 1


async def test_a_restart_goes_through_stopping() -> None:
    async with on_stage() as stage:
        stage.supervisor.start()
        await stage.reach(S.READY)
        stage.supervisor.restart()
        await eventually(lambda: stage.connection.opened == 2)
        await stage.reach(S.READY)
        expected = [S.STARTING, S.READY, S.STOPPING, S.STOPPED, S.STARTING, S.READY]
        assert stage.listener.statuses == expected


async def test_a_server_that_goes_by_itself_is_known_to_before_it_is_closed() -> None:
    async with on_stage() as stage:
        stage.supervisor.start()
        await stage.reach(S.READY)
        stage.connection.may_close.clear()
        stage.connection.ended.set()
        await stage.reach(S.RETRYING)
        assert stage.connection.closed == 0
        assert stage.listener.failures[-1] == Failure("exited with code 1")


async def test_a_start_while_a_lost_connection_still_closes_is_not_lost() -> None:
    async with on_stage() as stage:
        stage.supervisor.start()
        await stage.reach(S.READY)
        stage.connection.may_close.clear()
        stage.connection.ended.set()
        await stage.reach(S.RETRYING)
        stage.supervisor.start()
        stage.connection.may_close.set()
        await stage.reach(S.READY)
        assert stage.connection.opened == 2


async def test_stopping_breaks_off_a_start_that_hangs() -> None:
    async with on_stage() as stage:
        stage.connection.may_open.clear()
        stage.supervisor.start()
        await eventually(lambda: stage.connection.opened == 1)
        stage.supervisor.stop()
        await stage.reach(S.STOPPED)
        assert stage.listener.statuses == [S.STARTING, S.STOPPING, S.STOPPED]


async def test_a_server_has_all_of_its_timeout_to_get_ready() -> None:
    async with on_stage(limit=45_000) as stage:
        stage.connection.may_open.clear()
        stage.supervisor.start()
        await stage.reach_opening(1)
        deadline = stage.supervisor._deadline
        assert deadline is not None
        left = (deadline.when() or 0) - asyncio.get_running_loop().time()
        assert 40_000 < left <= 45_000
        stage.connection.may_open.set()
        await stage.reach(S.READY)


async def test_a_server_that_hangs_at_each_start_is_given_up_like_any_other() -> None:
    async with on_stage(retry=HASTY, limit=0.02) as stage:
        stage.connection.may_open.clear()
        stage.supervisor.start()
        await stage.reach(S.FAILED)
        assert stage.connection.opened == HASTY.max_failures
        failure = stage.supervisor.failure
        assert failure is not None
        assert "was not ready within 0.02 s" in failure.reason
        assert "failed 5 times" in failure.advice


async def test_a_server_that_came_back_says_how_often_and_why() -> None:
    async with on_stage(retry=HASTY) as stage:
        stage.connection.exit_code = 137  # SIGKILL, as a shell counts
        stage.supervisor.start()
        await stage.reach(S.READY)
        assert stage.supervisor.restarted == ""
        for number in (1, 2):
            stage.connection.ended.set()
            await stage.reach_opening(number + 1)
            await stage.reach(S.READY)
            assert stage.supervisor.restarted == f"restarted {number} ×, exit 137"
        stage.supervisor.restart()
        await stage.reach_opening(4)
        await stage.reach(S.READY)
        assert stage.supervisor.restarted == "", "the user knows"


async def test_why_a_server_came_back_holds_no_secret() -> None:
    async with on_stage(retry=HASTY, secrets=frozenset({"hunter22"})) as stage:
        stage.connection.refusal = ServerError("no hunter22 at https://u:pass5@h/?token=t0ken")
        stage.supervisor.start()
        await eventually(lambda: stage.connection.opened >= 2)
        stage.connection.refusal = None
        await stage.reach(S.READY)
        assert stage.supervisor.restarted.endswith("×, no *** at https://***@h/?token=***")


async def test_a_start_that_takes_too_long_is_tried_again_with_advice() -> None:
    async with on_stage(limit=0.05) as stage:
        stage.connection.may_open.clear()
        stage.supervisor.start()
        await stage.reach(S.RETRYING)
        failure = stage.supervisor.failure
        assert failure is not None
        assert "was not ready within" in failure.reason
        assert failure.advice
        stage.connection.may_open.set()
        stage.supervisor.restart()
        await stage.reach(S.READY)


async def test_a_close_that_hangs_is_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CLOSE_TIMEOUT", 0.05)
    async with on_stage() as stage:
        stage.supervisor.start()
        await stage.reach(S.READY)
        stage.connection.may_close.clear()
        stage.supervisor.stop()
        await stage.reach(S.STOPPED)


async def test_a_useless_server_that_hangs_while_closing_is_called_useless_not_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "CLOSE_TIMEOUT", 0.05)
    async with on_stage() as stage:
        stage.connection.offer = ServerOffer()
        stage.connection.may_close.clear()
        stage.supervisor.start()
        await stage.reach(S.FAILED)
        assert stage.supervisor.failure is not None
        assert stage.supervisor.failure.reason.startswith("offers nothing")


async def test_a_secret_reaches_neither_the_failure_nor_the_log_file(
    caplog: pytest.LogCaptureFixture,
) -> None:
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


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (ServerError("command not found: x", "Install it."), "command not found: x"),
        (RuntimeError("odd\x1b[2J"), "RuntimeError: odd"),
        (ExceptionGroup("group", [ValueError("inner")]), "ValueError: inner"),
    ],
)
async def test_whatever_goes_wrong_is_a_failure_of_that_server(
    problem: Exception, reason: str
) -> None:
    async with on_stage() as stage:
        stage.connection.refusal = problem
        stage.supervisor.start()
        await stage.reach(S.RETRYING)
        assert stage.supervisor.failure is not None
        assert stage.supervisor.failure.reason == reason
        stage.supervisor.stop()
        assert stage.supervisor.status is S.STOPPED


async def test_a_server_with_nothing_usable_is_closed_with_that_reason() -> None:
    async with on_stage() as stage:
        stage.connection.offer = ServerOffer()
        stage.supervisor.start()
        await stage.reach(S.FAILED)
        assert stage.connection.closed == 1
        assert S.READY not in stage.listener.statuses
        assert stage.supervisor.failure is not None
        assert stage.supervisor.failure.reason.startswith("offers nothing")


async def test_disabling_stops_a_server_and_enabling_starts_it() -> None:
    async with on_stage() as stage:
        stage.supervisor.start()
        await stage.reach(S.READY)
        stage.supervisor.set_enabled(enabled=False)
        await stage.reach(S.DISABLED)
        for command in (stage.supervisor.start, stage.supervisor.restart, stage.supervisor.stop):
            command()
            assert stage.supervisor.status is S.DISABLED
        stage.supervisor.set_enabled(enabled=True)
        await stage.reach(S.READY)


async def test_enabling_during_the_stop_starts_again() -> None:
    async with on_stage() as stage:
        stage.supervisor.start()
        await stage.reach(S.READY)
        stage.supervisor.set_enabled(enabled=False)
        stage.supervisor.set_enabled(enabled=True)
        await eventually(lambda: stage.connection.opened == 2)
        await stage.reach(S.READY)
        assert S.DISABLED not in stage.listener.statuses


@pytest.mark.parametrize("withheld", [S.INVALID, S.UNTRUSTED, S.DISABLED])
async def test_a_withheld_server_stays_withheld(withheld: S) -> None:
    async with on_stage(withheld) as stage:
        stage.supervisor.start()
        stage.supervisor.restart()
        stage.supervisor.stop()
        stage.supervisor.set_enabled(enabled=False)
        stage.supervisor.set_enabled(enabled=True)
        await asyncio.sleep(0)
        assert stage.supervisor.status is withheld
        assert stage.supervisor.failure == Failure("not trusted")
        assert stage.connection.opened == 0


async def test_closing_does_not_wait_for_the_retry() -> None:
    async with on_stage() as stage:
        stage.connection.refusal = ServerError("is tired")
        stage.supervisor.start()
        await stage.reach(S.RETRYING)
    assert stage.supervisor.status is S.STOPPED


async def test_a_new_offer_of_a_ready_server_is_passed_on() -> None:
    async with on_stage() as stage:
        stage.supervisor.start()
        await stage.reach(S.READY)
        changed = ServerOffer()
        stage.connection.announced.put_nowait(changed)
        await eventually(lambda: stage.listener.offers[-1] is changed)
        assert stage.supervisor.status is S.READY


async def test_an_outdated_connection_is_replaced() -> None:
    async with on_stage() as stage:
        stage.supervisor.start()
        await stage.reach(S.READY)
        stage.connection.outdated.set()
        await eventually(lambda: stage.connection.opened == 2)
        await stage.reach(S.READY)
        assert stage.listener.statuses[2:5] == [S.STOPPING, S.STOPPED, S.STARTING]


async def test_a_server_that_was_disabled_before_stays_so_until_enabled() -> None:
    stage = Stage()
    stage.supervisor = Supervisor(
        definition(),
        stage.load,
        ClientContext(),
        stage.log,
        on_status=stage.listener.status_changed,
        on_offer=stage.listener.offer_changed,
        enabled=False,
    )
    task = asyncio.create_task(stage.supervisor.run())
    stage.supervisor.start()
    assert stage.supervisor.status is S.DISABLED
    stage.supervisor.set_enabled(enabled=True)
    await stage.reach(S.READY)
    stage.supervisor.close()
    async with asyncio.timeout(PATIENCE):
        await task


async def test_commands_in_any_order_never_break_the_table() -> None:
    async with on_stage() as stage:
        it = stage.supervisor
        commands: list[Callable[[], None]] = [
            it.start,
            it.stop,
            it.restart,
            lambda: it.set_enabled(enabled=False),
            lambda: it.set_enabled(enabled=True),
            stage.connection.ended.set,
            stage.connection.outdated.set,
        ]
        for first in commands:
            for second in commands:
                for pause in (0, 1, 3):
                    first()
                    for _ in range(pause):
                        await asyncio.sleep(0)
                    second()
                    await asyncio.sleep(0)
        it.set_enabled(enabled=True)
        it.restart()
        await stage.reach(S.READY)
