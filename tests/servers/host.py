"""A gemdeck without a screen: runs the servers it is told of until it is killed.

Run it as ``host.py FOLDER MARK BEHAVIOUR…``. Each argument after the second starts one server
of `raw.py` with these behaviours, separated by commas. It prints ``ready`` once all are.
"""

import asyncio
import sys
from pathlib import Path

from tui.engine.definitions.definition import ServerDefinition
from tui.engine.late import import_connection
from tui.engine.mcp.context import ClientContext
from tui.engine.mcp.manager import ServerManager
from tui.model.servers import Origin, ServerId, Transport

RAW = Path(__file__).with_name("raw.py")


async def main() -> None:
    """Run until killed."""
    folder, mark, *servers = sys.argv[1:]
    definitions = [
        ServerDefinition(
            id=ServerId(f"s{number}"),
            origin=Origin.USER,
            transport=Transport.STDIO,
            command=sys.executable,
            args=(str(RAW), *behaviours.split(",")),
            env={"GUARDED_BY_TEST": mark},
            cwd=Path(folder),
        )
        for number, behaviours in enumerate(servers)
    ]
    manager = ServerManager(
        lambda _: None, ClientContext(workspaces=(Path(folder),)), import_connect=import_connection
    )
    async with manager:
        manager.configure(definitions)
        await manager.wait_discovered(20)
        print("ready" if len(manager.offered_tools()) > 0 else "failed", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
