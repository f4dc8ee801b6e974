"""A form for the arguments of a call, where their schema is flat; filled in with them."""

from collections.abc import Mapping
from dataclasses import replace

from tui.engine.servers.inbound.forms import (
    MAX_FIELDS,
    Control,
    UnusableFormError,
    read_form,
)
from tui.engine.tools import JsonObject
from tui.model.requests import FormField, FormValue


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
    """Tell whether a field gives an argument back as it is, type and all."""
    default: FormValue = control.field.default
    given = list(default) if isinstance(default, tuple) else default
    return default is not None and type(given) is type(argument) and given == argument
