"""``gemdeck trust``: what the opened folder would run, and your word on exactly that."""

from dataclasses import asdict
from typing import Final

import click

from tui.cli.command import CommandError, CommandOutput, prints_json
from tui.cli.output import ExitCode, block
from tui.cli.settings import opened_folder
from tui.engine.reload import read_settings
from tui.engine.settings.project import ProjectVerdict
from tui.engine.trust.content import disclose
from tui.engine.trust.folder_gate import OpenedFolder
from tui.model.trust import UNWATCHED, Disclosure, FolderTrust

ID_LENGTH: Final = 12
"""Characters of a content's hash that name it."""


@click.group()
def trust() -> None:
    """See what this folder's settings would run, and trust exactly that, or never."""


@trust.command(epilog="Example: gemdeck trust show")
@prints_json
async def show() -> CommandOutput:
    """Show what this folder brings and what waits for it, in full; nothing is started."""
    opened = opened_folder()
    reading, reviewed = read_settings(opened, None), _verdict(opened, review=True)
    now = reading.settings.project
    waits = {one.seen.name for one in reading.trust.here if not one.is_allowed}
    own = [disclose(s, opened.folder) for s in reading.settings.servers if s.id in waits]
    found = reviewed.question
    name = reviewed.hash[:ID_LENGTH]
    servers = found.servers if found is not None else ()
    value = {
        "folder": str(opened.folder),
        "trust": now.trust.value,
        "id": name,
        "servers": [asdict(one) for one in servers],
        "waiting": [asdict(one) for one in own],
        "rules": list(found.rules) if found is not None else [],
        "refusal": found.refusal if found is not None else "",
    }
    lines = [f"This folder: {now.trust.value}.", *map(_server_text, servers)]
    if own:
        asks = "Your own servers that wait for a yes to this folder (asked on the screen):"
        lines += [asks, *map(_server_text, own)]
    if own or servers:
        lines.append(UNWATCHED)
    if found is not None:
        lines += [f"Rule: {rule}" for rule in found.rules]
        lines += [f"{line.sign} {line.text}" for line in found.difference]
        lines.append(found.refusal or f"To trust exactly this: gemdeck trust allow {name}")
    return CommandOutput(value, "\n".join(lines))


@trust.command(epilog="Example: gemdeck trust allow 3f9a2c1b04d7")
@click.argument("content", metavar="ID")
@click.option("--children", is_flag=True, help="Trust the folders below this one as well.")
@prints_json
async def allow(content: str, *, children: bool) -> CommandOutput:
    """Trust this folder with the content of this ID, which `gemdeck trust show` gives.

    If the folder has changed meanwhile, nothing is trusted.
    """
    opened = opened_folder()
    found = _verdict(opened, review=True)
    if found.question is None or found.offer is None:
        raise CommandError("This folder brings nothing to trust.")
    if found.question.refusal:
        raise CommandError(found.question.refusal)
    if len(content) < ID_LENGTH or not found.hash.startswith(content):
        words = "This folder has other content now: gemdeck trust show"
        raise CommandError(words, ExitCode.NOT_FOUND)
    opened.trust(found.offer, found.folder, children=children)
    return _now(opened, wanted=FolderTrust.TRUSTED)


@trust.command(epilog="Example: gemdeck trust never")
@prints_json
async def never() -> CommandOutput:
    """Never trust this folder; its files are not even read."""
    opened_folder().never()
    return _now(opened_folder())


@trust.command(epilog="Example: gemdeck trust forget")
@prints_json
async def forget() -> CommandOutput:
    """Forget what you said of this folder."""
    opened_folder().forget()
    return _now(opened_folder())


def _verdict(opened: OpenedFolder, *, review: bool = False) -> ProjectVerdict:
    return read_settings(opened, None, review=review).settings.project


def _now(opened: OpenedFolder, wanted: FolderTrust | None = None) -> CommandOutput:
    """Say how the folder stands, which is an error if it is not what was wanted."""
    now = _verdict(opened).trust
    code = ExitCode.OK if wanted in {None, now} else ExitCode.ERROR
    return CommandOutput({"trust": now.value}, f"This folder: {now.value}.", code)


def _server_text(shown: Disclosure) -> str:
    """Write everything that a server would run or contact."""
    below = block(
        {
            "command": shown.command,
            "program": shown.program,
            "argument": shown.args,
            "address": shown.url,
            "folder": shown.cwd,
            "variable": shown.env_values,
            "headers": ", ".join(shown.headers),
            "reads": ", ".join(shown.references),
            "inherits": ", ".join(shown.inherited),
            "written": shown.written,
            "watched": shown.files,
            "warning": shown.warnings,
        }
    )
    change = f" ({shown.change})" if shown.change else ""
    return f"  {shown.server}{change} in {shown.source}\n{below}".rstrip()
