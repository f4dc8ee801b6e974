"""``gemdeck key``: the model's key without the screen: entered, shown where it is, forgotten."""

import os
import sys
from dataclasses import replace

import click
from pydantic import SecretStr

from tui.cli.command import CommandError, CommandOutput, finish, json_option
from tui.cli.headless import read_piped_input
from tui.cli.output import ExitCode, say
from tui.cli.settings import load
from tui.engine import late
from tui.engine.background import in_daemon_thread
from tui.engine.chats.backends.backend import ModelError
from tui.engine.files.paths import usable_state_dir
from tui.engine.keys.credentials import (
    ModelAccess,
    Service,
    ServiceStore,
    address_access,
    find_access,
    forget_access,
    keep_access,
    key_access,
    typed_base_url,
    with_file,
)
from tui.engine.keys.key_store import CredentialError, KeyStore, checked_key
from tui.engine.logs.log_file import prepare_process
from tui.model.chat import BackendKind
from tui.text import sanitize_line

address_option = click.option(
    "--address", metavar="URL", help="The key is for the Gemini API at this address, not Google's."
)


@click.group()
def key() -> None:
    """Enter the model's key, see where it comes from, and forget it."""


@key.command(epilog="Example: gemdeck key show --json")
@json_option
def show(*, as_json: bool) -> None:
    """Show which service answers, and where its key comes from; never the key itself."""
    finish(_show(), as_json=as_json)


@key.command("set", epilog="Example: gemdeck key set --address https://gateway.example")
@address_option
@click.option("--no-check", is_flag=True, help="Keep the key without asking the service.")
@json_option
def set_key(address: str | None, *, no_check: bool, as_json: bool) -> None:
    """Keep a key that the service accepts, in the keyring or a private file.

    It is typed in unseen, or read from standard input; what came before it is replaced.
    """
    finish(_set(address, is_checked=not no_check), as_json=as_json)


@key.command(epilog="Example: gemdeck key forget")
@address_option
@json_option
def forget(address: str | None, *, as_json: bool) -> None:
    """Forget the key that is kept, or that of an address, with the address."""
    finish(_forget(address), as_json=as_json)


def _services() -> ServiceStore:
    return ServiceStore(usable_state_dir(), say)


async def _show() -> CommandOutput:
    loaded = await in_daemon_thread(load)
    environ = with_file(loaded.variables, os.environ)
    try:
        access = await in_daemon_thread(lambda: find_access(environ, KeyStore(), _services().get()))
    except CredentialError as error:
        raise _failed(error) from error
    if access is None:
        text = "There is no key. To enter one: gemdeck key set"
        return CommandOutput({"service": None}, text, ExitCode.NO_KEY)
    where = f" at {sanitize_line(access.base_url)}" if access.base_url else ""
    value = {
        "service": access.kind.value,
        "address": access.base_url,
        "source": access.source,
        "kept": access.is_kept,
    }
    source = sanitize_line(access.source)
    return CommandOutput(value, f"{access.kind.value}{where}, with credentials from {source}.")


async def _set(address: str | None, *, is_checked: bool) -> CommandOutput:
    prepare_process()
    keys = KeyStore()
    try:
        typed = typed_base_url(address) if address is not None else ""
        secret = SecretStr(checked_key(await in_daemon_thread(_read_key)))
        place = await in_daemon_thread(lambda: keys.place)
        if typed:
            access, service = address_access(typed, secret, place), Service.ADDRESS
        else:
            access, service = key_access(os.environ, secret, place), Service.GOOGLE
        if is_checked:
            await _check(access)
        await in_daemon_thread(lambda: keep_access(access, service, keys, _services()))
    except (CredentialError, ModelError) as error:
        raise _failed(error) from error
    except ValueError as error:
        raise CommandError(str(error), ExitCode.NO_KEY) from error
    words = "The service accepted the key. It" if is_checked else "The key"
    value = {"address": access.base_url, "place": place, "checked": is_checked}
    return CommandOutput(value, f"{words} is kept in {place}.")


async def _forget(address: str | None) -> CommandOutput:
    services = _services()

    def work() -> str:
        access = ModelAccess(BackendKind.GEMINI)
        kept = services.get()
        if address is not None:
            access = replace(access, base_url=typed_base_url(address))
        elif kept.service is Service.ADDRESS:
            access = replace(access, base_url=kept.address)
        return forget_access(access, KeyStore(), services)

    try:
        words = await in_daemon_thread(work)
    except CredentialError as error:
        raise _failed(error) from error
    return CommandOutput({"done": words}, words)


def _read_key() -> str:
    """Let the user type a key unseen, or read it from standard input."""
    if sys.stdin is not None and sys.stdin.isatty():
        typed: str = click.prompt("API key", hide_input=True, err=True, default="")
        return typed
    return read_piped_input(say)


async def _check(access: ModelAccess) -> None:
    """Ask the service whether it takes the key.

    Raises:
        ModelError: If it does not.
    """
    loaded = await in_daemon_thread(load)
    backend = await in_daemon_thread(lambda: late.open_backend(access, loaded.gemdeck))
    try:
        await backend.check()
    finally:
        await backend.aclose()


def _failed(error: CredentialError | ModelError) -> CommandError:
    return CommandError(f"{error} {error.advice}".strip())
