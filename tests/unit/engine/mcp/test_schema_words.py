"""The words of schemas: what the model reads of them, and any schema there may be."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.engine.servers.gemini_checker import refusals
from tests.unit.engine.servers.schema_shapes import Schema, of, x
from tui.engine.servers.coercion import coerce
from tui.engine.servers.schemas import UnusableSchemaError, to_gemini
from tui.text import sanitize

HIDDEN = "\u200b\u202e\U000e0041\x1b]52;c;x\x07"


def test_C04_no_text_of_a_schema_reaches_the_model_unfiltered() -> None:
    inner = {
        "type": "string",
        "title": f"t{HIDDEN}",
        "description": f"d{HIDDEN}",
        "format": f"f{HIDDEN}",
        "pattern": f"p{HIDDEN}",
        "default": f"v{HIDDEN}",
        "examples": [HIDDEN],
    }
    schema = of(
        {
            "properties": {
                f"free{HIDDEN}": inner,
                f"listed{HIDDEN}": {"enum": [f"v{HIDDEN}", "w"], "default": f"v{HIDDEN}"},
                f"fixed{HIDDEN}": {"oneOf": [{"const": f"v{HIDDEN}", "description": HIDDEN}]},
                f"objects{HIDDEN}": {"enum": [{HIDDEN: HIDDEN}]},
                f"map{HIDDEN}": {"additionalProperties": {"type": HIDDEN}},
            },
            "required": [f"free{HIDDEN}"],
        }
    )
    sent = json.dumps(x(schema), ensure_ascii=False)
    assert sanitize(sent) == sent
    shown = "⟨U+200B⟩⟨U+202E⟩⟨U+E0041⟩"
    assert x(schema)["required"] == [f"free{shown}"]
    assert x(schema)["properties"][f"listed{shown}"] == {
        "type": "string",
        "enum": [f"v{shown}", "w"],
        "default": f"v{shown}",
    }
    assert {"default", "pattern"}.isdisjoint(x(schema)["properties"][f"free{shown}"])


def test_names_and_values_in_any_language_stay_as_they_are() -> None:
    schema = {"城市": {"enum": ["東京", "Zürich", "👩‍🚀", "a b"]}, "größe": {"type": "string"}}
    converted = to_gemini({"type": "object", "properties": schema})
    assert converted["properties"]["城市"]["enum"] == ["東京", "Zürich", "👩‍🚀", "a b"]
    assert list(converted["properties"]) == ["城市", "größe"]


def test_a_tool_whose_parameters_look_alike_is_unusable() -> None:
    with pytest.raises(UnusableSchemaError, match="look alike"):
        to_gemini({"properties": {"path": {}, "pa\x1b[0mth": {}}})


def test_long_names_and_values_are_cut() -> None:
    converted = to_gemini({"properties": {"n" * 9_000: {"enum": ["v" * 9_000]}}})
    [(name, child)] = converted["properties"].items()
    assert len(name) == 256
    assert [len(value) for value in child["enum"]] == [1_000]


def test_a_title_that_repeats_the_name_is_dropped() -> None:
    converted = to_gemini(
        {"type": "object", "properties": {"max_size": {"type": "integer", "title": "Max Size"}}}
    )
    assert converted["properties"]["max_size"] == {"type": "integer"}


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**308, 10**400, -(10**400)])
    | st.floats()
    | st.text(max_size=5)
)


any_json = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


KEYWORDS = [
    "$anchor", "$defs", "$id", "$ref", "$schema", "additionalItems", "additionalProperties",
    "allOf", "anyOf", "const", "contains", "default", "definitions", "dependentRequired",
    "description", "else", "enum", "examples", "exclusiveMaximum", "exclusiveMinimum", "format",
    "if", "items", "maxItems", "maxLength", "maximum", "minItems", "minLength", "minimum",
    "multipleOf", "not", "nullable", "oneOf", "pattern", "patternProperties", "prefixItems",
    "properties", "propertyNames", "required", "then", "title", "type", "unevaluatedProperties",
    "uniqueItems",
]  # fmt: skip


def schema_nodes(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    children = st.dictionaries(st.sampled_from(["a", "b", "c", "", "$ref"]), inner, max_size=3)
    kinds = st.sampled_from(
        ["string", "integer", "number", "object", "array", "boolean", "null", "odd"]
    )
    right = st.fixed_dictionaries(
        {},
        optional={
            "type": kinds | st.lists(kinds, max_size=3),
            "properties": children,
            "required": st.lists(st.sampled_from(["a", "b", "z"]), max_size=3),
            "items": inner | st.lists(inner, max_size=2),
            "anyOf": st.lists(inner, max_size=3),
            "oneOf": st.lists(inner, max_size=3),
            "allOf": st.lists(inner, max_size=3),
            "$ref": st.sampled_from(
                ["#", "#/properties/a", "#/$defs/a", "#/$defs/b", "#none", "#/x"]
            ),
            "$defs": children,
            "enum": st.lists(scalars, max_size=4),
            "const": any_json,
            "default": any_json,
            "minimum": scalars,
            "exclusiveMinimum": scalars,
            "exclusiveMaximum": scalars,
            "minLength": scalars,
            "description": st.text(max_size=10),
            "additionalProperties": inner,
        },
    )
    wrong = st.dictionaries(st.sampled_from(KEYWORDS), any_json, max_size=4)
    return right | wrong | st.booleans()


schemas: st.SearchStrategy[Any] = st.recursive(
    st.booleans() | st.just({}), schema_nodes, max_leaves=12
).filter(lambda schema: isinstance(schema, dict))


@settings(max_examples=400, deadline=None)
@given(schemas)
def test_whatever_the_schema_the_result_is_accepted_and_the_input_untouched(schema: Schema) -> None:
    before = copy.deepcopy(schema)
    try:
        converted = to_gemini(schema)
    except UnusableSchemaError:
        converted = {"type": "object", "properties": {}}
    assert refusals(converted) == []
    assert repr(schema) == repr(before)


texts = st.text(
    st.characters() | st.sampled_from("ab\u200b\u202e\x1b[m\U000e0041\ue000"), max_size=6
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(texts, st.lists(texts, min_size=1, max_size=3), min_size=1, max_size=3))
def test_what_the_model_writes_comes_back_in_the_servers_spelling(
    listed: dict[str, list[str]],
) -> None:
    schema = of(
        {
            "type": "object",
            "properties": {name: {"enum": values} for name, values in listed.items()},
        }
    )
    try:
        converted = x(schema)
    except UnusableSchemaError:
        assert len({sanitize(name) for name in listed}) < len(listed)
        return
    for name, shown in zip(listed, converted["properties"], strict=True):
        assert sanitize(shown) == shown
        for value in converted["properties"][shown].get("enum", ()):
            assert sanitize(value) == value
            [(own_name, own_value)] = coerce(schema, {"x": {shown: value}})["x"].items()
            assert own_name == name
            assert own_value in listed[name]
            assert sanitize(own_value) == value
