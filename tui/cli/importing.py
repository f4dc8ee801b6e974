"""``gemdeck import``: servers of other clients, seen in full before any is written."""

import os
import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from tui.cli.command import CommandOutput, check_known, prints_json, shown
from tui.cli.output import ExitCode, block, say
from tui.cli.secret import keyring_option, secret_store
from tui.cli.servers.server_edits import edits_of, own_edits, scope_option
from tui.engine.background import in_daemon_thread
from tui.engine.definitions.programs import guarded_folders, is_within
from tui.engine.server_setup.server_imports import ServerImports
from tui.engine.settings.importers import (
    CLIENTS,
    Candidate,
    ClientFile,
    Machine,
    asked,
    find_files,
)
from tui.model.imports import ImportOffer, ImportState
from tui.text import sanitize_line


@click.command(
    "import", epilog="Example: gemdeck import claude-desktop files\n\nExample: gemdeck import --all"
)
@click.argument("client", required=False, metavar="[CLIENT]", type=click.Choice(list(CLIENTS)))
@click.argument("names", nargs=-1, metavar="[SERVER]…")
@click.option("--all", "takes_all", is_flag=True, help="Import every server that is new here.")
@click.option(
    "--file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read this file instead of the client's own.",
)
@scope_option("user", "Which settings: yours, the project's, or yours for this folder (folder).")
@keyring_option
@click.option(
    "--give",
    "given",
    multiple=True,
    metavar="NAME",
    help="Pass this environment variable, or keyring:NAME, to the servers.",
)
@prints_json
async def import_servers(
    client: str | None,
    names: tuple[str, ...],
    given: tuple[str, ...],
    file: Path | None,
    scope: str,
    *,
    takes_all: bool,
    keyring: bool,
) -> CommandOutput:
    """Import servers from other clients.

    CLIENT is claude-desktop, claude-code, vscode, cursor, windsurf, zed, codex, gemini-cli,
    opencode, copilot, goose or agents (.agents/mcp.json); without it, all are searched.

    Shows what each server would run, with all arguments, and what deserves a second look. Imports
    only the servers that you name, or with --all every new one; servers from files in this folder
    go into your settings only by name. Starts none of them. Your variables and secrets that they
    ask for are omitted unless you pass them: --give TOKEN, or --give keyring:github for a
    secret.
    """
    if file is not None and client is None:
        raise click.UsageError("--file needs CLIENT to know the format.")
    if (keyring or any("keyring:" in name for name in given)) and scope == "project":
        raise click.UsageError("A project's settings cannot refer to your secrets.")
    machine = Machine(Path.home(), Path.cwd(), os.environ)
    imports = ServerImports(machine, own_edits(), scope, secret_store() if keyring else None)
    imports.given = frozenset(given)
    texts, listed, written = list[str](), list[dict[str, Any]](), list[str]()
    named, left = list[ImportOffer](), list[ImportOffer]()
    with edits_of(scope):
        target = imports.edits.file_of(scope)
        found = imports.offered(find_files(machine, client or "", file and Path.cwd() / file))
        known = {offer.server for _, offers in found for offer in offers}
        check_known("server", names, known)
        chosen = known if takes_all else set(names)
        is_theirs = scope != "project" and file is None
        away = guarded_folders((machine.folder,), machine.home) if is_theirs else ()
        listing = [one for file, _ in found for one in file.candidates]
        meant = [one for one in listing if one.name in (chosen or known)]
        for name in sorted(imports.given.difference(*(asked(one.entry) for one in meant))):
            say(sanitize_line(f"No server asks for {name}."))

        def taken(at: ClientFile, there: Sequence[ImportOffer]) -> list[ImportOffer]:
            is_brought = any(is_within(at.path, place) for place in away)
            wanted = set(names) if is_brought else chosen
            offers = [imports.take(one) if one.server in wanted else one for one in there]
            left.extend(offers if is_brought else ())
            return offers

        for one, there in found:
            offers = await in_daemon_thread(partial(taken, one, there))
            written += [offer.server for offer in offers if offer.state is ImportState.WRITTEN]
            texts.append(f"{CLIENTS[one.client].title}  {one.file}")
            texts += [f"  {one.problem}"] if one.problem else []
            texts += map(_text, offers)
            named += [offer for offer in offers if offer.server in names]
            value = {"client": one.client, "file": one.file, "problem": one.problem}
            listed.append({**value, "servers": [*map(_server_value, offers)]})
    whole = {"files": listed, "target": str(target), "written": written}
    summary, code = _summary(bool(known), written, target), ExitCode.OK
    if takes_all and any(offer.state is ImportState.NEW for offer in left):
        summary += f"\n{_BY_NAME}"
    if not written and any(one.state is not ImportState.THERE for one in named):
        code, summary = ExitCode.ERROR, "Nothing was imported."
        taken_names = {one.server for one in named if one.state is ImportState.TAKEN}
        for first in [one for one in meant if one.name in taken_names][:1]:
            summary = _kept_words(first, given, scope)
    return CommandOutput(whole, "\n".join([*texts, summary]), code)


_BY_NAME = "Servers from this folder are imported only by name: gemdeck import CLIENT SERVER"


def _text(offer: ImportOffer) -> str:
    """Say what would run, whole and on one line, and what to mind."""
    below = block(
        {
            "command": shlex.join(offer.command),
            "address": offer.address,
            "working directory": offer.cwd,
            "variables": ", ".join(offer.env),
            "headers": ", ".join(offer.headers),
            "warning": offer.warnings,
            "note": offer.notes,
        }
    )
    return f"  {offer.server}  ({offer.state.value})\n{below}".rstrip()


def _server_value(offer: ImportOffer) -> dict[str, Any]:
    return {
        "name": offer.server,
        "state": offer.state.value,
        "command": list(offer.command),
        "url": offer.address,
        "cwd": offer.cwd,
        "env": [one.partition("=")[0] for one in offer.env],
        "headers": [one.partition(":")[0] for one in offer.headers],
        "warnings": list(offer.warnings),
        "notes": list(offer.notes),
    }


def _kept_words(one: Candidate, given: Sequence[str], scope: str) -> str:
    """Say that an entry of this name was there, and how it gets what the user gives."""
    env = one.entry.get("env")
    own = [f'"{name}": "${{{name}}}"' for name in given if isinstance(env, dict) and name in env]
    where = "this folder's settings" if scope == "project" else "your settings"
    advice = f"Remove it first (gemdeck mcp remove -s {scope} {shlex.quote(one.name)})"
    advice += f", or add {', '.join(own)} to its entry" if own else ""
    return sanitize_line(f"Nothing was imported: {one.name} is already in {where}. {advice}.")


def _summary(has_any: bool, written: Sequence[str], target: Path) -> str:
    if written:
        return f"Imported {', '.join(written)} into {shown(target)}. Test with: gemdeck mcp list"
    if has_any:
        more = "--keyring stores their secrets in the keyring."
        give = "--give NAME passes one of your variables or secrets."
        return f"Nothing was imported. Name the servers, or use --all. {more} {give}"
    return "No servers of other clients were found."
