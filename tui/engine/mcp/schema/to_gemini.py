"""Turns a tool's input schema into one that Gemini takes as ``parametersJsonSchema``.

What Gemini refuses or mangles is expressed otherwise or left out: ``$schema``,
``additionalProperties``, ``$ref`` and ``$defs``, ``const``, ``oneOf``, ``allOf``, exclusive
bounds, boolean schemas, lists of types, defaults beside ``anyOf``, and every unknown key. All
text in it passes the filter of the screen; names and listed values are written as in `wording`.
The result is a hint to the model; calls are checked against the server's own schema.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tui.engine.servers.flattening import (
    Conjunction,
    Flat,
    Flattener,
    Scoped,
    TooManyNodesError,
    Union,
)
from tui.engine.servers.references import RemoteReferenceError
from tui.engine.servers.wording import shown_key, shown_value
from tui.text import sanitize, sanitize_line

GeminiSchema = dict[str, Any]

DEPTHS: Final = (24, 8, 4, 2)
"""Nesting that is kept: the deepest that fits; Gemini refuses deeper schemas as a whole."""

MAX_SCHEMA_BYTES: Final = 64 * 1024
"""Longest schema that is sent, as JSON."""

MAX_DESCRIPTION_CHARS: Final = 2_048
"""Longest description that is sent."""

MAX_DEFAULT_CHARS: Final = 200
"""Longest default that is sent."""

MAX_INTEGER: Final = 2**63 - 1

_BOUNDS: Final[Mapping[str, tuple[str, ...]]] = {
    "string": ("minLength", "maxLength"),
    "number": ("minimum", "maximum"),
    "integer": ("minimum", "maximum"),
    "array": ("minItems", "maxItems"),
}
_NOT_ALPHANUMERIC: Final = re.compile(r"[\W_]")
_SENT_FORMATS: Final = frozenset({"date-time"})
_FORMAT_NOTE: Final = "format: "


class UnusableSchemaError(Exception):
    """A schema cannot be given to the model; the text says why, as part of a sentence."""


def to_gemini(schema: Mapping[str, Any]) -> GeminiSchema:
    """Turn an input schema into Gemini's subset; an empty one takes no arguments.

    Args:
        schema: The schema as the server wrote it; it is not changed.

    Raises:
        UnusableSchemaError: If it describes no object, needs another document or is too large.
    """
    for depth in DEPTHS:
        try:
            converted = _Converter(schema, depth).convert_root()
        except TooManyNodesError:
            continue
        except RecursionError as error:
            raise UnusableSchemaError("its schema is too deep") from error
        except RemoteReferenceError as error:
            raise UnusableSchemaError(
                f"its schema refers to another document: {sanitize_line(str(error), 200)}"
            ) from error
        if len(json.dumps(converted).encode()) <= MAX_SCHEMA_BYTES:
            return converted
    raise UnusableSchemaError("its schema is too large")


class _Converter:
    def __init__(self, document: Mapping[str, Any], max_depth: int) -> None:
        self._document = document
        self._max_depth = max_depth
        self._flattener = Flattener(document)

    def convert_root(self) -> GeminiSchema:
        flat = self._flattener.flatten((Scoped(dict(self._document)),))
        if flat.never or "object" not in (flat.types or {"object"}):
            raise UnusableSchemaError("its arguments are not an object")
        self._fold_groups(flat)
        return self._describe(flat, self._object(flat, 0))

    def _convert(self, conjunction: Conjunction, depth: int) -> GeminiSchema | None:
        """Convert what applies to one value; None if no value is possible."""
        flat = self._flattener.flatten(conjunction)
        if flat.never:
            return None
        if depth >= self._max_depth or flat.is_cut:
            return self._describe(flat, _cut(flat))
        if flat.groups and (flat.properties or _single_type(flat) == "object"):
            self._fold_groups(flat)
        variants = [
            *self._alternatives(flat, depth),
            *([] if flat.groups else self._typed_variants(flat, depth)),
        ]
        return self._describe(flat, _combine(variants, flat))

    def _alternatives(self, flat: Flat, depth: int) -> Iterator[GeminiSchema]:
        """Convert the branches of the first group; what the value's own keywords say is added."""
        for branch in flat.groups[0] if flat.groups else ():
            own = tuple(Scoped({"type": kind}) for kind in [_single_type(flat)] if kind)
            converted = self._convert((*own, *branch), depth + 1)
            if converted is not None:
                yield converted

    def _typed_variants(self, flat: Flat, depth: int) -> Iterator[GeminiSchema]:
        """Give one schema for each type the value may have."""
        if flat.enum is not None:
            yield from _enum_variants(flat)
            return
        types = flat.types or _implied_types(flat)
        for kind in sorted(types):
            match kind:
                case "object":
                    yield self._object(flat, depth)
                case "array":
                    yield self._array(flat, depth)
                case _:
                    yield _scalar(kind, flat)
        if not types:
            yield {}

    def _object(self, flat: Flat, depth: int) -> GeminiSchema:
        properties: dict[str, GeminiSchema] = {}
        for name, child in flat.properties.items():
            converted = self._convert(child, depth + 1)
            if converted is None:
                continue
            key = shown_key(name)
            if key in properties:
                raise UnusableSchemaError("two of its parameters look alike")
            properties[key] = _without_echo(key, converted)
        schema: GeminiSchema = {"type": "object"}
        if properties or depth == 0:
            schema["properties"] = properties
        keys = dict.fromkeys(map(shown_key, flat.required))
        required = [key for key in keys if key in properties]
        return schema | ({"required": required} if required else {})

    def _array(self, flat: Flat, depth: int) -> GeminiSchema:
        schema: GeminiSchema = {"type": "array"} | _bounds("array", flat)
        if flat.items is not None:
            items = self._convert(flat.items, depth + 1)
            if items is not None:
                schema["items"] = items
        if flat.prefix_items:
            converted = [self._convert(item, depth + 1) or {} for item in flat.prefix_items]
            schema["prefixItems"] = converted
        return schema | ({"uniqueItems": True} if flat.unique else {})

    def _fold_groups(self, flat: Flat) -> None:
        """Fold alternatives of an object into it: all properties, what all branches require."""
        groups, flat.groups = flat.groups, []
        for group in groups:
            branches = [self._flattener.flatten(branch) for branch in group]
            branches = [branch for branch in branches if not branch.never]
            for branch in branches:
                if branch.groups:
                    self._fold_groups(branch)
            names = dict.fromkeys(name for branch in branches for name in branch.properties)
            for name in names:
                children = tuple(
                    branch.properties[name] for branch in branches if name in branch.properties
                )
                folded = children[0] if len(children) == 1 else (Scoped(Union(children)),)
                flat.properties[name] = (*flat.properties.get(name, ()), *folded)
            for name in branches[0].required if branches else ():
                if name not in flat.required and all(name in b.required for b in branches):
                    flat.required.append(name)

    def _describe(self, flat: Flat, schema: GeminiSchema) -> GeminiSchema:
        """Add the words: the description or title, and what no keyword could say."""
        kinds = {schema.get("type")}
        notes = [note for note in flat.notes if not _is_sent_format(note)]
        notes += _exclusive_notes(flat, kinds)
        words = flat.description or flat.title or str(schema.get("description", ""))
        if notes:
            words = f"{words} ({'; '.join(dict.fromkeys(notes))})".strip()
        if words:
            schema["description"] = sanitize(words, MAX_DESCRIPTION_CHARS)
        if "anyOf" not in schema and flat.default and _is_default(flat.default[0], schema):
            schema["default"] = _shown_default(flat.default[0])
        return schema


def _without_echo(name: str, schema: GeminiSchema) -> GeminiSchema:
    """Drop a description that only repeats the name, as generated titles do."""
    said = _NOT_ALPHANUMERIC.sub("", schema.get("description", "").lower())
    if said and said == _NOT_ALPHANUMERIC.sub("", name.lower()):
        return {key: value for key, value in schema.items() if key != "description"}
    return schema


def _combine(variants: Sequence[GeminiSchema], flat: Flat) -> GeminiSchema:
    """Join what a value may be into one schema."""
    nullable = any(variant == {"type": "null"} for variant in variants)
    unique: list[GeminiSchema] = []
    for variant in variants:
        if variant != {"type": "null"} and variant not in unique:
            unique.append(variant)
    unique = _joined_enums(unique)
    if not unique:
        return {"type": "null"} if nullable else _cut(flat)
    if any(not set(variant) - {"description", "default"} for variant in unique):
        return {}
    if len(unique) == 1:
        return unique[0] | ({"nullable": True} if nullable and "anyOf" not in unique[0] else {})
    branches = [{k: v for k, v in variant.items() if k != "default"} for variant in unique]
    return {"anyOf": [*branches, *([{"type": "null"}] if nullable else [])]}


def _joined_enums(variants: list[GeminiSchema]) -> list[GeminiSchema]:
    """Join variants that only list values of one type, as ``oneOf`` of constants does."""
    kinds = {variant.get("type") for variant in variants}
    if len(variants) < 2 or len(kinds) > 1 or any("enum" not in variant for variant in variants):
        return variants
    values: list[object] = []
    for variant in variants:
        values += [value for value in variant["enum"] if value not in values]
    meanings = [
        f"{variant['enum'][0]}: {variant['description']}"
        for variant in variants
        if "description" in variant and len(variant["enum"]) == 1
    ]
    joined: GeminiSchema = {"type": variants[0]["type"], "enum": values}
    return [joined | ({"description": "; ".join(meanings)} if meanings else {})]


def _enum_variants(flat: Flat) -> Iterator[GeminiSchema]:
    """Give one schema for each type among the listed values."""
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
            case "string" if texts := [text for text in map(shown_value, values) if text]:
                yield {"type": kind, "enum": list(dict.fromkeys(texts))}
            case "integer" | "number" if sendable := [v for v in values if abs(v) <= MAX_INTEGER]:
                yield {"type": kind, "enum": list(dict.fromkeys(sendable))}
            case "object" | "array":
                yield {"type": kind, "description": _clipped_json(values)}
            case _:
                yield {"type": kind}


def _scalar(kind: str, flat: Flat) -> GeminiSchema:
    schema: GeminiSchema = {"type": kind} | _bounds(kind, flat)
    if kind == "string":
        if flat.pattern and sanitize(flat.pattern) == flat.pattern:
            schema["pattern"] = flat.pattern
        for note in flat.notes:
            if _is_sent_format(note):
                schema["format"] = note.removeprefix(_FORMAT_NOTE)
    return schema


def _bounds(kind: str, flat: Flat) -> GeminiSchema:
    """Give the bounds that belong to a type; exclusive ones of integers become inclusive."""
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


def _exclusive_notes(flat: Flat, kinds: set[Any]) -> list[str]:
    if "number" not in kinds:
        return []
    words = {"exclusiveMinimum": "greater than", "exclusiveMaximum": "less than"}
    return [f"{word} {flat.bounds[key]:g}" for key, word in words.items() if key in flat.bounds]


def _cut(flat: Flat) -> GeminiSchema:
    """Give what is left of a value that is not looked into."""
    kind = _single_type(flat)
    return {"type": kind} if kind else {"type": "object"} if flat.is_cut else {}


def _single_type(flat: Flat) -> str:
    types = (flat.types or _implied_types(flat)) - {"null"}
    return next(iter(types)) if len(types) == 1 else ""


def _implied_types(flat: Flat) -> frozenset[str]:
    if flat.properties or flat.required:
        return frozenset({"object"})
    if flat.items is not None or flat.prefix_items:
        return frozenset({"array"})
    return frozenset()


def _type_of(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _is_default(value: object, schema: GeminiSchema) -> bool:
    """Tell whether a default is simple, of the schema's type, and one the model can write."""
    kind = _type_of(value)
    if kind in {"null", "array", "object"}:
        return False
    if isinstance(value, int | float) and not abs(value) <= MAX_INTEGER:  # NaN, too
        return False
    if isinstance(value, str):
        is_too_long = len(value) > MAX_DEFAULT_CHARS
        if is_too_long or _shown_default(value) not in {value, *schema.get("enum", ())}:
            return False
    return kind == schema.get("type") or (kind == "integer" and schema.get("type") == "number")


def _shown_default(value: Any) -> Any:  # noqa: ANN401 - any JSON
    return shown_value(value) if isinstance(value, str) else value


def _is_sent_format(note: str) -> bool:
    return note.removeprefix(_FORMAT_NOTE) in _SENT_FORMATS and note.startswith(_FORMAT_NOTE)


def _clipped_json(values: list[object]) -> str:
    return f"one of: {sanitize_line(json.dumps(values, default=str), 300)}"
