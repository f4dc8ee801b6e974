"""A gemdeck without a screen: runs the servers it is told of until it is killed.

Run it as ``host.py FOLDER MARK BEHAVIOUR…``. Each argument after the second starts one server
of `raw.py` with these behaviours, separated by commas. It prints ``ready`` once all are.
"""

import asyncio
import sys
from pathlib import Path

from tests.unit.engine.mcp.support import running, script


async def main() -> None:
    """Run until killed."""
    folder, mark, *servers = sys.argv[1:]
    env, cwd = {"GUARDED_BY_TEST": mark}, Path(folder)
    definitions = [
        script("raw", *behaviours.split(","), server=f"s{number}", env=env, cwd=cwd)
        for number, behaviours in enumerate(servers)
    ]
    async with running(*definitions, workspace=cwd) as (manager, _):
        await manager.wait_discovered(20)
        print("ready" if len(manager.offered_tools()) > 0 else "failed", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
