"""Entries of servers made of options, and written into the settings files or taken out."""

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from tui.cli.command import CommandError, shown
from tui.cli.output import ExitCode, say
from tui.engine.background import in_daemon_thread
from tui.engine.commands.server_imports import OwnEdits
from tui.engine.definitions.definition_diff import compared_lines
from tui.engine.definitions.fingerprint import digest
from tui.engine.definitions.folder_code import FOLDER_NAME
from tui.engine.files.paths import usable_state_dir
from tui.engine.logs.redaction import MASK, is_secret_variable, masked_words
from tui.engine.settings.edits import EditError, NoSuchServerError
from tui.engine.settings.sources.source import FILE_NAME, validation_problems
from tui.model.settings import ServerSettings
from tui.text import sanitize


class ServerLast(click.Command):
    """A command whose last words are a server's own command: all behind that belongs to it.

    An address takes no words, so what stands behind one are options of ours. The first ``--``
    separates, wherever it stands.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put a ``--`` before the name, the command and what follows."""
        options = [one for one in self.params if isinstance(one, click.Option)]
        ctx.allow_interspersed_args = False
        parser = click.Command(None, params=[*options]).make_parser(ctx)
        behind_options = parser.parse_args([*args])[1]
        name, others = behind_options[:1], behind_options[1:]
        command = parser.parse_args([*others])[1]
        ctx.allow_interspersed_args = True
        if command and not _is_address(command[0]):
            own = [*args[: -len(behind_options)], *others[: -len(command)]]
            if "--" not in own and "--" in command:
                command.remove("--")
            args = [*(one for one in own if one != "--"), "--", *name, *command]
        return super().parse_args(ctx, args)


def _is_address(target: str) -> bool:
    return target.startswith(("http://", "https://"))


def server_entry(
    target: str,
    arguments: Sequence[str],
    transport: str | None,
    env: Sequence[str],
    header: Sequence[str],
    **others: Any,  # noqa: ANN401 - as declared at the command
) -> dict[str, Any]:
    """Write the entry that the options of a command describe.

    Raises:
        click.UsageError: If they contradict each other or a value is wrong.
    """
    is_address = _is_address(target)
    kind = transport or ("http" if is_address else "stdio")
    if is_address == (kind == "stdio"):
        raise click.UsageError(f"{kind} needs {'a command' if is_address else 'an address'}.")
    if is_address and (arguments or env):
        raise click.UsageError("Arguments and variables are for commands.")
    if header and not is_address:
        raise click.UsageError("Headers are for addresses.")
    reached = (
        {"url": target, "type": kind, "headers": named_values(header, ":", "-H") or None}
        if is_address
        else {
            "command": target,
            "args": list(arguments) or None,
            "env": named_values(env, "=", "-e") or None,
        }
    )
    more = {
        "timeout": others["timeout"],
        "trust": others["trust"] or None,
        "description": others["description"],
        "includeTools": _names(others["include_tools"]) or None,
        "excludeTools": _names(others["exclude_tools"]) or None,
    }
    entry = {key: value for key, value in {**reached, **more}.items() if value is not None}
    try:
        ServerSettings.model_validate(entry)
    except ValidationError as error:
        keys, words = validation_problems(error)[0]
        where = ".".join(map(str, keys))
        raise click.UsageError(f"{where}: {words}" if where else words) from error
    return entry


async def confirm_change(name: str, before: object, after: object, *, says_yes: bool) -> None:
    """Show how an entry would change, and ask whoever sits before the terminal.

    Raises:
        CommandError: If the answer is no, or nobody can be asked.
    """
    say(f"{name} is there already. It would change:")
    salt = os.urandom(16)
    old, new = (_entry_lines(entry, salt) for entry in (before, after))
    for line in compared_lines(old, new):
        say(sanitize(f"{line.sign} {line.text}"))
    if says_yes:
        return
    if sys.stdin is None or not sys.stdin.isatty():
        words = f"{name} was left as it is. To change it, add --yes."
        raise CommandError(words, ExitCode.USAGE)
    say("change it? [y/N]")
    answer = await in_daemon_thread(sys.stdin.readline)
    if answer.strip().lower() not in {"y", "yes"}:
        raise CommandError(f"{name} was left as it is.")


def _entry_lines(entry: object, salt: bytes) -> list[str]:
    """Write an entry as lines; a mark behind what is masked tells one secret from another."""

    def masked(value: object, key: str = "") -> object:
        match value:
            case Mapping():
                return {name: masked(item, str(name)) for name, item in value.items()}
            case list():
                words = masked_words([str(item) for item in value])
                words += ["…"] * (len(value) - len(words))  # of a long one only the marks are shown
                return [_marked(str(item), word) for item, word in zip(value, words, strict=True)]
            case str():
                is_secret = is_secret_variable(key, value)
                return _marked(value, MASK if is_secret else masked_words((value,))[0])
        return value

    def _marked(value: str, shown: str) -> str:
        return value if shown == value else f"{shown} #{digest(value, salt)[:8]}"

    return json.dumps(masked(entry), indent=2, ensure_ascii=False).splitlines()


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


def named_values(words: Sequence[str], sign: str, option: str) -> dict[str, str]:
    """Read values that were typed behind their names.

    Raises:
        click.UsageError: If the sign or a name is missing; it says what was typed wrongly.
    """
    parts = [word.partition(sign) for word in words]
    if any(not found or not name for name, found, _ in parts):
        raise click.UsageError(f"{option} is written KEY{sign}VALUE.")
    return {name.strip(): value.lstrip() if sign == ":" else value for name, _, value in parts}


def _names(words: str | None) -> list[str]:
    return [word.strip() for word in (words or "").split(",") if word.strip()]
