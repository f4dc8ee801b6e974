"""How arguments are shown."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.model.input.arguments import MAX_ARGUMENTS, canonical_json
from tui.text import sanitize

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=()), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), JSON))
def test_what_is_shown_is_the_object_itself_and_safe(arguments: dict[str, Any]) -> None:
    shown = canonical_json(arguments)
    assert json.loads(shown) == arguments
    assert sanitize(shown) == shown


def test_equal_arguments_look_equal() -> None:
    assert canonical_json({"b": 1, "a": 2}) == canonical_json({"a": 2, "b": 1})


def test_ordinary_text_of_any_language_stays_readable() -> None:
    assert "grüße, 世界, привет 👩\u200d💻" in canonical_json(
        {"a": "grüße, 世界, привет 👩\u200d💻"}
    )


@pytest.mark.parametrize("hidden", ["\u202e", "\u200b", "\x1b", "\x7f", "\x9b", "\U000e0041"])
def test_what_does_not_show_is_spelled_out(hidden: str) -> None:
    shown = canonical_json({"a": f"x{hidden}y"})
    assert hidden not in shown
    assert "\\u" in shown


def test_every_one_of_many_hidden_characters_is_shown() -> None:
    assert canonical_json({"a": "\u200b" * 500}).count("\\u200b") == 500


@pytest.mark.parametrize(
    "arguments", [{"a": float("nan")}, {"a": "x" * MAX_ARGUMENTS}, {"a": b"bytes"}]
)
def test_what_cannot_be_shown_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="arguments"):
        canonical_json(arguments)
