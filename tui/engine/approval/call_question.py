"""The question about a call: its warnings, and a form for its arguments."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from tui.engine.approval.consent import Inquiry
from tui.engine.approval.policy import Policy
from tui.engine.approval.tool_patterns import is_plain
from tui.engine.mcp.callbacks.form_schema import (
    MAX_FIELDS,
    Control,
    UnusableFormError,
    read_form,
)
from tui.engine.mcp.catalog.offered_tool import JsonObject, OfferedTool
from tui.model.requests import FormField, FormValue
from tui.model.servers import Origin, ServerId
from tui.text import sanitize_line

MAX_NAMED: Final = 5
"""Servers that one note names."""

_NO_ARGUMENTS: Final = "{}"


_PLACES: Final = {
    Origin.SYSTEM_DEFAULTS: "the system's settings",
    Origin.USER: "your settings",
    Origin.PROJECT: "this folder",
    Origin.SYSTEM: "the system's settings",
    Origin.EXTENSION: "one of your extensions",
    Origin.DEMO: "gemdeck's demo",
}
"""Where servers come from, in words."""

_ODD_NAME: Final = "The name contains characters that tool names may not have."
_UNSAVED: Final = "Rules cannot be saved now: what you always allow lasts until you quit."


def call_notes(inquiry: Inquiry, policy: Policy | None = None) -> tuple[str, ...]:
    """Return warnings about a call, most important first; sanitized.

    Args:
        inquiry: The call.
        policy: The rules; without one nothing is said of them.
    """
    return (
        *_repeats(inquiry),
        *_denied_before(inquiry),
        *_has_read(inquiry.tool.server, inquiry.turn.read),
        *([_ODD_NAME] if not is_plain(inquiry.tool.name) else []),
        *_not_trusted(inquiry.tool, policy),
        *([_UNSAVED] if policy is not None and not policy.is_kept else []),
    )


def origin_words(server: ServerId, policy: Policy) -> str:
    """Return where a server comes from; empty if it is no longer defined."""
    origin = policy.origins.get(server)
    return _PLACES[origin] if origin is not None else ""


def _not_trusted(tool: OfferedTool, policy: Policy | None) -> Iterator[str]:
    """Say why the question comes although the user's settings trust the server."""
    if words := policy.untrusted_words(tool) if policy is not None else "":
        yield sanitize_line(f"{words[0].upper()}{words[1:]}.")


def _repeats(inquiry: Inquiry) -> Iterator[str]:
    if inquiry.is_loop:
        yield f"The model made this very call {inquiry.number - 1} times before in this turn."


def _denied_before(inquiry: Inquiry) -> Iterator[str]:
    """Find a denied call with the same arguments: the model may retry under another name."""
    if inquiry.shown == _NO_ARGUMENTS:
        return
    for call in inquiry.turn.denied:
        if call.shown == inquiry.shown:
            yield (
                "Earlier in this turn you denied a call with the same arguments: "
                f"{_name(call.tool)}."
            )
            return


def _has_read(own: ServerId, read: Iterable[ServerId]) -> Iterator[str]:
    """Name the other servers whose data the model may be acting on."""
    others = [server for server in read if server != own]
    if others:
        yield f"This turn has read data from {_listed(others)}."


def _name(tool: OfferedTool) -> str:
    return f"{tool.server} {sanitize_line(tool.view.name)}"


def _listed(names: list[ServerId]) -> str:
    """Join names to a phrase; of many, only the first."""
    *first, last = names[:MAX_NAMED]
    more = len(names) - MAX_NAMED
    if more > 0:
        return f"{', '.join([*first, last])} and {more} more"
    return f"{', '.join(first)} and {last}" if first else str(last)


def argument_fields(schema: JsonObject, arguments: JsonObject) -> tuple[FormField, ...]:
    """Make the fields of a form that gives exactly these arguments when nothing is changed.

    Args:
        schema: The tool's input schema.
        arguments: The arguments of the call.

    Returns:
        The fields, their keys being the names of the arguments. Nothing where a form could not
        show every argument as it is, or could not give it back unchanged.
    """
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or len(properties) > MAX_FIELDS:
        return ()
    if not arguments.keys() <= properties.keys():
        return ()
    try:
        form = read_form({**schema, "properties": _filled_in(properties, arguments)})
    except UnusableFormError:
        return ()
    fields = []
    for control in form.controls:
        name = control.name
        if control.field.key != name or any(shown != v for shown, v in control.values.items()):
            return ()
        if name not in arguments:
            fields.append(replace(control.field, default=None))
        elif _gives(control, arguments[name]):
            fields.append(control.field)
        else:
            return ()
    return tuple(fields)


def _filled_in(properties: JsonObject, arguments: JsonObject) -> dict[str, object]:
    """Put the arguments in the place of the schema's defaults."""
    return {
        name: {**definition, "default": arguments.get(name)}
        if isinstance(definition, Mapping)
        else definition
        for name, definition in properties.items()
    }


def _gives(control: Control, argument: object) -> bool:
    """Return whether a field returns an argument unchanged, including its type."""
    default: FormValue = control.field.default
    given = list(default) if isinstance(default, tuple) else default
    return default is not None and type(given) is type(argument) and given == argument
