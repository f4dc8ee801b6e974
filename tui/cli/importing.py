"""``gemdeck import``: servers of other clients, seen in full before any is written."""

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import click

from tui.cli.command import Answer, CommandError, finish, json_option, no_such, shown
from tui.cli.servers.own_edits import file_of
from tui.cli.servers.server_edits import write_entry
from tui.cli.tables import fields
from tui.engine.consent.folder_trust.command_text import spelled
from tui.engine.consent.folder_trust.warnings import (
    address_cautions,
    command_cautions,
    sign_in_cautions,
    variable_cautions,
)
from tui.engine.settings.importers.candidates import (
    Candidate,
    ClientFile,
    find_files,
    read_client_file,
)
from tui.engine.settings.importers.clients import TITLES, Machine
from tui.engine.settings.sources.document import BadDocumentError, read_document
from tui.engine.settings.sources.expansion import references_in
from tui.text import sanitize_line

_NEW: Final = "new"
_THERE: Final = "there already"
_TAKEN: Final = "not taken over: another server has this name"
_WRITTEN: Final = "written"


@dataclass(frozen=True, slots=True)
class _Offer:
    """A server of another client, and what becomes of it."""

    candidate: Candidate
    state: str

    def value(self) -> dict[str, Any]:
        entry = self.candidate.entry
        return {
            "name": self.candidate.name,
            "state": self.state,
            "command": entry.get("command", ""),
            "args": list(_texts(entry.get("args"))),
            "url": entry.get("httpUrl") or entry.get("url") or "",
            "env": list(_names(entry.get("env"))),
            "headers": list(_names(entry.get("headers"))),
            "cwd": entry.get("cwd", ""),
            "warnings": list(_cautions(entry)),
            "notes": list(self.candidate.warnings),
        }

    def text(self) -> str:
        """Say what would run, whole and on one line, and what to mind."""
        found = self.value()
        words = [found["command"], *found["args"]] if found["command"] else []
        lists = {
            "runs": [shlex.join(map(spelled, words))] if words else [],
            "address": [spelled(found["url"])] if found["url"] and not words else [],
            "folder": [spelled(found["cwd"])] if found["cwd"] else [],
            "variables": [", ".join(map(spelled, found["env"]))] if found["env"] else [],
            "headers": [", ".join(map(spelled, found["headers"]))] if found["headers"] else [],
            "warning": found["warnings"],
            "note": found["notes"],
        }
        rows = fields({name: lines for name, lines in lists.items() if lines} or {"": [""]})
        below = "\n".join(f"    {line}" for line in rows.splitlines())
        return f"  {self.candidate.name}  ({self.state})\n{below}".rstrip()


@click.command(
    "import",
    epilog="Example: gemdeck import claude-desktop files\n\nExample: gemdeck import --all",
)
@click.argument("client", required=False, type=click.Choice(list(TITLES)))
@click.argument("names", nargs=-1, metavar="[SERVER]…")
@click.option("--all", "takes_all", is_flag=True, help="Take over every server that is new here.")
@click.option(
    "--file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read this file in place of the client's own.",
)
@click.option(
    "-s",
    "--scope",
    type=click.Choice(["user", "project"]),
    default="user",
    show_default=True,
    help="Whose settings they go into: yours or this folder's.",
)
@json_option
def import_servers(
    client: str | None,
    names: tuple[str, ...],
    file: Path | None,
    scope: str,
    *,
    takes_all: bool,
    as_json: bool,
) -> None:
    """Take over servers from Claude, VS Code, Cursor, Windsurf, Zed, Codex or gemini-cli.

    Shows what each would run, with all arguments, and what deserves a second look. Only those
    are written that you name, or with --all those that are new; none is started.
    """
    if file is not None and client is None:
        raise click.UsageError("--file needs the client whose format it has.")
    machine = Machine(Path.home(), Path.cwd(), os.environ)
    if file is not None and client is not None:
        found: Iterable[ClientFile | None] = [read_client_file(machine, client, file.absolute())]
    else:
        found = find_files(machine, client)
    finish(_import(found, names, scope, takes_all=takes_all), as_json=as_json)


async def _import(
    found: Iterable[ClientFile | None], names: Sequence[str], scope: str, *, takes_all: bool
) -> Answer:
    target = file_of(scope)
    there = _servers_in(target)
    files = [one for one in found if one is not None and one.path != target]
    known = {candidate.name for one in files for candidate in one.candidates}
    for name in names:
        if name not in known:
            raise no_such("server", name, known)
    texts, listed, written = list[str](), list[dict[str, Any]](), list[str]()
    for one in files:
        offers = [_Offer(candidate, _state(candidate, there)) for candidate in one.candidates]
        for number, offer in enumerate(offers):
            candidate = offer.candidate
            if offer.state == _NEW and (takes_all or candidate.name in names):
                write_entry(candidate.name, candidate.entry, scope)
                there[candidate.name] = candidate.entry
                written.append(candidate.name)
                offers[number] = replace(offer, state=_WRITTEN)
        problem = sanitize_line(one.problem)
        heading = f"{TITLES[one.client]}  {one.file}" + (f"\n  {problem}" if problem else "")
        texts += [heading, *(offer.text() for offer in offers)]
        servers = [offer.value() for offer in offers]
        listed.append(
            {"client": one.client, "file": one.file, "problem": problem, "servers": servers}
        )
    value = {"files": listed, "target": str(target), "written": written}
    return Answer(value, "\n".join([*texts, _summary(bool(known), written, target)]))


def _state(candidate: Candidate, there: Mapping[str, object]) -> str:
    if candidate.problem:
        return f"cannot be taken over: {sanitize_line(candidate.problem)}"
    if candidate.name not in there:
        return _NEW
    return _THERE if there[candidate.name] == candidate.entry else _TAKEN


def _servers_in(path: Path) -> dict[str, object]:
    """Return the servers of the file that is written to.

    Raises:
        CommandError: If it cannot be read.
    """
    try:
        document = read_document(path)
    except BadDocumentError as error:
        raise CommandError(f"{shown(path)}: {error}") from error
    servers = document.content.get("mcpServers") if document is not None else None
    return dict(servers) if isinstance(servers, dict) else {}


def _summary(has_any: bool, written: Sequence[str], target: Path) -> str:
    if written:
        return f"{', '.join(written)}: in {shown(target)}. Nothing was started: gemdeck mcp list"
    if has_any:
        return "Nothing was written. Name the servers to take over, or use --all."
    return "No servers of other clients were found."


def _cautions(entry: Mapping[str, Any]) -> Iterator[str]:
    """Return what deserves a second look."""
    if command := entry.get("command"):
        yield from command_cautions(str(command), _texts(entry.get("args")))
    yield from variable_cautions(_names(entry.get("env")), references_in(dict(entry)))
    if address := entry.get("httpUrl") or entry.get("url"):
        yield from address_cautions(str(address))
    yield from sign_in_cautions(entry.get("oauth"))


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _names(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, dict) else ()
