"""All that a server would run or contact, as the user is told of it before it does.

The text is that of the file, with its references: what the user's variables hold appears
nowhere, and nothing else is masked, since a mask would hide from the reader what runs.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from tui.engine.consent.cautions import (
    address_cautions,
    command_cautions,
    program_cautions,
    sign_in_cautions,
    variable_cautions,
)
from tui.engine.consent.spelling import spelled
from tui.engine.settings.definitions import ServerDefinition
from tui.engine.settings.expansion import references_in
from tui.model.trust import Disclosure

_SHOWN_KEYS: Final = ("command", "args", "env", "cwd", "url", "httpUrl", "headers", "oauth")


def disclose(
    definition: ServerDefinition, folder: Path | None = None, change: str = ""
) -> Disclosure:
    """Tell all that a server would run or contact. Blocks on the file system.

    Args:
        definition: The server.
        folder: The opened folder, where it brings the server or could hold its program.
        change: ``new``, ``changed`` or ``gone``, as `Disclosure.change`.
    """
    written = definition.written
    command = _text(written.get("command"))
    args = _texts(written.get("args"))
    address = _text(written.get("httpUrl")) or _text(written.get("url"))
    env, headers = _names(written.get("env")), _names(written.get("headers"))
    references = references_in({key: written[key] for key in _SHOWN_KEYS if key in written})
    cautions = [
        *(command_cautions(command, args) if command else ()),
        *program_cautions(definition.program, folder),
        *variable_cautions(env, references),
        *(address_cautions(address) if address and not command else ()),
        *sign_in_cautions(written.get("oauth")),
    ]
    return Disclosure(
        server=definition.id,
        source=definition.source,
        transport=definition.transport.value,
        command=spelled(command) if command else "",
        program=spelled(definition.program) if definition.program else "",
        args=tuple(map(spelled, args)),
        cwd=spelled(_text(written.get("cwd"))) if written.get("cwd") else "",
        env=tuple(map(spelled, env)),
        references=tuple(map(spelled, references)),
        url=spelled(address) if address and not command else "",
        headers=tuple(map(spelled, headers)),
        warnings=tuple(cautions),
        change=change,
    )


def _text(value: object) -> str:
    """Read a value as the settings do: a number or boolean is its text."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
    return ""


def _texts(value: object) -> tuple[str, ...]:
    """Read a list; one string is a list of one."""
    if isinstance(value, str):
        return (value,)
    return tuple(map(_text, value)) if isinstance(value, Iterable) else ()


def _names(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, Mapping) else ()
