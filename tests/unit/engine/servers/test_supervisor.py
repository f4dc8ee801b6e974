"""The supervisor over a pretended connection: every command in every status."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType

import pytest

from tests.unit.engine.servers.support import eventually
from tui.engine.servers import supervisor as module
from tui.engine.servers.catalog import RawOffer, ServerOffer, read_offer
from tui.engine.servers.failures import ServerError
from tui.engine.servers.live import Connect, Host
from tui.engine.servers.log import ServerLog
from tui.engine.servers.supervisor import Supervisor
from tui.engine.settings.definitions import ServerDefinition
from tui.engine.tools import JsonObject, ToolResult
from tui.model.chat import Progress
from tui.model.servers import Failure, Origin, ServerId, ServerInfo, Transport
from tui.model.servers import ServerStatus as S


def definition(withheld: S | None = None) -> ServerDefinition:
    failure = Failure("not trusted") if withheld else None
    return ServerDefinition(
        ServerId("s"), Origin.USER, Transport.STDIO, withheld=withheld, failure=failure
    )


class Pretended:
    """A connection that opens, ends and closes as a test wants."""

    def __init__(self) -> None:
        self.info = ServerInfo("pretended", "1", "2025-11-25")
        tools: list[object] = [{"name": "echo", "inputSchema": {}}]
        self.offer = read_offer(RawOffer(tools=tools), definition())
        self.ended = asyncio.Event()
        self.may_open = asyncio.Event()
        self.may_open.set()
        self.may_close = asyncio.Event()
        self.may_close.set()
        self.problem: Exception | None = None
        self.opened = self.closed = self.killed = 0

    async def __aenter__(self) -> "Pretended":
        self.opened += 1
        await self.may_open.wait()
        if self.problem is not None:
            raise self.problem
        self.ended.clear()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.may_close.wait()
        self.closed += 1

    def ending(self) -> str:
        return "exited with code 1"

    def kill(self) -> None:
        self.killed += 1

    async def call_tool(
        self, name: str, arguments: JsonObject, on_progress: Callable[[Progress], None]
    ) -> ToolResult:
        raise NotImplementedError


class Listener:
    """Records what it hears."""

    def __init__(self) -> None:
        self.statuses: list[S] = []
        self.failures: list[Failure | None] = []
        self.offers: list[ServerOffer] = []

    def status_changed(self, supervisor: Supervisor) -> None:
        self.statuses.append(supervisor.status)
        self.failures.append(supervisor.failure)

    def offer_changed(self, supervisor: Supervisor, offer: ServerOffer) -> None:
        del supervisor
        self.offers.append(offer)


class Stage:
    """A supervisor with all that it needs."""

    def __init__(self, withheld: S | None = None, secrets: frozenset[str] = frozenset()) -> None:
        self.connection = Pretended()
        self.listener = Listener()
        self.supervisor = Supervisor(
            definition(withheld),
            self.load,
            Host("0", Path("/")),
            self.listener,
            ServerLog(ServerId("s"), lambda _: None, secrets),
        )

    async def load(self) -> Connect:
        return lambda _definition, _log, _host: self.connection

    def is_live(self) -> bool:
        return self.supervisor.live is self.connection

    async def reach(self, status: S) -> None:
        await eventually(lambda: self.supervisor.status is status)


@asynccontextmanager
async def on_stage(
    withheld: S | None = None, secrets: frozenset[str] = frozenset()
) -> AsyncIterator[Stage]:
    stage = Stage(withheld, secrets)
    task = asyncio.create_task(stage.supervisor.run())
    try:
        yield stage
    finally:
        stage.connection.may_open.set()
        stage.connection.may_close.set()
        stage.supervisor.close()
        async with asyncio.timeout(5):
            await task


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


async def test_a_server_that_goes_by_itself_has_failed_before_it_is_closed() -> None:
    async with on_stage() as stage:
        stage.supervisor.start()
        await stage.reach(S.READY)
        stage.connection.may_close.clear()
        stage.connection.ended.set()
        await stage.reach(S.FAILED)
        assert stage.connection.closed == 0
        assert stage.listener.failures[-1] == Failure("exited with code 1", "Restart it with r.")


async def test_a_start_while_a_lost_connection_still_closes_is_not_lost() -> None:
    async with on_stage() as stage:
        stage.supervisor.start()
        await stage.reach(S.READY)
        stage.connection.may_close.clear()
        stage.connection.ended.set()
        await stage.reach(S.FAILED)
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


async def test_a_start_that_takes_too_long_fails_with_advice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "CONNECT_TIMEOUT", 0.05)
    async with on_stage() as stage:
        stage.connection.may_open.clear()
        stage.supervisor.start()
        await stage.reach(S.FAILED)
        failure = stage.supervisor.failure
        assert failure is not None
        assert "did not get ready within" in failure.reason
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
            stage.connection.problem = problem
            stage.supervisor.start()
            await stage.reach(S.FAILED)
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
        (ExceptionGroup("group", [ValueError("inner")]), "ExceptionGroup: group (1 sub-exception)"),
    ],
)
async def test_whatever_goes_wrong_is_a_failure_of_that_server(
    problem: Exception, reason: str
) -> None:
    async with on_stage() as stage:
        stage.connection.problem = problem
        stage.supervisor.start()
        await stage.reach(S.FAILED)
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
