"""Schemas of tools, as Gemini takes them."""

import time
from collections.abc import Sequence
from typing import Final

import pytest

from tests.support.rows import row
from tests.unit.engine.mcp.gemini_checker import (
    LIST,
    NULL,
    NUMBER,
    OBJECT,
    TEXT,
    WHOLE,
    Schema,
    of,
    refusals,
    said,
    x,
)
from tui.engine.mcp.schema.to_gemini import UnusableSchemaError, convert_schema, to_gemini

ONE: Final[Schema] = {"enum": ["a"]}
TWO: Final[Schema] = {"enum": ["a", "b"]}
LEAST: Final[Schema] = {"minimum": 3}
WITHIN: Final[Schema] = LEAST | {"maximum": 9}
BETWEEN: Final[Schema] = {"exclusiveMinimum": 0, "exclusiveMaximum": 9}

SHAPES: Final[Sequence[tuple[object, object]]] = [
    (TEXT, TEXT),
    ({"const": "a"}, TEXT | ONE),
    ({"oneOf": [TEXT, WHOLE]}, {"anyOf": [TEXT, WHOLE]}),
    ({"oneOf": [{"const": "a"} | said("A"), {"const": "b"}]}, TEXT | TWO | said("a: A")),
    ({"allOf": [WHOLE | {"minimum": 1}, WITHIN]}, WHOLE | WITHIN),
    ({"type": ["string", "null"]}, TEXT | {"nullable": True}),
    ({"type": ["string", "integer"]}, {"anyOf": [WHOLE, TEXT]}),
    ({"type": ["string", "integer", "null"]}, {"anyOf": [WHOLE, TEXT, NULL]}),
    ({"anyOf": [TEXT, NULL], "default": None}, TEXT | {"nullable": True}),
    ({"anyOf": [TEXT | {"default": "b"}, WHOLE], "default": "a"}, {"anyOf": [TEXT, WHOLE]}),
    (TEXT | {"default": "a"}, TEXT | {"default": "a"}),
    (TEXT | {"default": 5}, TEXT),
    ({"enum": [1, 2]}, WHOLE | {"enum": [1, 2]}),
    ({"enum": [True]}, {"type": "boolean"}),
    ({"enum": ["a", None]}, TEXT | ONE | {"nullable": True}),
    ({"enum": ["a", 1]}, {"anyOf": [TEXT | ONE, WHOLE | {"enum": [1]}]}),
    ({"enum": ["", "a"]}, TEXT | ONE),
    (WHOLE | BETWEEN, WHOLE | said("(greater than 0; less than 9)")),
    (NUMBER | {"exclusiveMinimum": 0}, NUMBER | said("(greater than 0)")),
    (WHOLE | LEAST | {"exclusiveMinimum": True}, WHOLE | LEAST | said("(greater than 3)")),
    (True, {}),
    (False, None),
    ({"anyOf": [TEXT, WHOLE, False]}, {"anyOf": [TEXT, WHOLE]}),
    (TEXT | {"not": {"const": "a"}}, TEXT),
    (OBJECT | {"if": {}, "then": {}, "else": {}, "dependentSchemas": {}}, OBJECT),
    (TEXT | {"format": "email"} | said("Who"), TEXT | said("Who (format: email)")),
    (TEXT | {"format": "date-time"}, TEXT | {"format": "date-time"}),
    (LIST | {"items": [TEXT, WHOLE]}, LIST | {"prefixItems": [TEXT, WHOLE], "items": {}}),
    (OBJECT | {"additionalProperties": NULL}, OBJECT | said("(any keys with values of type null)")),
    (TEXT | {"x-order": 1, "examples": ["a"], "$comment": "c", "deprecated": True}, TEXT),
    ({"properties": {"a": NULL}}, OBJECT | {"properties": {"a": NULL}}),
]


def test_a_shape_that_gemini_refuses_is_said_otherwise() -> None:
    for shape, expected in SHAPES:
        with row(shape):
            assert x(of(shape)) == expected
    for empty in ({}, OBJECT, OBJECT | {"additionalProperties": False}):
        assert to_gemini(empty) == OBJECT | {"properties": {}}


def test_schema_keywords_of_the_document_are_removed_at_every_depth() -> None:
    closed = {"$schema": "s", "additionalProperties": False, "$id": "i"}
    listed = LIST | {"items": {"additionalProperties": True}}
    inner = OBJECT | closed | {"properties": {"y": listed}}
    expected = OBJECT | {"properties": {"y": LIST | {"items": {}}}}
    assert x(of(inner, **closed)) == expected


CHILDREN: Final[Schema] = LIST | {"items": {"$ref": "#/$defs/Tree"}}
CUT: Final[Schema] = OBJECT | {"properties": {"name": TEXT, "children": LIST | {"items": OBJECT}}}
TREE: Final[Schema] = OBJECT | {"properties": {"name": TEXT, "children": CHILDREN}}


def test_references_are_inlined_and_cycles_cut_where_they_close() -> None:
    rows: list[tuple[str, Schema, Schema]] = [
        ("#/definitions/P", {"definitions": {"P": WHOLE}}, WHOLE),
        ("//x.test/s#/$defs/P", {"$id": "//x.test/s", "$defs": {"P": WHOLE}}, WHOLE),
        ("#/$defs/A%20B/allOf/0", {"$defs": {"A B": {"allOf": [WHOLE]}}}, WHOLE),
        ("#/$defs/A", {"$defs": {"A": {"$ref": "#/$defs/A"}}}, OBJECT),
        ("#/$defs/Missing", {}, {}),
        ("#/$defs/Tree", {"$defs": {"Tree": TREE}}, CUT),
    ]
    for reference, more, expected in rows:
        with row(reference):
            assert x(of({"$ref": reference}, **more)) == expected
    defined = {"Person/x": TEXT | {"minLength": 1} | said("Any")}
    mine = of({"$ref": "#/$defs/Person~1x"} | said("Mine"), **{"$defs": defined})
    assert x(mine) == TEXT | {"minLength": 1} | said("Mine"), "what stands beside it wins"


def test_what_a_name_refers_to_may_be_anything() -> None:
    defined = {"P": WHOLE | {"$id": "person", "$anchor": "p"}}
    for reference in ["#p", "person", "person#/x", "#/$defs/nowhere"]:
        with row(reference):
            schema = of({"$ref": reference} | said("Who"), required=["x"], **{"$defs": defined})
            anything = OBJECT | {"properties": {"x": said("Who")}, "required": ["x"]}
            assert convert_schema(schema) == (anything, ())


REMOTE: Schema = {"$ref": "http://127.0.0.1:9/schema.json"}


def test_another_document_is_never_fetched_and_makes_the_tool_unusable() -> None:
    inner = of(REMOTE, required=["x"])
    for schema in [REMOTE, inner, of(inner, required=["x"])]:
        with row(schema), pytest.raises(UnusableSchemaError, match="another document"):
            to_gemini(schema)


def test_an_optional_property_that_cannot_be_translated_is_left_out_and_named() -> None:
    rows: list[tuple[Schema | bool, str]] = [
        (REMOTE, "its schema refers to another document: http://127.0.0.1:9/schema.json"),
        ({"type": "array", "items": REMOTE}, "its schema refers to another document"),
        ({"anyOf": [TEXT, REMOTE]}, "its schema refers to another document"),
        (of(REMOTE, required=["x"]), "its required parameter “x” cannot be used: its schema ref"),
        (False, "no value fits its schema"),
        ({"enum": ["x" * 900 + str(n) for n in range(250)]}, "its schema is too large"),
        ({"properties": {f"p{n}": {"not": {}} for n in range(3_000)}}, ""),
    ]
    for child, reason in rows:
        with row(child):
            schema = {"properties": {"x": child, "y": TEXT}, "required": ["y"]}
            converted, left_out = convert_schema(schema)
            assert refusals(converted) == []
            assert converted["properties"]["y"] == TEXT
            assert ("x" in converted["properties"]) is not bool(reason)
            assert left_out[0].startswith(f"parameter “x”: {reason}" if reason else "parameter “p")


def test_alternatives_of_the_root_are_folded_into_it() -> None:
    ways = [
        {"properties": {"kind": {"const": "x"}, "b": TEXT}, "required": ["kind"]},
        {"properties": {"kind": {"const": "y"}}, "required": ["kind", "a"]},
    ]
    converted = to_gemini(OBJECT | {"properties": {"a": TEXT}, "anyOf": ways})
    assert refusals(converted) == []
    assert converted["required"] == ["kind"]
    assert converted["properties"]["kind"] == TEXT | {"enum": ["x", "y"]}
    assert set(converted["properties"]) == {"a", "kind", "b"}


def test_a_schema_that_explodes_when_inlined_is_kept_shallow_and_cheap() -> None:
    definitions: Schema = {"d20": TEXT}
    for n in range(20):
        definitions[f"d{n}"] = {"properties": {k: {"$ref": f"#/$defs/d{n + 1}"} for k in "abcd"}}
    began = time.process_time()
    converted = to_gemini(of({"$ref": "#/$defs/d0"}, **{"$defs": definitions}))
    assert time.process_time() - began < 1
    assert refusals(converted) == []
    assert converted["properties"]["x"]["type"] == "object"


def test_neither_depth_nor_a_long_chain_of_references_exhausts_the_stack() -> None:
    deep: Schema = TEXT
    for _ in range(100):
        deep = of(deep)
    assert refusals(to_gemini(deep)) == []
    definitions: Schema = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(5_000)}
    assert refusals(to_gemini(of({"$ref": "#/$defs/d0"}, **{"$defs": definitions}))) == []


def test_too_many_required_properties_make_a_tool_unusable() -> None:
    names = [f"p{n}" for n in range(2_500)]
    schema = {"properties": dict.fromkeys(names, TEXT), "required": names}
    with pytest.raises(UnusableSchemaError, match="too large"):
        to_gemini(schema)
    converted, left_out = convert_schema({**schema, "required": names[-1:]})
    assert refusals(converted) == []
    assert names[-1] in converted["properties"]
    assert len(converted["properties"]) > 1_000
    assert left_out[-1] == f"and {2_500 - len(converted['properties']) - 20:,} more"


def test_arguments_that_are_no_object_make_a_tool_unusable() -> None:
    for kind in ["array", "string", ["array", "null"]]:
        with row(kind), pytest.raises(UnusableSchemaError, match="not an object"):
            to_gemini({"type": kind})


def test_descriptions_are_sanitised_and_limited() -> None:
    converted = x(of({"type": "string", "description": "a\x1b]0;t\x07\u202eb" + "c" * 9_000}))
    assert converted["description"].startswith("a⟨U+202E⟩b")
    assert len(converted["description"]) == 2_048
