"""`tui.text` against what hostile servers send."""

import string
import sys
import unicodedata

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from tui.text import (
    INVISIBLE,
    MAX_COMBINING,
    MAX_LINE,
    MAX_REVEALED,
    MAX_TEXT,
    clip,
    clip_middle,
    counted,
    sanitize,
    sanitize_line,
)

JOINERS = frozenset("\u200d\ufe0f")
"""The invisible characters that may stay, and only between the parts of an emoji."""

FRAGMENTS = (
    *("\x1b", "\x1b[", "\x1b]52;c;", "\x1b\\", "\x1bP", "\x07", "\x9b", "\x9c", "\x9d", "31m"),
    *("?1049h", "\r\n", "\r", "\n", "\t", "\u202e", "\u2066", "\u200b", "\u200d", "\ufe0f"),
    *("\ufe00", "\U000e0041", "\U000e0100", "\u0301", "\u2028", "\ud800", "\ue000", "\u0378"),
    *("\u3164", "👩", "❤", "⟨U+202E⟩", "…[+3 characters]", "a", " "),
)
"""Pieces that mean something only beside each other, which plain random text seldom gives."""

hostile = st.one_of(
    st.text(st.characters(exclude_categories=())),
    st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join),
)


def is_forbidden(character: str) -> bool:
    """Tell whether a terminal or a reader could be deceived by this character."""
    if character in "\n\t" or character in JOINERS:
        return False
    category = unicodedata.category(character)
    return category in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"} or character in INVISIBLE


def forbidden(text: str) -> list[str]:
    return [f"U+{ord(character):04X}" for character in text if is_forbidden(character)]


@given(hostile)
@example("\x1b" * 3 + "]0;t\x07")
@example("\x1b\x1b[\x1b]m")
@example("👩\u200d\x1b[m\u200d👩")
def test_no_forbidden_character_passes(text: str) -> None:
    assert forbidden(sanitize(text)) == []


@given(hostile)
@example("a" + "\u0301" * 20)
@example("\x1b[\x1b[mm")
@example("❤\ufe0f\u200d🔥")
@example("\ufe0f\u200d🀀")
@example("\u2800\ufe0f")
@example("👩\u200d\u2800")
@example("\u200b" * 20)
def test_applying_it_again_changes_nothing(text: str) -> None:
    once = sanitize(text)
    assert sanitize(once) == once


@given(hostile, st.integers(min_value=40, max_value=120))
@example("\u202e" * 60, 40)
@example("a" * 41, 40)
@example("👩\u200d👩" * 20, 40)
def test_the_result_keeps_to_the_limit_and_stays_stable(text: str, limit: int) -> None:
    once = sanitize(text, limit)
    assert len(once) <= limit
    assert forbidden(once) == []
    assert sanitize(once, limit) == once


@given(hostile)
def test_a_line_is_one_line_and_stable(text: str) -> None:
    once = sanitize_line(text)
    assert not set(once) & set("\n\t\r\v\f\x85\u2028\u2029")
    assert "  " not in once
    assert once == once.strip()
    assert len(once) <= MAX_LINE
    assert forbidden(once) == []
    assert sanitize_line(once) == once


@given(st.text(string.printable.rstrip("\r\v\f") + "äöüßéñçœŁ„“…日本語のカナ"))
def test_ordinary_text_passes_unchanged(text: str) -> None:
    assert sanitize(text) == text


def test_D06_D07_known_attacks_come_out_harmless() -> None:
    for attack, text, shown in (
        ("clipboard by OSC 52, BEL", "a\x1b]52;c;ZXZpbA==\x07b", "ab"),
        ("clipboard by OSC 52, ST", "a\x1b]52;c;ZXZpbA==\x1b\\b", "ab"),
        ("clipboard by C1 OSC", "a\x9d52;c;ZXZpbA==\x9cb", "ab"),
        ("window title", "\x1b]0;owned\x07title", "title"),
        ("hyperlink", "\x1b]8;;https://x.test\x1b\\text\x1b]8;;\x1b\\", "text"),
        ("colour", "\x1b[31mred\x1b[0m", "red"),
        ("C1 CSI", "\x9b31mred", "red"),
        ("private mode", "\x1b[?1049lout", "out"),
        ("full reset", "\x1bcreset", "reset"),
        ("charset", "\x1b(0lqk", "lqk"),
        ("DCS", "\x1bP+q544e\x1b\\dcs", "dcs"),
        ("unterminated DCS", "before\x1bPnever ends", "before"),
        ("unterminated OSC", "before\x1b]0;never ends", "before"),
        ("APC graphics", "\x1b_Gf=100;AAAA\x1b\\kitty", "kitty"),
        ("bell", "bell\x07", "bell␇"),
        ("carriage return", "over\rwrite", "over␍write"),
        ("line ends of Windows", "a\r\nb", "a\nb"),
        ("delete", "del\x7f", "del\ufffd"),
        ("C1 next line", "nel\x85", "nel\ufffd"),
        ("bidirectional override", "rm \u202egnp.sh", "rm ⟨U+202E⟩gnp.sh"),
        ("line separator", "a\u2028b", "a\nb"),
        ("lone surrogate", "\ud800", "\ufffd"),
        ("private use", "\ue000", "\ufffd"),
        ("emoji stay whole", "👩\u200d👧 ❤\ufe0f", "👩\u200d👧 ❤\ufe0f"),
        ("markup is only text", "[/x][@click=app.quit]y", "[/x][@click=app.quit]y"),
    ):
        assert sanitize(text) == shown, attack


@pytest.mark.slow
@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "unit",
    [
        *(pytest.param("\x9d", id="C1 OSC"), pytest.param("\x90a", id="C1 DCS")),
        *(pytest.param("\x1b]", id="OSC"), pytest.param("\x1b[", id="CSI")),
        *(pytest.param("\x1b", id="ESC"), pytest.param("\x9d" + "a" * 5_000, id="long OSC")),
    ],
)
def test_openings_without_an_end_cost_no_more_than_their_length(unit: str) -> None:
    text = unit * (MAX_TEXT // len(unit))
    assert forbidden(sanitize(text)) == []


def test_the_invisible_marks_are_those_of_unicode() -> None:
    ignorable = regex.compile(r"\p{Default_Ignorable_Code_Point}")
    everything = "".join(map(chr, range(sys.maxunicode + 1)))
    assert set(ignorable.findall(everything)) | {"\u2800"} == INVISIBLE


def test_no_invisible_mark_hides_between_letters() -> None:
    for mark in INVISIBLE:
        assert sanitize(f"a{mark}b") == f"a⟨U+{ord(mark):04X}⟩b"


def test_the_marks_of_an_emoji_stay() -> None:
    emoji = "a❤\ufe0fb1\ufe0f\u20e3c👩\u200d👧d❤\ufe0f\u200d🔥e\u2139\ufe0f"
    assert sanitize(emoji) == emoji


def test_a_combining_storm_is_cut() -> None:
    assert sanitize("e" + "\u0301" * 10_000 + "!") == "e" + "\u0301" * MAX_COMBINING + "!"


def test_many_invisible_characters_become_a_count() -> None:
    shown = sanitize("x" + "\u200b" * 100)
    assert shown == "x" + "⟨U+200B⟩" * MAX_REVEALED + f"⟨+{100 - MAX_REVEALED} invisible⟩"


def test_what_is_too_long_says_how_much_is_missing() -> None:
    shown = sanitize("a" * (MAX_TEXT + 5))
    assert len(shown) <= MAX_TEXT
    assert shown.endswith("…[+5 characters]")


def test_five_thousand_blank_lines_become_an_empty_label() -> None:
    assert sanitize_line("\n" * 5_000) == ""
    assert sanitize_line(" a \n\n\t b ") == "a b"


def test_clip_marks_what_it_cut() -> None:
    assert (clip("short", 5), clip("longer", 5)) == ("short", "long…")
    assert clip_middle("abcdef", 3, 3) == "abcdef"
    assert clip_middle("abcdefgh", 3, 3) == "abc\n… [characters 4 to 5 of 8 are left out] …\nfgh"


def test_a_count_agrees_with_its_noun() -> None:
    shown = [counted(number, "tool") for number in (0, 1, 17, 1_052)]
    assert shown == ["0 tools", "1 tool", "17 tools", "1,052 tools"]
