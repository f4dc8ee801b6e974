"""A stage on which a supervisor works with connections that only pretend."""

# ruff: noqa: ANN401 - what is passed on is whatever it was

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from itertools import product
from time import monotonic
from typing import Any

from tests.support.definitions import define_server
from tests.support.waiting import PATIENCE
from tests.unit.engine.mcp.support import LATER, eventually
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.mcp.backoff import Backoff, RetryPolicy
from tui.engine.mcp.catalog.offer import RawOffer, ServerOffer, read_offer
from tui.engine.mcp.catalog.offered_tool import JsonObject, ToolResult
from tui.engine.mcp.context import ClientContext
from tui.engine.mcp.errors import ServerError
from tui.engine.mcp.server_log import ServerLog
from tui.engine.mcp.session.connection import Connection
from tui.engine.mcp.supervisor import Connect, Supervisor
from tui.model.chat import Progress
from tui.model.servers import Failure, Origin, ServerId, ServerInfo, Transport
from tui.model.servers import ServerStatus as S


def definition(withheld: S | None = None, timeout: float = 600) -> ServerDefinition:
    transport = Transport.HTTP  # so that no process is started
    one = define_server(ServerId("s"), Origin.USER, transport, timeout=timeout)
    return one.held(withheld, "not trusted", "") if withheld is not None else one


class Pretended(Connection):
    """A connection that opens, ends and closes as a test wants."""

    def __init__(self) -> None:
        self.transport: Any = self
        self.kind, self.pid = Transport.STDIO, 0
        self.clock = monotonic
        self.calling = nullcontext
        self.unused = 0.0
        self.info = ServerInfo("pretended", "1", "2025-11-25")
        tools: list[object] = [{"name": "echo", "inputSchema": {}}]
        self.offer = read_offer(RawOffer(tools=tools))
        self.ended = asyncio.Event()
        self.outdated = asyncio.Event()
        self.may_open = asyncio.Event()
        self.may_open.set()
        self.may_close = asyncio.Event()
        self.may_close.set()
        self.refusal: Exception | None = None
        self.exit_code: int | None = None
        self.problem: ServerError | None = None
        self.announced: asyncio.Queue[ServerOffer] = asyncio.Queue()
        self.opened = self.closed = 0

    async def __aenter__(self) -> "Pretended":
        self.opened += 1
        await self.may_open.wait()
        if self.refusal is not None:
            raise self.refusal
        self.ended.clear()
        self.outdated.clear()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.may_close.wait()
        self.closed += 1

    def ending(self) -> str:
        return "exited with code 1"

    async def follow(self, on_offer: Callable[[ServerOffer], None]) -> None:
        while True:
            on_offer(await self.announced.get())

    def idle(self) -> float:
        return self.unused

    def kill(self) -> None:
        """Do nothing: there is no process."""

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

    def __init__(
        self,
        withheld: S | None = None,
        retry: RetryPolicy = LATER,
        secrets: frozenset[str] = frozenset(),
        limit: float = 600,
        *,
        enabled: bool = True,
    ) -> None:
        self.connection = Pretended()
        self.listener = Listener()
        self.log = ServerLog(ServerId("s"), lambda _: None, secrets)
        self.supervisor = Supervisor(
            definition(withheld, limit),
            self.load,
            ClientContext(),
            self.log,
            on_status=self.listener.status_changed,
            on_offer=self.listener.offer_changed,
            backoff=Backoff(retry),
            enabled=enabled,
        )

    async def load(self) -> Connect:
        return lambda *_: self.connection

    def is_live(self) -> bool:
        return self.supervisor.live is self.connection

    async def reach(self, status: S) -> None:
        await eventually(lambda: self.supervisor.status is status)

    async def reach_opening(self, number: int) -> None:
        await eventually(lambda: self.connection.opened == number)

    async def reason(self, status: S) -> str:
        """Wait for a status, and give its reason."""
        await self.reach(status)
        assert self.supervisor.failure is not None
        return self.supervisor.failure.reason


def orders(stage: Stage) -> list[Callable[[], object]]:
    """List the commands, and what a server may do by itself."""
    it = stage.supervisor
    return [
        *(it.start, it.stop, it.restart),
        lambda: it.set_enabled(enabled=False),
        lambda: it.set_enabled(enabled=True),
        stage.connection.ended.set,
        stage.connection.outdated.set,
    ]


async def pairs(commands: list[Callable[[], object]], *pauses: int) -> AsyncIterator[None]:
    """Give any two commands one after the other, with some steps of the loop between them."""
    for first, second, pause in product(commands, commands, pauses):
        first()
        for _ in range(pause):
            await asyncio.sleep(0)
        second()
        await asyncio.sleep(0)
        yield


@asynccontextmanager
async def on_stage(**more: Any) -> AsyncIterator[Stage]:
    """Run the supervisor of a stage."""
    stage = Stage(**more)
    task = asyncio.create_task(stage.supervisor.run())
    try:
        yield stage
    finally:
        stage.connection.may_open.set()
        stage.connection.may_close.set()
        stage.supervisor.close()
        async with asyncio.timeout(PATIENCE):
            await task


@asynccontextmanager
async def ready_stage(**more: Any) -> AsyncIterator[Stage]:
    """Run a supervisor whose server is ready."""
    async with on_stage(**more) as stage:
        stage.supervisor.start()
        await stage.reach(S.READY)
        yield stage


@asynccontextmanager
async def refusing_stage(refusal: Exception, **more: Any) -> AsyncIterator[Stage]:
    """Run a supervisor whose server does not start."""
    async with on_stage(**more) as stage:
        stage.connection.refusal = refusal
        stage.supervisor.start()
        yield stage
