"""``gemdeck secret``: secrets that entries of servers name: kept, listed by name, forgotten."""

import sys

import click

from tui.cli.command import CommandOutput, check_known, prints_json
from tui.cli.headless import read_piped_input
from tui.cli.output import say
from tui.engine.background import in_daemon_thread
from tui.engine.files.paths import usable_state_dir
from tui.engine.keys.secret_store import SecretStore
from tui.engine.logs.log_file import prepare_process
from tui.text import sanitize_line

keyring_option = click.option(
    "--keyring", is_flag=True, help="Store the entry's secrets in the keyring and refer to them."
)


@click.group()
def secret() -> None:
    """Store secrets that settings refer to as ${keyring:NAME}."""


@secret.command("set", epilog="Example: gemdeck secret set github")
@click.argument("name")
@prints_json
async def set_secret(name: str) -> CommandOutput:
    """Store a secret in the keyring or a private file.

    Prompts for it without echo, or reads standard input. It replaces one of the same name.
    """
    prepare_process()
    value = await in_daemon_thread(lambda: read_unseen("Secret"))
    place = await in_daemon_thread(lambda: secret_store().set(name, value))
    text = f"Saved {name} to {place}. Use it as ${{keyring:{name}}}."
    return CommandOutput({"name": name, "place": place}, text)


@secret.command("list", epilog="Example: gemdeck secret list")
@prints_json
async def list_secrets() -> CommandOutput:
    """List the names of the stored secrets."""
    names = await in_daemon_thread(secret_store().names)
    text = "\n".join(map(sanitize_line, names)) or "There are no secrets."
    return CommandOutput({"names": names}, text)


@secret.command(epilog="Example: gemdeck secret forget github")
@click.argument("name")
@prints_json
async def forget(name: str) -> CommandOutput:
    """Forget a secret; servers that refer to it no longer start."""
    store = secret_store()
    known = await in_daemon_thread(store.names)
    await in_daemon_thread(lambda: store.forget(name))
    check_known("secret", [name], known)
    return CommandOutput({"name": name}, f"{sanitize_line(name)} was forgotten.")


def secret_store() -> SecretStore:
    """Give the store of secrets."""
    return SecretStore(usable_state_dir(), say)


def read_unseen(what: str) -> str:
    """Let the user type something unseen, or read it from standard input. Blocks."""
    if sys.stdin is not None and sys.stdin.isatty():
        typed: str = click.prompt(what, hide_input=True, err=True, default="")
        return typed
    return read_piped_input(say)
