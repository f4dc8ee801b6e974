"""Makes integral floats integers where a schema says integer: models write ``3.0`` for ``3``."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from tui.engine.servers.references import (
    RemoteReferenceError,
    UnresolvedReferenceError,
    resolve_reference,
)
from tui.engine.tools import JsonObject

MAX_STEPS: Final = 20_000
"""Schema nodes looked at for one call; what lies beyond stays as it is."""

MAX_DEPTH: Final = 32
"""Nesting of arguments, and length of a chain of references or alternatives, that is followed."""

MAX_SAFE_INTEGER: Final = 2**53
"""Beyond it a float does not tell which integer was meant."""


def coerce(schema: JsonObject, arguments: JsonObject) -> dict[str, Any]:
    """Give the arguments with integral floats made integers where the schema says integer.

    Nothing else is changed, and what is given is not.
    """
    coercer = _Coercer(schema)
    return {name: coercer.coerce_property(schema, name, arguments[name], 0) for name in arguments}


class _Coercer:
    def __init__(self, document: JsonObject) -> None:
        self._document = document
        self._steps = 0

    def coerce_property(self, schema: JsonObject, name: str, value: object, depth: int) -> object:
        """Coerce one property of an object that `schema` describes."""
        if depth > MAX_DEPTH:
            return value
        for option in self._options(schema, 0):
            properties = option.get("properties")
            if isinstance(properties, Mapping) and name in properties:
                return self._coerce(properties[name], value, depth)
        return self._coerce(schema.get("additionalProperties"), value, depth)

    def _coerce(self, schema: object, value: object, depth: int) -> object:
        resolved = self._resolve(schema)
        if resolved is None:
            return value
        match value:
            case float() if value.is_integer() and abs(value) < MAX_SAFE_INTEGER:
                return int(value) if self._is_integer(resolved) else value
            case dict():
                return {
                    name: self.coerce_property(resolved, name, item, depth + 1)
                    for name, item in value.items()
                }
            case list() if depth <= MAX_DEPTH:
                items = next((o["items"] for o in self._options(resolved, 0) if "items" in o), None)
                return [self._coerce(items, item, depth + 1) for item in value]
            case _:
                return value

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
