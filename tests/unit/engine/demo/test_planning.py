from collections.abc import Mapping
from typing import Any

import pytest

from tests.unit.engine.demo.offers import (
    ALL,
    DEMO,
    EVERYTHING,
    FILES,
    GIT,
    NOTES,
    TEXT,
    TIME,
    WHOLE,
    Declaration,
    declare,
)
from tui.engine.demo.matching import MAX_TOOLS
from tui.engine.demo.planning import (
    MAX_CALLS,
    MAX_REQUEST,
    Calls,
    NeedsArguments,
    NoMatch,
    Refused,
    TooLong,
    Unclear,
    make_plan,
)

Made = tuple[str, Mapping[str, Any]]


def planned(request: str, offered: tuple[Declaration, ...] = ALL) -> list[list[Made]]:
    plan = make_plan(request, offered)
    assert isinstance(plan, Calls), plan
    return [[(call.name, call.arguments) for call in stage] for stage in plan.stages]


@pytest.mark.parametrize(
    ("request_", "name", "arguments"),
    [
        ("add a note: buy milk", "add_note", {"text": "buy milk"}),
        ("Add a note: buy milk, eggs and bread", "add_note", {"text": "buy milk, eggs and bread"}),
        ("please add a note to call mom tomorrow", "add_note", {"text": "call mom tomorrow"}),
        ("create a new note saying hello world", "add_note", {"text": "hello world"}),
        ("could you write down a note: ciao", "add_note", {"text": "ciao"}),
        ("remember to buy milk", "add_note", {"text": "buy milk"}),
        ("save a reminder: dentist at 10:30", "add_note", {"text": "dentist at 10:30"}),
        ("add note buy milk", "add_note", {"text": "buy milk"}),
        (
            'add a note "water plants" tagged home and garden',
            "add_note",
            {"text": "water plants", "tags": ["home", "garden"]},
        ),
        ("write a note: fix it #work", "add_note", {"text": "fix it", "tags": ["work"]}),
        (
            "add a note: buy milk, tags: shopping, food",
            "add_note",
            {"text": "buy milk", "tags": ["shopping", "food"]},
        ),
        (
            'add_note text="buy milk" tags=a,b',
            "add_note",
            {"text": "buy milk", "tags": ["a", "b"]},
        ),
        (
            'add a note {"text": "hi", "tags": ["x"]}',
            "add_note",
            {"text": "hi", "tags": ["x"]},
        ),
        ("list my notes", "list_notes", {}),
        ("show me all my notes please", "list_notes", {}),
        ("what notes do I have?", "list_notes", {}),
        ("what are my notes tagged work", "list_notes", {"tag": "work"}),
        ("list notes tagged #work", "list_notes", {"tag": "work"}),
        ("show the last 5 notes", "list_notes", {"limit": 5}),
        ("find my notes about milk", "search_notes", {"query": "milk"}),
        ("search notes for basil", "search_notes", {"query": "basil"}),
        ("look for milk in my notes", "search_notes", {"query": "milk"}),
        ("delete note 2", "delete_note", {"id": 2}),
        ("remove note #3", "delete_note", {"id": 3}),
        ("erase the note number 4", "delete_note", {"id": 4}),
        ("update note 2: buy bread", "update_note", {"id": 2, "text": "buy bread"}),
        ("change note 3 to call dad", "update_note", {"id": 3, "text": "call dad"}),
        ("count slowly to 3", "count_slowly", {"steps": 3}),
        ("count to three", "count_slowly", {"steps": 3}),
        ("count slowly", "count_slowly", {}),
        (
            "count 4 steps of 0.1 seconds",
            "count_slowly",
            {"steps": 4, "seconds_per_step": 0.1},
        ),
        ("research the history of tea", "research", {"topic": "the history of tea"}),
        ("echo hello world", "echo", {"message": "hello world"}),
        ("repeat after me: one two", "echo", {"message": "one two"}),
        ("add 2 and 3", "get-sum", {"a": 2, "b": 3}),
        ("what is the sum of 5 and 7.5?", "get-sum", {"a": 5, "b": 7.5}),
        ("calculate 3 plus -4", "get-sum", {"a": 3, "b": -4}),
        ("show me the tiny image", "get-tiny-image", {}),
        (
            "get an error annotated message with include image",
            "get-annotated-message",
            {"messageType": "error", "includeImage": True},
        ),
        (
            "get a debug annotated message without include image",
            "get-annotated-message",
            {"messageType": "debug", "includeImage": False},
        ),
        ("show git status in /srv/shop", "git_status", {"repo_path": "/srv/shop"}),
        (
            "show the last 3 commits of /srv/shop",
            "git_log",
            {"repo_path": "/srv/shop", "max_count": 3},
        ),
        (
            "git commit in /srv/shop with message fix the bug",
            "git_commit",
            {"repo_path": "/srv/shop", "message": "fix the bug"},
        ),
        (
            "checkout branch main in /srv/shop",
            "git_checkout",
            {"repo_path": "/srv/shop", "branch_name": "main"},
        ),
        ("read file README.md", "read_text_file", {"path": "README.md"}),
        (
            'write "hello there" to the file /srv/a.txt',
            "write_file",
            {"path": "/srv/a.txt", "content": "hello there"},
        ),
        ("list the files in /srv", "list_directory", {"path": "/srv"}),
        ("search files in /srv for *.py", "search_files", {"path": "/srv", "pattern": "*.py"}),
        ("what time is it in Europe/Berlin", "get_current_time", {"timezone": "Europe/Berlin"}),
        (
            "convert time 10:30 from Europe/Berlin to Asia/Tokyo",
            "convert_time",
            {
                "source_timezone": "Europe/Berlin",
                "time": "10:30",
                "target_timezone": "Asia/Tokyo",
            },
        ),
    ],
)
def test_a_request_in_plain_words_becomes_one_call(
    request_: str, name: str, arguments: Mapping[str, Any]
) -> None:
    assert planned(request_) == [[(name, arguments)]]


@pytest.mark.parametrize(
    "request_",
    [
        "",
        "   ",
        "?!",
        "tell me a joke",
        "write a poem about cats",
        "what is the weather in Paris",
        "list the planets",
        "delete everything",
    ],
)
def test_a_request_that_no_tool_is_about_matches_nothing(request_: str) -> None:
    assert make_plan(request_, DEMO) == NoMatch()


def test_nothing_matches_where_no_tool_is_offered() -> None:
    assert make_plan("add a note: buy milk", ()) == NoMatch()


@pytest.mark.parametrize(
    ("request_", "name", "missing"),
    [
        ("delete note", "delete_note", ["id"]),
        ("delete my note about milk", "delete_note", ["id"]),
        ("add a note", "add_note", ["text"]),
        ("update note 2", "update_note", ["text"]),
        ('commit "fix bug" with git', "git_commit", ["repo_path"]),
        ("get an annotated message", "get-annotated-message", ["messageType"]),
        ("list the git branches of /srv/shop", "git_branch", ["branch_type"]),
        ("read a text file", "read_text_file", ["path"]),
    ],
)
def test_required_arguments_that_are_not_said_are_named(
    request_: str, name: str, missing: list[str]
) -> None:
    plan = make_plan(request_, ALL)
    assert isinstance(plan, NeedsArguments)
    assert plan.name == name
    assert [parameter.name for parameter in plan.missing] == missing


def test_a_number_out_of_bounds_is_asked_for_again_and_not_dropped() -> None:
    plan = make_plan("count slowly to 500", DEMO)
    assert isinstance(plan, NeedsArguments)
    assert [parameter.name for parameter in plan.missing] == ["steps"]
    assert plan.misfits == ("500",)


def test_two_requests_joined_by_and_become_parallel_calls() -> None:
    assert planned("list my notes and count slowly to 2") == [
        [("list_notes", {}), ("count_slowly", {"steps": 2})]
    ]
    assert planned("echo hi and add 2 and 3") == [
        [("echo", {"message": "hi"}), ("get-sum", {"a": 2, "b": 3})]
    ]


def test_requests_joined_by_then_are_made_one_after_the_other() -> None:
    assert planned("add a note: buy milk, then list my notes; delete note 2") == [
        [("add_note", {"text": "buy milk"})],
        [("list_notes", {})],
        [("delete_note", {"id": 2})],
    ]


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        ("add a note: buy milk and list my notes", "buy milk and list my notes"),
        ('add a note "milk, then delete note 2"', "milk, then delete note 2"),
        ("add a note: call mom, then dad", "call mom, then dad"),
        ("add a note: see http://localhost/a:b", "see http://localhost/a:b"),
    ],
)
def test_what_belongs_to_the_note_is_never_run_as_a_request(request_: str, text: str) -> None:
    assert planned(request_) == [[("add_note", {"text": text})]]


def test_a_request_for_too_many_calls_is_not_split() -> None:
    request = "; ".join(f"delete note {number}" for number in range(1, MAX_CALLS + 5))
    assert sum(map(len, planned(request))) <= MAX_CALLS


@pytest.mark.parametrize("request_", ["don't delete note 2", "please do not list my notes"])
def test_a_request_not_to_do_something_makes_no_call(request_: str) -> None:
    assert make_plan(request_, ALL) == Refused()


def test_tools_that_fit_equally_well_are_offered_for_choice() -> None:
    assert make_plan("note: buy milk", NOTES) == Unclear(("search_notes", "add_note"))


def test_the_name_of_a_tool_decides_between_tools_that_fit() -> None:
    assert planned("search_notes: milk", NOTES) == [[("search_notes", {"query": "milk"})]]


def test_the_same_tool_on_two_servers_is_no_question() -> None:
    twice = (*NOTES, declare("other__add_note", "Write a new note.", {"text": TEXT}))
    assert planned("add a note: x", twice) == [[("add_note", {"text": "x"})]]


def test_a_message_that_is_too_long_is_refused_whole() -> None:
    assert make_plan("add a note: " + "x" * MAX_REQUEST, ALL) == TooLong()


def test_only_the_first_of_very_many_tools_are_looked_at() -> None:
    many = tuple(declare(f"other_{number}") for number in range(MAX_TOOLS)) + NOTES
    assert make_plan("list my notes", many) == NoMatch()
    assert planned("list my notes", many[1:]) == [[("list_notes", {})]]


def test_the_same_request_always_leads_to_the_same_plan() -> None:
    for offered in (DEMO, EVERYTHING, GIT, FILES, TIME):
        assert make_plan("add 2 files", offered) == make_plan("add 2 files", offered)


def test_number_words_and_ids_are_told_apart_from_amounts() -> None:
    tool = declare("show_rows", "Show rows.", optional={"limit": WHOLE})
    assert planned("show three rows", (tool,)) == [[("show_rows", {"limit": 3})]]
    assert planned("show row 3", (tool,)) == [[("show_rows", {})]]
