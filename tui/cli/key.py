"""``gemdeck key``: the model's key without the screen: entered, shown where it is, forgotten."""

import os
from dataclasses import replace

import click
from pydantic import SecretStr

from tui.cli.command import CommandError, CommandOutput, no_such, prints_json
from tui.cli.output import ExitCode, say
from tui.cli.secret import read_unseen
from tui.cli.settings import load
from tui.engine import late
from tui.engine.background import in_daemon_thread
from tui.engine.chats.backends.backend import ModelTraits
from tui.engine.files.paths import usable_state_dir
from tui.engine.keys import credentials
from tui.engine.keys.credentials import ModelAccess, Service, ServiceStore
from tui.engine.keys.key_store import KeyStore, checked_key
from tui.engine.keys.services import ModelService, known_services
from tui.engine.logs.log_file import prepare_process
from tui.engine.settings.loader import LoadedSettings
from tui.model.chat import BackendKind
from tui.model.settings import GemdeckSettings
from tui.text import sanitize_line

address_option = click.option(
    "--address", metavar="URL", help="The key is for the Gemini API at this address, not Google's."
)
service_option = click.option(
    "--service", metavar="NAME", help="The key is for this service, such as openai, not Gemini's."
)


@click.group()
def key() -> None:
    """Store the model's API key, see where it comes from, and forget it."""


@key.command(epilog="Example: gemdeck key show --json")
@prints_json
async def show() -> CommandOutput:
    """Show which service is used and where its key comes from, never the key itself."""
    loaded = await in_daemon_thread(load)
    access = await in_daemon_thread(lambda: kept_access(loaded, KeyStore()))
    if access is None:
        text = "There is no key. To enter one: gemdeck key set"
        return CommandOutput({"service": None}, text, ExitCode.NO_KEY)
    where = f" at {sanitize_line(access.base_url)}" if access.base_url else ""
    value = {
        "service": access.name,
        "address": access.base_url,
        "source": access.source,
        "kept": access.is_kept,
    }
    source = sanitize_line(access.source)
    return CommandOutput(value, f"{access.name}{where}, with credentials from {source}.")


@key.command("set", epilog="Example: gemdeck key set --address https://gateway.example")
@address_option
@service_option
@click.option("--no-check", is_flag=True, help="Store the key without checking it.")
@prints_json
async def set_key(address: str | None, service: str | None, *, no_check: bool) -> CommandOutput:
    """Store a key that the service accepts, in the keyring or a private file.

    Prompts for it without echo, or reads standard input. It replaces the previous key.
    """
    prepare_process()
    keys, loaded = KeyStore(), await in_daemon_thread(load)
    named = _service(service, address, loaded) if service is not None else None
    typed = credentials.typed_base_url(address) if address is not None else ""
    try:
        secret = SecretStr(checked_key(await in_daemon_thread(lambda: read_unseen("API key"))))
    except ValueError as error:
        raise CommandError(str(error), ExitCode.NO_KEY) from error
    place = await in_daemon_thread(lambda: keys.place)
    chosen: Service | None = Service.ADDRESS if typed else Service.GOOGLE
    if named is not None:  # the model is chosen by its name, not by its key
        keyed = replace(named, key=secret)
        access = await in_daemon_thread(lambda: credentials.service_access(keyed, {}, keys))
        access, chosen = replace(access, is_kept=True), None
    elif typed:
        access = credentials.address_access(typed, secret, place)
    else:
        access = credentials.key_access(os.environ, secret, place)
    if not no_check:
        await check_access(access, loaded.gemdeck)
    await in_daemon_thread(lambda: credentials.keep_access(access, chosen, keys, _services()))
    words = "The key" if no_check else "The service accepted the key. It"
    value = {"address": access.base_url, "place": place, "checked": not no_check}
    return CommandOutput(value, f"{words} is stored in {place}.")


@key.command(epilog="Example: gemdeck key forget")
@address_option
@service_option
@prints_json
async def forget(address: str | None, service: str | None) -> CommandOutput:
    """Forget the stored key, or the key of an address or a service."""
    services = _services()

    def work() -> str:
        access = ModelAccess(BackendKind.GEMINI)
        kept = services.get()
        if service is not None:
            named = _service(service, address, load())
            access = ModelAccess(BackendKind.OTHER, base_url=named.url, service=named)
        elif address is not None:
            access = replace(access, base_url=credentials.typed_base_url(address))
        elif kept.service is Service.ADDRESS:
            access = replace(access, base_url=kept.address)
        return credentials.forget_access(access, KeyStore(), services)

    words = await in_daemon_thread(work)
    return CommandOutput({"done": words}, words)


def kept_access(loaded: LoadedSettings, keys: KeyStore) -> ModelAccess | None:
    """Return the service that answers, and its credentials; None if there are none. Blocks.

    Raises:
        CredentialError: If they cannot be read, or the settings do not allow them.
    """
    environ = credentials.with_file(loaded.variables, os.environ)
    found = credentials.find_model(loaded.gemdeck, environ, keys, _services().get())
    return credentials.permitted(found, loaded.run.auth)


async def check_access(access: ModelAccess, settings: GemdeckSettings) -> ModelTraits:
    """Ask the service whether it takes the key; return what it says of the model.

    Raises:
        ModelError: If it does not.
    """
    settings = settings.model_copy(update={"model": access.model or settings.model})
    backend = await in_daemon_thread(lambda: late.open_backend(access, settings))
    try:
        await backend.check()
        return backend.traits
    finally:
        await backend.aclose()


def _service(name: str, address: str | None, loaded: LoadedSettings) -> ModelService:
    known = known_services(loaded.gemdeck, os.environ)
    if address is not None:
        raise click.UsageError("The address of a service comes from the settings: omit --address.")
    if name not in known:
        raise no_such("service", name, known)
    return known[name]


def _services() -> ServiceStore:
    return ServiceStore(usable_state_dir(), say)
