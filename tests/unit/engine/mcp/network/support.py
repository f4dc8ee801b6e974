"""What tests of network servers share."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.servers.web import ECHO, Handler, Message, RawServer
from tests.unit.engine.mcp.support import LATER, Watcher, eventually, running
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.mcp.backoff import RetryPolicy
from tui.engine.mcp.manager import ServerManager
from tui.model.events import ServerStatusChanged
from tui.model.servers import Failure, Origin, ServerId, Transport
from tui.model.servers import ServerStatus as S

WEB = ServerId("web")


def define(url: str, transport: Transport = Transport.HTTP, **more: Any) -> ServerDefinition:  # noqa: ANN401
    """Define a server on the network."""
    return ServerDefinition(id=WEB, origin=Origin.USER, transport=transport, url=url, **more)


@asynccontextmanager
async def connected(
    url: str,
    transport: Transport = Transport.HTTP,
    retry: RetryPolicy = LATER,
    **more: Any,  # noqa: ANN401
) -> AsyncIterator[tuple[ServerManager, Watcher]]:
    """Run a server and wait until it is ready."""
    async with running(define(url, transport, **more), retry=retry) as (manager, watcher):
        await eventually(lambda: len(watcher.statuses(WEB)) >= 2)
        assert watcher.statuses(WEB) == [S.STARTING, S.READY], watcher.last(WEB)
        yield manager, watcher


@asynccontextmanager
async def answering(
    on: Handler | dict[str, Handler] | None = None,
    *,
    sessions: bool = False,
    **more: Any,  # noqa: ANN401
) -> AsyncIterator[tuple[RawServer, ServerManager, Watcher]]:
    """Connect to a raw server that does something else than it should, at first on calls."""
    instead = {"tools/call": on} if callable(on) else on or {}
    server = RawServer(instead, set() if sessions else None)
    async with server, connected(server.url, **more) as (manager, watcher):
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


async def refused(
    url: str,
    transport: Transport = Transport.HTTP,
    **more: Any,  # noqa: ANN401
) -> tuple[S, Failure]:
    """Try to connect; gives the status that the first attempt leads to, and why."""
    change = await outcome(url, transport, **more)
    assert change.failure is not None, change
    return change.status, change.failure


async def reason(url: str, transport: Transport = Transport.HTTP, **more: Any) -> str:  # noqa: ANN401
    """Try to connect; gives the reason why that failed."""
    return (await refused(url, transport, **more))[1].reason


def stateless(**more: Message) -> dict[str, Handler]:
    """Give what a server of 2026-07-28 answers: to `server/discover`, `tools/list` and more."""
    about = {"ttlMs": 0, "cacheScope": "public"}
    capabilities: Message = {"tools": {}} | ({"prompts": {}} if "prompts/list" in more else {})
    known = {"supportedVersions": ["2026-07-28"], "capabilities": capabilities}
    results: dict[str, Message] = {
        "server/discover": {**known, **about, "resultType": "complete"},
        "tools/list": {"tools": [ECHO], **about},
    }

    def giving(result: Message) -> Handler:
        return lambda exchange: exchange.result(result)

    return {method: giving(result) for method, result in (results | more).items()}
