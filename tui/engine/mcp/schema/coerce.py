"""Coerces the arguments of a call to the server's schema.

Whole floats become integers if the schema says integer: models write ``3.0`` for ``3``.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tui.engine.mcp.schema.flatten import (
    RemoteReferenceError,
    UnresolvedReferenceError,
    resolve_reference,
)
from tui.model.bounded_json import json_or_text, mapped

MAX_STEPS: Final = 20_000
"""Schema nodes visited for one call; the rest stays unchanged."""

MAX_DEPTH: Final = 32
"""Deepest nesting of arguments, and longest chain of references or alternatives."""

MAX_SAFE_INTEGER: Final = 2**53
"""Larger floats do not identify one integer."""


def coerce(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of the arguments, with integers for whole floats.

    Args:
        schema: The input schema as the server wrote it.
        arguments: The arguments as the model wrote them.
    """
    return _Coercer(schema).coerce_object(schema, arguments, 0)


def typed_value(schema: Mapping[str, Any], name: str, word: str) -> object:
    """Read an argument that was typed: as text where the tool takes text, else as JSON."""
    coercer = _Coercer(schema)
    kinds = coercer.kinds(coercer.properties(schema).get(name))
    return word if not kinds or "string" in kinds else json_or_text(word)


def as_json_compares(value: object) -> object:
    """Normalize numbers that JSON Schema treats as equal, such as 1 and 1.0."""
    return mapped(
        value, lambda one: int(one) if isinstance(one, float) and one.is_integer() else one
    )


class _Coercer:
    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._steps = 0

    def coerce_object(
        self, schema: Mapping[str, Any], value: Mapping[str, Any], depth: int
    ) -> dict[str, Any]:
        """Coerce the properties of an object that `schema` describes."""
        if depth > MAX_DEPTH:
            return dict(value)
        properties = self.properties(schema)
        others = schema.get("additionalProperties")
        return {
            name: self._coerce(properties.get(name, others), item, depth)
            for name, item in value.items()
        }

    def properties(self, schema: Mapping[str, Any]) -> dict[str, object]:
        """Collect the properties of a schema; several definitions of one become ``anyOf``."""
        found: dict[str, list[object]] = {}
        for option in self._options(schema, 0):
            properties = option.get("properties")
            for name, child in properties.items() if isinstance(properties, Mapping) else ():
                found.setdefault(name, []).append(child)
        return {
            name: children[0] if len(children) == 1 else {"anyOf": children}
            for name, children in found.items()
        }

    def _coerce(self, schema: object, value: object, depth: int) -> object:
        resolved = self._resolve(schema)
        if resolved is None:
            return value
        match value:
            case float() if value.is_integer() and abs(value) < MAX_SAFE_INTEGER:
                kinds = self.kinds(resolved)
                return value if "number" in kinds or "integer" not in kinds else int(value)
            case dict():
                return self.coerce_object(resolved, value, depth + 1)
            case list() if depth <= MAX_DEPTH:
                first, rest = self._items(resolved)
                schemas = [*first[: len(value)], *[rest] * (len(value) - len(first))]
                pairs = zip(schemas, value, strict=True)
                return [self._coerce(item_schema, item, depth + 1) for item_schema, item in pairs]
            case _:
                return value

    def _items(self, schema: Mapping[str, Any]) -> tuple[Sequence[object], object]:
        """Return the schemas of an array's first items, and the schema of the others."""
        first: Sequence[object] = ()
        rest: object = None
        for option in self._options(schema, 0):
            items, prefix = option.get("items"), option.get("prefixItems")
            if isinstance(items, list):
                items, prefix = option.get("additionalItems"), items
            first = first or (prefix if isinstance(prefix, list) else ())
            rest = items if rest is None else rest
        return first, rest

    def kinds(self, schema: object) -> list[object]:
        """Return the types that a schema names, in any of its alternatives."""
        kinds: list[object] = []
        for option in self._options(self._resolve(schema) or {}, 0):
            kind = option.get("type", [])
            kinds.extend(kind if isinstance(kind, list) else [kind])
        return kinds

    def _options(self, schema: Mapping[str, Any], depth: int) -> Iterator[Mapping[str, Any]]:
        """Yield a schema and all its combined and alternative schemas."""
        yield schema
        if depth > MAX_DEPTH:
            return
        for key in ("allOf", "anyOf", "oneOf"):
            branches = schema.get(key)
            for branch in branches if isinstance(branches, list) else ():
                resolved = self._resolve(branch)
                if resolved is not None:
                    yield from self._options(resolved, depth + 1)

    def _resolve(self, schema: object) -> Mapping[str, Any] | None:
        """Follow the references of a schema; None once the budget is spent."""
        for _ in range(MAX_DEPTH):
            self._steps += 1
            if not isinstance(schema, Mapping) or self._steps > MAX_STEPS:
                return None
            reference = schema.get("$ref")
            if not isinstance(reference, str):
                return schema
            try:
                schema = resolve_reference(self._document, reference)
            except (RemoteReferenceError, UnresolvedReferenceError):
                return None
        return None
