"""Gemini's schemas of single values: enums, scalars, bounds and defaults."""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tui.engine.mcp.schema.flatten import Flat
from tui.text import sanitize, sanitize_line

GeminiSchema = dict[str, Any]

MAX_DEFAULT_CHARS: Final = 200
"""Longest default that is sent."""

MAX_VALUE: Final = 1_000
"""Longest enum value, in characters."""

MAX_INTEGER: Final = 2**63 - 1

_BOUNDS: Final[Mapping[str, tuple[str, ...]]] = {
    "string": ("minLength", "maxLength"),
    "number": ("minimum", "maximum"),
    "integer": ("minimum", "maximum"),
    "array": ("minItems", "maxItems"),
}
DATE_TIME: Final = "format: date-time"
"""The note of the one format that Gemini takes as a keyword."""

_TYPE_NAMES: Final[Mapping[type, str]] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
}


def enum_variants(flat: Flat) -> Iterator[GeminiSchema]:
    """Yield one schema for each type among the enum values."""
    by_type: dict[str, list[Any]] = {}
    has_fractions = any(_type_of(value) == "number" for value in flat.enum or ())
    for value in flat.enum or ():
        kind = _type_of(value)
        if kind == "integer" and (has_fractions or flat.types == frozenset({"number"})):
            kind = "number"
        if flat.types is None or kind in flat.types:
            by_type.setdefault(kind, []).append(value)
    for kind, values in by_type.items():
        match kind:
            case "string" if texts := [text for text in values if text and not is_hidden(text)]:
                yield {"type": kind, "enum": list(dict.fromkeys(texts))}
            case "integer" | "number" if sendable := [v for v in values if abs(v) <= MAX_INTEGER]:
                yield {"type": kind, "enum": list(dict.fromkeys(sendable))}
            case "object" | "array":
                yield {"type": kind, "description": _clipped_json(values)}
            case _:
                yield {"type": kind}


def scalar(kind: str, flat: Flat) -> GeminiSchema:
    """Return the schema of a value that is neither an object nor an array."""
    schema: GeminiSchema = {"type": kind} | bounds_of(kind, flat)
    if kind == "string":
        if flat.pattern and sanitize(flat.pattern) == flat.pattern:
            schema["pattern"] = flat.pattern
        if DATE_TIME in flat.notes:
            schema["format"] = "date-time"
    return schema


def bounds_of(kind: str, flat: Flat) -> GeminiSchema:
    """Return the bounds for a type; exclusive bounds of integers become inclusive."""
    bounds: GeminiSchema = {}
    for key in _BOUNDS.get(kind, ()):
        value = flat.bounds.get(key)
        if kind == "integer":
            value = _inclusive(key, value, flat)
        if value is None or abs(value) > MAX_INTEGER:
            continue
        if kind in {"string", "array"}:
            if value >= 0:
                bounds[key] = int(value)
        else:
            bounds[key] = value
    return bounds


def _inclusive(key: str, value: float | None, flat: Flat) -> float | None:
    exclusive = flat.bounds.get(f"exclusive{key.title()}")
    if key == "minimum":
        candidates = [] if value is None else [math.ceil(value)]
        candidates += [] if exclusive is None else [math.floor(exclusive) + 1]
        return max(candidates, default=None)
    candidates = [] if value is None else [math.floor(value)]
    candidates += [] if exclusive is None else [math.ceil(exclusive) - 1]
    return min(candidates, default=None)


def exclusive_notes(flat: Flat, kinds: set[Any]) -> list[str]:
    """Return exclusive bounds of numbers, which Gemini has no keyword for, in words."""
    if "number" not in kinds:
        return []
    words = {"exclusiveMinimum": "greater than", "exclusiveMaximum": "less than"}
    return [f"{word} {flat.bounds[key]:g}" for key, word in words.items() if key in flat.bounds]


def _type_of(value: object) -> str:
    return _TYPE_NAMES.get(type(value), "object")


def is_default(value: object, schema: GeminiSchema) -> bool:
    """Return whether a default is a short scalar of the schema's type."""
    kind = _type_of(value)
    if kind in {"null", "array", "object"}:
        return False
    if isinstance(value, int | float) and not abs(value) <= MAX_INTEGER:  # NaN, too
        return False
    if isinstance(value, str) and (len(value) > MAX_DEFAULT_CHARS or is_hidden(value)):
        return False
    return kind == schema.get("type") or (kind == "integer" and schema.get("type") == "number")


def is_hidden(value: object) -> bool:
    """Return whether sanitizing would change an enum value."""
    return isinstance(value, str) and sanitize(value, MAX_VALUE) != value


def _clipped_json(values: list[object]) -> str:
    return f"one of: {sanitize_line(json.dumps(values, default=str), 300)}"
