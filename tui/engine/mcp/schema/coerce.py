"""Brings the arguments of a model's call into the form that the server's schema asks for.

Integral floats become integers where the schema says integer: models write ``3.0`` for ``3``.
Names and listed values that the model knows in another writing get the server's (see `wording`).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tui.engine.servers.flattening import MAX_ENUM
from tui.engine.servers.references import (
    RemoteReferenceError,
    UnresolvedReferenceError,
    resolve_reference,
)
from tui.engine.servers.wording import own_keys, own_value
from tui.engine.tools import JsonObject

MAX_STEPS: Final = 20_000
"""Schema nodes looked at for one call; what lies beyond stays as it is."""

MAX_DEPTH: Final = 32
"""Nesting of arguments, and length of a chain of references or alternatives, that is followed."""

MAX_SAFE_INTEGER: Final = 2**53
"""Beyond it a float does not tell which integer was meant."""


def coerce(schema: JsonObject, arguments: JsonObject) -> dict[str, Any]:
    """Give the arguments as the server takes them: its spelling, and integers for whole floats.

    Nothing else is changed, and what is given is not.

    Args:
        schema: The input schema as the server wrote it.
        arguments: The arguments as the model wrote them.
    """
    return _Coercer(schema).coerce_object(schema, arguments, 0)


class _Coercer:
    def __init__(self, document: JsonObject) -> None:
        self._document = document
        self._steps = 0

    def coerce_object(self, schema: JsonObject, value: JsonObject, depth: int) -> dict[str, Any]:
        """Coerce the properties of an object that `schema` describes."""
        if depth > MAX_DEPTH:
            return dict(value)
        properties = self._properties(schema)
        others = schema.get("additionalProperties")
        own: Mapping[str, str] = {} if value.keys() <= properties.keys() else own_keys(properties)
        coerced: dict[str, Any] = {}
        for name, item in value.items():
            spelled = name if name in properties else own.get(name, name)
            if spelled in value:  # both writings at once: neither is translated
                spelled = name
            coerced[spelled] = self._coerce(properties.get(spelled, others), item, depth)
        return coerced

    def _properties(self, schema: JsonObject) -> dict[str, object]:
        """Gather the properties of a schema; one that is described in several places is any."""
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
                return int(value) if self._is_integer(resolved) else value
            case str():
                return own_value(self._listed(resolved), value)
            case dict():
                return self.coerce_object(resolved, value, depth + 1)
            case list() if depth <= MAX_DEPTH:
                first, rest = self._items(resolved)
                schemas = [*first[: len(value)], *[rest] * (len(value) - len(first))]
                pairs = zip(schemas, value, strict=True)
                return [self._coerce(item_schema, item, depth + 1) for item_schema, item in pairs]
            case _:
                return value

    def _items(self, schema: JsonObject) -> tuple[Sequence[object], object]:
        """Give the schemas of an array's first items, and the schema of all further ones."""
        first: Sequence[object] = ()
        rest: object = None
        for option in self._options(schema, 0):
            items, prefix = option.get("items"), option.get("prefixItems")
            if isinstance(items, list):
                items, prefix = option.get("additionalItems"), items
            first = first or (prefix if isinstance(prefix, list) else ())
            rest = items if rest is None else rest
        return first, rest

    def _listed(self, schema: JsonObject) -> Iterator[str]:
        """Give the texts that are listed for a value."""
        for option in self._options(schema, 0):
            values = [option["const"]] if "const" in option else option.get("enum")
            if isinstance(values, list) and len(values) <= MAX_ENUM:
                yield from (value for value in values if isinstance(value, str))

    def _is_integer(self, schema: JsonObject) -> bool:
        """Tell whether a number must be an integer here."""
        kinds: list[object] = []
        for option in self._options(schema, 0):
            kind = option.get("type")
            kinds.extend(kind if isinstance(kind, list) else [kind])
        return "integer" in kinds and "number" not in kinds

    def _options(self, schema: JsonObject, depth: int) -> Iterator[JsonObject]:
        """Give a schema and all that it combines or offers to choose from."""
        yield schema
        if depth > MAX_DEPTH:
            return
        for key in ("allOf", "anyOf", "oneOf"):
            branches = schema.get(key)
            for branch in branches if isinstance(branches, list) else ():
                resolved = self._resolve(branch)
                if resolved is not None:
                    yield from self._options(resolved, depth + 1)

    def _resolve(self, schema: object) -> JsonObject | None:
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
