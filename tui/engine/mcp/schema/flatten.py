"""Brings a JSON schema into one flat form: references inlined, ``allOf`` merged."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeGuard

from tui.engine.servers.references import UnresolvedReferenceError, resolve_reference

MAX_NODES: Final = 2_000
"""Schema nodes that are looked at, every inlined copy counted."""

MAX_FOLLOWED: Final = 64
"""References that are followed on the way to one node."""

MAX_ENUM: Final = 300
"""Values of an ``enum`` that are kept; a longer one is left out."""

MAX_PATTERN_CHARS: Final = 256
"""Longest regular expression that is passed on."""

TYPES: Final = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})


class TooManyNodesError(Exception):
    """A schema is too large to be flattened."""


@dataclass(frozen=True, slots=True)
class Union:
    """Stands where a schema may stand: any one of several conjunctions."""

    branches: tuple["Conjunction", ...]


@dataclass(frozen=True, slots=True)
class Scoped:
    """A schema and the references that were followed to reach it."""

    schema: object
    followed: frozenset[str] = frozenset()


Conjunction = tuple[Scoped, ...]
"""Schemas that all apply to the same value."""


@dataclass(slots=True)
class Flat:
    """All that is known of one value.

    Attributes:
        types: JSON types it may have; None where nothing is said.
        enum: The values it may have; None where nothing is said.
        properties: Of an object.
        required: Of an object, in order.
        items: Of an array.
        prefix_items: Of an array.
        groups: Alternatives; of each group at least one branch applies.
        bounds: Numeric keywords by name.
        pattern: Of a string.
        unique: Whether the items of an array differ.
        description: What is said of it.
        title: Its title.
        default: Its default, in a tuple; empty where there is none.
        notes: What no keyword of the target can say.
        never: Whether no value is allowed.
        is_cut: Whether it leads back into itself.
    """

    types: frozenset[str] | None = None
    enum: list[object] | None = None
    properties: dict[str, Conjunction] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    items: Conjunction | None = None
    prefix_items: list[Conjunction] = field(default_factory=list)
    groups: list[tuple[Conjunction, ...]] = field(default_factory=list)
    bounds: dict[str, float] = field(default_factory=dict)
    pattern: str = ""
    unique: bool = False
    description: str = ""
    title: str = ""
    default: tuple[Any, ...] = ()
    notes: list[str] = field(default_factory=list)
    never: bool = False
    is_cut: bool = False


class Flattener:
    """Flattens the parts of one document, within a budget of nodes."""

    def __init__(self, document: Mapping[str, object]) -> None:
        self._document = document
        self._nodes = 0

    def flatten(self, conjunction: Conjunction) -> Flat:
        """Merge all schemas of a conjunction, what they refer to included.

        Raises:
            TooManyNodesError: If the budget is spent.
            RemoteReferenceError: If a reference leads out of the document.
        """
        flat = Flat()
        for scoped in conjunction:
            self._merge(flat, scoped)
        return flat

    def _merge(self, flat: Flat, scoped: Scoped) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise TooManyNodesError
        match scoped.schema:
            case False:
                flat.never = True
            case Union(branches):
                flat.groups.append(branches)
            case dict() as schema:
                self._merge_reference(flat, schema, scoped.followed)
                for part in _list(schema.get("allOf")):
                    self._merge(flat, Scoped(part, scoped.followed))
                _merge_keywords(flat, schema, scoped.followed)

    def _merge_reference(
        self, flat: Flat, schema: dict[str, Any], followed: frozenset[str]
    ) -> None:
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return
        try:
            target = resolve_reference(self._document, reference)
        except UnresolvedReferenceError:
            return
        if reference in followed or len(followed) >= MAX_FOLLOWED:
            flat.is_cut = True
            if isinstance(target, dict):
                _merge_types(flat, target)
            return
        self._merge(flat, Scoped(target, followed | {reference}))


def _merge_keywords(flat: Flat, schema: dict[str, Any], followed: frozenset[str]) -> None:
    """Merge what a schema says itself; of words, the later ones count."""
    _merge_types(flat, schema)
    _merge_enum(flat, schema)
    _merge_bounds(flat, schema)
    _merge_object(flat, schema, followed)
    _merge_array(flat, schema, followed)
    for key in ("anyOf", "oneOf"):
        if branches := _list(schema.get(key)):
            flat.groups.append(tuple((Scoped(branch, followed),) for branch in branches))
    flat.description = _words(schema.get("description")) or flat.description
    flat.title = _words(schema.get("title")) or flat.title
    if "default" in schema:
        flat.default = (schema["default"],)
    pattern = _words(schema.get("pattern"))
    if len(pattern) <= MAX_PATTERN_CHARS:
        flat.pattern = pattern or flat.pattern
    if text_format := _words(schema.get("format")):
        flat.notes.append(f"format: {text_format}")
    flat.unique = flat.unique or schema.get("uniqueItems") is True


def _merge_types(flat: Flat, schema: dict[str, Any]) -> None:
    said = schema.get("type")
    names = {said} if isinstance(said, str) else {name for name in _list(said) if _words(name)}
    types = frozenset(name.lower() for name in names) & TYPES
    if schema.get("nullable") is True and types:
        types |= {"null"}
    if not types:
        return
    if flat.types is not None:
        shared = flat.types & types
        if "integer" in flat.types | types and {"number"} & (flat.types ^ types):
            shared |= {"integer"}
        types = shared or flat.types
    flat.types = types


def _merge_enum(flat: Flat, schema: dict[str, Any]) -> None:
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if not isinstance(values, list) or not values:
        return
    if len(values) > MAX_ENUM:
        flat.notes.append(f"one of {len(values)} values")
        return
    if flat.enum is not None:
        known = {_key(value) for value in flat.enum}
        values = [value for value in values if _key(value) in known] or values
    flat.enum = values


def _merge_bounds(flat: Flat, schema: dict[str, Any]) -> None:
    """Merge numeric keywords; the tighter one counts. Draft 4 has boolean exclusive bounds."""
    for low, high in (
        ("minimum", "maximum"),
        ("exclusiveMinimum", "exclusiveMaximum"),
        ("minLength", "maxLength"),
        ("minItems", "maxItems"),
    ):
        for key, tighter in ((low, max), (high, min)):
            value: Any = schema.get(key)
            plain = key.removeprefix("exclusive").lower()
            if key.startswith("exclusive") and value is True:
                value = schema.get(plain)
            if _is_number(value):
                flat.bounds[key] = tighter(flat.bounds.get(key, value), value)
    if _is_number(multiple := schema.get("multipleOf")):
        flat.notes.append(f"multiple of {multiple}")


def _merge_object(flat: Flat, schema: dict[str, Any], followed: frozenset[str]) -> None:
    properties = schema.get("properties")
    if isinstance(properties, dict):
        for name, child in properties.items():
            flat.properties[name] = (*flat.properties.get(name, ()), Scoped(child, followed))
    for name in _list(schema.get("required")):
        if isinstance(name, str) and name not in flat.required:
            flat.required.append(name)
    values = schema.get("additionalProperties")
    if isinstance(values, dict) and not properties:
        value_type = values.get("type")
        of_type = f" with values of type {value_type}" if isinstance(value_type, str) else ""
        flat.notes.append(f"any keys{of_type}")


def _merge_array(flat: Flat, schema: dict[str, Any], followed: frozenset[str]) -> None:
    items = schema.get("items")
    prefix = schema.get("prefixItems")
    if isinstance(items, list):
        items, prefix = schema.get("additionalItems"), items
    if isinstance(items, dict):
        flat.items = (*(flat.items or ()), Scoped(items, followed))
    if isinstance(prefix, list) and not flat.prefix_items:
        flat.prefix_items = [(Scoped(item, followed),) for item in prefix]


def _list(value: object) -> Iterable[Any]:
    return value if isinstance(value, list) else ()


def _words(value: object) -> str:
    return value if isinstance(value, str) else ""


def _is_number(value: object) -> TypeGuard[float]:
    """Tell whether this is a number that a float can hold: JSON has longer ones."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _key(value: object) -> str:
    """Tell JSON values apart; Python holds ``1`` and ``true`` for the same."""
    return json.dumps(value, sort_keys=True)
