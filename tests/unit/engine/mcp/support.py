"""What tests of servers share: definitions of test servers, a watcher of events, waiting."""

# ruff: noqa: ANN401 - what is passed on is whatever it was

import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pytest

from tests import servers
from tests.support import leaks, warm
from tests.support.definitions import define_server
from tests.support.waiting import eventually as eventually  # noqa: PLC0414 - found here, too
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.late import import_connection
from tui.engine.mcp.backoff import RetryPolicy
from tui.engine.mcp.catalog.offered_tool import JsonObject, OfferedTool, ToolCallError, ToolResult
from tui.engine.mcp.catalog.permit import Permit
from tui.engine.mcp.context import ClientContext
from tui.engine.mcp.manager import Enablement, ServerManager
from tui.engine.mcp.session.era import EraCache
from tui.engine.mcp.supervisor import Connect
from tui.engine.mcp.transports.stdio.zygote import REAPER
from tui.model.catalog import Catalog
from tui.model.chat import Progress
from tui.model.events import CatalogChanged, Event, ServerLogged, ServerStatusChanged
from tui.model.servers import Failure, ServerInfo, ServerStatus

LATER = RetryPolicy(first_delay=60.0)
"""A policy under which no server is started again while a test looks at it."""

HASTY = RetryPolicy(first_delay=0.01, least_delay=0.01, most_delay=0.05)
"""A policy under which nobody waits long for a retry."""

FOLDER = Path(servers.__file__).parent

OF_THE_SDK = frozenset({"asking", "decoy", "sample"})
"""The servers that are written with the SDK, which takes a second to import."""

E_ = TypeVar("E_", bound=Event)

Running = AsyncIterator[tuple[ServerManager, "Watcher"]]
"""What runs servers, and the one who watches them."""


def script(
    name: str, *arguments: str, server: str = "", env: Mapping[str, str] | None = None, **more: Any
) -> ServerDefinition:
    """Define a server of `tests/servers`, such as ``sample`` or ``raw`` with behaviours."""
    return define_server(
        server or name,
        command=warm.python() if name in OF_THE_SDK else sys.executable,
        args=(str(FOLDER / f"{name}.py"), *arguments),
        env=env or {},
        **more,
    )


class Watcher:
    """Records events and waits for them."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        """Take an event."""
        self.events.append(event)

    def of(self, kind: type[E_]) -> list[E_]:
        """Give the events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]

    def statuses(self, server: str) -> list[ServerStatus]:
        """Give the statuses a server went through."""
        return [e.status for e in self.of(ServerStatusChanged) if e.server == server]

    def last(self, server: str) -> ServerStatusChanged:
        """Give a server's last change of status."""
        return [e for e in self.of(ServerStatusChanged) if e.server == server][-1]

    def log(self, server: str) -> list[str]:
        """Give what a server's log shows."""
        return [line.text for e in self.of(ServerLogged) if e.server == server for line in e.lines]

    def catalog(self, server: str) -> Catalog:
        """Give a server's last catalog."""
        return [e.catalog for e in self.of(CatalogChanged) if e.server == server][-1]

    def tools(self, server: str) -> list[str]:
        """Give the ids of the tools in a server's last catalog."""
        return [tool.id for tool in self.catalog(server).tools]

    async def until(self, server: str, *statuses: ServerStatus) -> ServerStatusChanged:
        """Wait until a server has gone through these statuses last."""
        wanted = list(statuses)
        await eventually(lambda: self.statuses(server)[-len(wanted) :] == wanted)
        return self.last(server)

    async def info(self, server: str, *statuses: ServerStatus) -> ServerInfo:
        """Wait as `until`, and give what the server says of itself."""
        info = (await self.until(server, *statuses)).info
        assert info is not None
        return info

    async def fails(self, server: str, *statuses: ServerStatus) -> Failure:
        """Wait as `until`, and give why the server is not ready."""
        failure = (await self.until(server, *statuses)).failure
        assert failure is not None
        return failure


def children(which: Callable[[psutil.Process], bool] = lambda _child: True) -> list[psutil.Process]:
    """List the living descendants of this process; any may end while we look."""
    found = []
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            lives = child.status() != psutil.STATUS_ZOMBIE
            if lives and child.pid not in leaks.KEPT and which(child):
                found.append(child)
    return found


def server_processes() -> list[psutil.Process]:
    """List the living server processes, without the reapers before them and their zygote."""
    return children(lambda child: str(REAPER) not in child.cmdline())


def is_alive(pid: int) -> bool:
    """Tell whether a process lives; one that only waits to be reaped does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def permit(tool: OfferedTool, arguments: JsonObject | None = None) -> Permit:
    """Allow a call in the gate's place."""
    return Permit(tool, arguments or {}, "", "a test")


@asynccontextmanager
async def running(
    *definitions: ServerDefinition,
    workspace: Path = FOLDER,
    others: tuple[Path, ...] = (),
    retry: RetryPolicy = LATER,
    context: ClientContext | None = None,
    eras: EraCache | None = None,
    enablement: Enablement | None = None,
    import_connect: Callable[[], Connect] = import_connection,
) -> Running:
    """Run servers until the block ends."""
    watcher = Watcher()
    context = context or ClientContext(watcher)
    context.workspaces, context.client_version = (workspace, *others), "0.1"
    context.eras = eras or context.eras
    manager = ServerManager(
        watcher, context, import_connect=import_connect, enablement=enablement, retry=retry
    )
    async with manager:
        manager.configure(definitions)
        yield manager, watcher


@asynccontextmanager
async def ready(*definitions: ServerDefinition, **more: Any) -> Running:
    """Run servers as `running`, once all of them are ready."""
    async with running(*definitions, **more) as (manager, watcher):
        for one in definitions:  # which may sleep soon
            await eventually(lambda: ServerStatus.READY in watcher.statuses(one.id))  # noqa: B023
        yield manager, watcher


def find_tool(manager: ServerManager, name: str) -> OfferedTool | None:
    """Find what is offered under a name towards the model."""
    return next((tool for tool in manager.offered_tools() if tool.id == name), None)


async def call(
    manager: ServerManager,
    name: str,
    arguments: dict[str, Any] | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> ToolResult:
    """Call a tool by its name towards the model."""
    tool = find_tool(manager, name)
    assert tool is not None, [tool.id for tool in manager.offered_tools()]
    return await manager.call_tool(permit(tool, arguments), on_progress)


async def refuses(
    words: str, manager: ServerManager, name: str, arguments: dict[str, Any] | None = None
) -> None:
    """Call a tool, which gives no result for a reason that matches."""
    with pytest.raises(ToolCallError, match=words):
        await call(manager, name, arguments)
