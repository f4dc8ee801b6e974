"""Secrets that servers get: the user's own (``${keyring:NAME}``), and those of extensions."""

import asyncio
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from pydantic import SecretStr

from tui.engine.background import in_daemon_thread
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.definitions.expansion import KEYRING, Expansion, references_in, with_secrets
from tui.engine.files.paths import STATE_VARIABLE
from tui.engine.files.state_file import private_file
from tui.engine.keys import key_store
from tui.engine.keys.key_store import NAMED, CredentialError, named_place
from tui.engine.logs.redaction import MIN_SECRET, Redactor, is_secret_variable, masked_words
from tui.model.servers import Origin
from tui.model.settings import OAUTH_SECRETS
from tui.text import sanitize_line

NAMES_FILE: Final = "secrets.json"

MAX_SECRET: Final = 16_384
"""Longest secret, in characters."""

_NAMING: Final = "A secret's name may contain only letters, digits and ._-."
_NAME: Final = re.compile(r"\w[\w.-]{0,399}")

ACCOUNT: Final = "__secret__"
"""What gemini-cli puts before the name of a variable of an extension."""

_SCHEMES: Final = {"default": {"service": "service", "username": "account"}}
"""How the library that gemini-cli uses calls the two in the Secret Service of Linux."""


_CREDENTIALS: Final = re.compile(r"[A-Za-z][\w-]* (\S+)")
"""The value of a header as ``Bearer TOKEN``; of any other the whole is the secret."""


class SecretStore:
    """Keeps secrets where the model's key is: in the keyring, or in a private file.

    Their names are in the state folder, since a keyring cannot list what it has. Every method
    blocks: call it in a thread.

    Args:
        folder: The state folder.
        on_problem: Told what cannot be read or written of the names.

    Raises:
        CredentialError: From each method that reads or writes a secret, if that is not possible.
    """

    def __init__(self, folder: Path | None, on_problem: Callable[[str], None]) -> None:
        self._file = private_file(folder, NAMES_FILE, on_problem)

    def names(self) -> list[str]:
        content = self._file.load() or {}
        return sorted(key.removeprefix(NAMED) for key in content if key.startswith(NAMED))

    def set(self, name: str, value: str) -> str:
        """Keep a secret in place of the last one of that name; return where."""
        if not _NAME.fullmatch(name):
            raise CredentialError(_NAMING)
        if len(value.strip()) < MIN_SECRET or len(value) > MAX_SECRET or "\0" in value:
            words = f"A secret must have {MIN_SECRET} to {MAX_SECRET:,} characters, and no NUL."
            raise CredentialError(words, advice="A shorter one could not be masked.")
        if "\ufffd" in value:
            raise CredentialError("A secret must be UTF-8 text.")
        place = named_place(name)
        place.set(value)
        self._file.update(lambda content: {**content, f"{NAMED}{name}": True})
        return place.name

    def set_all(self, values: Mapping[str, str]) -> None:
        for name, value in values.items():
            self.set(name, value)

    def forget(self, name: str) -> None:
        named_place(name).forget()
        gone = f"{NAMED}{name}"
        self._file.update(lambda content: {key: content[key] for key in content if key != gone})


def read_secrets(names: Iterable[str]) -> dict[str, str]:
    """Read secrets by their names. Blocks.

    Raises:
        CredentialError: If one is not there, or cannot be read.
    """
    found = {}
    for name in sorted(names):
        shown = sanitize_line(name, 100)
        if not _NAME.fullmatch(name):
            words = f"needs the secret {shown}, which is not a valid name"
            raise CredentialError(words, advice=f"{_NAMING} Fix its entry.")
        place = named_place(name)
        if not (value := place.get()):
            words = f"needs the secret {shown}, which is not in {place.name}"
            advice = f"Enter it: gemdeck secret set {shown}. Then try again."
            raise CredentialError(words, advice=advice)
        found[name] = value
    return found


async def with_named_secrets(
    server: ServerDefinition, redactor: Redactor, *, signs_in: bool = False
) -> ServerDefinition:
    """Fill in the secrets that the user's entry of a server names; they are masked from then on.

    Args:
        server: The server.
        redactor: Told the secrets.
        signs_in: Whether to fill in those of the sign-in, and not what the server gets.

    Raises:
        CredentialError: If one cannot be had; says what to do.
    """
    if not server.entry.named or server.entry.origin is Origin.PROJECT:
        return server
    values = await in_daemon_thread(partial(read_secrets, server.entry.named))
    redactor.register(*values.values())

    def filled(texts: Mapping[str, str]) -> Mapping[str, str]:
        return MappingProxyType({name: with_secrets(text, values) for name, text in texts.items()})

    if signs_in:
        oauth = server.endpoint.sign_in.oauth
        given = {key: one.get_secret_value() for key, one in oauth.secrets().items()}
        signing = {key: SecretStr(with_secrets(text, values)) for key, text in given.items()}
        return server.with_oauth(oauth.model_copy(update=signing))
    known = server.secrets | frozenset(values.values())
    launch = replace(server.launch, env=filled(server.launch.env))
    endpoint = replace(server.endpoint, headers=filled(server.endpoint.headers))
    return replace(server, launch=launch, endpoint=endpoint, secrets=known)


async def with_extension_secrets(
    server: ServerDefinition, redactor: Redactor
) -> tuple[ServerDefinition, str]:
    """Fill in the secrets of a server's extension; they are masked from then on.

    gemini-cli keeps in the keyring what a manifest calls sensitive. It is read when the server
    starts, in a thread, so that a keyring that asks holds up no other one.

    Returns:
        The server, and what it starts without, why, and what to do; or an empty string.
    """
    launch, endpoint, found = server.launch, server.endpoint, dict[str, str]()
    why = "the keyring is not used with GEMDECK_HOME"
    if not os.environ.get(STATE_VARIABLE):
        why = "the keyring has no value"
        try:
            reading = in_daemon_thread(partial(_read_extensions, launch.keychain, launch.kept))
            found = await asyncio.wait_for(reading, key_store.KEYRING_LIMIT)
        except TimeoutError:
            why = "the keyring did not answer"
        except Exception:  # noqa: BLE001 - backends are plugins and raise errors of their own
            why = "the keyring cannot be read"
    values = {name: value for name, value in {**launch.kept, **found}.items() if value}
    redactor.register(*values.values())
    fill = Expansion(values, blank=frozenset({"env", "headers"}))
    entry = {"env": {**launch.env}, "headers": {**endpoint.headers}, "url": endpoint.url}
    filled = fill.members({**entry, "args": [*launch.args]})
    env, headers = {**found, **filled["env"]}, MappingProxyType(filled["headers"])
    server = replace(
        server,
        launch=replace(launch, env=MappingProxyType(env), args=tuple(filled["args"])),
        endpoint=replace(endpoint, url=filled["url"], headers=headers),
        secrets=server.secrets | frozenset(values.values()),
    )
    set_here = {**values, **{name: value for name, value in server.launch.env.items() if value}}
    missing = ", ".join(name for name in server.launch.kept if name not in set_here)
    advice = f"Set it: gemini extensions config {server.entry.extension}, or in `env` of its entry."
    return server, f"Without {missing}: {why}. {advice}" if missing else ""


def _read_extensions(service: str, names: Iterable[str]) -> dict[str, str]:
    """Read secrets from the keyring, or from the first of those it is made of. Blocks."""
    import keyring  # noqa: PLC0415 - it takes long

    ring = keyring.get_keyring()
    rings = reversed(getattr(ring, "backends", [ring]))  # the value of the first one stays
    places = [one.with_properties(schemes=_SCHEMES) for one in rings]
    found = ((name, one.get_password(service, ACCOUNT + name)) for name in names for one in places)
    return {name: value for name, value in found if value}


def without_literals(
    server: str, entry: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Put references in place of the secrets that stand in an entry.

    Returns:
        The entry, and the secrets by the names that it gives them now.
    """
    made, found = dict(entry), dict[str, str]()
    for key in ("env", "headers", "oauth"):
        given = entry.get(key)
        for name, value in given.items() if isinstance(given, dict) else ():
            text = str(value) if isinstance(value, str | int) else ""
            is_secret = is_secret_variable(name, text) or masked_words([text]) != [text]
            is_secret = name in OAUTH_SECRETS if key == "oauth" else is_secret
            in_scheme = _CREDENTIALS.fullmatch(text) if key == "headers" else None
            secret = in_scheme[1] if in_scheme else text
            is_reference = references_in(text) or KEYRING.search(text)
            if is_secret and not is_reference and MIN_SECRET <= len(secret) <= MAX_SECRET:
                kept = re.sub(r"[^\w.-]+", "-", f"{server}-{name}").lstrip("-.")
                if kept != f"{server}-{name}" or "-" in name or kept in found:
                    # else another server, or another part of this one, could have the same name
                    parts = "\0".join((server, key, name))
                    kept += f"-{hashlib.sha256(parts.encode()).hexdigest()[:6]}"
                found[kept] = secret
                made[key] = {**made[key], name: f"{text.removesuffix(secret)}${{keyring:{kept}}}"}
    return made, found
