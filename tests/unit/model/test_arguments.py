"""Arguments as text: written so that nothing hides, read so that nothing is guessed."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import any_json
from tests.support.rows import row
from tui.model.bounded_json import JsonError
from tui.model.input.arguments import MAX_ARGUMENTS, canonical_json, read_arguments, reveal
from tui.text import sanitize

ANY_CHARACTERS = st.characters(exclude_categories=())


@given(st.dictionaries(st.text(max_size=5), any_json(st.text(max_size=20))))
def test_what_is_written_is_read_back_as_the_same_object(arguments: dict[str, Any]) -> None:
    assert read_arguments(canonical_json(arguments)) == arguments


@given(st.text())
def test_reading_gives_an_object_or_says_what_is_wrong(text: str) -> None:
    try:
        value: object = read_arguments(text)
    except JsonError as error:
        value = {str(error): True}
    assert isinstance(value, dict)
    assert "" not in value or text


@given(st.text())
def test_a_revealed_text_has_nothing_to_hide_and_is_the_same_in_a_string(text: str) -> None:
    shown = reveal(text)
    assert (sanitize(shown).replace("\n", ""), reveal(shown)) == (shown.replace("\n", ""), shown)
    if not set(text) & set('"\\\n\t'):
        assert json.loads(f'"{shown}"') == text


def test_a_fault_has_its_line_and_column() -> None:
    rows = (('{"a": }', 1, 7), ('{\n  "a": 1\n  "b"\n}', 3, 3), ("", 1, 1), ('{"a": "\n"}', 1, 8))
    for text, line, column in rows:
        with (
            row(text),
            pytest.raises(JsonError, match=f"^line {line}, column {column}: ") as caught,
        ):
            read_arguments(text)
        assert (caught.value.line, caught.value.column) == (line, column)


def test_what_could_not_be_sent_as_it_reads_is_refused() -> None:
    for text in [
        *("[]", "null", '{"a": NaN}', '{"a": -Infinity}', '{"a": 1e999}'),
        *('{"a": {"b": 1, "b": 2}}', '{"a": "\\udc00"}', '{"\\ud800": 1}'),
        *('{"a": ' + "9" * 5_000 + "}", '{"a": ' + "[" * 100_000),
    ]:
        with row(text), pytest.raises(JsonError):
            read_arguments(text)


@given(st.dictionaries(st.text(max_size=5), any_json(st.text(ANY_CHARACTERS, max_size=20))))
def test_what_is_shown_is_the_object_itself_and_safe(arguments: dict[str, Any]) -> None:
    shown = canonical_json(arguments)
    assert (json.loads(shown), sanitize(shown)) == (arguments, shown)


def test_equal_arguments_look_equal_and_text_of_any_language_stays_readable() -> None:
    assert canonical_json({"b": 1, "a": 2}) == canonical_json({"a": 2, "b": 1})
    words = "grüße, 世界, привет 👩\u200d💻"
    assert words in canonical_json({"a": words})


def test_what_does_not_show_is_spelled_out_each_time() -> None:
    for hidden in ("\u202e", "\u200b", "\x1b", "\x7f", "\x9b", "\U000e0041"):
        shown = canonical_json({"a": f"x{hidden}y"})
        assert hidden not in shown
        assert "\\u" in shown
    assert canonical_json({"a": "\u200b" * 500}).count("\\u200b") == 500


def test_what_cannot_be_shown_is_refused() -> None:
    for value in (float("nan"), "x" * MAX_ARGUMENTS, b"bytes"):
        with row(value), pytest.raises(ValueError, match="arguments"):
            canonical_json({"a": value})
    room = MAX_ARGUMENTS - len(canonical_json({"a": ""}))
    assert len(canonical_json({"a": "x" * room})) == MAX_ARGUMENTS
