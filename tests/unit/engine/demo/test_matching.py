import pytest

from tests.unit.engine.demo.offers import ALL, NOTES, TEXT, declare
from tui.engine.demo.matching import match_tools
from tui.engine.demo.words import split_name, stem


@pytest.mark.parametrize(
    "forms",
    [
        ("note", "notes", "noted"),
        ("delete", "deleted", "deleting", "deletes"),
        ("branch", "branches"),
        ("directory", "directories"),
        ("tag", "tags", "tagged", "tagging"),
        ("copy", "copies", "copied"),
        ("list", "lists", "listing"),
        ("string", "strings"),
    ],
)
def test_the_forms_of_a_word_have_one_stem(forms: tuple[str, ...]) -> None:
    assert len({stem(form) for form in forms}) == 1


@pytest.mark.parametrize(
    "name", ["get_sum", "get-sum", "getSum", "GetSum", "get.sum", "GET_SUM", "get__sum"]
)
def test_names_are_split_however_they_are_spelled(name: str) -> None:
    assert split_name(name) == ("get", "sum")


@pytest.mark.parametrize(
    ("request_", "best"),
    [
        ("append a memo", "add_note"),
        ("display the notes", "list_notes"),
        ("erase a note", "delete_note"),
        ("look up something in the notes", "search_notes"),
        ("rename a note", "update_note"),
        ("total of numbers", "get-sum"),
        ("folder listing", "list_directory"),
        ("which clock time", "get_current_time"),
        ("git_log", "git_log"),
    ],
)
def test_synonyms_lead_to_the_tool(request_: str, best: str) -> None:
    assert match_tools(request_, ALL)[0].declaration["name"] == best


def test_a_tool_that_does_the_opposite_is_not_matched() -> None:
    names = [match.declaration["name"] for match in match_tools("delete a note", NOTES)]
    assert "add_note" not in names


def test_a_verb_alone_is_not_sure() -> None:
    assert not any(match.sure for match in match_tools("delete the planet", NOTES))
    assert match_tools("delete the note", NOTES)[0].sure


def test_words_of_the_description_and_the_parameters_count() -> None:
    plain = declare("process", "Does things.", {"value": TEXT})
    by_description = declare("process2", "Resizes photos.", {"value": TEXT})
    by_parameter = declare("process3", "Does things.", {"photo": TEXT})
    request = "process the photos"
    ranked = match_tools(request, [plain, by_description, by_parameter])
    assert [match.declaration["name"] for match in ranked][-1] == "process"


def test_equal_matches_keep_their_order() -> None:
    first, second = declare("alpha__echo", "Echo."), declare("beta__echo", "Echo.")
    ranked = match_tools("echo", [first, second])
    assert [match.declaration for match in ranked] == [first, second]
    assert [m.declaration for m in match_tools("echo", [second, first])] == [second, first]


def test_declarations_without_words_are_passed_over() -> None:
    assert match_tools("list notes", [{}, {"name": None}, {"name": "_"}]) == []
