"""``gemdeck mcp serve``: gemdeck's servers for another client."""

import json
import shutil
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import click

from tui.cli.command import CommandOutput, prints
from tui.cli.servers.server_session import ServerSession, StartOptions
from tui.cli.shared_options import profile_option, trust_option
from tui.engine import late
from tui.engine.background import import_alone, in_daemon_thread
from tui.engine.serving.shared_servers import SharedServers
from tui.model.settings import EVERYTHING

NAME: Final = "gemdeck"
"""The name of the server in the settings of other clients."""

_SERVING: Final = "tui.engine.serving.mcp_server"
"""Imports the SDK's serving half, which nothing else does."""


def _servers(entry: Mapping[str, Any], key: str = "mcpServers") -> str:
    return json.dumps({key: {NAME: entry}}, indent=2)


def _codex(entry: Mapping[str, Any]) -> str:
    members = (f"{key} = {json.dumps(value)}" for key, value in entry.items())
    return "\n".join((f"[mcp_servers.{NAME}]", *members))


_ENTRIES: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "claude-code": _servers,
    "codex": _codex,
    "cursor": _servers,
    "vscode": lambda entry: _servers({"type": "stdio", **entry}, "servers"),
    "gemini-cli": _servers,
}
"""How the settings of each client write an entry."""


@click.command(epilog="Example: gemdeck mcp serve --print claude-code > .mcp.json")
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

    Only calls that your rules allow run; nobody is asked. All else is denied, with words that say
    how to allow it.
    """
    if client is not None:
        arguments = ["mcp", "serve", *(["--profile", profile] if profile else [])]
        return CommandOutput({}, _ENTRIES[client]({"command": _program(), "args": arguments}))
    session = ServerSession(StartOptions(0.0, trusted_folders), None)
    async with session.engine as engine:
        await session.definitions()
        profiles = (await engine.load()).gemdeck.profiles
        wanted = profiles.get(profile or "", EVERYTHING)
        servers = SharedServers(engine, lambda: session.views, wanted)
        await engine.start()
        await in_daemon_thread(late.import_connection)
        await in_daemon_thread(lambda: import_alone(_SERVING))
        await import_module(_SERVING).McpServer(servers).run()
    return CommandOutput({}, "")


def _program() -> str:
    """Return gemdeck's own program: by name where a shell finds it, else by path."""
    own = Path(sys.argv[0]).absolute()
    found = shutil.which(own.name)
    return own.name if found and Path(found).samefile(own) else str(own)
