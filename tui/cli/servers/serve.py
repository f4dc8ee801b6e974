"""``gemdeck mcp serve``: gemdeck's servers for another client."""

import json
import os
import shutil
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import click

from tui.cli.command import CommandError, CommandOutput, prints, shown
from tui.cli.output import say
from tui.cli.servers.server_session import ServerSession, StartOptions
from tui.cli.shared_options import profile_option, trust_option
from tui.engine import late
from tui.engine.background import import_alone, in_daemon_thread
from tui.engine.files.paths import STATE_VARIABLE, usable_state_dir
from tui.engine.mcp.transports.stdio.launch import SERVED
from tui.engine.serving.callers import TOKEN_VARIABLE, CallerBook
from tui.engine.serving.deck_socket import DeckLink, Hello, find_deck, sockets
from tui.engine.serving.shared_servers import SharedServers
from tui.engine.trust.folder_identity import identify

NAME: Final = "gemdeck"
"""The name of the server in the settings of other clients."""

_SERVING: Final = "tui.engine.serving.mcp_server"
"""Imports the SDK's serving half, which nothing else does."""


def _servers(entry: Mapping[str, Any], key: str = "mcpServers") -> str:
    return json.dumps({key: {NAME: entry}}, indent=2)


def _codex(entry: Mapping[str, Any]) -> str:
    def members(some: Mapping[str, Any]) -> list[str]:
        return [f"{key} = {json.dumps(one)}" for key, one in some.items() if key != "env"]

    table = f"[mcp_servers.{NAME}"
    return "\n".join((f"{table}]", *members(entry), "", f"{table}.env]", *members(entry["env"])))


_ENTRIES: Final[Mapping[str, tuple[Callable[[Mapping[str, Any]], str], str]]] = {
    "claude-code": (_servers, ".mcp.json"),
    "codex": (_codex, "~/.codex/config.toml"),
    "cursor": (_servers, ".cursor/mcp.json"),
    "vscode": (lambda entry: _servers({"type": "stdio", **entry}, "servers"), ".vscode/mcp.json"),
    "gemini-cli": (_servers, ".gemini/settings.json"),
}
"""How the settings of each client write an entry, and the file: of the user, or of a project."""


@click.command(epilog="Example: gemdeck mcp serve --print claude-code")
@profile_option
@click.option(
    "--print",
    "client",
    type=click.Choice([*_ENTRIES]),
    help="Print the entry for the settings of this client instead.",
)
@trust_option
@prints
async def serve(
    profile: str | None, client: str | None, trusted_folders: tuple[Path, ...]
) -> CommandOutput:
    """Offer the tools, prompts and resources of your servers to another client, over stdio.

    While gemdeck is open in this folder, the client uses its servers, and gemdeck shows calls
    that need approval. While it is closed, only calls that your rules allow run.
    """
    state, folder = usable_state_dir(), Path.cwd()
    callers = CallerBook(state, say)
    if client is not None:
        arguments = ["mcp", "serve", *(["--profile", profile] if profile else [])]
        home = os.environ.get(STATE_VARIABLE)  # clients do not pass it on
        given = {TOKEN_VARIABLE: callers.give(client), **({STATE_VARIABLE: home} if home else {})}
        entry = {"command": _program(), "args": arguments, "env": given}
        write, file = _ENTRIES[client]
        place = file if file.startswith("~") else f"{file} in your project"
        say(f"Add this to {place}. It contains a token: keep it out of version control.")
        return CommandOutput({}, write(entry))
    if SERVED in os.environ:
        raise CommandError("A server of gemdeck cannot be gemdeck itself.")
    token, wanted = os.environ.get(TOKEN_VARIABLE, ""), profile or ""
    tried: list[Path] = []

    async def sources(name: str) -> AsyncGenerator[DeckLink | SharedServers, None]:
        tried[:] = sockets(state, identify(folder))
        hello = Hello(name, token, wanted)
        while (deck := await find_deck(state, identify(folder), hello)) is not None:
            with closing(deck):
                yield deck
        session = ServerSession(StartOptions(0.0, trusted_folders), None)
        async with session.engine as engine:
            await session.definitions()
            await engine.start()
            caller = callers.caller(token, name, shown(folder))
            yield SharedServers(engine, caller, wanted)

    await in_daemon_thread(late.import_connection)
    await in_daemon_thread(lambda: import_alone(_SERVING))
    server = import_module(_SERVING).McpServer
    await server(sources, lambda: not {*sockets(state, identify(folder))} <= {*tried}).run()
    return CommandOutput({}, "")


def _program() -> str:
    """Return gemdeck's own program: by name where a shell finds it, else by path."""
    own = Path(sys.argv[0]).absolute()
    found = shutil.which(own.name)
    return own.name if found and Path(found).samefile(own) else str(own)
