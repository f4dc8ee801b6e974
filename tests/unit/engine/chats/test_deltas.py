"""Sanitising text that arrives in pieces."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.engine.chats.step import MAX_HELD, DeltaSanitizer
from tui.text import sanitize

HOSTILE = st.text(
    st.sampled_from("ab \n\r\t\x1b[]m3;\x07\\P_^X\x9b\x9d\x9c\u202e\u200d\u0301\ufe0f👩💻é"),
    max_size=40,
)
HARMLESS = st.text(st.sampled_from("aZ é\u0301日ß🇺🇦👩\u200d\n\t\u2028\xad\ufffd"), max_size=10)


def stream(pieces: list[str]) -> list[str]:
    sanitizer = DeltaSanitizer()
    return [*(sanitizer.feed(piece) for piece in pieces), sanitizer.flush()]


def is_safe(text: str) -> bool:
    return all(c in "\n\t" or (" " <= c != "\x7f" and not "\x80" <= c <= "\x9f") for c in text)


@given(st.lists(HOSTILE, max_size=8))
def test_no_control_character_comes_out_however_a_text_is_cut(pieces: list[str]) -> None:
    shown = "".join(stream(pieces))
    assert is_safe(shown.replace("\u202e", "\x1b"))


@given(st.lists(HARMLESS, max_size=6))
def test_harmless_text_comes_out_as_it_would_in_one_piece(pieces: list[str]) -> None:
    whole = "".join(pieces)
    if sanitize(whole) == whole:
        assert "".join(stream(pieces)) == whole


@pytest.mark.parametrize(
    "sequence",
    [
        *("\x1b]52;c;ZXZpbA==\x07", "\x1b]0;title\x1b\\", "\x1b[31m", "\x9b31m"),
        *("\x9d52;c;x\x9c", "\x1bPq#0\x1b\\", "\x1b(0", "\x1bc"),
    ],
)
def test_a_sequence_cut_anywhere_is_dropped_whole(sequence: str) -> None:
    for cut in range(1, len(sequence)):
        assert "".join(stream(["a" + sequence[:cut], sequence[cut:] + "b"])) == "ab"
    assert "".join(stream(["a", *sequence, "b"])) == "ab"


def test_emoji_joined_over_two_pieces_stay_whole_and_stacked_marks_are_bounded() -> None:
    assert "".join(stream(["👩", "\u200d", "💻"])) == "👩\u200d💻"
    assert "".join(stream(["a", *["\u0301\u0301\u0301"] * 50])) == "a" + "\u0301" * 8
    pieces = ["Hello", ", ", "wörld", " 日本"]
    assert stream(pieces) == [*pieces, ""], "plain text is never held back"


def test_a_sequence_that_never_ends_does_not_swallow_the_answer() -> None:
    sanitizer = DeltaSanitizer()
    shown = [sanitizer.feed("\x1b]0;"), *(sanitizer.feed("x" * 1_000) for _ in range(20))]
    assert len("".join(shown)) > 20_000 - MAX_HELD


def test_finding_where_to_cut_takes_linear_time() -> None:
    sanitizer = DeltaSanitizer()
    started = time.process_time()
    sanitizer.feed("\x1b]" * 50_000)
    assert time.process_time() - started < 2
