"""``gemdeck mcp add`` and ``remove``: servers in the settings files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
from pydantic import ValidationError

from tui.cli.command import CommandError, CommandOutput, no_such, shown
from tui.cli.output import ExitCode, say
from tui.cli.servers.server_commands import show
from tui.cli.servers.server_session import StartOptions
from tui.engine.commands.server_imports import OwnEdits
from tui.engine.files.paths import usable_state_dir
from tui.engine.settings.edits import EditError, NoSuchServerError
from tui.engine.settings.entries import MAX_NAME, server_id
from tui.engine.settings.sources.source import FILE_NAME, FOLDER_NAME, validation_problems
from tui.model.servers import ServerStatus
from tui.model.settings import ServerSettings
from tui.text import counted

_WAITING: Final = (ServerStatus.UNTRUSTED, ServerStatus.DISABLED)
"""The server was written as asked, and is not to be started."""

CHECK_TIME: Final = 10.0
"""Seconds that a new server gets to become ready."""


def server_entry(  # noqa: PLR0913 - one for each option
    *,
    target: str,
    arguments: Sequence[str],
    transport: str | None,
    env: Sequence[str],
    header: Sequence[str],
    timeout: int | None,
    trust: bool,
    description: str | None,
    include_tools: str | None,
    exclude_tools: str | None,
) -> dict[str, Any]:
    """Write the entry that options describe.

    Raises:
        click.UsageError: If they contradict each other or a value is wrong.
    """
    is_address = target.startswith(("http://", "https://"))
    kind = transport or ("http" if is_address else "stdio")
    if is_address == (kind == "stdio"):
        raise click.UsageError(f"{kind} needs {'a command' if is_address else 'an address'}.")
    if is_address and (arguments or env):
        raise click.UsageError("Arguments and variables are for commands.")
    if header and not is_address:
        raise click.UsageError("Headers are for addresses.")
    reached = (
        {"url": target, "type": kind, "headers": _named(header, ":", "-H") or None}
        if is_address
        else {
            "command": target,
            "args": list(arguments) or None,
            "env": _named(env, "=", "-e") or None,
        }
    )
    more = {
        "timeout": timeout,
        "trust": trust or None,
        "description": description,
        "includeTools": _names(include_tools) or None,
        "excludeTools": _names(exclude_tools) or None,
    }
    entry = {key: value for key, value in {**reached, **more}.items() if value is not None}
    try:
        ServerSettings.model_validate(entry)
    except ValidationError as error:
        keys, words = validation_problems(error)[0]
        where = ".".join(map(str, keys))
        raise click.UsageError(f"{where}: {words}" if where else words) from error
    return entry


async def add(name: str, entry: dict[str, Any], scope: str, *, checks: bool) -> CommandOutput:
    """Write an entry, and say whether its server gets ready.

    Args:
        name: Its name.
        entry: The entry.
        scope: ``user`` or ``project``.
        checks: Whether to start it. One of a folder that is not trusted is not.
    """
    if not name or server_id(name) != name:
        words = f"A name has 1 to {MAX_NAME} characters, and single blanks at most."
        raise CommandError(words, ExitCode.USAGE)
    if scope == "project" and entry.get("trust"):
        raise CommandError("A project's settings cannot trust a server.", ExitCode.USAGE)
    path = write_entry(name, entry, scope)
    value = {"server": name, "file": str(path), "entry": entry}
    text = f"{name} is in {shown(path)}."
    if not checks:
        return CommandOutput(value, text)
    answer = await show(name, StartOptions(CHECK_TIME))
    found = answer.value
    value |= {"status": found["status"], "reason": found["reason"]}
    why = f"{found['reason']} {found['advice']}".rstrip()
    offers = counted(len(found["tools"]), "tool") if found["status"] == "ready" else why
    code = ExitCode.OK if found["status"] in _WAITING else answer.code
    return CommandOutput(value, f"{text} It is {found['status']}: {offers}", code)


async def remove(name: str, scope: str) -> CommandOutput:
    """Remove an entry."""
    try:
        path = own_edits().remove(scope, name)
    except NoSuchServerError as error:
        raise no_such("server", name, error.known) from error
    except EditError as error:
        raise CommandError(f"{shown(place_of(scope))}: {error}") from error
    value = {"server": name, "file": str(path)}
    return CommandOutput(value, f"{name} was removed from {shown(path)}.")


def write_entry(name: str, entry: Mapping[str, Any], scope: str) -> Path:
    """Write an entry, and return the file."""
    try:
        return own_edits().add(scope, name, entry)
    except EditError as error:
        raise CommandError(f"{shown(place_of(scope))}: {error}") from error


def own_edits() -> OwnEdits:
    """Give what edits the settings of this folder and the user's."""
    return OwnEdits(Path.cwd(), Path.home(), usable_state_dir(), say)


def place_of(scope: str) -> Path:
    """Return the settings file of a scope."""
    folder = Path.home() if scope == "user" else Path.cwd()
    return folder / FOLDER_NAME / FILE_NAME


def _named(words: Sequence[str], sign: str, option: str) -> dict[str, str]:
    parts = [word.partition(sign) for word in words]
    if any(not found or not name for name, found, _ in parts):
        raise click.UsageError(f"{option} is written NAME{sign}VALUE.")
    return {name.strip(): value.lstrip() if sign == ":" else value for name, _, value in parts}


def _names(words: str | None) -> list[str]:
    return [word.strip() for word in (words or "").split(",") if word.strip()]
