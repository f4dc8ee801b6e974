"""``gemdeck mcp``: look at servers and use them, without a screen and without a model."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from tui.cli.command import finish, json_option
from tui.cli.servers import server_commands, server_edits, sign_in
from tui.cli.servers.server_edits import server_entry
from tui.cli.servers.server_session import StartOptions, starting_options
from tui.cli.settings import server_names

_EPILOG: Final = """\b
Exit codes: 0 done, 1 not ready or failed, 2 wrong usage, 3 no such server, tool,
prompt or resource, 52 unusable settings, 130 cancelled.
"""


@click.group(epilog=_EPILOG)
def mcp() -> None:
    """Look at the servers of your settings, and use what they offer.

    No key is needed. Results are on standard output, messages on standard error.
    """


server_argument = click.argument("server", shell_complete=server_names)


@mcp.command("list", epilog="Example: gemdeck mcp list --json")
@starting_options
def list_servers(*, as_json: bool, timeout: float, trusted: tuple[Path, ...]) -> None:
    """List the servers and whether each gets ready; all are started, side by side."""
    finish(server_commands.list_servers(StartOptions(timeout, trusted)), as_json=as_json)


@mcp.command(epilog="Example: gemdeck mcp show files")
@server_argument
@starting_options
def show(server: str, *, as_json: bool, timeout: float, trusted: tuple[Path, ...]) -> None:
    """Show how a server is reached and what it offers."""
    finish(server_commands.show(server, StartOptions(timeout, trusted)), as_json=as_json)


@mcp.command(epilog="Example: gemdeck mcp tools files --json")
@click.argument("server", required=False, shell_complete=server_names)
@starting_options
def tools(server: str | None, *, as_json: bool, timeout: float, trusted: tuple[Path, ...]) -> None:
    """List the tools of a server, or of all."""
    finish(server_commands.tools(server, StartOptions(timeout, trusted)), as_json=as_json)


@mcp.command(epilog="Example: gemdeck mcp call files read_file path=notes.txt")
@server_argument
@click.argument("tool")
@click.argument("arguments", nargs=-1, metavar="[KEY=VALUE]…")
@click.option("--args", "raw", metavar="JSON", help="The arguments as one JSON object.")
@starting_options
def call(
    server: str,
    tool: str,
    arguments: tuple[str, ...],
    raw: str | None,
    *,
    as_json: bool,
    timeout: float,
    trusted: tuple[Path, ...],
) -> None:
    """Run a tool with exactly these arguments.

    A value is text, or JSON where the tool wants something else. You composed the call, so nobody
    is asked; a rule that denies the tool holds all the same.
    """
    start, given = StartOptions(timeout, trusted), _object(raw)
    finish(server_commands.call(server, tool, given, _pairs(arguments), start), as_json=as_json)


@mcp.command(epilog="Example: gemdeck mcp read files file:///notes.txt")
@server_argument
@click.argument("uri")
@click.option(
    "-o",
    "file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write to this file instead.",
)
@starting_options
def read(
    server: str,
    uri: str,
    file: Path | None,
    *,
    as_json: bool,
    timeout: float,
    trusted: tuple[Path, ...],
) -> None:
    """Print a resource: its bytes and nothing else.

    Several contents come one after the other, with nothing between them. At a terminal text is
    shown without what could control it, and what is not text needs -o or a pipe.
    """
    start = StartOptions(timeout, trusted)
    finish(server_commands.read(server, uri, start, file, as_json=as_json), as_json=as_json)


@mcp.command(epilog="Example: gemdeck mcp prompt poems poem mood=reverent")
@server_argument
@click.argument("name")
@click.argument("arguments", nargs=-1, metavar="[KEY=VALUE]…")
@starting_options
def prompt(
    server: str,
    name: str,
    arguments: tuple[str, ...],
    *,
    as_json: bool,
    timeout: float,
    trusted: tuple[Path, ...],
) -> None:
    """Print a prompt as its server renders it."""
    start = StartOptions(timeout, trusted)
    finish(server_commands.prompt(server, name, _pairs(arguments), start), as_json=as_json)


@mcp.command(epilog="Example: gemdeck mcp logs files")
@server_argument
@click.option("-f", "--follow", is_flag=True, help="Go on until Ctrl+C.")
@starting_options
def logs(
    server: str, *, follow: bool, as_json: bool, timeout: float, trusted: tuple[Path, ...]
) -> None:
    """Start a server, and print what it writes to standard error and logs."""
    if follow and as_json:
        raise click.UsageError("--follow prints lines as they come, so there is no JSON of them.")
    finish(
        server_commands.logs(server, StartOptions(timeout, trusted), follow=follow), as_json=as_json
    )


_scope = click.option(
    "-s",
    "--scope",
    type=click.Choice(["project", "user"]),
    default="project",
    show_default=True,
    help="Whose settings: this folder's or yours.",
)


@mcp.command(
    epilog="Example: gemdeck mcp add -s user notes npx -- -y @acme/server-notes ~/notes",
)
@click.argument("name")
@click.argument("target", metavar="COMMAND|URL")
@click.argument("arguments", nargs=-1, metavar="[ARGUMENT]…")
@_scope
@click.option(
    "-t",
    "--transport",
    type=click.Choice(["stdio", "http", "sse"]),
    help="Of a URL http unless given; of a command stdio.",
)
@click.option("-e", "--env", multiple=True, metavar="KEY=VALUE", help="A variable it gets.")
@click.option("-H", "--header", multiple=True, metavar="'NAME: VALUE'", help="An HTTP header.")
@click.option("--timeout", type=int, metavar="MS", help="Of connecting and of each request.")
@click.option("--trust", is_flag=True, help="Run its tools without asking; not for a project.")
@click.option("--description", metavar="TEXT", help="Shown beside the server.")
@click.option("--include-tools", metavar="TOOL,…", help="Offer only these.")
@click.option("--exclude-tools", metavar="TOOL,…", help="Never offer these.")
@click.option("--no-check", is_flag=True, help="Write it without trying to connect.")
@json_option
def add(name: str, *, scope: str, no_check: bool, as_json: bool, **given: Any) -> None:  # noqa: ANN401 - as declared above
    """Write a server to the settings, and try to connect to it.

    Comments and all else in the file stay. What follows -- belongs to the server.
    """
    entry = server_entry(**given)
    finish(server_edits.add(name, entry, scope, checks=not no_check), as_json=as_json)


@mcp.command(epilog="Example: gemdeck mcp remove -s user files")
@click.argument("name")
@_scope
@json_option
def remove(name: str, *, scope: str, as_json: bool) -> None:
    """Remove a server from the settings; comments and all else in the file stay."""
    finish(server_edits.remove(name, scope), as_json=as_json)


@mcp.command(epilog="Example: gemdeck mcp auth search")
@server_argument
@click.option("-y", "--yes", is_flag=True, help="Sign in without asking first.")
@click.option("--no-browser", is_flag=True, help="Show the address in place of opening it.")
@click.option("--gemini-cli", is_flag=True, help="Take over gemini-cli's token in place of asking.")
@starting_options
def auth(
    server: str,
    *,
    yes: bool,
    no_browser: bool,
    gemini_cli: bool,
    as_json: bool,
    timeout: float,
    trusted: tuple[Path, ...],
) -> None:
    """Sign in to a server in your browser.

    Where the browser cannot come back, as over SSH, paste the address that it ends at.
    Without a terminal, credentials that need no browser are sent only with --yes.
    """
    start = StartOptions(timeout, trusted)
    command = sign_in.sign_in(
        server, start, says_yes=yes, opens=not no_browser, takes_over=gemini_cli
    )
    finish(command, as_json=as_json)


@mcp.command(epilog="Example: gemdeck mcp logout search")
@server_argument
@json_option
def logout(server: str, *, as_json: bool) -> None:
    """Sign out of a server: its tokens are revoked and removed."""
    finish(sign_in.sign_out(server), as_json=as_json)


@mcp.command(epilog="Example: gemdeck mcp enable files")
@server_argument
@json_option
def enable(server: str, *, as_json: bool) -> None:
    """Enable a server, from its next start on."""
    finish(server_commands.set_enabled(server, enabled=True), as_json=as_json)


@mcp.command(epilog="Example: gemdeck mcp disable files")
@server_argument
@json_option
def disable(server: str, *, as_json: bool) -> None:
    """Disable a server, from its next start on; its settings stay as they are."""
    finish(server_commands.set_enabled(server, enabled=False), as_json=as_json)


def _pairs(words: Sequence[str]) -> dict[str, str]:
    pairs = [word.partition("=") for word in words]
    if any(not sign or not name for name, sign, _ in pairs):
        raise click.UsageError("Arguments are written KEY=VALUE.")
    return {name: value for name, _, value in pairs}


def _object(raw: str | None) -> dict[str, Any]:
    """Read the arguments that were given as JSON."""
    try:
        value = json.loads(raw) if raw is not None else {}
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"not JSON: {error}", param_hint="--args") from error
    if not isinstance(value, dict):
        raise click.BadParameter("must be a JSON object", param_hint="--args")
    return value
