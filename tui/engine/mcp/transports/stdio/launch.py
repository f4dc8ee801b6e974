"""Finds what a stdio server is, its program, folder and environment, and runs its process.

It needs no MCP SDK, so that servers start while that is imported.
"""

import asyncio
import logging
import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from tui.engine.definitions.definition import ServerDefinition
from tui.engine.definitions.outside import Outside
from tui.engine.definitions.programs import find_program, guarded_folders, search_path
from tui.engine.mcp.context import ClientContext
from tui.engine.mcp.errors import ServerError
from tui.engine.mcp.server_log import ServerLog
from tui.engine.mcp.transports.stdio.process import Invocation, ServerProcess
from tui.engine.mcp.transports.stdio.start_errors import not_found, not_started
from tui.engine.trust.folder_identity import FolderIdentity, identify
from tui.model.servers import Origin, Transport
from tui.text import sanitize_line

SERVED: Final = "GEMDECK_SERVED"
"""A variable of every server, below which no gemdeck serves: it would list its own tools."""

MAX_NAMES: Final = 1_000
"""Variables that are named."""

_log: Final = logging.getLogger(__name__)


def server_environment(
    definition: ServerDefinition, environ: Mapping[str, str], avoid: Iterable[Path] = ()
) -> dict[str, str]:
    """Build the environment of a server.

    Args:
        definition: The server; the variables of its entry win.
        environ: The environment to inherit from, without relative entries in its ``PATH``.
        avoid: Folders that are also removed from that ``PATH``, such as the opened one.
    """
    launch, is_small = definition.launch, definition.entry.origin is Origin.PROJECT
    inherited = launch.inherited(environ, is_small=is_small)
    path = search_path(inherited.pop("PATH", ""), avoid)
    if path:  # an empty PATH would mean the working folder
        inherited["PATH"] = path
    return inherited | dict(launch.env)


def environment_names(
    definition: ServerDefinition, environ: Mapping[str, str], left_out: Iterable[str] = ()
) -> tuple[tuple[str, ...], ...]:
    """Name the variables that a server gets, those of the user's that it does not, and why not.

    Args:
        definition: The server.
        environ: The environment to inherit from.
        left_out: What it does not get outside the opened folder.

    Returns:
        The names that it gets, those that are withheld wherever it runs, and those that are left
        out, or lost a part, as it runs outside.
    """
    if definition.transport is not Transport.STDIO:
        return (), (), ()
    given = server_environment(definition, environ)
    left_out = left_out if definition.is_outside else ()
    lost = (given.keys() - definition.launch.env.keys()) & set(left_out)
    passed = given.keys() - (lost - {"PATH"})
    return _shown(passed), _shown(environ.keys() - given.keys()), _shown(lost)


def _shown(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(sanitize_line, sorted(names)[:MAX_NAMES]))


def place_of(folder: Path) -> str:
    """Return the device and inode of a working folder; see `Invocation`.

    Raises:
        ServerError: If it does not exist.
    """
    if (found := identify(folder)) is None:
        reason = f"its working directory does not exist: {folder}"
        raise ServerError(reason, "Correct `cwd` in the settings.", permanent=True)
    return f"{found.device}:{found.inode}"


def own_program(
    definition: ServerDefinition,
    environment: Mapping[str, str],
    folder: Path,
    avoid: Iterable[Path] = (),
) -> str:
    """Return the program of a user's server: the file that its fingerprint covers.

    Permissions for that program must not apply to another one that has appeared under its name.

    Args:
        definition: The server.
        environment: Its environment; relative entries of its ``PATH`` are ignored.
        folder: The base of a relative path.
        avoid: Folders in which no name is looked up, such as the opened one.

    Raises:
        ServerError: If its name now finds another program, or none that is executable.
    """
    known = definition.launch.program
    if known and shutil.which(known):
        return known
    command = definition.launch.command
    if (found := find_program(command, environment, folder, avoid)) is None:
        raise not_found(command, folder)
    if known:
        reason = f"its program changed from {known} to {found}"
        raise ServerError(reason, "If you expected this change, restart gemdeck.", permanent=True)
    return found


def shown_program(definition: ServerDefinition) -> str:
    """Return the program of a project's server: exactly the file that the user was shown.

    Raises:
        ServerError: If there was none.
    """
    if not definition.launch.program:
        reason = f"command not found: {definition.launch.command}"
        advice = f"Review the folder again; {definition.entry.source} defines what is started."
        raise ServerError(reason, advice, permanent=True)
    return definition.launch.program


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
        context: Has the zygote; else as `launched` takes it.
        must_stop: Whether it was stopped meanwhile; then nothing is started.

    Raises:
        ServerError: If it cannot be started.
    """
    if definition.transport is not Transport.STDIO or must_stop():
        yield None
        return
    async with launched(definition, context) as invocation:
        if must_stop():
            yield None
            return
        try:
            process = await ServerProcess.start(invocation, log.write_stderr, context.zygote)
        except ServerError as error:
            program = invocation.arguments[0]
            raise await asyncio.to_thread(not_started, program, error) from error
        _log.debug("%s: its process runs", definition.id)
        try:
            yield process
        finally:
            await process.close()


@asynccontextmanager
async def launched(
    definition: ServerDefinition, context: ClientContext
) -> AsyncIterator[Invocation]:
    """Give what an entry starts; outside the opened folder, its start folder goes with the block.

    Args:
        definition: The entry.
        context: Has the opened folders, in which no program is looked up by name.

    Raises:
        ServerError: If it cannot be started.
    """
    invocation = await asyncio.to_thread(prepare, definition, context)
    try:
        yield invocation
    finally:
        if definition.is_outside:
            await asyncio.to_thread(context.outside.drop, invocation.folder)


def prepare(definition: ServerDefinition, context: ClientContext) -> Invocation:
    """Find what is to be started, and make the folder to start in. Blocks.

    Raises:
        ServerError: If it cannot be started.
    """
    avoid = guarded_folders(context.workspaces, Path.home())
    is_outside, folder = definition.is_outside, definition.launch.cwd
    environ = context.outside.variables[0] if is_outside else os.environ
    environment = server_environment(definition, environ, avoid)
    if folder is None and is_outside:
        folder = _start_folder(definition, context.outside)
    try:
        folder = folder or next(iter(context.workspaces), None) or Path.cwd()
        place = place_of(folder)  # looked at first: what comes later is another one
        environment[SERVED] = "1"
        if is_outside:
            environment = {"PWD": str(folder), **environment}
        else:
            _check_opened(context.opened)
        if definition.entry.origin is Origin.PROJECT:
            program = shown_program(definition)
        else:
            program = own_program(definition, environment, folder, avoid)
        found = Invocation((program, *definition.launch.args), environment, folder, place)
        if (box := definition.launch.sandbox) is not None:
            found = context.sandboxes.sandboxed(found, box, definition, context.workspaces)
    except ServerError:
        context.outside.drop(folder)
        raise
    return found


def _check_opened(judged: FolderIdentity | None) -> None:
    """Refuse to start in a folder that took the place of the one that was judged.

    Who follows the files of the settings learns of that a moment later, or never.
    """
    if judged is not None and identify(judged.path) != judged:
        reason = f"{judged.path} is now a different folder"
        raise ServerError(sanitize_line(reason), "Restart gemdeck to review that folder.")


def _start_folder(definition: ServerDefinition, outside: Outside) -> Path:
    try:
        return outside.start_folder(definition.id)
    except OSError as error:
        reason = f"cannot start outside the opened folder: {error.strerror or error}"
        advice = "Press t to trust that folder in the servers pane (F2) and start it there."
        raise ServerError(reason, advice) from error
