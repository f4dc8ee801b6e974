"""Entries of servers, written into the settings files or taken out."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click

from tui.cli.command import CommandError, shown
from tui.cli.output import ExitCode, say
from tui.engine.background import in_daemon_thread
from tui.engine.files.paths import GEMINI_FOLDER, usable_state_dir
from tui.engine.server_setup.server_imports import OwnEdits
from tui.engine.settings.edits import EditError, NoSuchServerError
from tui.engine.settings.sources.source import FILE_NAME
from tui.engine.settings.typed_entries import EntryError, entry_difference, is_address
from tui.model.servers import Origin

SCOPES: Final = (Origin.USER.value, Origin.FOLDER.value, Origin.PROJECT.value)
"""The settings that commands change, by the origin of the servers in them."""


def scope_option(default: str, whose: str) -> Callable[[Any], Any]:
    """Give the option that names the settings which change."""
    kinds = click.Choice([*SCOPES])
    return click.option("-s", "--scope", type=kinds, default=default, show_default=True, help=whose)


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
        if command and not is_address(command[0]):
            own = [*args[: -len(behind_options)], *others[: -len(command)]]
            if "--" not in own and "--" in command:
                command.remove("--")
            args = [*(one for one in own if one != "--"), "--", *name, *command]
        return super().parse_args(ctx, args)


async def confirm_change(name: str, before: object, after: object, *, says_yes: bool) -> None:
    """Show how an entry would change, and ask whoever sits before the terminal.

    Raises:
        CommandError: If the answer is no, or nobody can be asked.
    """
    say(f"Changes to {name}:")
    for line in entry_difference(before, after):
        say(f"{line.sign} {line.text}")
    if says_yes:
        return
    if sys.stdin is None or not sys.stdin.isatty():
        raise CommandError(f"{name} was not changed. To change it, add --yes.", ExitCode.USAGE)
    say("apply the changes? [y/N]")
    answer = await in_daemon_thread(sys.stdin.readline)
    if answer.strip().lower() not in {"y", "yes"}:
        raise CommandError(f"{name} was not changed.")


@contextmanager
def as_usage() -> Iterator[None]:
    """Say of what was typed wrongly that it is wrong usage."""
    try:
        yield
    except EntryError as error:
        raise click.UsageError(str(error)) from error


@contextmanager
def edits_of(scope: str) -> Iterator[None]:
    """Say of which file it is if settings cannot be edited."""
    try:
        yield
    except NoSuchServerError:
        raise
    except EditError as error:
        folder = {"user": Path.home(), "project": Path.cwd()}.get(scope)
        file = shown(folder / GEMINI_FOLDER / FILE_NAME) if folder else "Your settings for it"
        raise CommandError(f"{file}: {error}") from error


def own_edits() -> OwnEdits:
    """Give what edits the settings of this folder and the user's."""
    return OwnEdits(Path.cwd(), Path.home(), usable_state_dir(), say)
