"""Runs the process of a stdio server.

It needs no MCP SDK, so that servers start while that is imported.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from tui.engine.definitions.definition import ServerDefinition
from tui.engine.definitions.programs import guarded_folders
from tui.engine.mcp.context import ClientContext
from tui.engine.mcp.server_log import ServerLog
from tui.engine.mcp.transports.stdio.environment import (
    check_code,
    empty_folder,
    own_program,
    resolve_folder,
    server_environment,
    shown_program,
)
from tui.engine.mcp.transports.stdio.process import Launch, ServerProcess
from tui.model.servers import Origin, Transport

_log: Final = logging.getLogger(__name__)


@asynccontextmanager
async def running_server(
    definition: ServerDefinition,
    log: ServerLog,
    context: ClientContext,
    must_stop: Callable[[], bool],
) -> AsyncIterator[ServerProcess | None]:
    """Run the process of a server within the block; None for a server that has none.

    Args:
        definition: Which server.
        log: Takes its standard error.
        context: Has the zygote, and the opened folders, in which no program is looked up by name.
        must_stop: Whether it was stopped meanwhile; then nothing is started.

    Raises:
        ServerError: If it cannot be started.
    """
    if definition.transport is not Transport.STDIO or must_stop():
        yield None
        return
    launch = await asyncio.to_thread(_prepare, definition, context.workspaces)
    if must_stop():
        yield None
        return
    process = await ServerProcess.start(launch, log.write_stderr, context.zygote)
    _log.debug("%s: its process runs", definition.id)
    try:
        yield process
    finally:
        await process.close()


def _prepare(definition: ServerDefinition, workspaces: Sequence[Path]) -> Launch:
    """Check the code of a server, find what is to be started, and empty a folder of ours. Blocks.

    Raises:
        ServerError: If it cannot be started.
    """
    if definition.starts_outside and definition.cwd is not None:
        empty_folder(definition.cwd)
    check_code(definition, os.environ, workspaces)
    avoid = guarded_folders(workspaces, Path.home())
    environment = server_environment(definition, os.environ, avoid)
    folder = resolve_folder(definition.cwd or next(iter(workspaces), None))
    if definition.origin is Origin.PROJECT:
        program = shown_program(definition)
    else:
        program = own_program(definition, environment, folder, avoid)
    return Launch((program, *definition.args), environment, folder)
