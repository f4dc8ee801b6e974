"""Secrets of extensions, from the keyring, where gemini-cli keeps what a manifest calls sensitive.

They are read when a server starts, in a thread, so that a keyring that asks holds up no other one.
"""

import asyncio
import os
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Final

from tui.engine.background import in_daemon_thread
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.definitions.expansion import Expansion
from tui.engine.keys import key_store
from tui.engine.logs.redaction import Redactor

ACCOUNT: Final = "__secret__"
"""What gemini-cli puts before the name of a variable."""

_SCHEMES: Final = {"default": {"service": "service", "username": "account"}}
"""How the library that gemini-cli uses calls the two in the Secret Service of Linux."""


async def with_secrets(
    server: ServerDefinition, redactor: Redactor
) -> tuple[ServerDefinition, str]:
    """Fill in the secrets of a server's extension; they are masked from then on.

    Returns:
        The server, and what it starts without, why, and what to do; or an empty string.
    """
    found: dict[str, str] = {}
    why = "the keyring is not used with GEMDECK_HOME"
    if not os.environ.get("GEMDECK_HOME"):
        why = "the keyring has no value"
        try:
            reading = in_daemon_thread(partial(_read, server.keychain, server.kept))
            found = await asyncio.wait_for(reading, key_store.KEYRING_LIMIT)
        except TimeoutError:
            why = "the keyring did not answer"
        except Exception:  # noqa: BLE001 - backends are plugins and raise errors of their own
            why = "the keyring cannot be read"
    values = {name: value for name, value in {**server.kept, **found}.items() if value}
    redactor.register(*values.values())
    fill = Expansion(values, blank=frozenset({"env", "headers"}))
    entry = {"env": {**server.env}, "headers": {**server.headers}, "url": server.url}
    filled = fill.members({**entry, "args": [*server.args]})
    server = replace(
        server,
        env=MappingProxyType({**found, **filled["env"]}),
        headers=MappingProxyType(filled["headers"]),
        url=filled["url"],
        args=tuple(filled["args"]),
    )
    set_here = {**values, **{name: value for name, value in server.env.items() if value}}
    missing = ", ".join(name for name in server.kept if name not in set_here)
    advice = f"Set it: gemini extensions config {server.extension}, or in `env` of its entry."
    return server, f"Without {missing}: {why}. {advice}" if missing else ""


def _read(service: str, names: Iterable[str]) -> dict[str, str]:
    """Read secrets from the keyring, or from the first of those it is made of. Blocks."""
    import keyring  # noqa: PLC0415 - it takes long

    ring = keyring.get_keyring()
    rings = reversed(getattr(ring, "backends", [ring]))  # the value of the first one stays
    places = [one.with_properties(schemes=_SCHEMES) for one in rings]
    found = ((name, one.get_password(service, ACCOUNT + name)) for name in names for one in places)
    return {name: value for name, value in found if value}
