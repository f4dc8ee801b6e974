"""Flattens a JSON schema: inlines references and merges ``allOf``.

References are resolved within the same document only.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeGuard
from urllib.parse import unquote

from tui.model.bounded_json import as_list, as_object, as_texts, text_in
from tui.model.frozen import Frozen

MAX_REFERENCE_CHARS: Final = 1_000
"""Longest reference that is followed."""

MAX_NODES: Final = 2_000
"""Schema nodes that are visited, counting every inlined copy."""

MAX_FOLLOWED: Final = 64
"""References followed on the path to one node."""

MAX_ENUM: Final = 300
"""Longest ``enum`` that is kept, in values."""

MAX_PATTERN_CHARS: Final = 256
"""Longest regular expression that is passed on."""

TYPE_NAMES: Final[Mapping[type, str]] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
TYPES: Final = frozenset(TYPE_NAMES.values())

_BOUNDS: Final = (
    ("minimum", "maximum"),
    ("exclusiveMinimum", "exclusiveMaximum"),
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
)


class RemoteReferenceError(Exception):
    """A reference to another document, which is never fetched."""


class UnresolvedReferenceError(Exception):
    """The target of a reference does not exist."""


def resolve_reference(document: Mapping[str, object], reference: str) -> object:
    """Return the target of a reference in `document`.

    Only JSON pointers are followed: no known server uses anchors or names parts of a document.

    Raises:
        RemoteReferenceError: If it names another document.
        UnresolvedReferenceError: If the target does not exist or has a name.
    """
    if len(reference) > MAX_REFERENCE_CHARS:
        raise UnresolvedReferenceError(reference[:100])
    base, _, fragment = reference.partition("#")
    if base and base != str(document.get("$id", "")).partition("#")[0]:
        if ":" in base or base.startswith("//"):
            raise RemoteReferenceError(reference)
        raise UnresolvedReferenceError(reference)  # it may name a part of this document
    if fragment and not fragment.startswith("/"):
        raise UnresolvedReferenceError(reference)
    place: object = document
    for segment in fragment.split("/")[1:]:
        place = _step(place, unquote(segment).replace("~1", "/").replace("~0", "~"), reference)
    return place


def _step(place: object, segment: str, reference: str) -> object:
    if isinstance(place, Mapping) and segment in place:
        return place[segment]
    if isinstance(place, Sequence) and not isinstance(place, str) and segment.isdecimal():
        index = int(segment)
        if index < len(place):
            return place[index]
    raise UnresolvedReferenceError(reference)


class TooManyNodesError(Exception):
    """A schema is too large to flatten."""


class Union(Frozen):
    """In place of a schema: any of several conjunctions."""

    branches: tuple["Conjunction", ...]


class Scoped(NamedTuple):
    """A schema and the references followed to reach it."""

    schema: object
    followed: frozenset[str] = frozenset()


Conjunction = tuple[Scoped, ...]
"""Schemas that all apply to the same value."""


@dataclass(slots=True)
class Flat:
    """All constraints on one value.

    Attributes:
        types: Allowed JSON types; None if not restricted.
        enum: Allowed values; None if not restricted.
        properties: Of an object.
        required: Of an object, in order.
        items: Of an array.
        prefix_items: Of an array.
        groups: Groups of alternatives; at least one branch of each applies.
        bounds: Numeric keywords by name.
        pattern: Of a string.
        unique: Whether the items of an array must differ.
        description: Its description.
        default: Its default in a tuple; empty without one.
        notes: Constraints that the target has no keyword for.
        never: Whether no value is allowed.
        is_cut: Whether it is recursive and was cut.
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
    default: tuple[Any, ...] = ()
    notes: list[str] = field(default_factory=list)
    never: bool = False
    is_cut: bool = False


class Flattener:
    """Flattens the parts of one document, within a budget of nodes; `nodes` are spent."""

    def __init__(self, document: Mapping[str, object]) -> None:
        self._document = document
        self.nodes = 0

    def flatten(self, conjunction: Conjunction) -> Flat:
        """Merge all schemas of a conjunction and their references.

        Raises:
            TooManyNodesError: If the budget is exhausted.
            RemoteReferenceError: If a reference names another document.
        """
        flat = Flat()
        for scoped in conjunction:
            self._merge(flat, scoped)
        return flat

    def count(self) -> None:
        """Spend one node."""
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise TooManyNodesError

    def _merge(self, flat: Flat, scoped: Scoped) -> None:
        self.count()
        match scoped.schema:
            case False:
                flat.never = True
            case Union(branches):
                flat.groups.append(branches)
            case dict() as schema:
                self._merge_reference(flat, schema, scoped.followed)
                for part in as_list(schema.get("allOf")):
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
    """Merge the keywords of a schema itself; later text replaces earlier text."""
    _merge_types(flat, schema)
    _merge_object(flat, schema, followed)
    flat.description = text_in(schema, "description") or flat.description
    _merge_enum(flat, schema)
    _merge_bounds(flat, schema)
    _merge_array(flat, schema, followed)
    for key in ("anyOf", "oneOf"):
        if branches := as_list(schema.get(key)):
            flat.groups.append(tuple((Scoped(branch, followed),) for branch in branches))
    if "default" in schema:
        flat.default = (schema["default"],)
    pattern = text_in(schema, "pattern")
    if len(pattern) <= MAX_PATTERN_CHARS:
        flat.pattern = pattern or flat.pattern
    if text_format := text_in(schema, "format"):
        flat.notes.append(f"format: {text_format}")
    flat.unique = flat.unique or schema.get("uniqueItems") is True


def _merge_types(flat: Flat, schema: dict[str, Any]) -> None:
    said = schema.get("type")
    names = {said} if isinstance(said, str) else set(as_texts(said))
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
    """Merge numeric keywords; the tighter one wins. Draft 4 has boolean exclusive bounds."""
    for low, high in _BOUNDS:
        for key, tighter in ((low, max), (high, min)):
            value: Any = schema.get(key)
            if key.startswith("exclusive") and value is True:
                value = schema.get(key.removeprefix("exclusive").lower())
            if is_number(value):
                flat.bounds[key] = tighter(flat.bounds.get(key, value), value)
    if is_number(multiple := schema.get("multipleOf")):
        flat.notes.append(f"multiple of {multiple}")


def _merge_object(flat: Flat, schema: dict[str, Any], followed: frozenset[str]) -> None:
    properties = as_object(schema.get("properties"))
    for name, child in properties.items():
        flat.properties[name] = (*flat.properties.get(name, ()), Scoped(child, followed))
    flat.required = [*dict.fromkeys((*flat.required, *as_texts(schema.get("required"))))]
    values = schema.get("additionalProperties")
    if isinstance(values, dict) and not properties:
        value_type = text_in(values, "type")
        of_type = f" with values of type {value_type}" if value_type else ""
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


def is_number(value: object) -> TypeGuard[float]:
    """Return whether this is a finite number that fits a float; JSON allows longer ones."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _key(value: object) -> str:
    """Return a key for comparing JSON values; in Python ``1`` equals ``true``."""
    return json.dumps(value, sort_keys=True)
