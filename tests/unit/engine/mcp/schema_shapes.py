"""Schemas of tools that take one parameter."""

from typing import Any

from tests.unit.engine.mcp.gemini_checker import refusals
from tui.engine.mcp.schema.to_gemini import to_gemini

Schema = dict[str, Any]


def of(name_schema: object, **more: object) -> Schema:
    """Make an input schema with one property ``x``."""
    return {"type": "object", "properties": {"x": name_schema}, **more}


def x(schema: Schema) -> Any:  # noqa: ANN401  # it may be missing
    """Convert an input schema and give its property ``x``."""
    converted = to_gemini(schema)
    assert refusals(converted) == []
    return converted["properties"].get("x")
