"""Schemas of tools, as Gemini takes them."""

import random
import time
from collections.abc import Sequence
from typing import Final

import pytest

from tests.unit.engine.mcp.gemini_checker import Schema, of, refusals, x
from tui.engine.mcp.schema.to_gemini import UnusableSchemaError, convert_schema, to_gemini

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
        {"type": "integer", "description": "(greater than 0; less than 10)"},
    ),
    "exclusive bounds of numbers": (
        {"type": "number", "exclusiveMinimum": 0},
        {"type": "number", "description": "(greater than 0)"},
    ),
    "boolean exclusive bound": (
        {"type": "integer", "minimum": 3, "exclusiveMinimum": True},
        {"type": "integer", "minimum": 3, "description": "(greater than 3)"},
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
    "implied types": (
        {"properties": {"a": {"type": "null"}}},
        {"type": "object", "properties": {"a": {"type": "null"}}},
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_that_gemini_refuses_is_said_otherwise(shape: str) -> None:
    given_shape, expected = SHAPES[shape]
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
        ("//x.test/s#/$defs/P", {"$id": "//x.test/s", "$defs": {"P": {"type": "integer"}}}),
        ("#/$defs/A%20B/allOf/0", {"$defs": {"A B": {"allOf": [{"type": "integer"}]}}}),
    ],
)  # fmt: skip
def test_all_ways_to_refer_within_a_document_work(definitions: tuple[str, Schema]) -> None:
    reference, more = definitions
    assert x(of({"$ref": reference}, **more)) == {"type": "integer"}


@pytest.mark.parametrize("reference", ["#p", "person", "person#/x", "#/$defs/nowhere"])
def test_what_a_name_refers_to_may_be_anything(reference: str) -> None:
    named = {"$id": "person", "$anchor": "p", "type": "integer"}
    schema = of({"$ref": reference, "description": "Who"}, **{"$defs": {"P": named}})
    anything = {"type": "object", "properties": {"x": {"description": "Who"}}, "required": ["x"]}
    assert convert_schema(schema | {"required": ["x"]}) == (anything, ())


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


def test_a_reference_to_itself_is_any_object_and_one_to_nowhere_any_value() -> None:
    assert x(of({"$ref": "#/$defs/A"}, **{"$defs": {"A": {"$ref": "#/$defs/A"}}})) == {
        "type": "object"
    }
    assert x(of({"$ref": "#/$defs/Missing"})) == {}


REMOTE: Schema = {"$ref": "http://127.0.0.1:9/schema.json"}


@pytest.mark.parametrize(
    "schema", [REMOTE, of(REMOTE, required=["x"]), of(of(REMOTE, required=["x"]), required=["x"])]
)
def test_another_document_is_never_fetched_and_makes_the_tool_unusable(schema: Schema) -> None:
    with pytest.raises(UnusableSchemaError, match="refers to another document"):
        to_gemini(schema)


@pytest.mark.parametrize(
    ("child", "reason"),
    [
        (REMOTE, "its schema refers to another document: http://127.0.0.1:9/schema.json"),
        ({"type": "array", "items": REMOTE}, "its schema refers to another document"),
        ({"anyOf": [{"type": "string"}, REMOTE]}, "its schema refers to another document"),
        (of(REMOTE, required=["x"]), "its required parameter “x” cannot be used: its schema ref"),
        (False, "no value fits its schema"),
        ({"enum": ["x" * 900 + str(n) for n in range(250)]}, "its schema is too large"),
        ({"properties": {f"p{n}": {"not": {}} for n in range(3_000)}}, ""),
    ],
)
def test_an_optional_property_that_cannot_be_translated_is_left_out_and_named(
    child: Schema, reason: str
) -> None:
    schema = {"properties": {"x": child, "y": {"type": "string"}}, "required": ["y"]}
    converted, left_out = convert_schema(schema)
    assert refusals(converted) == []
    assert converted["properties"]["y"] == {"type": "string"}
    assert ("x" in converted["properties"]) is not bool(reason)
    assert left_out[0].startswith(f"parameter “x”: {reason}" if reason else "parameter “p")


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


def test_a_schema_that_explodes_when_inlined_is_kept_shallow_and_cheap() -> None:
    definitions: Schema = {
        f"d{n}": {"properties": {k: {"$ref": f"#/$defs/d{n + 1}"} for k in "abcd"}}
        for n in range(20)
    }
    definitions["d20"] = {"type": "string"}
    began = time.process_time()
    converted = to_gemini(of({"$ref": "#/$defs/d0"}, **{"$defs": definitions}))
    assert time.process_time() - began < 1
    assert refusals(converted) == []
    assert converted["properties"]["x"]["type"] == "object"


def test_neither_depth_nor_a_long_chain_of_references_exhausts_the_stack() -> None:
    deep: Schema = {"type": "string"}
    for _ in range(100):
        deep = of(deep)
    assert refusals(to_gemini(deep)) == []
    definitions: Schema = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(5_000)}
    assert refusals(to_gemini(of({"$ref": "#/$defs/d0"}, **{"$defs": definitions}))) == []


def test_too_many_required_properties_make_a_tool_unusable() -> None:
    names = [f"p{n}" for n in range(2_500)]
    schema = {"properties": {name: {"type": "string"} for name in names}, "required": names}
    with pytest.raises(UnusableSchemaError, match="too large"):
        to_gemini(schema)
    converted, left_out = convert_schema({**schema, "required": names[-1:]})
    assert refusals(converted) == []
    assert names[-1] in converted["properties"]
    assert len(converted["properties"]) > 1_000
    assert left_out[-1] == f"and {2_500 - len(converted['properties']) - 20:,} more"


@pytest.mark.parametrize("kind", ["array", "string", ["array", "null"]])
def test_arguments_that_are_no_object_make_a_tool_unusable(kind: object) -> None:
    with pytest.raises(UnusableSchemaError, match="not an object"):
        to_gemini({"type": kind})


def test_descriptions_are_sanitised_and_limited() -> None:
    converted = x(of({"type": "string", "description": "a\x1b]0;t\x07\u202eb" + "c" * 9_000}))
    assert converted["description"].startswith("a⟨U+202E⟩b")
    assert len(converted["description"]) == 2_048


ODD: Final[Sequence[object]] = (
    *(None, True, False, 0, 1, -1, 1.5, 10**30, 10**400, float("inf"), "", "a", "x" * 300),
    *("\x1b[2J", "é", [], ["a"], ["a", 1, 2.5, None, True], ["\u202e"], {"a": 1}, "string"),
)
KINDS: Final = (*("string", "integer", "number", "boolean", "array", "String", "odd"), ["null"])
LEAVES: Final = [
    "default",
    "description",
    "enum",
    "maxLength",
    "maximum",
    "minLength",
    "minimum",
    "title",
]
WORDS: Final = ("words", "a\nb", "\x1b[31mx", "w" * 3_000)


def slow(schema: Schema) -> Schema:
    """Give a schema that means the same, and with a keyword for which it is not remembered."""
    made = {**schema, "x-own": 1}
    if "properties" in made:
        made["properties"] = {name: slow(child) for name, child in made["properties"].items()}
    if "items" in made:
        made["items"] = slow(made["items"])
    if "anyOf" in made:
        made["anyOf"] = [slow(child) for child in made["anyOf"]]
    return made


def test_what_is_remembered_of_one_tool_changes_no_other() -> None:
    chance = random.Random(3)

    def leaf() -> dict[str, object]:
        made = {key: chance.choice(ODD) for key in chance.sample(LEAVES, chance.randrange(6))}
        return {**made, "type": chance.choice(KINDS), "description": chance.choice(WORDS)}

    def converted(schema: Schema) -> object:
        try:
            return convert_schema(schema)
        except UnusableSchemaError as error:
            return str(error)

    def shape() -> Schema:
        properties = {
            **{name: leaf() for name in chance.sample(["a", "words", "é", "\x1b"], 3)},
            "list": {"type": "array", "items": leaf()},
            "any": {"anyOf": [leaf(), leaf()]},
        }
        roots: list[Schema] = [
            {"required": ["words", "a", "a", "no", 1]},
            {"required": "a"},
            {"title": "w  w"},
            {"additionalProperties": chance.choice((False, {"type": "string"}))},
        ]
        return of({}) | {"properties": properties} | chance.choice(roots) | chance.choice(roots)

    shapes = [shape() for _ in range(400)]
    first, again = ([converted(shape) for shape in shapes] for _ in range(2))
    assert first == again == [converted(slow(shape)) for shape in shapes]
