"""``gemdeck trust``: what the opened folder would run, and your word on exactly that."""

import shlex
from dataclasses import asdict
from typing import Final

import click

from tui.cli.command import CommandError, CommandOutput, prints_json
from tui.cli.output import ExitCode, block
from tui.cli.settings import opened_folder
from tui.engine.reload import Reading, read_settings
from tui.engine.trust.content import disclose
from tui.engine.trust.opened_folder import OpenedFolder
from tui.engine.trust.trust_questions import TrustCase, request_of
from tui.engine.trust.verdict import Answered
from tui.model.trust import UNWATCHED, Disclosure, FolderTrust, TrustSubject
from tui.text import sanitize_line

ID_LENGTH: Final = 12
"""Characters of a content's hash that name it."""


@click.group()
def trust() -> None:
    """Review what this folder's settings would run; trust exactly that, or never."""


@trust.command(epilog="Example: gemdeck trust show")
@prints_json
async def show() -> CommandOutput:
    """Show in full what this folder would run and what waits for approval; starts nothing."""
    opened = opened_folder()
    reading = _reviewed(opened)
    seen, verdict = reading.seen, reading.verdict
    waits = () if verdict.inside else seen.needs.keys()
    own = [disclose(s, opened.folder) for s in reading.settings.servers if s.id in waits]
    case = TrustCase(TrustSubject.FOLDER, seen, reading.record, verdict)
    found = request_of(case, opened.folder, opened.home) if verdict.asks else None
    name = seen.hash[:ID_LENGTH]
    servers = found.servers if found is not None else ()
    value = {
        "folder": str(opened.folder),
        "trust": verdict.trust.value,
        "id": name,
        "servers": [asdict(one) for one in servers],
        "waiting": [asdict(one) for one in own],
        "rules": list(found.rules) if found is not None else [],
        "refusal": found.refusal if found is not None else "",
    }
    lines = [f"This folder: {verdict.trust.value}.", *map(_server_text, servers)]
    if own:
        asks = "Your own servers that load code from this folder and wait for your approval:"
        lines += [asks, *map(_server_text, own)]
    if any(one.command for one in (*own, *servers)):
        lines.append(UNWATCHED)
    if found is not None and found.no_sandbox:
        lines.append(f"No sandbox: {found.no_sandbox}.")
    if found is not None:
        lines += [f"Rule: {rule}" for rule in found.rules]
        lines += [f"{line.sign} {line.text}" for line in found.difference]
        folder = sanitize_line(shlex.quote(str(opened.folder)))
        for_now = f"{found.refusal} For one run: --trust-folder {folder}"
        exactly = f"To trust exactly this: gemdeck trust allow {name}"
        lines.append(for_now if found.refusal else exactly)
    return CommandOutput(value, "\n".join(lines))


@trust.command(epilog="Example: gemdeck trust allow 3f9a2c1b04d7")
@click.argument("content", metavar="ID")
@click.option("--children", is_flag=True, help="Also trust the folders below this one.")
@prints_json
async def allow(content: str, *, children: bool) -> CommandOutput:
    """Trust this folder with the content that has this ID in `gemdeck trust show`.

    If the content has changed since, nothing is trusted.
    """
    opened = opened_folder()
    seen = _reviewed(opened).seen
    if seen.content is None:
        raise CommandError("This folder cannot be examined.")
    if seen.refusal:
        raise CommandError(f"{seen.refusal} For one run: --trust-folder {opened.folder}")
    if len(content) < ID_LENGTH or not seen.hash.startswith(content):
        words = "This folder's content has changed. To review it: gemdeck trust show"
        raise CommandError(words, ExitCode.NOT_FOUND)
    opened.trust(seen, children=children)
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
    """Forget your decision about this folder."""
    opened_folder().forget()
    return _now(opened_folder())


def _reviewed(opened: OpenedFolder) -> Reading:
    """Read what the folder says, whatever was said of it."""
    return read_settings(opened, None, Answered(review=True))


def _now(opened: OpenedFolder, wanted: FolderTrust | None = None) -> CommandOutput:
    """Say how the folder stands, which is an error if it is not what was wanted."""
    now = read_settings(opened, None).verdict.trust
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
            "sandbox": shown.sandbox,
            "working directory": shown.cwd,
            "variable": shown.env_values,
            "headers": ", ".join(shown.headers),
            "reads": ", ".join(shown.references),
            "inherits": ", ".join(shown.inherited),
            "written": shown.written,
            "warning": shown.warnings,
        }
    )
    change = f" ({shown.change})" if shown.change else ""
    return f"  {shown.server}{change} in {shown.source}\n{below}".rstrip()
