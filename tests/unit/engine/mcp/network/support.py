"""What tests of network servers share."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.servers.web import Handler, RawServer
from tests.unit.engine.mcp.support import Watcher, eventually, running
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.mcp.manager import ServerManager
from tui.model.events import ServerStatusChanged
from tui.model.servers import Origin, ServerId, Transport
from tui.model.servers import ServerStatus as S

WEB = ServerId("web")


def define(url: str, transport: Transport = Transport.HTTP, **more: Any) -> ServerDefinition:  # noqa: ANN401
    """Define a server on the network."""
    return ServerDefinition(id=WEB, origin=Origin.USER, transport=transport, url=url, **more)


@asynccontextmanager
async def connected(
    url: str,
    transport: Transport = Transport.HTTP,
    **more: Any,  # noqa: ANN401
) -> AsyncIterator[tuple[ServerManager, Watcher]]:
    """Run a server and wait until it is ready."""
    async with running(define(url, transport, **more)) as (manager, watcher):
        await eventually(lambda: len(watcher.statuses(WEB)) >= 2)
        assert watcher.statuses(WEB) == [S.STARTING, S.READY], watcher.last(WEB)
        yield manager, watcher


@asynccontextmanager
async def answering(
    handler: Handler,
    **more: Any,  # noqa: ANN401
) -> AsyncIterator[tuple[RawServer, ServerManager, Watcher]]:
    """Run a server that answers calls in one way, and wait until it is ready."""
    async with (
        RawServer(on={"tools/call": handler}) as server,
        connected(server.url, **more) as (manager, watcher),
    ):
        yield server, manager, watcher


async def outcome(
    url: str,
    transport: Transport = Transport.HTTP,
    **more: Any,  # noqa: ANN401
) -> ServerStatusChanged:
    """Try to connect; gives the status that the first attempt leads to."""
    async with running(define(url, transport, **more)) as (_, watcher):
        await eventually(lambda: len(watcher.statuses(WEB)) >= 2)
        return [e for e in watcher.of(ServerStatusChanged) if e.server == WEB][1]


async def reason(url: str, transport: Transport = Transport.HTTP, **more: Any) -> str:  # noqa: ANN401
    """Try to connect; gives the reason why that failed."""
    change = await outcome(url, transport, **more)
    assert change.failure is not None, change
    return change.failure.reason
