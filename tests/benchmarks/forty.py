"""Starts forty servers that take the processor: ``python -m tests.benchmarks.forty raw|engine``.

It prints the seconds from its own start until the first and until all of them are ready, through
the bare SDK or through the engine, each of which imports the SDK meanwhile.
"""

import asyncio
import sys
import time
from pathlib import Path
from typing import Final

import psutil

from tests.support.definitions import define_server
from tui.engine.late import import_connection
from tui.engine.mcp.context import ClientContext
from tui.engine.mcp.manager import ServerManager
from tui.model.events import Event, ServerStatusChanged
from tui.model.servers import Origin, ServerId, ServerStatus, Transport

MANY: Final = 40

LEAN: Final = str(Path(__file__).with_name("lean_server.py"))

HEAVY: Final = f"import mcp.server.lowlevel, runpy; runpy.run_path({LEAN!r})"
"""What each server runs: the imports that a server written with the SDK begins with."""

_BEGAN: Final = psutil.Process().create_time()

ready: Final = list[float]()
done: Final = asyncio.Event()


def count() -> None:
    """Note that one more server is ready."""
    ready.append(time.time() - _BEGAN)
    if len(ready) == MANY:
        done.set()


async def connect_raw() -> None:
    """Connect to one server, as a client does that is written with the SDK alone."""
    from mcp import Client, StdioServerParameters, stdio_client  # noqa: PLC0415 - it is timed

    parameters = StdioServerParameters(command=sys.executable, args=["-c", HEAVY])
    async with Client(stdio_client(parameters)) as client:
        await client.list_tools()
        count()
        await done.wait()


async def raw() -> None:
    await asyncio.gather(*(connect_raw() for _ in range(MANY)))


def look(event: Event) -> None:
    """Count the servers that the engine publishes as ready."""
    if isinstance(event, ServerStatusChanged) and event.status is ServerStatus.READY:
        count()


async def engine() -> None:
    definitions = [
        define_server(
            *(ServerId(f"heavy{number}"), Origin.USER, Transport.STDIO),
            command=sys.executable,
            args=("-c", HEAVY),
        )
        for number in range(MANY)
    ]
    context = ClientContext(look)
    context.workspaces = (Path.cwd(),)
    async with ServerManager(look, context, import_connection) as manager:
        manager.configure(definitions)
        await done.wait()


if __name__ == "__main__":
    asyncio.run({"raw": raw, "engine": engine}[sys.argv[1]]())
    print(ready[0], ready[-1], flush=True)
