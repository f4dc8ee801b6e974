import copy
import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.engine.servers.gemini_checker import refusals
from tui.engine.servers.coercion import coerce
from tui.engine.servers.schemas import UnusableSchemaError, to_gemini
from tui.text import sanitize

Schema = dict[str, Any]


def of(name_schema: object, **more: object) -> Schema:
    """Make an input schema with one property ``x``."""
    return {"type": "object", "properties": {"x": name_schema}, **more}


def x(schema: Schema) -> Any:  # noqa: ANN401  # it may be missing
    """Convert an input schema and give its property ``x``."""
    converted = to_gemini(schema)
    assert refusals(converted) == []
    return converted["properties"].get("x")


SHAPES: dict[str, tuple[object, object]] = {
    "plain": ({"type": "string"}, {"type": "string"}),
    "const": ({"const": "a"}, {"type": "string", "enum": ["a"]}),
    "one of": (
        {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        {"anyOf": [{"type": "string"}, {"type": "integer"}]},
    ),
    "one of constants": (
        {"oneOf": [{"const": "a", "description": "first"}, {"const": "b"}]},
        {"type": "string", "enum": ["a", "b"], "description": "a: first"},
    ),
    "all of": (
        {"allOf": [{"type": "integer", "minimum": 1}, {"maximum": 9, "minimum": 3}]},
        {"type": "integer", "minimum": 3, "maximum": 9},
    ),
    "type list with null": ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
    "type list": (
        {"type": ["string", "integer"]},
        {"anyOf": [{"type": "integer"}, {"type": "string"}]},
    ),
    "type list with null and two": (
        {"type": ["string", "integer", "null"]},
        {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]},
    ),
    "any of with null": (
        {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        {"type": "string", "nullable": True},
    ),
    "default beside any of": (
        {"anyOf": [{"type": "string", "default": "b"}, {"type": "integer"}], "default": "a"},
        {"anyOf": [{"type": "string"}, {"type": "integer"}]},
    ),
    "default": ({"type": "string", "default": "a"}, {"type": "string", "default": "a"}),
    "default of another type": ({"type": "string", "default": 5}, {"type": "string"}),
    "integer enum": ({"enum": [1, 2]}, {"type": "integer", "enum": [1, 2]}),
    "boolean enum": ({"enum": [True]}, {"type": "boolean"}),
    "enum with null": ({"enum": ["a", None]}, {"type": "string", "enum": ["a"], "nullable": True}),
    "mixed enum": (
        {"enum": ["a", 1]},
        {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "integer", "enum": [1]}]},
    ),
    "enum with an empty text": ({"enum": ["", "a"]}, {"type": "string", "enum": ["a"]}),
    "exclusive bounds of integers": (
        {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 10},
        {"type": "integer", "minimum": 1, "maximum": 9},
    ),
    "exclusive bounds of numbers": (
        {"type": "number", "exclusiveMinimum": 0},
        {"type": "number", "description": "(greater than 0)"},
    ),
    "boolean exclusive bound": (
        {"type": "integer", "minimum": 3, "exclusiveMinimum": True},
        {"type": "integer", "minimum": 4},
    ),
    "true": (True, {}),
    "false": (False, None),
    "not": ({"type": "string", "not": {"const": "a"}}, {"type": "string"}),
    "conditions": (
        {"type": "object", "if": {}, "then": {}, "else": {}, "dependentSchemas": {}},
        {"type": "object"},
    ),
    "format": (
        {"type": "string", "format": "email", "description": "Who"},
        {"type": "string", "description": "Who (format: email)"},
    ),
    "date-time": (
        {"type": "string", "format": "date-time"},
        {"type": "string", "format": "date-time"},
    ),
    "tuple": (
        {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]},
        {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
    ),
    "map": (
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object", "description": "(any keys with values of type string)"},
    ),
    "unknown keys": (
        {"type": "string", "x-order": 1, "examples": ["a"], "$comment": "c", "deprecated": True},
        {"type": "string"},
    ),
    "implied types": ({"properties": {"a": {"type": "null"}}}, None),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_that_gemini_refuses_is_said_otherwise(shape: str) -> None:
    given_shape, expected = SHAPES[shape]
    if shape == "implied types":
        expected = {"type": "object", "properties": {"a": {"type": "null"}}}
    assert x(of(given_shape)) == expected


def test_no_parameters_are_an_empty_object() -> None:
    empty = {"type": "object", "properties": {}}
    assert to_gemini({}) == empty
    assert to_gemini({"type": "object"}) == empty
    assert to_gemini({"type": "object", "additionalProperties": False}) == empty


def test_schema_keywords_of_the_document_are_removed_at_every_depth() -> None:
    inner = {
        "type": "object",
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "additionalProperties": False,
        "properties": {"y": {"type": "array", "items": {"additionalProperties": True}}},
    }
    assert x(of(inner, **{"$schema": "s", "additionalProperties": False, "$id": "i"})) == {
        "type": "object",
        "properties": {"y": {"type": "array", "items": {}}},
    }


def test_references_are_inlined_and_their_siblings_win() -> None:
    schema = of(
        {"$ref": "#/$defs/Person~1x", "description": "Mine"},
        **{"$defs": {"Person/x": {"type": "string", "description": "Any", "minLength": 1}}},
    )
    assert x(schema) == {"type": "string", "description": "Mine", "minLength": 1}


@pytest.mark.parametrize(
    "definitions",
    [
        ("#/definitions/P", {"definitions": {"P": {"type": "integer"}}}),
        ("#p", {"$defs": {"P": {"$anchor": "p", "type": "integer"}}}),
        ("person", {"$defs": {"P": {"$id": "person", "type": "integer"}}}),
        ("//x.test/s#/$defs/P", {"$id": "//x.test/s", "$defs": {"P": {"type": "integer"}}}),
        ("#/$defs/A%20B/allOf/0", {"$defs": {"A B": {"allOf": [{"type": "integer"}]}}}),
    ],
)  # fmt: skip
def test_all_ways_to_refer_within_a_document_work(definitions: tuple[str, Schema]) -> None:
    reference, more = definitions
    assert x(of({"$ref": reference}, **more)) == {"type": "integer"}


def test_a_cycle_is_cut_where_it_closes() -> None:
    tree = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
        },
    }
    converted = x(of({"$ref": "#/$defs/Tree"}, **{"$defs": {"Tree": tree}}))
    assert converted["properties"]["name"] == {"type": "string"}
    assert converted["properties"]["children"] == {"type": "array", "items": {"type": "object"}}


def test_a_schema_that_refers_to_itself_at_once_is_any_object() -> None:
    assert x(of({"$ref": "#/$defs/A"}, **{"$defs": {"A": {"$ref": "#/$defs/A"}}})) == {
        "type": "object"
    }


def test_a_reference_to_nowhere_is_any_value() -> None:
    assert x(of({"$ref": "#/$defs/Missing"})) == {}


def test_another_document_is_never_fetched_and_makes_the_tool_unusable() -> None:
    with pytest.raises(UnusableSchemaError, match="refers to another document"):
        to_gemini(of({"$ref": "http://127.0.0.1:9/schema.json"}))


def test_alternatives_of_the_root_are_folded_into_it() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "anyOf": [
            {"properties": {"kind": {"const": "x"}, "b": {"type": "string"}}, "required": ["kind"]},
            {"properties": {"kind": {"const": "y"}}, "required": ["kind", "a"]},
        ],
    }
    converted = to_gemini(schema)
    assert refusals(converted) == []
    assert converted["required"] == ["kind"]
    assert converted["properties"]["kind"] == {"type": "string", "enum": ["x", "y"]}
    assert set(converted["properties"]) == {"a", "kind", "b"}


def test_deep_schemas_are_cut_within_the_depth_gemini_takes() -> None:
    schema: Schema = {"type": "string"}
    for _ in range(100):
        schema = of(schema)
    assert refusals(to_gemini(schema)) == []


def test_a_schema_that_explodes_when_inlined_is_kept_shallow_and_cheap() -> None:
    definitions: Schema = {
        f"d{n}": {"properties": {k: {"$ref": f"#/$defs/d{n + 1}"} for k in "abcd"}}
        for n in range(20)
    }
    definitions["d20"] = {"type": "string"}
    began = time.perf_counter()
    converted = to_gemini(of({"$ref": "#/$defs/d0"}, **{"$defs": definitions}))
    assert time.perf_counter() - began < 1
    assert refusals(converted) == []
    assert converted["properties"]["x"]["type"] == "object"


def test_a_long_chain_of_references_does_not_exhaust_the_stack() -> None:
    definitions: Schema = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(5_000)}
    assert refusals(to_gemini(of({"$ref": "#/$defs/d0"}, **{"$defs": definitions}))) == []


def test_too_many_properties_make_a_tool_unusable() -> None:
    schema = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(5_000)}}
    with pytest.raises(UnusableSchemaError, match="too large"):
        to_gemini(schema)


@pytest.mark.parametrize("kind", ["array", "string", ["array", "null"]])
def test_arguments_that_are_no_object_make_a_tool_unusable(kind: object) -> None:
    with pytest.raises(UnusableSchemaError, match="not an object"):
        to_gemini({"type": kind})


def test_descriptions_are_sanitised_and_limited() -> None:
    converted = x(of({"type": "string", "description": "a\x1b]0;t\x07\u202eb" + "c" * 9_000}))
    assert converted["description"].startswith("a⟨U+202E⟩b")
    assert len(converted["description"]) == 2_048


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
