import json
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.unit.engine.demo.offers import FLAG, NUMBER, TEXT, WHOLE, WORDS, declare
from tui.engine.demo.arguments import fill
from tui.engine.demo.planning import Plan, make_plan


@pytest.mark.parametrize(
    ("schema", "request_", "value"),
    [
        (TEXT, 'run "two words"', "two words"),
        (TEXT, "run: two words", "two words"),
        (TEXT, "run 'single' now", "single"),
        (TEXT, "run value=plain", "plain"),
        (TEXT, "run with value two words", "two words"),
        ({"type": ["string", "null"]}, "run: x", "x"),
        ({"anyOf": [{"type": "null"}, WHOLE]}, "run 4", 4),
        ({"$ref": "#/$defs/Count"}, "run 5", 5),
        (WHOLE, "run 3", 3),
        (WHOLE, "run 3.0 times", 3),
        (WHOLE, "run -3", -3),
        (WHOLE, "run seven times", 7),
        (NUMBER, "run 2.5", 2.5),
        (NUMBER, "run: 12", 12),
        (FLAG, "run with value", True),
        (FLAG, "run without value", False),
        (FLAG, "run value=off", False),
        (FLAG, "run: yes", True),
        ({"enum": ["red", "light blue"]}, "run in LIGHT BLUE", "light blue"),
        ({"type": "integer", "enum": [10, 20]}, "run 20", 20),
        ({"const": "fixed"}, "run", "fixed"),
        (WORDS, "run: a, b and c", ["a", "b", "c"]),
        (WORDS, 'run value: "a b", c', ["a b", "c"]),
        ({"type": "array", "items": NUMBER}, "run 1, 2.5 and 3", [1, 2.5, 3]),
        ({"type": "array", "items": {"enum": ["a1", "b2"]}}, "run b2 and a1", ["b2", "a1"]),
        ({"type": "string", "format": "date"}, "run on 2026-11-21", "2026-11-21"),
        ({"type": "string", "format": "uri"}, "run http://localhost/a.", "http://localhost/a"),
        ({"type": "string", "format": "email"}, "run for a@localhost.test", "a@localhost.test"),
        ({"type": "object"}, 'run {"a": 1}', {"a": 1}),
        ({"type": "string", "default": "x"}, "run", "x"),
    ],
)
def test_a_value_is_filled_as_its_schema_says(
    schema: dict[str, Any], request_: str, value: object
) -> None:
    tool = declare("run", required={"value": schema})
    tool["parametersJsonSchema"]["$defs"] = {"Count": WHOLE}
    filled = fill(tool, request_)
    assert filled.arguments == {"value": value}
    assert filled.missing == ()


@pytest.mark.parametrize(
    ("schema", "request_"),
    [
        (WHOLE, "run 2.5"),
        ({"type": "integer", "maximum": 5}, "run 6"),
        ({"type": "number", "exclusiveMinimum": 0}, "run 0"),
        ({"enum": ["red", "blue"]}, "run green"),
        ({"type": "string", "maxLength": 3}, "run: four"),
        ({"type": "array", "minItems": 3, "items": TEXT}, "run: a, b"),
        ({"type": "string", "format": "date"}, "run some other day"),
        ({"type": "object"}, "run {not json}"),
        ({"type": "object"}, "run " + '{"a":' * 3000),
        (False, "run 1"),
        ({"type": "martian"}, "run: x"),
    ],
)
def test_what_does_not_fit_the_schema_is_asked_for(schema: object, request_: str) -> None:
    filled = fill(declare("run", required={"value": schema}), request_)
    assert filled.arguments == {}
    assert [parameter.name for parameter in filled.missing] == ["value"]


def test_optional_arguments_are_left_to_the_server_unless_they_are_said() -> None:
    tool = declare("run", optional={"a": TEXT, "b": WHOLE, "flag": FLAG, "words": WORDS})
    assert fill(tool, "run it: hello and goodbye").arguments == {}


def test_named_arguments_come_in_any_order() -> None:
    tool = declare("run", required={"first": TEXT, "second": WHOLE, "third": FLAG})
    filled = fill(tool, 'run third=no second: 4, first="x y"')
    assert filled.arguments == {"first": "x y", "second": 4, "third": False}
    assert list(filled.arguments) == ["first", "second", "third"]


def test_a_json_object_in_the_request_gives_the_arguments() -> None:
    tool = declare("run", required={"a": TEXT, "b": WHOLE})
    assert fill(tool, 'run {"b": 2, "a": "one: two"}').arguments == {"a": "one: two", "b": 2}
    assert fill(tool, 'run {"b": NaN, "a": "x"}').arguments != {"a": "x", "b": 2}


SCALARS = st.one_of(
    st.builds(
        lambda low, length: {"type": "string", "minLength": low, "maxLength": low + length},
        st.integers(0, 5),
        st.integers(0, 40),
    ),
    st.builds(
        lambda low, size: {"type": "integer", "minimum": low, "maximum": low + size},
        st.integers(-50, 50),
        st.integers(0, 1000),
    ),
    st.sampled_from([TEXT, WHOLE, NUMBER, FLAG, {"type": "number", "exclusiveMinimum": 1}]),
    st.builds(
        lambda values: {"type": "string", "enum": values},
        st.lists(st.text(max_size=8), min_size=1, max_size=4),
    ),
    st.builds(lambda values: {"enum": values}, st.lists(st.integers(-9, 9), min_size=1)),
    st.builds(lambda value: {"const": value}, st.text(max_size=5)),
)
SCHEMAS = st.one_of(
    SCALARS,
    st.builds(lambda one: {"anyOf": [one, {"type": "null"}]}, SCALARS),
    st.builds(
        lambda item, most, unique: {
            "type": "array",
            "items": item,
            "maxItems": most,
            "uniqueItems": unique,
        },
        SCALARS,
        st.integers(0, 4),
        st.booleans(),
    ),
)
NAMES = st.sampled_from(
    ["text", "id", "path", "tags", "limit", "a", "is", "seconds_per_step", "includeImage", "_", "Ü"]
)
PIECES = (
    *("run", "the", "text", "id:", "tags=", "a,", "b", "and", "then", "3", "2.5", "-7", "not"),
    *("seconds", "'x'", '"y z"', "#t", "/srv/x", ";", "2026-01-02", "http://h.x/y", "a@b.cd"),
    *('{"id": 1}', "limit", "include", "image", "without", "yes", "{", "seven", "=", ":"),
)
PHRASES = st.lists(st.sampled_from(PIECES) | st.text(max_size=6), max_size=12).map(" ".join)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    required=st.dictionaries(NAMES, SCHEMAS, max_size=4),
    optional=st.dictionaries(NAMES, SCHEMAS, max_size=3),
    request_=PHRASES,
)
def test_what_is_filled_is_valid_and_what_is_not_is_asked_for(
    required: dict[str, Any], optional: dict[str, Any], request_: str
) -> None:
    optional = {name: schema for name, schema in optional.items() if name not in required}
    tool = declare("run", required=required, optional=optional)
    filled = fill(tool, request_)
    missing = {parameter.name for parameter in filled.missing}
    schema = dict(tool["parametersJsonSchema"])
    schema["required"] = [name for name in required if name not in missing]
    jsonschema.validate(filled.arguments, schema)
    json.dumps(filled.arguments)
    assert missing.isdisjoint(filled.arguments)


KEYWORDS = (
    *("type", "properties", "required", "items", "anyOf", "oneOf", "enum", "const", "$ref"),
    *("minimum", "maxLength", "text", "a", "default", "description", "format"),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYWORDS) | st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)
ITSELF = {"$ref": "#/properties/a"}


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(schema={"properties": {"a": ITSELF}}, request_="run text: 1")
@example(schema={"properties": {"a": {"type": "array", "items": ITSELF}}}, request_="run text: 1")
@given(schema=JSON, request_=PHRASES)
def test_no_schema_and_no_request_breaks_the_model(schema: object, request_: str) -> None:
    whole = {"name": "run_text", "description": "Run the text", "parametersJsonSchema": schema}
    inner = {"properties": {"a": schema}, "required": ["a"]}
    for declaration in (whole, {"name": "run", "parametersJsonSchema": inner}):
        assert isinstance(make_plan(request_, [declaration]), Plan)
