"""Forms for arguments: made only where they give the arguments back as they are."""

import pytest

from tui.engine.approval.inquiry import argument_fields
from tui.engine.mcp.catalog.offered_tool import JsonObject
from tui.model.requests import FieldKind

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "default": "/", "title": "The path"},
        "depth": {"type": "integer", "minimum": 0},
        "ratio": {"type": "number"},
        "deep": {"type": "boolean", "default": True},
        "kind": {"type": "string", "enum": ["a", "b"]},
        "kinds": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
    },
    "required": ["path"],
}


def test_fields_are_filled_in_with_the_arguments_and_never_with_defaults() -> None:
    arguments = {"path": "/tmp", "depth": 2, "ratio": 0.5, "kind": "b", "kinds": ["b", "a"]}
    fields = {field.key: field for field in argument_fields(SCHEMA, arguments)}
    assert [field.default for field in fields.values()] == ["/tmp", 2, 0.5, None, "b", ("b", "a")]
    assert fields["path"].title == "The path"
    assert fields["path"].required
    assert fields["deep"].kind is FieldKind.BOOLEAN


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "a\u202eb"},
        {"path": "x" * 5_000},
        {"path": None},
        {"path": "/", "more": 1},
        {"path": 5},
        {"path": "/", "depth": True},
        {"path": "/", "kind": "c"},
        {"path": "/", "kinds": ["a", "c"]},
        {"path": "/", "deep": "yes"},
    ],
)
def test_arguments_that_a_form_would_change_or_hide_have_none(arguments: JsonObject) -> None:
    assert argument_fields(SCHEMA, arguments) == ()


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"properties": 5},
        {"properties": {"a": 5}},
        {"properties": {"a": {"type": "object"}}},
        {"properties": {"a": {"$ref": "#/x"}}},
        {"properties": {"a\u202e": {"type": "string"}}},
        {"properties": {"a": {"enum": ["\u202e"]}}},
        {"properties": {f"p{number}": {"type": "string"} for number in range(60)}},
    ],
)
def test_a_schema_that_is_not_flat_has_no_form(schema: JsonObject) -> None:
    assert argument_fields(schema, {}) == ()
