"""``gemdeck sessions``: saved conversations, listed, searched, read, exported and deleted."""

import json
import time
from dataclasses import asdict
from pathlib import Path

import click

from tui.cli.command import CommandError, CommandOutput, checked_ids, prints_json
from tui.cli.output import ExitCode, table
from tui.engine.background import in_daemon_thread
from tui.engine.chats.sessions.library import (
    SessionError,
    SessionLibrary,
    export_text,
    to_json,
    to_markdown,
    write_export,
)
from tui.engine.chats.sessions.replay import SavedSession
from tui.engine.files.paths import state_dir
from tui.model.sessions import SessionView
from tui.text import counted


@click.group()
def sessions() -> None:
    """List, search, read, export and delete saved sessions."""


_everywhere = click.option("--all", "everywhere", is_flag=True, help="Include all folders.")


@sessions.command("list", epilog="Example: gemdeck sessions list --all")
@_everywhere
@prints_json
async def list_sessions(*, everywhere: bool) -> CommandOutput:
    """List the sessions of this folder, most recent first."""
    found = SessionLibrary(state_dir()).sessions(_folder(everywhere=everywhere))
    rows = [
        (
            str(one.id),
            _moment(one),
            counted(one.turns, "turn"),
            one.model,
            one.title or one.first,
        )
        for one in found
    ]
    value = {"sessions": [asdict(one) for one in found]}
    return CommandOutput(value, table(rows) or "There are no sessions.")


@sessions.command(epilog="Example: gemdeck sessions search branch rebase")
@click.argument("words", nargs=-1, required=True, metavar="WORDS…")
@_everywhere
@prints_json
async def search(words: tuple[str, ...], *, everywhere: bool) -> CommandOutput:
    """Find the sessions with a message, an answer or a tool call that has all these words."""
    library, folder = SessionLibrary(state_dir()), _folder(everywhere=everywhere)
    found = await in_daemon_thread(lambda: library.search(" ".join(words), folder))
    rows = [(str(one.view.id), _moment(one.view), one.line) for one in found.matches]
    sessions = [asdict(one.view) | {"line": one.line} for one in found.matches]
    text = table(rows) or "No session has these words."
    if found.left:
        text += f"\nNot searched: the {counted(found.left, 'oldest session')}."
    return CommandOutput({"sessions": sessions, "not_searched": found.left}, text)


@sessions.command(epilog="Example: gemdeck sessions show")
@click.argument("session", metavar="[ID]", default="")
@_everywhere
@prints_json
async def show(session: str, *, everywhere: bool) -> CommandOutput:
    """Print a session by the start of its ID, or the latest of this folder."""
    saved = _read(session, _folder(everywhere=everywhere))
    # as JSON it is what an export holds
    return CommandOutput(json.loads(to_json(saved)), to_markdown(saved).rstrip())


@sessions.command(epilog="Example: gemdeck sessions export latest session.md")
@click.argument("session", metavar="ID")
@click.argument("file", type=click.Path(path_type=Path))
@_everywhere
@prints_json
async def export(session: str, file: Path, *, everywhere: bool) -> CommandOutput:
    """Write a session to a new file: JSON if its name ends in .json, else Markdown."""
    saved = _read(session, _folder(everywhere=everywhere))
    write_export(file, export_text(saved, file))
    name = saved.view.id
    return CommandOutput({"session": name, "file": str(file)}, f"Exported {name} to {file}.")


@sessions.command(epilog="Example: gemdeck sessions delete latest")
@click.argument("ids", nargs=-1, required=True, metavar="ID…", callback=checked_ids)
@_everywhere
@prints_json
async def delete(ids: tuple[str, ...], *, everywhere: bool) -> CommandOutput:
    """Delete sessions by the start of their IDs."""
    library, folder = SessionLibrary(state_dir()), _folder(everywhere=everywhere)
    chosen = {found.id: found for found in (_found(library, one, folder) for one in ids)}
    for one in chosen.values():
        library.delete(one)
    names = [str(one) for one in chosen]
    return CommandOutput({"deleted": names}, f"Deleted: {', '.join(names)}.")


def _moment(view: SessionView) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(view.changed))


def _folder(*, everywhere: bool) -> Path | None:
    return None if everywhere else Path.cwd()


def _read(session: str, folder: Path | None) -> SavedSession:
    library = SessionLibrary(state_dir())
    return library.read(_found(library, session, folder))


def _found(library: SessionLibrary, words: str, folder: Path | None) -> SessionView:
    try:
        return library.find(words, folder)
    except SessionError as error:
        raise CommandError(str(error), ExitCode.NOT_FOUND) from error
