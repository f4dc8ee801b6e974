"""Reads the parameters of a tool off its JSON Schema, as far as plain words can fill them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import Any, Final, TypeGuard

MAX_DEPTH: Final = 8
"""References and alternatives that are followed from one parameter."""

MAX_NUMBER: Final = 2**53
"""Largest number that is taken out of a text: JSON keeps no larger one exactly."""

_SAYING_NOTHING: Final = frozenset({"title", "description", "default", "examples"})


class Kind(StrEnum):
    """The type of a parameter. The value is the word that the user reads."""

    TEXT = "text"
    WHOLE_NUMBER = "whole number"
    NUMBER = "number"
    FLAG = "yes or no"
    LIST = "list"
    OBJECT = "JSON object"
    OTHER = "JSON value"


_KINDS: Final = {
    "string": Kind.TEXT,
    "integer": Kind.WHOLE_NUMBER,
    "number": Kind.NUMBER,
    "boolean": Kind.FLAG,
    "array": Kind.LIST,
    "object": Kind.OBJECT,
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a tool.

    Attributes:
        name: Its key in the arguments.
        kind: Its type; where the schema allows several, the first that is not null.
        required: Whether a call must give it.
        description: The server's words on it.
        choices: The allowed values, or nothing where any will do.
        default: The value that the schema names, or None.
        item: For a list: what its items are.
        keywords: The plain schema with the bounds that `accepts` checks.
    """

    name: str
    kind: Kind
    required: bool
    description: str
    choices: tuple[Any, ...]
    default: Any
    item: "Parameter | None"
    keywords: Mapping[str, Any]

    def accepts(self, value: object) -> bool:
        """Tell whether a value fits type, choices and bounds; other keywords are not read."""
        if self.choices and not any(_same(value, choice) for choice in self.choices):
            return False
        match self.kind:
            case Kind.TEXT:
                return isinstance(value, str) and self._within(len(value), "Length")
            case Kind.WHOLE_NUMBER:
                return _is_number(value) and _is_whole(value) and self._in_range(value)
            case Kind.NUMBER:
                return _is_number(value) and self._in_range(value)
            case Kind.FLAG:
                return isinstance(value, bool)
            case Kind.LIST:
                return isinstance(value, list) and self._accepts_list(value)
            case Kind.OBJECT:
                return isinstance(value, dict) and not self._lacks(value)
            case Kind.OTHER:
                return bool(self.choices)

    def _accepts_list(self, values: list[Any]) -> bool:
        return (
            self._within(len(values), "Items")
            and (self.keywords.get("uniqueItems") is not True or _are_distinct(values))
            and (self.item is None or all(self.item.accepts(value) for value in values))
        )

    def _lacks(self, value: Mapping[str, Any]) -> bool:
        required = self.keywords.get("required")
        return isinstance(required, list) and any(key not in value for key in required)

    def _within(self, size: int, what: str) -> bool:
        least, most = self.keywords.get(f"min{what}"), self.keywords.get(f"max{what}")
        return not (_is_number(least) and size < least) and not (_is_number(most) and size > most)

    def _in_range(self, value: float) -> bool:
        bounds = self.keywords
        low, high = bounds.get("minimum"), bounds.get("maximum")
        above, below = bounds.get("exclusiveMinimum"), bounds.get("exclusiveMaximum")
        step = bounds.get("multipleOf")
        return abs(value) <= MAX_NUMBER and not (
            (_is_number(low) and value < low)
            or (_is_number(high) and value > high)
            or (_is_number(above) and value <= above)
            or (_is_number(below) and value >= below)
            or (_is_number(step) and step > 0 and value % step != 0)
        )


def parameters_of(schema: object) -> tuple[Parameter, ...]:
    """List the parameters of an input schema, in its order. Odd schemas give what is readable."""
    if not isinstance(schema, Mapping):
        return ()
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, Mapping):
        return ()
    needed = {name for name in required if isinstance(name, str)} if _is_list(required) else set()
    return tuple(
        _parameter(str(name), node, schema, name in needed) for name, node in properties.items()
    )


def _parameter(
    name: str, node: object, root: Mapping[str, Any], required: bool, depth: int = 0
) -> Parameter:
    plain = _resolve(node, root)
    kind = _kind(plain)
    item = None
    if kind is Kind.LIST and depth < MAX_DEPTH and isinstance(plain.get("items"), Mapping):
        item = _parameter(name, plain["items"], root, required=True, depth=depth + 1)
    description = plain.get("description")
    return Parameter(
        name=name,
        kind=kind,
        required=required,
        description=description if isinstance(description, str) else "",
        choices=_choices(plain),
        default=plain.get("default"),
        item=item,
        keywords=plain,
    )


def _resolve(node: object, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow references and take the first alternative that is not null."""
    found: dict[str, Any] = {} if node is True or isinstance(node, Mapping) else {"not": {}}
    for _ in range(MAX_DEPTH):
        if not isinstance(node, Mapping):
            break
        found = {**node, **{key: found[key] for key in ("description", "default") if key in found}}
        reference = node.get("$ref")
        alternatives = next(
            (node[key] for key in ("anyOf", "oneOf") if _is_list(node.get(key))), ()
        )
        if isinstance(reference, str):
            node = _lookup(reference, root)
        elif alternatives:
            node = next((one for one in alternatives if not _is_null(one)), None)
        else:
            break
    return found


def _lookup(reference: str, root: Mapping[str, Any]) -> object:
    """Find ``#/…`` in the same schema; anything else is not looked for."""
    if not reference.startswith("#/"):
        return None
    node: object = root
    for key in reference[2:].split("/"):
        if not isinstance(node, Mapping):
            return None
        node = node.get(key.replace("~1", "/").replace("~0", "~"))
    return node


def _kind(schema: Mapping[str, Any]) -> Kind:
    type_ = schema.get("type")
    if _is_list(type_):
        type_ = next((one for one in type_ if one != "null"), None)
    if isinstance(type_, str):
        return _KINDS.get(type_, Kind.OTHER)
    if _choices(schema) and all(isinstance(choice, str) for choice in _choices(schema)):
        return Kind.TEXT
    if "properties" in schema:
        return Kind.OBJECT
    return Kind.TEXT if schema.keys() <= _SAYING_NOTHING else Kind.OTHER


def _choices(schema: Mapping[str, Any]) -> tuple[Any, ...]:
    if "const" in schema:
        return (schema["const"],)
    values = schema.get("enum")
    return tuple(values) if _is_list(values) else ()


def _same(one: object, other: object) -> bool:
    """Compare as JSON does: ``true`` is not ``1``."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _are_distinct(values: Sequence[object]) -> bool:
    return not any(_same(one, other) for one, other in combinations(values, 2))


def _is_null(schema: object) -> bool:
    return isinstance(schema, Mapping) and schema.get("type") == "null"


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: float) -> bool:
    return isinstance(value, int) or value.is_integer()


def _is_list(value: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, list | tuple)
