"""Forms of hostile schemas: what one costs to read and to draw is bounded."""

from typing import Any

import pytest

from tests.support.rows import row
from tui.engine.mcp.schema import form_schema as forms
from tui.engine.mcp.schema.tool_form import read_tool_form
from tui.model.requests import FieldKind, FormField

TEXT = {"type": "string"}
MANY = [f"o{number}" for number in range(forms.MAX_OPTIONS)]
TICKS = {"type": "array", "items": {"type": "string", "enum": MANY}}


def of(count: int, one: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"type": "object", "properties": {f"f{number}": one for number in range(count)}}


def nested(levels: int) -> dict[str, Any]:
    return of(2, nested(levels - 1)) if levels else TEXT


SCHEMAS = {
    "ticks": of(20, TICKS),
    "choices": of(20, {"type": "string", "enum": MANY}),
    "equal options": of(20, {"type": "string", "enum": ["\u200b" * n for n in range(200)]}),
    "titled": of(20, {"oneOf": [{"const": one, "title": "t" * 900} for one in MANY]}),
    "fields": of(5_000, TEXT),
    "depth": nested(12),
    "alternatives": of(forms.MAX_FIELDS, {"oneOf": [of(3, TEXT)] * 40}),
    "lines": of(forms.MAX_FIELDS, {**TEXT, "description": "x\n" * 100_000}),
    "words": of(forms.MAX_FIELDS, {**TEXT, "title": "t " * 100_000, "description": "d " * 100_000}),
    "defaults": of(forms.MAX_FIELDS, {**TEXT, "default": "x" * 1_000_000}),
}


def weigh(fields: tuple[FormField, ...]) -> None:
    assert len(fields) <= forms.MAX_FIELDS
    assert sum(len(field.options) for field in fields) <= forms.MAX_ALL_OPTIONS
    for field in fields:
        assert len(field.description) <= forms.MAX_DESCRIPTION
        assert field.description.count("\n") < forms.MAX_LINES


def test_E45_a_form_of_a_hostile_schema_is_bounded_or_none() -> None:
    for name, schema in SCHEMAS.items():
        for read in (forms.read_form, lambda one: read_tool_form(one, {}, {})):
            with row(name):
                try:
                    made = read(schema)
                except forms.UnusableFormError:
                    continue
                weigh(made if isinstance(made, tuple) else made.fields)


def test_E45_options_that_a_tools_form_has_no_room_for_are_edited_as_json() -> None:
    kinds = [field.kind for field in read_tool_form(of(3, TICKS), {}, {})]
    assert kinds == [FieldKind.CHOICES, FieldKind.JSON, FieldKind.JSON]
    with pytest.raises(forms.UnusableFormError, match="more than 300 options together"):
        forms.read_form(of(2, TICKS))
