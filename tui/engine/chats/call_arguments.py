"""Check the arguments of calls, and read arguments that the user edited."""

import asyncio
import json
from collections.abc import Iterator
from typing import Final

from tui.engine.approval.consent import Edit, UnusableEditError
from tui.engine.mcp.catalog.offered_tool import JsonObject
from tui.model.input.arguments import canonical_json, read_arguments
from tui.text import clip, sanitize_line

MAX_EDIT: Final = 1_000_000
"""Longest edited arguments, in characters of JSON with indentation."""

MAX_FAULTS: Final = 5
"""Errors in edited arguments shown at once."""

MAX_TOLD: Final = 1_000
"""Characters of one changed value reported to the model."""

MAX_TOLD_CHANGES: Final = 20
"""Changed arguments reported to the model one by one."""


async def read_edit(text: str, schema: JsonObject) -> Edit:
    """Read edited arguments in a thread, because checking a schema may be slow.

    Args:
        text: The arguments as JSON.
        schema: The tool's input schema.

    Raises:
        UnusableEditError: If they cannot be sent; the message says why.
    """
    return await asyncio.to_thread(_read, text, schema)


def told_changes(before: JsonObject, after: JsonObject) -> str:
    """Describe to the model how the user changed the arguments of its call."""
    changes = list(_changes(before, after))
    more = len(changes) - MAX_TOLD_CHANGES
    listed = "; ".join(changes[:MAX_TOLD_CHANGES]) + (f"; and {more} more" if more > 0 else "")
    return f"The user changed the arguments before the call: {listed}."


def _read(text: str, schema: JsonObject) -> Edit:
    if len(text) > MAX_EDIT:
        raise UnusableEditError(f"the arguments are longer than {MAX_EDIT} characters")
    from tui.engine.mcp.schema import validate  # noqa: PLC0415 - slow, and we are in a thread

    try:
        arguments = validate.coerce(schema, read_arguments(text))
        shown = canonical_json(arguments)
        faults = validate.check_arguments(schema, arguments)
    except (ValueError, RecursionError) as error:
        raise UnusableEditError(sanitize_line(str(error)) or "nested too deeply") from error
    if faults:
        raise UnusableEditError("; ".join(map(sanitize_line, faults[:MAX_FAULTS])))
    return Edit(arguments, shown)


def _changes(before: JsonObject, after: JsonObject) -> Iterator[str]:
    for name in dict.fromkeys((*before, *after)):
        label = clip(json.dumps(name), MAX_TOLD)
        if name not in after:
            yield f"{label} was removed"
        elif name not in before:
            yield f"{label} was added: {_value(after[name])}"
        elif _text(before[name]) != _text(after[name]):
            yield f"{label} is now {_value(after[name])}"


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _value(value: object) -> str:
    return clip(_text(value), MAX_TOLD)
