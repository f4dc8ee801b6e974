import json
import time
from typing import Any

import pytest

from tui.engine.mcp.schema.to_gemini import convert_schema
from tui.engine.mcp.schema.validate import check_arguments
from tui.model.bounded_json import whole_numbers

Schema = dict[str, Any]
DIALECTS = "https://json-schema.org/draft"


def of(**properties: object) -> Schema:
    return {"type": "object", "properties": properties}


def test_what_is_wrong_is_said_with_its_place() -> None:
    schema = of(
        path={"type": "string"}, lines={"type": "array", "items": {"type": "integer", "minimum": 1}}
    ) | {"required": ["path"], "additionalProperties": False}
    messages = check_arguments(schema, {"lines": [1, 0, "x"], "other": 1})
    assert sorted(messages) == [
        "arguments.lines[1]: 0 is less than the minimum of 1",
        "arguments.lines[2]: 'x' is not of type 'integer'",
        "arguments: 'path' is a required property",
        "arguments: Additional properties are not allowed ('other' was unexpected)",
    ]


def test_good_arguments_have_no_fault() -> None:
    assert check_arguments(of(a={"type": "integer"}), {"a": 1}) == []
    assert check_arguments({}, {"a": 1}) == []


def test_the_draft_is_the_one_that_the_schema_names() -> None:
    tuple_schema = of(p={"items": [{"type": "string"}, {"type": "integer"}]})
    draft7 = {"$schema": "http://json-schema.org/draft-07/schema#", **tuple_schema}
    [message] = check_arguments(draft7, {"p": ["a", "b"]})
    assert message == "arguments.p[1]: 'b' is not of type 'integer'"


def test_by_a_dialect_that_is_unknown_nothing_is_checked_and_that_is_said() -> None:
    known = ("http://json-schema.org/draft-04/schema", f"{DIALECTS}/2019-09/schema#")
    unknown = (f"{DIALECTS}/2031-01/schema", "https://example.com/own\x1b[2J", 7)
    for dialect in (*known, *unknown):
        schema = {"$schema": dialect, **of(a={"type": "integer"})}
        is_unknown = dialect in unknown
        assert (check_arguments(schema, {"a": "x"}) == []) is is_unknown, dialect
        said = [words for words in convert_schema(schema)[1] if "unknown dialect" in words]
        assert len(said) == is_unknown
        assert "\x1b" not in "".join(said)


def test_a_schema_that_cannot_be_used_checks_nothing() -> None:
    references = ("http://127.0.0.1:9/never", "#/nowhere", "#/properties/a")
    odd = [of(a={"$ref": reference}) for reference in references]
    odd += [of(a={"type": "nonsense"}), of(a={"minimum": "3"}), {"required": 5}, {"$schema": 7}]
    for schema in odd:
        assert check_arguments({"type": "object", **schema}, {"a": 1}) == [], schema


def test_messages_are_few_short_and_clean() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "integer"}}
    messages = check_arguments(schema, {f"k{n}\x1b[2J": "\x1b]52;c;x\x07" * 500 for n in range(50)})
    assert len(messages) == 10
    assert all(len(message) <= 300 and "\x1b" not in message for message in messages)


def test_a_cheap_expression_is_tried() -> None:
    [message] = check_arguments(of(a={"type": "string", "pattern": "^(get|put)$"}), {"a": "post"})
    assert "does not match" in message


def test_many_expressions_share_one_budget() -> None:
    schema = of(a={"type": "array", "items": {"pattern": "^(a|aa)+$"}})
    began = time.process_time()
    assert check_arguments(schema, {"a": ["a" * 60 + "!"] * 2_000}) == []
    assert time.process_time() - began < 2


def test_items_are_unique_as_json_compares_them() -> None:
    unique = [[1, 2, "1", True, [1], {"a": 1}], [True, 1, False, 0, None]]
    alike = [[1, 1.0], [{"a": 1, "b": [2.0]}, {"b": [2], "a": 1}], [0.5, 0.5]]
    for items in [*unique, *alike]:
        messages = check_arguments(of(a={"uniqueItems": True}), {"a": items})
        assert (messages == []) is (items in unique), items
        assert check_arguments(of(a={"uniqueItems": False}), {"a": items}) == []


def test_the_uniqueness_of_many_items_is_checked_in_linear_time() -> None:
    items = [{"n": n, "of": {"many": n}} for n in range(1_000)]
    began = time.process_time()
    assert check_arguments(of(a={"uniqueItems": True}), {"a": items}) == []
    assert len(check_arguments(of(a={"uniqueItems": True}), {"a": [*items, items[7]]})) == 1
    assert time.process_time() - began < 1


def test_properties_by_pattern_are_checked_within_the_same_bounds() -> None:
    patterns = {"^n_": {"type": "integer"}, "^(a+)+$": {"type": "integer"}}
    schema = of() | {"patternProperties": patterns, "additionalProperties": False}
    [message] = check_arguments(schema, {"n_1": "x", "a" * 40 + "!": 1})
    assert message == "arguments.n_1: 'x' is not of type 'integer'"


@pytest.mark.slow
def test_a_schema_that_multiplies_itself_ends_soon() -> None:
    doubling: Schema = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}
    doubling["d40"] = {"type": "string"}
    schema = of(a={"$ref": "#/$defs/d0"}) | {"$defs": doubling}
    began = time.process_time()
    assert check_arguments(schema, {"a": 1}) == []
    assert time.process_time() - began < 2


def test_whole_floats_become_integers_unless_they_are_too_large_to_be_exact() -> None:
    given = {"count": 3.0, "half": 2.5, "listed": [1.0, {"n": 4.0}], "huge": 1e300, "yes": True}
    whole = whole_numbers(given)
    said = '{"count": 3, "half": 2.5, "listed": [1, {"n": 4}], "huge": 1e+300, "yes": true}'
    assert json.dumps(whole) == said
    assert type(given["count"]) is float
