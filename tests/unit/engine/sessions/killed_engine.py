"""An engine in a process of its own that chats until it is killed.

Its arguments: a folder, and a message for each conversation.
"""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tui.engine.engine import Engine, EngineOptions
from tui.model.events import Event, ModelSelected


async def main(folder: Path, messages: Sequence[str]) -> None:
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
        engine.send(messages[0])
        for message in messages[1:]:
            engine.conversations.open()
            engine.send(message)
        for conversation in engine.conversations:
            await engine.wait_idle(conversation.key)
        print("idle", flush=True)
        await asyncio.sleep(60)


asyncio.run(main(Path(sys.argv[1]), sys.argv[2:]))
