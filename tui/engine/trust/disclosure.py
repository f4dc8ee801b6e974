"""Everything that a server would run or contact, as shown in a question.

What the folder itself chooses, by its ``.env`` or by defaults, is filled in, and the text of the
file stands beside it. What the user's variables hold appears nowhere, but for paths in warnings:
references to them stay.
Of the rest only secret values of variables are masked: a mask would hide what runs.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from tui.engine.definitions.command_files import MAX_FILES, MAX_NAMES, named_parts
from tui.engine.definitions.definition import Preview, ServerDefinition
from tui.engine.definitions.expansion import references_in
from tui.engine.logs.redaction import (
    MASK,
    MAX_SHOWN,
    is_secret_name,
    known_secrets,
    masked_text,
    masked_words,
)
from tui.engine.trust.warnings import (
    address_cautions,
    command_cautions,
    file_cautions,
    program_cautions,
    sign_in_cautions,
    spelled,
    variable_cautions,
)
from tui.model.servers import Origin, Transport
from tui.model.trust import Disclosure

_SHOWN_KEYS: Final = ("command", "args", "env", "cwd", "url", "httpUrl", "headers", "oauth")


def disclose(
    definition: ServerDefinition, folder: Path | None = None, change: str = ""
) -> Disclosure:
    """Return everything that a server would run or contact. Blocks on the file system.

    Args:
        definition: The server.
        folder: The opened folder, where it brings the server or could hold its program.
        change: ``new``, ``changed`` or ``gone``, as `Disclosure.change`.
    """
    preview = definition.preview or Preview(definition.written, definition.written, {}, {})
    shown, own = preview.shown, preview.own
    address = _text(shown.get("httpUrl")) or _text(shown.get("url"))
    command = "" if address else _text(shown.get("command"))
    env, headers = _names(shown.get("env")), _names(shown.get("headers"))
    written = definition.written
    named = references_in({key: written[key] for key in _SHOWN_KEYS if key in written})
    references = [name for name in named if name in own]
    return Disclosure(
        server=definition.id,
        source=definition.source,
        transport=definition.transport.value,
        command=spelled(command) if command else "",
        program=spelled(definition.program) if definition.program else "",
        args=tuple(map(spelled, _texts(shown.get("args")))) if command else (),
        cwd=spelled(_text(shown.get("cwd"))) if shown.get("cwd") else "",
        env=tuple(map(spelled, env)),
        references=tuple(map(spelled, references)),
        url=spelled(address) if address else "",
        headers=tuple(map(spelled, headers)),
        warnings=tuple(_cautions(definition, preview, references, folder)),
        change=change,
        inherited=tuple(map(spelled, inherited_names(definition))),
        written=tuple(_as_written(written, shown)),
        files=tuple(
            spelled(shown_file(file.path, folder)) for file in definition.files if file.content
        ),
        env_values=tuple(_values(shown.get("env"))),
    )


def inherited_names(definition: ServerDefinition) -> list[str]:
    """Name the variables that the user's list adds to what a project's server inherits."""
    adds = definition.origin is Origin.PROJECT and definition.transport is Transport.STDIO
    return definition.inheritance.added() if adds else []


def _values(variables: object) -> Iterator[str]:
    """Return variables with their values, those masked that are secret by name or format."""
    for name, value in variables.items() if isinstance(variables, Mapping) else ():
        text = _text(value)
        [kept] = [MASK] if is_secret_name(str(name)) else masked_words((text,))
        more = "…" if len(text) > MAX_SHOWN else ""
        yield f"{spelled(str(name))} = {spelled(kept)}{more}"


def _cautions(
    definition: ServerDefinition, preview: Preview, references: Iterable[str], folder: Path | None
) -> Iterator[str]:
    """Return warnings about what would run, with the user's variables filled in.

    Their values are masked: a warning may quote an argument that contains one. Paths are not,
    such as ``$HOME`` in a mount: they say what can be reached.
    """
    whole = preview.whole
    address = _text(whole.get("httpUrl")) or _text(whole.get("url"))
    command = "" if address else _text(whole.get("command"))
    args = _texts(whole.get("args"))
    of_command = [
        *(command_cautions(command, args) if command else ()),
        *sign_in_cautions(whole.get("oauth")),
    ]
    masked = [v for k, v in preview.own.items() if is_secret_name(k) or not v.startswith("/")]
    own = known_secrets([*masked, *map(spelled, masked)])
    yield from (masked_text(caution, own) for caution in of_command)
    yield from program_cautions(definition.program, folder)
    others = [file.path for file in definition.files if file.path != definition.program]
    if len(others) >= MAX_FILES - 1 or len(named_parts(args, definition.env)) > MAX_NAMES:
        yield "Names so much that not all files of it are watched."
    if definition.developed:
        yield "A change of its code asks nothing, because you develop it."
    if folder is not None:
        yield from file_cautions(shown_file(path, folder) for path in others)
    yield from variable_cautions(_names(whole.get("env")), references)
    if address:
        yield from address_cautions(address)


def shown_file(path: str, folder: Path | None) -> str:
    """Return where a file lies in a folder, or its whole path if it lies elsewhere."""
    place = os.path.realpath(folder) if folder is not None else ""
    if not place or not path.startswith(place.rstrip(os.sep) + os.sep):
        return path
    return os.path.relpath(path, place)


def _as_written(written: Mapping[str, object], shown: Mapping[str, object]) -> Iterator[str]:
    """Return the parts of an entry that have something filled in, as written in the file."""
    for key in ("command", "cwd", "httpUrl", "url"):
        if written.get(key) != shown.get(key):
            yield f"{key} {spelled(_text(written.get(key)))}"
    both = zip(_texts(written.get("args")), _texts(shown.get("args")), strict=False)
    for number, (before, after) in enumerate(both, 1):
        if before != after:
            yield f"argument {number} {spelled(before)}"


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
