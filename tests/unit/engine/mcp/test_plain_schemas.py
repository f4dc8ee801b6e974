"""Schemas of tools for services that take JSON Schema: as they are, unless that hides something."""

from typing import Any

import pytest

from tests.support.rows import row
from tui.engine.mcp.schema.plain import plain_schema

FLAT: dict[str, Any] = {"type": "object", "properties": {"flat": {}}}
TAGS = "".join(chr(0xE0000 + ord(one)) for one in "obey")


def of(**properties: Any) -> dict[str, Any]:  # noqa: ANN401 - any schema
    return {"type": "object", "properties": properties}


def test_what_gemini_does_not_take_stays() -> None:
    whole = {
        **of(a={"const": 1}, b={"oneOf": [{"type": "string"}, {"$ref": "#/$defs/b"}]}),
        "additionalProperties": False,
        "$defs": {"b": {"type": ["integer", "null"], "exclusiveMinimum": 1}},
    }
    assert plain_schema({**whole, "$schema": "https://x", "$id": "y"}, FLAT) == whole
    assert plain_schema({"properties": {}}, FLAT) == of()


def test_words_are_made_visible_as_elsewhere() -> None:
    made = plain_schema(of(a={"description": f"see{TAGS}\x1b[31m"}), FLAT)
    words = made["properties"]["a"]["description"]
    assert TAGS not in words
    assert "⟨U+E006F" in words
    assert "\x1b" not in words


def deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = of(a=schema)
    return schema


@pytest.mark.parametrize(
    "schema",
    [
        of(**{f"a{TAGS}": {}}),
        of(a={"enum": [f"x{TAGS}"]}),
        of(a={"default": "\x1b[31m"}),
        of(a={"pattern": "\u202e"}),
        of(a={"$ref": "https://elsewhere.example/schema"}),
        of(a={"description": "x" * 70_000}),
        deep(13),
        {**of(), "anyOf": [{}]},
        {**of(), "not": {}},
    ],
)
def test_what_would_not_be_seen_goes_as_gemini_gets_it(schema: dict[str, Any]) -> None:
    with row(str(schema)[:80]):
        assert plain_schema(schema, FLAT) is FLAT
