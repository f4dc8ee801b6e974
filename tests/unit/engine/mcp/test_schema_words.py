"""The words of schemas: what the model reads of them, and any schema there may be."""

import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import any_json
from tests.unit.engine.mcp.gemini_checker import TYPES, Schema, of, refusals, x
from tui.engine.mcp.schema.to_gemini import (
    UnusableSchemaError,
    _without_words,
    convert_schema,
    to_gemini,
)
from tui.text import is_shown_whole, sanitize

HIDDEN = "\u200b\u202e\U000e0041\x1b]52;c;x\x07"


def test_C04_no_text_of_a_schema_reaches_the_model_unfiltered() -> None:
    words = ("title", "description", "format", "pattern", "default")
    inner = {"type": "string", "examples": [HIDDEN]} | {word: word + HIDDEN for word in words}
    schema = of(
        {
            "properties": {
                "free": inner,
                f"gone{HIDDEN}": inner,
                "listed": {"enum": [f"v{HIDDEN}", "w"], "default": f"v{HIDDEN}"},
                "fixed": {"oneOf": [{"const": f"v{HIDDEN}", "description": HIDDEN}]},
                "objects": {"enum": [{HIDDEN: HIDDEN}]},
                "map": {"additionalProperties": {"type": HIDDEN}},
            },
            "required": ["free"],
        }
    )
    sent = json.dumps(x(schema), ensure_ascii=False)
    assert sanitize(sent) == sent
    assert x(schema)["required"] == ["free"]
    assert x(schema)["properties"]["listed"] == {"type": "string", "enum": ["w"]}
    assert {"default", "pattern"}.isdisjoint(x(schema)["properties"]["free"])
    assert not any("gone" in name for name in x(schema)["properties"])


def test_names_and_values_in_any_language_stay_as_they_are() -> None:
    schema = {"城市": {"enum": ["東京", "Zürich", "👩‍🚀", "a b"]}, "größe": {"type": "string"}}
    converted = to_gemini({"type": "object", "properties": schema})
    assert converted["properties"]["城市"]["enum"] == ["東京", "Zürich", "👩‍🚀", "a b"]
    assert list(converted["properties"]) == ["城市", "größe"]


def test_names_and_values_too_long_to_show_are_left_out() -> None:
    properties = {"n" * 9_000: {}, "m": {"enum": ["v" * 9_000, "w"]}}
    converted, left_out = convert_schema({"properties": properties})
    assert converted["properties"] == {"m": {"type": "string", "enum": ["w"]}}
    assert len(left_out) == 2
    assert all(len(words) < 150 for words in left_out)


def test_a_title_that_repeats_the_name_is_dropped() -> None:
    converted = to_gemini({"properties": {"max_size": {"type": "integer", "title": "Max Size"}}})
    assert converted["properties"]["max_size"] == {"type": "integer"}


huge = st.sampled_from([10**308, 10**400, -(10**400)])
scalars = st.one_of(st.none(), st.booleans(), st.integers(), huge, st.floats(), st.text(max_size=5))
any_value = any_json(st.text(max_size=5)) | scalars


_KEYWORDS = """
    $anchor $defs $id $ref $schema additionalItems additionalProperties allOf anyOf const contains
    default definitions dependentRequired description else enum examples exclusiveMaximum
    exclusiveMinimum format if items maxItems maxLength maximum minItems minLength minimum
    multipleOf not nullable oneOf pattern patternProperties prefixItems properties propertyNames
    required then title type unevaluatedProperties uniqueItems
"""
KEYWORDS = _KEYWORDS.split()


def schema_nodes(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    children = st.dictionaries(st.sampled_from(["a", "b", "c", "", "$ref"]), inner, max_size=3)
    kinds = st.sampled_from([*sorted(TYPES), "odd"])
    right = st.fixed_dictionaries(
        {},
        optional={
            "type": kinds | st.lists(kinds, max_size=3),
            **dict.fromkeys(("properties", "$defs"), children),
            "required": st.lists(st.sampled_from(["a", "b", "z"]), max_size=3),
            "items": inner | st.lists(inner, max_size=2),
            **dict.fromkeys(("anyOf", "oneOf", "allOf"), st.lists(inner, max_size=3)),
            "$ref": st.sampled_from(["#", "#/properties/a", "#/$defs/a", "#/$defs/b", "#/x"]),
            "enum": st.lists(scalars, max_size=4),
            **dict.fromkeys(("const", "default"), any_value),
            **dict.fromkeys(("minimum", "exclusiveMinimum", "exclusiveMaximum"), scalars),
            "minLength": scalars,
            "description": st.text(max_size=10),
            "additionalProperties": inner,
        },
    )
    wrong = st.dictionaries(st.sampled_from(KEYWORDS), any_value, max_size=4)
    return right | wrong | st.booleans()


schemas: st.SearchStrategy[Any] = st.recursive(
    st.booleans() | st.just({}), schema_nodes, max_leaves=12
).filter(lambda schema: isinstance(schema, dict))


@given(schemas)
def test_whatever_the_schema_the_result_is_accepted_and_the_input_untouched(schema: Schema) -> None:
    before = copy.deepcopy(schema)
    try:
        converted = to_gemini(schema)
    except UnusableSchemaError:
        converted = {"type": "object", "properties": {}}
    assert refusals(converted) == []
    assert repr(schema) == repr(before)


leaves = st.fixed_dictionaries(
    {"type": st.sampled_from(["string", "integer", "odd"])},
    optional={
        **dict.fromkeys(("default", "minimum", "maxLength"), scalars),
        "enum": st.lists(scalars, max_size=3),
        "description": st.sampled_from(["words", "\x1b[31mx", "w" * 3_000]),
    },
)


@given(st.lists(leaves, min_size=2, max_size=9))
def test_what_is_remembered_of_one_tool_changes_no_other(shapes: list[Schema]) -> None:
    def converted(schema: Schema) -> object:
        try:
            return convert_schema(of(schema))
        except UnusableSchemaError as error:
            return str(error)

    together = [converted(shape) for shape in shapes]
    for shape, expected in zip(shapes, together, strict=True):
        _without_words.cache_clear()
        assert converted(shape) == expected


odd = st.sampled_from("ab\u200b\u202e\x1b[m\U000e0041\ue000")
texts = st.text(st.characters() | odd, max_size=6)


@given(st.dictionaries(texts, st.lists(texts, min_size=1, max_size=3), min_size=1, max_size=3))
def test_the_model_is_told_only_what_the_server_wrote(listed: dict[str, list[str]]) -> None:
    properties = {name: {"enum": values} for name, values in listed.items()}
    converted, left_out = convert_schema({"type": "object", "properties": properties})
    told = converted.get("properties", {})
    assert set(told) == {name for name in listed if is_shown_whole(name, 256)}
    assert bool(set(listed) - set(told)) <= bool(left_out)
    for name, child in told.items():
        shown = {value for value in listed[name] if value and sanitize(value) == value}
        assert set(child.get("enum", ())) == shown
