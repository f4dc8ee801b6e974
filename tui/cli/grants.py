"""``gemdeck grants``: the rules on tools, and how to take one back."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import asdict

import click

from tui.cli.command import CommandError, CommandOutput, checked_ids, prints_json
from tui.cli.output import ExitCode, table
from tui.cli.servers.server_session import ServerSession, StartOptions
from tui.engine.approval.policy import trust_view
from tui.engine.engine import Engine
from tui.model.consent import GrantView


@click.group()
def grants() -> None:
    """List and revoke grants: what may run without asking, and what never runs."""


@grants.command("list", epilog="Example: gemdeck grants list --json")
@prints_json
async def list_grants() -> CommandOutput:
    """List the grants: those you saved, newest first, then those in the settings."""
    async with _rules() as (_, found):
        rows = [
            (one.id[:8], one.effect.value, f"{one.server}.{one.what}", one.scope, one.origin)
            for one in found
        ]
        text = table(rows) or "There are no grants."
        return CommandOutput({"grants": [asdict(one) for one in found]}, text)


@grants.command(epilog="Example: gemdeck grants revoke 3f9a2c1b")
@click.argument("ids", nargs=-1, required=True, metavar="ID…", callback=checked_ids)
@prints_json
async def revoke(ids: tuple[str, ...]) -> CommandOutput:
    """Revoke saved grants by the start of their IDs; those in settings files stay."""
    async with _rules() as (engine, found):
        chosen = [_chosen(name, found) for name in ids]
        for one in chosen:
            engine.access.policy.revoke(one.id)
    names = ", ".join(f"{one.server}.{one.what}" for one in chosen)
    return CommandOutput({"revoked": [one.id for one in chosen]}, f"Revoked: {names}.")


@asynccontextmanager
async def _rules() -> AsyncIterator[tuple[Engine, tuple[GrantView, ...]]]:
    """Give the rules, and the engine that keeps them; no server is started."""
    session = ServerSession(StartOptions(0.0), [])
    async with session.engine as engine:
        trusted = [one for one in await session.definitions() if one.trust]
        await engine.start()
        yield engine, (*engine.access.policy.views(), *(trust_view(one, "") for one in trusted))


def _chosen(name: str, found: Iterable[GrantView]) -> GrantView:
    """Find a rule by the beginning of its id.

    Raises:
        CommandError: If there is none, or several, or it stands in the settings.
    """
    if not (fitting := [one for one in found if one.id.startswith(name)]):
        raise CommandError(f"There is no grant {name}.", ExitCode.NOT_FOUND)
    if len(fitting) > 1:
        raise CommandError(f"{len(fitting)} IDs start with {name}.", ExitCode.USAGE)
    [one] = fitting
    if not one.revocable:
        raise CommandError(f"Remove it at its source: {one.origin}.")
    return one
