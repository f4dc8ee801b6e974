"""Forms of tools: against the schemas of real servers, and of generated ones.

``schemas/NAME.json`` has the input schemas of a server's tools as it listed them, their
descriptions shortened: of the reference servers, and of ``@modelcontextprotocol/server-github``
2025.4.8, ``@playwright/mcp`` 0.0.83, ``@notionhq/notion-mcp-server`` 2.5.2 and
``mcp-server-kubernetes`` 4.1.7.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from pathlib import Path
from typing import Any, Final, cast

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.support.rows import row
from tests.unit.engine.mcp.gemini_checker import FLAG, LIST, NULL, NUMBER, OBJECT, TEXT, WHOLE
from tui.engine.mcp.schema.flatten import resolve_reference
from tui.engine.mcp.schema.form_schema import MAX_FIELDS, UnusableFormError
from tui.engine.mcp.schema.tool_form import begin_arguments, merge_tool_form, read_tool_form
from tui.model.requests import FieldKind, FormField, FormValue
from tui.text import sanitize_line

Json = dict[str, Any]
K = FieldKind

FOLDER: Final = Path(__file__).with_name("schemas")
RECORDED: Final[Mapping[str, Mapping[str, Json]]] = {
    file.stem: json.loads(file.read_text("utf-8")) for file in sorted(FOLDER.glob("*.json"))
}
AS_JSON: Final = dict(zip(RECORDED, (0, 3, 1, 6, 13, 8, 4, 0), strict=True))
"""How many fields of a server's forms are JSON: lists, and objects without names of their own."""


def record(*needed: str, **properties: object) -> Json:
    """Make the schema of an object, of which some properties have to be there."""
    return OBJECT | {"properties": properties, "required": [*needed]}


CIRCLE: Final = record("kind", "r", kind={"const": "circle"}, r=NUMBER) | {"title": "Circle"}
SQUARE: Final = record("kind", kind={"const": "square"}, side=NUMBER)
SHOP: Final[Json] = OBJECT | {
    "properties": {
        "name": TEXT | {"title": "Name", "default": "milk"},
        "count": WHOLE | {"enum": [1, 2, 3]},
        "note": {"anyOf": [TEXT, NULL], "default": None},
        "address": record("city", **{"city": TEXT, "a/b~c": WHOLE}),
        "tags": LIST | {"items": TEXT},
        "days": LIST | {"items": {"enum": ["mo", "tu"]}, "minItems": 1},
        "shape": {"oneOf": [CIRCLE, SQUARE]},
        "either": {"type": ["string", "array"], "items": TEXT},
        "other": {"anyOf": [WHOLE, NULL]},
    },
    "required": ["name", "address", "other"],
}


def fields_of(schema: Json, arguments: Json, **choices: str) -> dict[str, FormField]:
    return {field.key: field for field in read_tool_form(schema, arguments, choices)}


def filled(field: FormField, schema: Json) -> FormValue:
    """Fill in a field that is empty, with what its kind takes."""
    least = 0 if field.minimum is None else field.minimum
    match field.kind:
        case K.TEXT:
            dated = {"date": "2026-01-02", "date-time": "2026-01-02T03:04:05Z"}
            text = {**dated, "email": "a@example.org", "uri": "https://example.org/"}
            return text.get(field.format, "x".ljust(int(least), "é"))
        case K.INTEGER:
            return math.ceil(least) if field.minimum is not None or field.maximum is None else 0
        case K.NUMBER:
            return float(least)
        case K.BOOLEAN:
            return True
        case K.CHOICE:
            return field.options[-1].value
        case K.ROWS:
            return ("",) * max(1, int(least))
        case K.CHOICES:
            return tuple(option.value for option in field.options[: max(1, int(least))])
        case K.JSON:
            return json.dumps(value_at(schema, field.key))


def parts(schema: Json, document: Json) -> Iterator[Json]:
    """Give a schema and all that is joined to it, or is the first that may be in its place."""
    if "$ref" in schema:
        schema = cast("Json", resolve_reference(document, schema["$ref"]))
    yield schema
    first = [schema[key][0] for key in ("anyOf", "oneOf") if key in schema]
    for one in (*schema.get("allOf", ()), *first):
        yield from parts(one, document)


def sample(schema: Json, document: Json) -> object:
    """Make a value for a schema."""
    found = list(parts(schema, document))
    said: Json = {key: value for one in reversed(found) for key, value in one.items()}
    if "const" in said or said.get("enum"):
        return said.get("const", (said.get("enum") or [None])[0])
    kinds = said.get("type", "object")
    match kinds if isinstance(kinds, str) else kinds[0]:
        case "array":
            return [sample(said["items"], document)] * int(said.get("minItems", 1))
        case "object":
            inner = {k: v for one in found[::-1] for k, v in one.get("properties", {}).items()}
            needed = {name for one in found for name in one.get("required", ())}
            return {name: sample(inner[name], document) for name in needed}
        case kind:
            field = FormField("", {"string": K.TEXT, "boolean": K.BOOLEAN}.get(kind, K.INTEGER), "")
            least, most = (said.get(key) for key in ("minimum", "maximum"))
            more = {"minimum": least, "maximum": most, "format": said.get("format", "")}
            return filled(replace(field, **more), document)


def value_at(document: Json, pointer: str) -> object:
    """Make a value for a place in the arguments."""
    place = document
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        inside = [
            {"0": one["items"]} if "items" in one else one.get("properties", {})
            for one in parts(place, document)
        ]
        place = next(one[key] for one in inside for key in one if sanitize_line(key) == name)
    return sample(place, document)


def in_step(schema: Json, arguments: Json, choices: Mapping[str, str]) -> tuple[FormField, ...]:
    """Show arguments, and see that a form that nobody touched gives them back."""
    fields = read_tool_form(schema, arguments, choices)
    untouched = {field.key: field.default for field in fields}
    for entered in (untouched, {}):
        merged = merge_tool_form(schema, arguments, choices, entered)
        assert json.dumps(merged) == json.dumps(arguments), "the types as well"
    return fields


def fill_all(schema: Json) -> tuple[Json, dict[str, str]]:
    """Fill in all fields of a form, alternatives first, and follow each step in the JSON."""
    arguments, choices = begin_arguments(schema), dict[str, str]()
    for _ in range(8):
        fields = in_step(schema, arguments, choices)
        empty = [field for field in fields if field.default is None]
        choosing = next((one for one in empty if one.key.endswith("?") or one.kind is K.ROWS), None)
        if choosing is None:
            break
        rows = choosing.kind is K.ROWS
        entered = {choosing.key: filled(choosing, schema)} if rows else {}
        chosen = {choosing.key: "0" if rows else choosing.options[0].value}
        arguments = merge_tool_form(schema, arguments, choices, entered or chosen)
        choices |= chosen
    entered = {field.key: filled(field, schema) for field in empty}
    merged = merge_tool_form(schema, arguments, choices, entered)
    after = {field.key: field for field in in_step(schema, merged, choices)}
    for field in empty:
        shown = after[field.key]
        if shown.kind is field.kind is not K.JSON:
            assert shown.default == entered[field.key], field
    assert merge_tool_form(schema, json.loads(json.dumps(merged)), choices, {}) == merged
    return merged, choices


def faults(schema: Json, arguments: Json) -> list[str]:
    return [error.message for error in Draft202012Validator(schema).iter_errors(arguments)]


@pytest.mark.parametrize("server", sorted(AS_JSON))
def test_every_tool_of_real_servers_has_a_form_whose_arguments_are_valid(server: str) -> None:
    as_json = 0
    for tool, schema in RECORDED[server].items():
        begun = begin_arguments(schema)
        for name, definition in schema.get("properties", {}).items():
            if (default := definition.get("default")) is not None:
                assert begun[name] == default, tool
        fields = read_tool_form(schema, begun, {})
        as_json += sum(field.kind is K.JSON for field in fields)
        shown = {field.key.split("/")[1].rstrip("?") for field in fields}
        assert shown == set(schema.get("properties", {})), tool
        needed = {f"/{name}" for name in schema.get("required", ())}
        marked = {field.key.rstrip("?") for field in fields if field.required}
        assert all(any(one.startswith(key) for one in marked) for key in needed - marked), tool
        merged, _ = fill_all(schema)
        assert faults(schema, merged) == [], (tool, merged)
    assert as_json == AS_JSON[server]


NAMES = st.sampled_from(["city", "a/b", "~", "größe", "x y", "\u202ekey", ""])
TEXTS = st.text(max_size=20)
SEVERAL = st.lists(TEXTS, min_size=1, max_size=4, unique=True)
FORMATS = st.sampled_from(["email", "uri", "date", "date-time", "odd"])


def with_default(schema: Json, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    defaults = st.one_of(st.just({}), st.builds(lambda value: {"default": value}, values))
    return st.builds(lambda more: {**schema, **more}, defaults)


def numbers(kind: str) -> st.SearchStrategy[Json]:
    def bounded(low: int, span: int) -> st.SearchStrategy[Json]:
        schema: Json = {"type": kind, "minimum": low, "maximum": low + span}
        return with_default(schema, st.integers(low, low + span))

    bounds = st.tuples(st.integers(-9, 9), st.integers(0, 9)).flatmap(lambda one: bounded(*one))
    return st.one_of(bounds, with_default({"type": kind}, st.integers(-99, 99)))


def choices_of(values: list[Any]) -> st.SearchStrategy[Json]:
    return with_default({"enum": values}, st.sampled_from(values))


SCALARS = st.one_of(
    with_default({"type": "string", "minLength": 0, "maxLength": 40}, TEXTS),
    FORMATS.map(lambda one: TEXT | {"format": one}),
    numbers("integer"),
    numbers("number"),
    with_default(FLAG, st.booleans()),
    SEVERAL.flatmap(choices_of),
    st.lists(
        st.one_of(st.integers(), st.booleans(), st.none(), st.sampled_from(["1", "true", "null"])),
        min_size=1,
        max_size=4,
        unique_by=json.dumps,
    ).flatmap(choices_of),
)


def objects(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    def made(properties: Json, chosen: Sequence[bool]) -> Json:
        return record(*compress(properties, chosen), **properties)

    properties = st.dictionaries(NAMES, inner, min_size=1, max_size=4)
    return st.builds(made, properties, st.lists(st.booleans(), min_size=4, max_size=4))


def compound(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    def alternatives(first: Json, second: Json, key: str) -> Json:
        for number, one in enumerate((first, second)):
            one["properties"] = {**one["properties"], "kind": {"const": f"kind {number}"}}
            one["required"] = [*one["required"], "kind"]
        return {key: [first, second]}

    several = SEVERAL.map(lambda one: LIST | {"items": TEXT | {"enum": one}})
    two = st.sampled_from(["oneOf", "anyOf"])
    return st.one_of(
        objects(inner),
        inner.map(lambda one: LIST | {"items": one}),
        several,
        inner.map(lambda one: {"anyOf": [one, NULL]}),
        st.builds(alternatives, objects(inner), objects(inner), two),
        inner.map(lambda one: {"allOf": [{"description": "d\x1b[2J"}, one]}),
        st.just(OBJECT | {"additionalProperties": TEXT}),
    )


SCHEMAS = objects(st.recursive(SCALARS, compound, max_leaves=8))

NOTES_OR_NULL: Final = {"anyOf": [OBJECT | {"additionalProperties": TEXT}, NULL]}
NULL_IN_ONE: Final = record(
    "city",
    city={
        "oneOf": [
            record("notes", "kind", notes=NOTES_OR_NULL, kind={"const": "kind 0"}),
            record("kind", kind={"const": "kind 1"}),
        ]
    },
)
"""What one of its alternatives must have may be null."""


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(SCHEMAS)
@example(NULL_IN_ONE)
def test_what_a_form_builds_is_valid_and_stays_in_step_with_its_json(schema: Json) -> None:
    merged, choices = fill_all(schema)
    assert faults(schema, merged) == [], merged
    fields = read_tool_form(schema, merged, choices)
    assert len({field.key for field in fields}) == len(fields)
    odd = [field for field in fields if not (field.title + field.key).isprintable()]
    assert odd == []
    emptied: dict[str, FormValue] = {f.key: None for f in fields if not f.required}
    assert faults(schema, merge_tool_form(schema, merged, choices, emptied)) == []


def test_fields_are_named_by_their_places_and_begin_with_the_defaults_alone() -> None:
    begun = begin_arguments(SHOP)
    assert begun == {"name": "milk", "address": {}, "other": None}, "a null says there is none"
    fields = fields_of(SHOP, begun)
    assert [(key, field.kind) for key, field in fields.items()] == [
        *(("/name", K.TEXT), ("/count", K.CHOICE), ("/note", K.TEXT), ("/address/city", K.TEXT)),
        *(("/address/a~1b~0c", K.INTEGER), ("/tags", K.JSON), ("/days", K.CHOICES)),
        *(("/shape?", K.CHOICE), ("/either?", K.CHOICE), ("/other", K.INTEGER)),
    ]
    assert [key for key, field in fields.items() if field.required] == ["/name", "/address/city"]
    assert (fields["/address/city"].title, fields["/address/city"].around) == ("city", ("address",))
    assert (fields["/name"].title, fields["/name"].default) == ("name", "milk")
    assert [option.label for option in fields["/shape?"].options] == ["Circle", "square"]
    assert [option.label for option in fields["/either?"].options] == ["string", "array"]


def test_what_is_entered_goes_where_it_belongs_and_emptied_fields_take_their_values_away() -> None:
    entered: dict[str, FormValue] = {"/name": None, "/count": "2", "/address/city": "Bonn"}
    entered |= {"/tags": '["a", 1]', "/days": ("tu",), "/other": 5}
    merged = merge_tool_form(SHOP, begin_arguments(SHOP), {}, entered)
    address = {"city": "Bonn"}
    expected = {"count": 2, "address": address, "tags": ["a", 1], "days": ["tu"], "other": 5}
    assert merged == expected
    again = merge_tool_form(SHOP, merged, {}, {"/address/city": None, "/other": None})
    assert again == {**expected, "address": {}, "other": None}, "both have to be there"


def test_an_alternative_is_chosen_by_hand_or_by_the_value_and_only_its_own_values_stay() -> None:
    begun: Json = {"shape": {"kind": "square", "side": 2.0, "extra": 1}}
    assert fields_of(SHOP, begun)["/shape?"].default == "1"
    circle = merge_tool_form(SHOP, begun, {}, {"/shape?": "0", "/shape/side": 3.0})
    assert circle["shape"] == {"kind": "circle", "extra": 1}
    fields = {f.key: f for f in read_tool_form(SHOP, circle, {"/shape?": "0"})}
    assert (fields["/shape/kind"].default, fields["/shape/r"].required) == ("circle", True)
    assert fields_of(SHOP, begun, **{"/shape?": "0"})["/shape?"].default == "1", "by other JSON"
    gone = merge_tool_form(SHOP, circle, {"/shape?": "0"}, {"/shape?": None})
    assert "shape" not in gone
    listed = merge_tool_form(SHOP, {"either": ["a"]}, {}, {"/either?": "0"})
    assert "either" not in listed, "a list is no text"


def test_of_all_arguments_only_those_of_the_chosen_alternative_stay() -> None:
    ways = [record(name, **{name: WHOLE}) for name in ("id", "row")]
    schema = record(file=TEXT) | {"oneOf": ways}
    begun: Json = {"file": "a", "id": 1, "more": True}
    assert fields_of(schema, begun)["?"].default == "0"
    assert merge_tool_form(schema, begun, {}, {"?": "1"}) == {"file": "a", "more": True}


def test_options_that_are_no_texts_are_named_as_in_json() -> None:
    schema: Json = {"properties": {"x": {"enum": ["a", None, True, 2.5, [1]]}}}
    [field] = read_tool_form(schema, {"x": True}, {})
    assert [one.label for one in field.options] == ["a", "null", "true", "2.5", "[1]"]
    assert field.default == "true"
    assert merge_tool_form(schema, {}, {}, {"/x": "[1]"}) == {"x": [1]}


def test_nothing_is_lost_that_no_field_shows_or_that_fits_no_row() -> None:
    odd: Json = {"unknown": {"deep": [1]}, "name": "two\nlines \x1b[2J", "count": 7}
    odd |= {"address": {"city": "Bonn", "more": None}, "days": ["tu", "mo"], "shape": "no such"}
    fields = {field.key: field for field in in_step(SHOP, odd, {})}
    as_json = {key: field.default for key, field in fields.items() if field.kind is K.JSON}
    assert as_json == {
        "/name": '"two\\nlines \\u001b[2J"',
        "/count": "7",
        "/tags": None,
        "/days": '["tu", "mo"]',
        "/shape": '"no such"',
    }
    changed = merge_tool_form(SHOP, odd, {}, {"/address/city": "Ulm", "/name": '"a\\nb"'})
    address = {"city": "Ulm", "more": None}
    assert changed == {**odd, "name": "a\nb", "address": address, "other": None}


CALL: Final = record(
    "path",
    path=TEXT | {"default": "/"},
    depth=WHOLE | {"minimum": 0},
    ratio=NUMBER,
    deep=FLAG | {"default": True},
    kind=TEXT | {"enum": ["a", "b"]},
    kinds=LIST | {"items": TEXT | {"enum": ["a", "b"]}},
)


def test_an_argument_that_its_row_cannot_show_is_json_and_a_missing_one_is_missing() -> None:
    shown: list[Json] = [
        *({"path": one} for one in ("/tmp", "", "a  b", "漢")),
        *({"depth": one} for one in (0, 1.0, 10**30)),
        *({"ratio": one} for one in (1.5, 2)),
        *({"deep": False}, {"kind": "b"}, {"kinds": ["a", "b"]}, {}),
    ]
    odd: list[Json] = [
        *({"path": one} for one in ("two\nlines", "a\u202eb", "\u3164", "x" * 5_000)),
        *({"path": None}, {"path": 5}),
        *({"depth": one} for one in (True, "1")),
        *({"ratio": "1"}, {"deep": 1}, {"deep": "yes"}, {"kind": "c"}),
        *({"kinds": one} for one in (["b", "a"], ["a", "a"], ["c"], [])),
        *({"kinds": "a"}, {"kinds": [{}]}),
    ]
    for number, arguments in enumerate(shown + odd):
        is_odd = number >= len(shown)
        fields = {field.key.lstrip("/"): field for field in in_step(CALL, arguments, {})}
        assert [*fields] == [*CALL["properties"]]
        rows = {name: one for name, one in fields.items() if one.default is not None}
        assert [*rows] == [*arguments]
        for name, it in rows.items():
            assert (it.kind is K.JSON) is is_odd, arguments
            assert str(it.default).isprintable(), arguments
            assert "\u3164" not in str(it.default)
            assert it.kind is not K.JSON or json.loads(str(it.default)) == arguments[name]


def test_json_that_cannot_be_read_is_refused_by_the_name_of_its_field() -> None:
    for text in ["[1", "1, 2", '1, "value": 2', "NaN", '{"a": 1, "a": 2}', ""]:
        with row(text), pytest.raises(ValueError, match=r"^tags is not valid JSON: "):
            merge_tool_form(SHOP, {}, {}, {"/tags": text})


MANY: Final[list[Json]] = [{"properties": {f"{a}{b}": {} for a in range(200)}} for b in range(200)]
HEAVY: Final[Json] = {"properties": {"x": {"allOf": MANY}}}
WIDE: Final[Json] = {
    "properties": {f"{n}": {"$ref": "#x"} for n in range(3_000)},
    "$defs": {f"{n}": {"$anchor": "x"} for n in range(3_000)},
}
"""Looking for what each of these refers to would take seconds."""
CYCLE: Final[Json] = {"anyOf": [{"$ref": "#/$defs/a"}, TEXT]}


def test_a_schema_that_no_form_can_be_made_of_is_refused() -> None:
    rows: list[tuple[Json, str]] = [
        ({"properties": {str(n): {} for n in range(MAX_FIELDS + 1)}}, "more than 50 fields"),
        ({"properties": {"x": {"$ref": "#/nowhere"}}}, "refers to something outside it"),
        ({"properties": {"x": {"$ref": "https://example.org/x"}}}, "something outside it"),
        ({"allOf": [{"$ref": "#"}]}, "schema is circular"),
        (HEAVY, "too large"),
        (WIDE, "too large"),
        ({"properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": {"a": CYCLE}}, "schema is circular"),
    ]
    for schema, words in rows:
        with row(schema), pytest.raises(UnusableFormError, match=words):
            read_tool_form(schema, {}, {})


def test_what_is_nested_too_deeply_or_has_too_many_fields_becomes_json() -> None:
    person = record("name", "parent", name=TEXT, parent={"$ref": "#/$defs/person"})
    schema = {"properties": {"one": {"$ref": "#/$defs/person"}}, "$defs": {"person": person}}
    fields = in_step(schema, begin_arguments(schema), {})
    assert [field.key for field in fields if field.kind is K.JSON] == ["/one" + "/parent" * 4]
    wide = {"properties": {str(n): TEXT for n in range(30)}}
    fields = in_step({"properties": {"a": wide, "b": wide}}, {}, {})
    assert [field.key for field in fields if field.kind is K.JSON] == ["/b"]
    assert len(fields) <= MAX_FIELDS
