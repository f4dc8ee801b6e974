"""``gemdeck trust``: what the opened folder would run, and your word on exactly that."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Final

import click

from tui.cli.command import CommandError, CommandOutput, finish, json_option
from tui.cli.output import ExitCode, fields, say
from tui.engine.files.paths import usable_state_dir
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
@json_option
def show(*, as_json: bool) -> None:
    """Show what this folder brings and what waits for it, in full; nothing is started."""
    finish(_show(), as_json=as_json)


@trust.command(epilog="Example: gemdeck trust allow 3f9a2c1b04d7")
@click.argument("content", metavar="ID")
@click.option("--children", is_flag=True, help="Trust the folders below this one as well.")
@json_option
def allow(content: str, *, children: bool, as_json: bool) -> None:
    """Trust this folder with the content of this ID, which `gemdeck trust show` gives.

    If the folder has changed meanwhile, nothing is trusted.
    """
    finish(_allow(content, children=children), as_json=as_json)


@trust.command(epilog="Example: gemdeck trust never")
@json_option
def never(*, as_json: bool) -> None:
    """Never trust this folder; its files are not even read."""
    finish(_say(FolderTrust.NEVER), as_json=as_json)


@trust.command(epilog="Example: gemdeck trust forget")
@json_option
def forget(*, as_json: bool) -> None:
    """Forget what you said of this folder."""
    finish(_say(FolderTrust.UNTRUSTED), as_json=as_json)


def _opened() -> OpenedFolder:
    return OpenedFolder(Path.cwd(), Path.home(), usable_state_dir(), (), say, attended=False)


def _verdict(opened: OpenedFolder, *, review: bool = False) -> ProjectVerdict:
    return read_settings(opened, None, review=review).settings.project


async def _show() -> CommandOutput:
    opened = _opened()
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
        lines += [f"It forbids: {rule}" for rule in found.rules]
        lines += [f"{line.sign} {line.text}" for line in found.difference]
        lines.append(found.refusal or f"To trust exactly this: gemdeck trust allow {name}")
    return CommandOutput(value, "\n".join(lines))


async def _allow(content: str, *, children: bool) -> CommandOutput:
    opened = _opened()
    found = _verdict(opened, review=True)
    if found.question is None or found.offer is None:
        raise CommandError("This folder brings nothing to trust.")
    if found.question.refusal:
        raise CommandError(found.question.refusal)
    if len(content) < ID_LENGTH or not found.hash.startswith(content):
        raise CommandError(
            "This folder has other content now: gemdeck trust show", ExitCode.NOT_FOUND
        )
    opened.trust(found.offer, found.folder, children=children)
    now = _verdict(opened).trust
    code = ExitCode.OK if now is FolderTrust.TRUSTED else ExitCode.ERROR
    return CommandOutput({"trust": now.value}, f"This folder: {now.value}.", code)


async def _say(word: FolderTrust) -> CommandOutput:
    opened = _opened()
    if word is FolderTrust.NEVER:
        opened.never()
    else:
        opened.forget()
    now = _verdict(_opened()).trust
    return CommandOutput({"trust": now.value}, f"This folder: {now.value}.")


def _server_text(shown: Disclosure) -> str:
    """Write everything that a server would run or contact."""
    found = {name: value for name, value in _parts(shown) if value}
    below = "\n".join(f"    {line}" for line in fields(found).splitlines())
    change = f" ({shown.change})" if shown.change else ""
    return f"  {shown.server}{change} in {shown.source}\n{below}".rstrip()


def _parts(shown: Disclosure) -> Iterator[tuple[str, list[str]]]:
    yield "command", [shown.command] if shown.command else []
    yield "program", [shown.program] if shown.program else []
    yield "argument", list(shown.args)
    yield "address", [shown.url] if shown.url else []
    yield "folder", [shown.cwd] if shown.cwd else []
    yield "variable", list(shown.env_values)
    yield "headers", [", ".join(shown.headers)] if shown.headers else []
    yield "reads", [", ".join(shown.references)] if shown.references else []
    yield "inherits", [", ".join(shown.inherited)] if shown.inherited else []
    yield "written", list(shown.written)
    yield "watched", list(shown.files)
    yield "warning", list(shown.warnings)
