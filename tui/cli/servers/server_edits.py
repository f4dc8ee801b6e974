"""Entries of servers made of options, and written into the settings files or taken out."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from tui.cli.command import CommandError, shown
from tui.cli.output import say
from tui.engine.commands.server_imports import OwnEdits
from tui.engine.definitions.folder_code import FOLDER_NAME
from tui.engine.files.paths import usable_state_dir
from tui.engine.settings.edits import EditError, NoSuchServerError
from tui.engine.settings.sources.source import FILE_NAME, validation_problems
from tui.model.settings import ServerSettings


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


@contextmanager
def edits_of(scope: str) -> Iterator[None]:
    """Say of which file it is if settings cannot be edited."""
    try:
        yield
    except NoSuchServerError:
        raise
    except EditError as error:
        folder = Path.home() if scope == "user" else Path.cwd()
        raise CommandError(f"{shown(folder / FOLDER_NAME / FILE_NAME)}: {error}") from error


def own_edits() -> OwnEdits:
    """Give what edits the settings of this folder and the user's."""
    return OwnEdits(Path.cwd(), Path.home(), usable_state_dir(), say)


def _named(words: Sequence[str], sign: str, option: str) -> dict[str, str]:
    parts = [word.partition(sign) for word in words]
    if any(not found or not name for name, found, _ in parts):
        raise click.UsageError(f"{option} is written NAME{sign}VALUE.")
    return {name.strip(): value.lstrip() if sign == ":" else value for name, _, value in parts}


def _names(words: str | None) -> list[str]:
    return [word.strip() for word in (words or "").split(",") if word.strip()]
