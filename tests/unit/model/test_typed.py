"""Commands and references in what the user types."""

import pytest

from tui.model.catalog import PromptArgument
from tui.model.typed import (
    command_name,
    missing_arguments,
    nearest,
    references,
    typed_arguments,
)

POEM = (PromptArgument("title", True), PromptArgument("mood", False))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("/poem", "poem"),
        ('  /poem --title="Gemini CLI"', "poem"),
        ("/srv.poem:2-b_c one", "srv.poem:2-b_c"),
        ("/etc/hosts is a file", ""),
        ("// a comment", ""),
        ("/* a comment */", ""),
        ("/", ""),
        ("", ""),
        ("see /poem", ""),
        ("/poem\nof two lines", ""),
    ],
)
def test_a_command_is_one_line_whose_first_word_is_a_name(text: str, name: str) -> None:
    assert command_name(text) == name


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("/poem", {}),
        ('/poem --title="Gemini CLI" --mood=sad', {"title": "Gemini CLI", "mood": "sad"}),
        ('/poem "Gemini CLI" very reverent', {"title": "Gemini CLI", "mood": "very reverent"}),
        ("/poem --mood=sad two words", {"mood": "sad", "title": "two words"}),
        ("/poem --other=1", {"title": "--other=1"}),
        ("/poem don't stop", {"title": "don't", "mood": "stop"}),
    ],
)
def test_arguments_are_named_or_in_declared_order(text: str, values: dict[str, str]) -> None:
    assert typed_arguments(text, POEM) == values


def test_words_for_a_prompt_without_arguments_are_left_out() -> None:
    assert typed_arguments("/poem of mine", ()) == {}


def test_only_what_is_required_can_be_missing() -> None:
    assert missing_arguments({"mood": "sad"}, POEM) == ("title",)
    assert missing_arguments({"title": "x"}, POEM) == ()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("@files:memo://today", [("files", "memo://today")]),
        ("read @a:x://1?b=2&c=(d), then @b:y.", [("a", "x://1?b=2&c=(d"), ("b", "y")]),
        ("mail me@example.com: now", []),
        ("@nobody", []),
    ],
)
def test_references_name_a_server_and_a_uri(text: str, found: list[tuple[str, str]]) -> None:
    assert references(text) == found


def test_the_nearest_name_is_one_that_is_like_it() -> None:
    assert nearest("peom", ["poem", "other"]) == "poem"
    assert nearest("zzz", ["poem", "other"]) == ""
