"""An engine in a process of its own that chats until it is killed: folder, message."""

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

from tui.engine.engine import Engine, EngineOptions
from tui.model.events import Event, ModelSelected


async def main(folder: Path, message: str) -> None:
    ready = asyncio.Event()

    def hear(event: Event) -> None:
        if isinstance(event, ModelSelected):
            ready.set()

    options = EngineOptions(
        folder, follow_settings=False, demo_without_key=False, allows_all=True, server_patience=10
    )
    async with Engine(replace(options, attended=True), hear) as engine:
        await engine.start()
        await ready.wait()
        await engine.wait_ready()
        engine.send(message)
        await engine.wait_idle()
        print("idle", flush=True)
        await asyncio.sleep(60)


asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
