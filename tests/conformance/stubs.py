"""Arguments that satisfy a schema well enough to make a call, and answers to forms."""

from collections.abc import Mapping
from typing import Any, Final

from tui.model.requests import FieldKind, FormField, FormValue

STUB: Final = "stub"
"""The text that stands for any text."""

MAX_DEPTH: Final = 5
"""Levels of nested objects and lists that are filled in."""

_PLAIN: Final = {"string": STUB, "integer": 1, "number": 1.0, "boolean": True, "null": None}

_TEXTS: Final[Mapping[str, str]] = {
    "email": "stub@example.com",
    "uri": "https://example.com/",
    "date": "2026-01-02",
    "date-time": "2026-01-02T03:04:05Z",
}


def stub_arguments(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Make arguments for a tool: each property that its input schema names."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return {}
    return {name: _stub(definition, 0) for name, definition in properties.items()}


def fill_in(field: FormField) -> FormValue:
    """Fill in a form field: with its default, or else with what its kind takes."""
    if field.default is not None:
        return field.default
    if not field.required:
        return None
    least = 1 if field.minimum is None else field.minimum
    match field.kind:
        case FieldKind.TEXT:
            return _TEXTS.get(field.format, STUB.ljust(int(field.minimum or 0), "."))
        case FieldKind.INTEGER:
            return int(least)
        case FieldKind.NUMBER:
            return float(least)
        case FieldKind.BOOLEAN:
            return True
        case FieldKind.CHOICE:
            return field.options[0].value
        case FieldKind.CHOICES:
            return tuple(option.value for option in field.options[: int(least)])
        case FieldKind.ROWS:
            return ("",) * int(least)
        case FieldKind.JSON:
            return "{}"


def _stub(schema: object, depth: int) -> Any:  # noqa: ANN401
    if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
        return STUB
    if "default" in schema:
        return schema["default"]
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = kind[0] if kind else None
    if kind == "object":
        properties = schema.get("properties", {})
        return {name: _stub(definition, depth + 1) for name, definition in properties.items()}
    if kind == "array":
        return [_stub(schema.get("items"), depth + 1)]
    for key in ("anyOf", "oneOf"):
        if kind is None and schema.get(key):
            return _stub(schema[key][0], depth + 1)
    return _PLAIN.get(str(kind), STUB)
