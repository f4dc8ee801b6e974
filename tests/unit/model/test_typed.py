"""Prompts and commands in what the user types."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.model.catalog import Catalog, PromptArgument, PromptView
from tui.model.input.typed import TypedPrompt, find_prompt, nearest, typed_command
from tui.model.servers import ServerId

NOTES = ServerId("notes")
POEM = PromptView("poem", arguments=(PromptArgument("title", True), PromptArgument("mood", False)))


def typed(text: str, *prompts: PromptView) -> TypedPrompt:
    """Find the prompt that a text names."""
    found = find_prompt(text, [(NOTES, Catalog(prompts=prompts or (POEM,)))])
    assert found is not None, text
    return found


def named(text: str, *names: str) -> str | None:
    catalog = Catalog(prompts=tuple(PromptView(name) for name in names))
    found = find_prompt(text, [(NOTES, catalog)])
    return found.prompt.name if found else None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        *(("/résumé of mine", "résumé"), ("/a/b", "a/b"), ("/fix! it", "fix!")),
        *(("/io.github.x/y_review", "io.github.x/y_review"), ("/code review this", "code review")),
        *(("/code reviews", "code"), ("/code\nreview", "code"), ("/coder", None), ("/a/bc", None)),
        *(("// a comment", None), ("see /code", None)),
    ],
)
def test_a_prompt_is_found_by_its_whole_name_whatever_is_in_it(text: str, name: str | None) -> None:
    names = ("résumé", "a/b", "fix!", "io.github.x/y_review", "code", "code review", "/ a")
    assert named(text, *names) == name


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("/poem", {}),
        (
            '/poem --title="Gemini CLI" --mood="reverent"',
            {"title": "Gemini CLI", "mood": "reverent"},
        ),
        ('/poem "Gemini CLI" reverent', {"title": "Gemini CLI", "mood": "reverent"}),
        ('/poem "Gemini CLI" very reverent', {"title": "Gemini CLI", "mood": "very reverent"}),
        ("/poem --mood=sad two words", {"mood": "sad", "title": "two words"}),
        ("/poem two --mood=sad words", {"mood": "sad", "title": "two words"}),
        ("/poem --other=1", {"title": "--other=1"}),
        ('/poem --other="a b"', {"title": '--other="a b"'}),
        ("/poem don't stop", {"title": "don't", "mood": "stop"}),
        (r"/poem C:\temp\x", {"title": r"C:\temp\x"}),
        (r'/poem "C:\temp\x y"', {"title": r"C:\temp\x y"}),
        (r'/poem "a \"b\" \\ c"', {"title": r'a "b" \ c'}),
        ("/poem 'a \"b\" c'", {"title": 'a "b" c'}),
        ('/poem print("x y")', {"title": 'print("x', "mood": 'y")'}),
        ('/poem "open quote', {"title": '"open', "mood": "quote"}),
        ("/poem --title= --mood=''", {"title": "", "mood": ""}),
        ('/poem x say  "hello"\n  to all', {"title": "x", "mood": 'say  "hello"\n  to all'}),
    ],
)
def test_arguments_are_named_or_in_declared_order_and_stay_as_typed(
    text: str, values: dict[str, str]
) -> None:
    found = typed(text)
    assert (found.values, found.rest) == (values, "")


def test_words_that_no_argument_takes_are_kept() -> None:
    assert typed("/poem of\n mine", PromptView("poem")).rest == "of\n mine"
    found = typed("/poem --title=a --mood=b and more")
    assert (found.values, found.rest) == ({"title": "a", "mood": "b"}, "and more")


def test_only_what_is_required_can_be_missing() -> None:
    assert typed("/poem --mood=sad").missing == ("title",)
    assert typed("/poem --title=").missing == ("title",)
    assert typed("/poem x").missing == ()


@given(st.dictionaries(st.sampled_from(["title", "mood"]), st.text()))
def test_a_command_written_for_arguments_is_read_as_them(values: dict[str, str]) -> None:
    found = typed(typed_command("poem", values))
    assert (found.values, found.rest) == (values, "")


@pytest.mark.parametrize("piece", ['"a ', "'a ", '"\\" ', "--a= ", '--title="', "x "])
def test_a_long_text_after_a_prompt_is_read_in_linear_time(piece: str) -> None:
    began = time.process_time()
    typed("/poem " + piece * 100_000)
    assert time.process_time() - began < 5


def test_the_nearest_name_is_one_that_is_like_it() -> None:
    assert nearest("peom", ["poem", "other"]) == "poem"
    assert nearest("zzz", ["poem", "other"]) == ""
    assert nearest("peom", ["x" * 5_000, "poem"]) == "poem"


def test_many_long_names_are_compared_in_little_time() -> None:
    known = [f"file:///{'similar/' * 24}{number:05}" for number in range(2_000)]
    began = time.process_time()
    assert nearest(known[7] + "x", known) in known
    assert time.process_time() - began < 2
