"""Converts a tool's input schema to Gemini's ``parametersJsonSchema``.

What Gemini refuses or mangles is rewritten or left out: ``$schema``, ``additionalProperties``,
``$ref`` and ``$defs``, ``const``, ``oneOf``, ``allOf``, exclusive bounds, boolean schemas, lists of
types, defaults next to ``anyOf``, and every unknown key. All text is sanitized as for the screen;
names and enum values that this would change are left out, as users could not see what they are.
The result is a hint to the model; calls are checked against the server's own schema.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from pydantic_core import to_json

from tui.engine.mcp.schema.flatten import (
    TYPE_NAMES,
    Conjunction,
    Flat,
    Flattener,
    RemoteReferenceError,
    Scoped,
    TooManyNodesError,
    Union,
)
from tui.model.bounded_json import json_or_text, text_in
from tui.text import is_shown_whole, sanitize, sanitize_line

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
_EXCLUSIVE: Final = (("exclusiveMinimum", "greater than"), ("exclusiveMaximum", "less than"))
DATE_TIME: Final = "format: date-time"
"""The note of the one format that Gemini takes as a keyword."""

DEPTHS: Final = (24, 8, 4, 2)
"""Nesting to try, until the schema fits; Gemini rejects deeper schemas as a whole."""

MAX_SCHEMA_BYTES: Final = 64 * 1024
"""Longest schema that is sent, as JSON."""

MAX_DESCRIPTION_CHARS: Final = 2_048
"""Longest description that is sent."""

MAX_KEY: Final = 256
"""Longest name of a parameter, in characters."""

_KNOWN: Final = re.compile(
    r"http(://json-schema\.org/draft-0[3467]|s://json-schema\.org/draft/20(19-09|20-12))/schema#?"
)
"""The dialects of JSON Schema by which values can be checked."""


def unknown_dialect(schema: Mapping[str, Any]) -> str:
    """Say that nothing is checked by a schema, if it declares a dialect that we do not know."""
    named = str(schema.get("$schema", ""))
    words = (
        f"arguments are not checked: the schema uses the unknown dialect {sanitize_line(named, 80)}"
    )
    return words if named and not _KNOWN.fullmatch(named) else ""


MAX_LEFT_OUT: Final = 20
"""Most parts of one schema that are reported as left out."""

MAX_LEAVES: Final = 2_000
"""Schemas of single values that are remembered; tools of one server share most of them."""

MAX_LEAF: Final = 500
"""Longest schema that is remembered, in bytes of JSON."""

_WORDS: Final = ("description", "title")
"""What differs most; titles, which many servers generate from names, tell the model nothing."""

_LEAF: Final = frozenset(
    {*_WORDS, "type", "default", "enum", "minimum", "maximum", "minLength", "maxLength"}
)


class UnusableSchemaError(Exception):
    """A schema cannot be sent to the model; the text says why, as part of a sentence."""


_UNTRANSLATABLE: Final = (RemoteReferenceError, RecursionError, TooManyNodesError)


def to_gemini(schema: Mapping[str, Any]) -> GeminiSchema:
    """Convert an input schema to Gemini's subset; an empty one takes no arguments.

    Args:
        schema: The schema as the server wrote it; it is not changed.

    Raises:
        UnusableSchemaError: If it describes no object, needs another document or is too large.
    """
    return convert_schema(schema)[0]


def convert_schema(schema: Mapping[str, Any]) -> tuple[GeminiSchema, tuple[str, ...]]:
    """Do as `to_gemini`, and also name the parameters, enum values and checks left out."""
    for depth in DEPTHS:
        converter = _Converter(schema, depth)
        try:
            converted = converter.root()
        except _UNTRANSLATABLE as error:
            if isinstance(error, TooManyNodesError) and depth != DEPTHS[-1]:
                continue
            raise UnusableSchemaError(f"its schema {_reason(error)}") from error
        if depth == DEPTHS[-1]:
            converter.drop_largest(converted)
        if _size(converted) <= MAX_SCHEMA_BYTES:
            said = unknown_dialect(schema), *converter.left_out
            names = tuple(dict.fromkeys(filter(None, said)))
            if (more := len(names) - MAX_LEFT_OUT) > 0:
                names = (*names[:MAX_LEFT_OUT], f"and {more:,} more")
            return converted, names
    raise UnusableSchemaError("its schema is too large")


def typed_value(schema: Mapping[str, Any], name: str, word: str) -> object:
    """Read an argument that was typed: as text where the tool takes text, else as JSON."""
    try:
        wanted = to_gemini(schema)["properties"].get(name, {})
    except UnusableSchemaError:
        return word
    kinds = {one.get("type") for one in (wanted, *wanted.get("anyOf", ()))} - {None}
    return word if not kinds or "string" in kinds else json_or_text(word)


def _reason(error: Exception) -> str:
    """Return why a schema cannot be translated, as the end of a sentence."""
    match error:
        case RemoteReferenceError():
            return f"refers to another document: {sanitize_line(str(error), 200)}"
        case RecursionError():
            return "is nested too deeply"
        case _:
            return "is too large"


def _size(schema: object) -> int:
    return len(to_json(schema))


class _Converter:
    def __init__(self, document: Mapping[str, Any], max_depth: int) -> None:
        self._document, self._max_depth = document, max_depth
        self._flattener = Flattener(document)
        self.left_out: list[str] = []

    def root(self) -> GeminiSchema:
        flat = self._flattener.flatten((Scoped(dict(self._document)),))
        if flat.never or "object" not in (flat.types or {"object"}):
            raise UnusableSchemaError("its arguments are not an object")
        self._fold_groups(flat)
        return self._describe(flat, self._object(flat, 0))

    def convert(self, conjunction: Conjunction, depth: int) -> GeminiSchema | None:
        """Convert a conjunction; return None if it allows no value."""
        flat = self._flattener.flatten(conjunction)
        if flat.never:
            return None
        if depth >= self._max_depth or flat.is_cut:
            return self._describe(flat, cut(flat))
        if flat.groups and (flat.properties or single_type(flat) == "object"):
            self._fold_groups(flat)
        convert = self._alternatives if flat.groups else self._typed_variants
        return self._describe(flat, combine([*convert(flat, depth)], flat))

    def _leaf(self, schema: object) -> GeminiSchema | None:
        """Convert a single value: its words anew, and all else as for the last one like it.

        Return None for one that is not as simple.
        """
        if not (isinstance(schema, dict) and "type" in schema and schema.keys() <= _LEAF):
            return None
        rest = to_json({key: value for key, value in schema.items() if key not in _WORDS})
        found = _without_words(rest) if len(rest) <= MAX_LEAF else None
        if found is None:
            return None
        self._flattener.count()
        return _described(found, schema)

    def _alternatives(self, flat: Flat, depth: int) -> Iterator[GeminiSchema]:
        """Convert the branches of the first group, adding the value's own type."""
        own = tuple(Scoped({"type": kind}) for kind in [single_type(flat)] if kind)
        for branch in flat.groups[0]:
            if (converted := self.convert((*own, *branch), depth + 1)) is not None:
                yield converted

    def _typed_variants(self, flat: Flat, depth: int) -> Iterator[GeminiSchema]:
        """Yield one schema for each type of the value."""
        if flat.enum is not None:
            self.left_out += map(_left_out_value, filter(is_hidden, flat.enum))
            yield from enum_variants(flat)
            return
        types = flat.types or implied_types(flat)
        for kind in sorted(types):
            match kind:
                case "object":
                    yield self._object(flat, depth)
                case "array":
                    yield self._array(flat, depth)
                case _:
                    yield scalar(kind, flat)
        if not types:
            yield {}

    def _object(self, flat: Flat, depth: int) -> GeminiSchema:
        found: dict[str, GeminiSchema] = {}
        for name in sorted(flat.properties, key=lambda name: name not in flat.required):
            child, is_required = flat.properties[name], name in flat.required
            if (made := self._property(name, child, depth, is_required=is_required)) is not None:
                found[name] = made
        properties = {name: found[name] for name in flat.properties if name in found}
        schema: GeminiSchema = {"type": "object"}
        if properties or depth == 0:
            schema["properties"] = properties
        required = [name for name in dict.fromkeys(flat.required) if name in properties]
        return schema | ({"required": required} if required else {})

    def _property(
        self, name: str, child: Conjunction, depth: int, *, is_required: bool
    ) -> GeminiSchema | None:
        """Convert a property; leave an optional one out, and name it, if that is not possible."""
        nodes, is_impossible = self._flattener.nodes, False
        try:
            plain = self._leaf(child[0].schema) if depth == 0 and len(child) == 1 else None
            converted = plain or self.convert(child, depth + 1)
            is_impossible = converted is None
            reason = "" if is_shown_whole(name, MAX_KEY) else "its name cannot be shown as it is"
            reason = reason if not is_impossible else "no value fits its schema"
        except UnusableSchemaError as error:
            reason = str(error)
        except _UNTRANSLATABLE as error:
            if isinstance(error, TooManyNodesError) and self._max_depth != DEPTHS[-1]:
                raise  # with less depth there may be room for all
            self._flattener.nodes = nodes
            reason = f"its schema {_reason(error)}"
        if not reason:
            return converted
        shown = f"parameter “{sanitize_line(name, 80)}”"
        if is_required and not is_impossible:
            raise UnusableSchemaError(f"its required {shown} cannot be used: {reason}")
        self.left_out.append(f"{shown}: {reason}")
        return None

    def drop_largest(self, schema: GeminiSchema) -> None:
        """Leave out the largest optional parameters of a schema until it is small enough."""
        properties, required = schema["properties"], schema.get("required", ())
        sizes = [(_size(properties[name]), name) for name in properties if name not in required]
        for _, name in sorted(sizes, reverse=True):
            if _size(schema) <= MAX_SCHEMA_BYTES:
                return
            del properties[name]
            self.left_out.append(f"parameter “{sanitize_line(name, 80)}”: its schema is too large")

    def _array(self, flat: Flat, depth: int) -> GeminiSchema:
        items = self.convert(flat.items, depth + 1) if flat.items is not None else None
        schema: GeminiSchema = typed("array") | bounds_of("array", flat)
        schema |= {"items": items} if items is not None else {}
        if flat.prefix_items:
            schema["prefixItems"] = [self.convert(p, depth + 1) or {} for p in flat.prefix_items]
        return schema | ({"uniqueItems": True} if flat.unique else {})

    def _fold_groups(self, flat: Flat) -> None:
        """Merge alternatives into an object: all properties, and what every branch requires."""
        groups, flat.groups = flat.groups, []
        for group in groups:
            branches = [self._flattener.flatten(branch) for branch in group]
            branches = [branch for branch in branches if not branch.never]
            for branch in branches:
                if branch.groups:
                    self._fold_groups(branch)
            for name in dict.fromkeys(name for branch in branches for name in branch.properties):
                children = tuple(b.properties[name] for b in branches if name in b.properties)
                folded = children[0] if len(children) == 1 else (Scoped(Union(children)),)
                flat.properties[name] = (*flat.properties.get(name, ()), *folded)
            for name in branches[0].required if branches else ():
                if name not in flat.required and all(name in b.required for b in branches):
                    flat.required.append(name)

    def _describe(self, flat: Flat, schema: GeminiSchema) -> GeminiSchema:
        """Add the description, the notes, and the default."""
        notes = [note for note in flat.notes if note != DATE_TIME]
        if schema.get("type") in {"integer", "number"}:  # Gemini has no keyword for these
            said = ((flat.bounds.get(key), words) for key, words in _EXCLUSIVE)
            notes += [f"{words} {bound:g}" for bound, words in said if bound is not None]
        words = flat.description or str(schema.get("description", ""))
        if notes:
            words = f"{words} ({'; '.join(dict.fromkeys(notes))})".strip()
        if words:
            schema["description"] = sanitize(words, MAX_DESCRIPTION_CHARS)
        if "anyOf" not in schema and flat.default and is_default(flat.default[0], schema):
            schema["default"] = flat.default[0]
        return schema


@lru_cache(MAX_LEAVES)
def _without_words(leaf: bytes) -> GeminiSchema | None:
    """Convert a single value that has no words of its own; None for one that is not as simple."""
    converter = _Converter({}, DEPTHS[0])
    found = converter.convert((Scoped(json.loads(leaf)),), 1)
    is_odd = found is None or "description" in found or converter.left_out
    return None if is_odd else found


def _described(found: GeminiSchema, schema: Mapping[str, Any]) -> GeminiSchema:
    """Add the description of a schema."""
    if not (words := text_in(schema, "description")):
        return found
    return found | {"description": sanitize(words, MAX_DESCRIPTION_CHARS)}


def _left_out_value(value: object) -> str:
    return f"value “{sanitize_line(str(value), 80)}”: it cannot be shown as it is"


def combine(variants: Sequence[GeminiSchema], flat: Flat) -> GeminiSchema:
    """Join the variants of a value into one schema."""
    nullable = any(variant == {"type": "null"} for variant in variants)
    unique: list[GeminiSchema] = []
    for variant in variants:
        if variant != {"type": "null"} and variant not in unique:
            unique.append(variant)
    unique = _joined_enums(unique)
    if not unique:
        return {"type": "null"} if nullable else cut(flat)
    if any(not set(variant) - {"description", "default"} for variant in unique):
        return {}
    if len(unique) == 1:
        return unique[0] | ({"nullable": True} if nullable and "anyOf" not in unique[0] else {})
    branches = [{k: v for k, v in variant.items() if k != "default"} for variant in unique]
    return {"anyOf": [*branches, *([{"type": "null"}] if nullable else [])]}


def _joined_enums(variants: list[GeminiSchema]) -> list[GeminiSchema]:
    """Join variants that only list values of one type, such as ``oneOf`` of constants."""
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


def cut(flat: Flat) -> GeminiSchema:
    """Return the schema of a value that is not converted further."""
    kind = single_type(flat)
    return typed(kind or "object") if kind or flat.is_cut else {}


def typed(kind: str) -> GeminiSchema:
    """Return the schema of any value of a type; some services refuse arrays without items."""
    return {"type": kind, "items": {}} if kind == "array" else {"type": kind}


def single_type(flat: Flat) -> str:
    """Return the one type that a value has, or an empty string."""
    types = (flat.types or implied_types(flat)) - {"null"}
    return next(iter(types)) if len(types) == 1 else ""


def implied_types(flat: Flat) -> frozenset[str]:
    """Return the type that keywords belong to where none is named."""
    if flat.properties or flat.required:
        return frozenset({"object"})
    if flat.items is not None or flat.prefix_items:
        return frozenset({"array"})
    return frozenset()


def enum_variants(flat: Flat) -> Iterator[GeminiSchema]:
    """Yield one schema for each type among the enum values."""
    by_type: dict[str, list[Any]] = {}
    has_fractions = any(TYPE_NAMES[type(value)] == "number" for value in flat.enum or ())
    for value in flat.enum or ():
        kind = TYPE_NAMES[type(value)]
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
                listed = sanitize_line(json.dumps(values, default=str), 300)
                yield typed(kind) | {"description": f"one of: {listed}"}
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
    """Return the bounds for a type."""
    bounds: GeminiSchema = {}
    is_length = kind in {"string", "array"}
    for key in _BOUNDS.get(kind, ()):
        value = flat.bounds.get(key)
        if value is not None and abs(value) <= MAX_INTEGER and not (is_length and value < 0):
            bounds[key] = int(value) if is_length else value
    return bounds


def is_default(value: object, schema: GeminiSchema) -> bool:
    """Return whether a default is a short scalar of the schema's type."""
    kind = TYPE_NAMES[type(value)]
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
