"""A tool's input schema for services that take JSON Schema as it is."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from tui.engine.mcp.schema.to_gemini import DEPTHS, MAX_KEY, MAX_SCHEMA_BYTES
from tui.text import is_shown_whole, sanitize

_LEFT_OUT: Final = frozenset({"$schema", "$id", "$comment"})
_NOT_AT_TOP: Final = frozenset({"anyOf", "oneOf", "allOf", "not", "enum"})
"""Services refuse a tool whose arguments are no plain object."""

_WORDS: Final = frozenset({"description", "title"})


class _UnfitError(Exception):
    """It cannot go as it is."""


def plain_schema(schema: Mapping[str, Any], flat: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema as its server wrote it, without what the user could not see.

    Args:
        schema: The schema.
        flat: What goes in its place if it refers elsewhere, is too large or too deep, or has names
            or values that would not be shown as they are.
    """
    return _plain(json.dumps(schema)) or flat


@lru_cache(maxsize=2_048)
def _plain(text: str) -> Mapping[str, Any] | None:
    schema = json.loads(text)
    if len(text) > MAX_SCHEMA_BYTES or schema.keys() & _NOT_AT_TOP:
        return None
    try:
        return {"type": "object", **_cleaned(schema, DEPTHS[0])}
    except _UnfitError:
        return None


def _cleaned(value: Any, depth: int, key: str = "") -> Any:  # noqa: ANN401 - any JSON
    match value:
        case dict() | list() if not depth:
            raise _UnfitError
        case dict():
            if not all(is_shown_whole(name, MAX_KEY) for name in value):
                raise _UnfitError
            kept = {name: value[name] for name in value if name not in _LEFT_OUT}
            return {name: _cleaned(one, depth - 1, name) for name, one in kept.items()}
        case list():
            return [_cleaned(one, depth - 1) for one in value]
        case str() if key in _WORDS:
            return sanitize(value)
        case str() if (key == "$ref" and value[:1] != "#") or sanitize(value) != value:
            raise _UnfitError
    return value
