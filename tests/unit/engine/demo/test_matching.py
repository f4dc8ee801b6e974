import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.engine.demo.offers import (
    ALL,
    DEMO,
    EVERYTHING,
    FLAG,
    NOTES,
    NUMBER,
    TEXT,
    WHOLE,
    WORDS,
    declare,
)
from tui.engine.demo.matching import EXAMPLES, complete_call, find_calls
from tui.engine.mcp.schema.to_gemini import UnusableSchemaError, to_gemini


@pytest.mark.parametrize(
    ("message", "name", "arguments"),
    [
        ("add a note: buy milk", "add_note", {"text": "buy milk"}),
        ("Add a note: buy milk, eggs and bread", "add_note", {"text": "buy milk, eggs and bread"}),
        ("please add a note to call mom", "add_note", {"text": "call mom"}),
        ("add note buy milk", "add_note", {"text": "buy milk"}),
        ('add a note "water plants" please', "add_note", {"text": "water plants"}),
        ("add a note: dentist at 10:30", "add_note", {"text": "dentist at 10:30"}),
        ("add a note: see http://localhost/a:b", "add_note", {"text": "see http://localhost/a:b"}),
        ('add_note text="buy milk" tags=a,b', "add_note", {"text": "buy milk", "tags": ["a", "b"]}),
        ("add a note: tea tags=shop", "add_note", {"text": "tea", "tags": ["shop"]}),
        ("list my notes", "list_notes", {}),
        ("List all notes, please!", "list_notes", {}),
        ("lst my nots", "list_notes", {}),
        ("list 5 notes", "list_notes", {"limit": 5}),
        ("list notes tag=work", "list_notes", {"tag": "work"}),
        ("search notes for basil", "search_notes", {"query": "basil"}),
        ("search my notes about 2024?", "search_notes", {"query": "2024"}),
        ("delete note 2", "delete_note", {"id": 2}),
        ("delete note: 2", "delete_note", {"id": 2}),
        ("update note 2: buy bread", "update_note", {"id": 2, "text": "buy bread"}),
        ("update note 2 to buy bread", "update_note", {"id": 2, "text": "buy bread"}),
        ("count slowly to 3", "count_slowly", {"steps": 3}),
        ("count slowly", "count_slowly", {}),
        (
            "count slowly seconds_per_step=0.1 steps=4",
            "count_slowly",
            {"steps": 4, "seconds_per_step": 0.1},
        ),
        ("research the history of tea", "research", {"topic": "the history of tea"}),
        ("echo hello world", "echo", {"message": "hello world"}),
        ("get the sum of 2 and -3.5", "get-sum", {"a": 2, "b": -3.5}),
        ("Get-Sum: 2 and 3", "get-sum", {"a": 2, "b": 3}),
        (
            "get-annotated-message messageType=error includeImage=yes",
            "get-annotated-message",
            {"messageType": "error", "includeImage": True},
        ),
        (
            'git_commit repo_path=/srv/shop "fix: the bug"',
            "git_commit",
            {"repo_path": "/srv/shop", "message": "fix: the bug"},
        ),
        ("write file /srv/a.txt: hello", "write_file", {"path": "/srv/a.txt", "content": "hello"}),
    ],
)
def test_a_message_that_names_a_tool_becomes_its_call(
    message: str, name: str, arguments: dict[str, Any]
) -> None:
    [call] = find_calls(message, ALL)
    assert (call.name, call.arguments, call.missing) == (name, arguments, ())


@pytest.mark.parametrize("opening", EXAMPLES)
def test_an_example_means_a_bundled_tool_without_naming_it(opening: str) -> None:
    [call] = find_calls(f"{opening.capitalize()} 7", DEMO)
    assert call.name.replace("_", " ").startswith(EXAMPLES[opening].split()[0])
    assert find_calls(opening, EVERYTHING) == []


@pytest.mark.parametrize(
    "message",
    [
        "",
        "?!",
        "hello",
        "what can you do?",
        "tell me a joke",
        "colourless green ideas sleep furiously",
        "undelete note 2",
        "the text says: delete note 2",
        'he said "delete note 2"',
        "text=delete_note",
    ],
)
def test_a_message_that_names_no_tool_leads_to_no_call(message: str) -> None:
    assert find_calls(message, DEMO) == []


@pytest.mark.parametrize(
    ("message", "name", "missing"),
    [
        ("delete note", "delete_note", ("id",)),
        ("delete note id=two", "delete_note", ("id",)),
        ("delete my note about milk", "delete_note", ("id",)),
        ("add a note", "add_note", ("text",)),
        ("add a note:", "add_note", ("text",)),
        ("update_note", "update_note", ("id", "text")),
        ("update note: buy 2 breads", "update_note", ("id",)),
        ("count slowly steps=many", "count_slowly", ("steps",)),
    ],
)
def test_what_is_missing_or_does_not_fit_is_named(
    message: str, name: str, missing: tuple[str, ...]
) -> None:
    [call] = find_calls(message, DEMO)
    assert (call.name, call.missing) == (name, missing)


def test_an_answer_fills_the_first_missing_argument() -> None:
    [call] = find_calls("update_note", DEMO)
    call = complete_call(call, "many")
    assert call.missing == ("id", "text")
    call = complete_call(call, " 3 ")
    assert (call.arguments, call.missing) == ({"id": 3}, ("text",))
    call = complete_call(call, "water it: 2 times")
    assert (call.arguments, call.missing) == ({"id": 3, "text": "water it: 2 times"}, ())


def test_tools_that_are_named_equally_well_are_all_given() -> None:
    calls = find_calls("list my notes and count slowly to 2", DEMO)
    assert [call.name for call in calls] == ["list_notes", "count_slowly"]


def test_more_words_and_words_as_they_are_win() -> None:
    offered = (declare("read"), declare("read_files"), declare("read_file"))
    assert [call.name for call in find_calls("read the file", offered)] == ["read_file"]
    assert [call.name for call in find_calls("read it", offered)] == ["read"]


def test_the_same_tool_of_two_servers_is_the_first_unless_it_is_named_whole() -> None:
    offered = (*NOTES, declare("other__list_notes"))
    assert [call.name for call in find_calls("list notes", offered)] == ["list_notes"]
    [call] = find_calls("other__list_notes", offered)
    assert call.name == "other__list_notes"


SCHEMAS = st.sampled_from(
    [TEXT, WHOLE, NUMBER, FLAG, WORDS, {"type": "array", "items": WHOLE}, {"type": "object"}, {}]
)
NAMES = st.sampled_from(["text", "id", "path", "tags", "limit", "a", "includeImage", "_", "Ü"])
PIECES = (
    *("run", "the", "text", "id=", "tags=a,", "b", "and", "3", "2.5", "-7", "not", "٣", "a=1"),
    *('"y z"', "'x'", "/srv/x", "http://h.x/y", "[1,2]", "=", ":", '"', "'", "9" * 400),
)
MESSAGES = st.lists(st.sampled_from(PIECES) | st.text(max_size=6), max_size=12).map(" ".join)


@given(
    required=st.dictionaries(NAMES, SCHEMAS, max_size=4),
    optional=st.dictionaries(NAMES, SCHEMAS, max_size=3),
    message=MESSAGES,
    answer=MESSAGES,
)
def test_what_is_read_has_the_type_that_the_schema_names(
    required: dict[str, Any], optional: dict[str, Any], message: str, answer: str
) -> None:
    tool = declare("run", required=required, optional={**optional, **required})
    for call in find_calls(f"run {message}", [tool]):
        completed = complete_call(call, answer) if call.missing else call
        for read in (call, completed):
            schema = tool["parametersJsonSchema"] | {"required": set(required) - set(read.missing)}
            jsonschema.validate(read.arguments, {**schema, "required": sorted(schema["required"])})
            json.dumps(read.arguments, allow_nan=False)


KEYWORDS = ("type", "properties", "required", "items", "anyOf", "enum", "const", "text", "a")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYWORDS) | st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(schema=st.dictionaries(st.sampled_from(KEYWORDS), JSON), message=MESSAGES)
def test_no_schema_of_a_server_and_no_message_breaks_the_model(
    schema: dict[str, Any], message: str
) -> None:
    inner = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    for written in (schema, inner):
        try:
            parameters = to_gemini(written)
        except UnusableSchemaError:
            continue
        assert find_calls(f"run {message}", [{"name": "run", "parametersJsonSchema": parameters}])
