"""An open deck as other programs of the user find it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tui.engine.background import in_daemon_thread
from tui.engine.engine import Engine
from tui.engine.files.paths import shown_path, usable_state_dir
from tui.engine.serving.callers import CallerBook
from tui.engine.serving.deck_socket import Hello, answering
from tui.engine.serving.lending import COMMAND, Lending
from tui.engine.serving.shared_servers import SharedServers
from tui.engine.trust.folder_identity import identify
from tui.model.consent import Caller


@asynccontextmanager
async def answering_others(engine: Engine, folder: Path) -> AsyncIterator[None]:
    """Let other clients use the servers of an engine within the block.

    Args:
        engine: The engine.
        folder: The opened folder, for which they look.
    """
    state, shown = usable_state_dir(), shown_path(folder, Path.home())
    callers = CallerBook(state, engine.problems)

    async def welcome(hello: Hello) -> SharedServers:
        if hello.server:
            return Lending(engine, Caller(COMMAND, shown), hello)
        if hello.profile not in engine.runs.turns.profiles:
            raise ValueError(f"The open gemdeck has no profile {hello.profile}.")
        caller = await asyncio.to_thread(callers.caller, hello.token, hello.name, shown)
        return SharedServers(engine, caller, hello.profile)

    async with answering(state, await in_daemon_thread(lambda: identify(folder)), welcome):
        yield
