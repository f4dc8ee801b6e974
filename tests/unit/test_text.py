# ruff: noqa: RUF001, SIM905 - letters of many scripts, in a table that can be read
"""`tui.text` against what hostile servers send."""

import string
import sys
import time
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
    for_model,
    is_shown_whole,
    sanitize,
    sanitize_line,
)

FLAGS = ("gbeng", "gbsct", "gbwls")
"""The regions whose flags Unicode recommends; all others are text in tags."""

FRAGMENTS = (
    *("\x1b", "\x1b[", "\x1b]52;c;", "\x1b\\", "\x1bP", "\x07", "\x9b", "\x9c", "\x9d", "31m"),
    *("?1049h", "\r\n", "\r", "\n", "\t", "\u202e", "\u2066", "\u200b", "\u200d", "\ufe0f"),
    *("\ufe00", "\U000e0041", "\U000e0100", "\u0301", "\u2028", "\ud800", "\ue000", "\u0378"),
    *("\u3164", "👩", "❤", "⟨U+202E⟩", "…[+3 characters]", "a", " ", "1", "\u20e3", "\u00ad"),
    *("\u200c", "\u200e", "ش", "ש", "क", "\u094d", "漢", "ᠠ", "\u180b", "\u180e", "\ufeff", "⠓"),
    *("\u2800", "ไ", "\U0001fae9", "\U0001f3f4", "\U000e0067", "\U000e007f", "\u061c"),
)
"""Pieces that mean something only beside each other, which plain random text seldom gives."""

NEVER = frozenset("\u200b\u202a\u202e\u2060\u2066\u3164\U000e0041\U000e0020\ufeff")
"""Invisible characters that no text of the fragments needs."""

hostile = st.one_of(
    st.text(st.characters(exclude_categories=())),
    st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join),
)


def is_forbidden(character: str) -> bool:
    """Tell whether a terminal could act on this character, or place nothing where text was."""
    if character in "\n\t" or character >= "\U0001f000" or character in INVISIBLE:
        return False  # the tables below are about these
    return unicodedata.category(character) in {"Cc", "Cs", "Co", "Cn", "Zl", "Zp"}


def forbidden(text: str) -> list[str]:
    return [f"U+{ord(character):04X}" for character in text if is_forbidden(character)]


@given(hostile)
@example("\x1b" * 3 + "]0;t\x07")
@example("\x1b\x1b[\x1b]m")
@example("👩\u200d\x1b[m\u200d👩")
def test_no_forbidden_character_passes(text: str) -> None:
    assert forbidden(sanitize(text)) == []
    assert not NEVER & set(sanitize(text)) | NEVER & set(for_model(text)[0][1:])


@given(hostile)
@example("a" + "\u0301" * 20)
@example("\x1b[\x1b[mm")
@example("❤\ufe0f\u200d🔥")
@example("\ufe0f\u200d🀀")
@example("\u2800\ufe0f")
@example("👩\u200d\u2800")
@example("\u200b" * 20)
@example("\ufeff\ufeff")
@example("a\u180b\u180eᠠ")
@example("क" + "\u0901\u200d" * 20)
def test_applying_it_again_changes_nothing(text: str) -> None:
    once = sanitize(text)
    assert sanitize(once) == once


@given(hostile, st.integers(min_value=40, max_value=120))
@example("\u202e" * 60, 40)
@example("a" * 41, 40)
@example("👩\u200d👩" * 20, 40)
@example("!\u200e" + "." * 60 + "ש", 40)
@example("\U0001f3f4" + "".join(chr(0xE0000 + ord(c)) for c in "gbeng\x7f") * 9, 40)
@example("می\u200cخواهم" * 9, 40)
def test_the_result_keeps_to_the_limit_and_stays_stable(text: str, limit: int) -> None:
    once = sanitize(text, limit)
    assert len(once) <= limit
    assert (forbidden(once), sanitize(once, limit)) == ([], once)


@given(hostile, st.sampled_from([MAX_LINE, 40]))
@example("می\u200cخواهم" * 9, 40)
@example("!\u200e" + "." * 60 + "ש", 40)
def test_a_line_is_one_line_and_stable(text: str, limit: int) -> None:
    once = sanitize_line(text, limit)
    assert not set(once) & set("\n\t\r\v\f\x85\u2028\u2029")
    assert "  " not in once
    assert once == once.strip()
    assert len(once) <= limit
    assert (forbidden(once), sanitize_line(once, limit)) == ([], once)


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
    marks = r"\p{Default_Ignorable_Code_Point}\ufff9-\ufffb\U00013430-\U0001343f"
    ignorable = regex.compile(f"[{marks}]")
    everything = "".join(map(chr, range(sys.maxunicode + 1)))
    assert set(ignorable.findall(everything)) | {"\u2800"} == INVISIBLE
    formats = {c for c in everything if unicodedata.category(c) == "Cf"} - INVISIBLE
    assert all(regex.match(r"\p{Prepended_Concatenation_Mark}", c) for c in formats)


def test_C16_no_invisible_mark_hides_between_latin_letters() -> None:
    for mark in INVISIBLE - {"\u00ad"}:
        shown = f"a⟨U+{ord(mark):04X}⟩b"
        assert (sanitize(f"a{mark}b"), for_model(f"a{mark}b")) == (shown, (shown, 1))


def tagged(region: str) -> str:
    """Write a flag with a region in tags, as emoji do."""
    return "\U0001f3f4" + "".join(chr(0xE0000 + ord(c)) for c in region) + "\U000e007f"


NEEDED = (
    "می\u200cخواهم کتاب\u200cها را|نمی\u200cدانم.|API\u200cها|۲۰\u200cساله|«کتاب»\u200cها"
    "|പറഞ്ഞു\u200cകൊണ്ട്|അവന്\u200d വന്നു|നന്\u200dമ|র\u200d্যাব|ক্\u200cত|ශ්\u200dරී"
    "|ಕ್\u200cಷ|ರ್\u200dಕ|क्\u200d|क्\u200cष|ကို\u200bသွား|ភាសា\u200bខ្មែរ|ไทย\u200bไทย"
    "|Donau\u00addampf\u00adschiff|Re\u00ada\u00adli\u00adtät|Fo\u0308\u00adhn"
    "|שלום (Hello)\u200f.|C++\u200e היא שפה|\u200fعربي!\u200f|عربي\u061c 12|א\u200eb"
    "|ᠠ\u180bᠡ|ᠨ\u180eᠠ|ᠨ\u180b\u180eᠠ|葛\U000e0100城|葛\U000e0100辻\U000e0101葛\U000e0100城辻\U000e0101|辻\U000e0101|凞\ufe00|≨\ufe00|，\ufe01"
    "|⠓⠑⠇⠇⠕\u2800⠺⠕⠗⠇⠙|\u06dd١|❤\ufe0f|☎\ufe0e|©\ufe0f|1\ufe0f\u20e3 #\ufe0f\u20e3"
    "|👩\u200d👩\u200d👧\u200d👦|👩🏽\u200d🚀|👨\u200d🦰|🏃\u200d♀\ufe0f\u200d➡\ufe0f|🐦\u200d⬛|🇩🇪"
    "|🏳\ufe0f\u200d🌈|👁\ufe0f\u200d🗨\ufe0f|🙂\u200d↔\ufe0f|⛹🏻\u200d♂\ufe0f|❤\ufe0f\u200d🔥"
    "|\U0001fae8 \U0001fa77 \U0001fae9|\U0001f6d8 \U0001fac8\u200d\U0001fae9|\U00031350\U000323b0"
).split("|")
"""Words, signs and emoji that are misspelled without their invisible marks; the last ones are newer
than the tables of Python 3.11."""


@pytest.mark.parametrize("text", [*NEEDED, *map(tagged, FLAGS)], ids=ascii)
def test_C16_what_a_script_or_an_emoji_needs_passes_on_both_sides(text: str) -> None:
    assert (sanitize(text), for_model(text)) == (text, (text, 0))


BETWEEN = "\u200b\u200c\u200d\u200e\u200f\u061c\u2060\u2061\u2064\u206a\u034f"
BEFORE = "\u3164\u115f\u2800\ufff9\u180b\U0001d173\U0001bca0\U000e0001\ufeff"
AFTER = "\u00ad\ufe00\ufe0f\ufe0e\U000e0100\u180e\u202a\u202e\u2066\u2069"
"""Marks that nothing around them needs: within a word, at its begin, and at its end."""


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        *((f"a{mark}b", 1) for mark in BETWEEN),
        *((f"a {mark}b", 1) for mark in BEFORE),
        *((f"a{mark} b", 1) for mark in AFTER),
        *(("می\u200c\u200cخواهم", 2), ("می\u200c\u200dخواهم", 2), ("می\u200c", 1), ("\u200cمی", 1)),
        *(("क\u200d\u200cष", 2), ("क्\u200d\u200c", 2), ("१\u200c२", 1), ("ไทย\u200b\u200bไทย", 2)),
        *(("Do\u00ad\u00adnau", 2), ("\u00adDonau", 1), ("a\u00ad1", 1), ("שלום\u200f\u200f", 2)),
        *(("Hello\u200e.", 1), ("שלום\na\u200e.", 1), ("שלום a\u200eb", 1), ("ש\u200e\u200b", 2)),
        *(("א\u202eב", 1), ("葛\U000e0100\U000e0101", 1), ("葛\ufe03", 1), ("葛\U000e0151", 1)),
        *(("a\U000e0100", 1), ("😀\U000e0148\U000e0155", 2), ("漢\U000e0100" * 4, 4)),
        ("葛漢\U000e0100字\ufe01漢\ufe02字\U000e010f漢字\U000e0101", 4),
        *(("❤\ufe0f\ufe0f\ufe0e", 2), ("€\ufe0f", 1), ("1\ufe0f2", 1), ("😀\ufe01", 1)),
        *(("+\ufe00", 1), ("👩\u200d", 1), ("👩\u200d\u200d👧", 2), ("a\u200d👧", 1)),
        *(("👩\u200da", 1), ("\ufe0f\u200d👧", 2), ("a\u180b\u180eᠠ", 2), ("a\ufeff", 1)),
        *(("⠓\u2800\u2800⠑", 2), ("ᠠ\u180b\u180b", 1)),
        *((tagged(region), len(region) + 1) for region in ("gbnir", "usca", "gbengx", "rm", "de")),
        ("\U0001f3f4" + tagged("gbeng")[1:-1], 5),
    ],
    ids=ascii,
)
def test_C16_hidden_text_is_spelled_out_on_both_sides(text: str, hidden: int) -> None:
    shown, number = for_model(text)
    assert (number, shown.count("⟨U+")) == (hidden, min(hidden, MAX_REVEALED))
    assert sanitize(text) == shown


SHORT = ("I", "[m", "[r", "m", "i")


def test_the_model_gets_all_else_as_it_is() -> None:
    text = "a\x00\x1b[31m\r\n\x9b\ud800\ue000\u0378" + "e" + "\u0301" * 20
    assert for_model(text) == (text, 0)
    assert for_model("\ufeffé\ufeff") == ("\ufeffé⟨U+FEFF⟩", 1)
    assert sanitize("\ufeffa") == "a"


@pytest.mark.parametrize(
    ("text", "model", "hidden", "shown"),
    [
        ("a\x1b_rm it\x1b\\b", "a⟨U+001B⟩_rm it⟨U+001B⟩\\b", 9, "ab"),
        ("\x1b]0;rm it\x07b", "⟨U+001B⟩]0;rm it⟨U+0007⟩b", 10, "b"),
        ("\x1bPrm\nit\x1b\\", "⟨U+001B⟩Prm\nit⟨U+001B⟩\\", 9, ""),
        ("\x1bXrm\x1b^it", "⟨U+001B⟩Xrm⟨U+001B⟩^it", 8, ""),
        ("\x9drm\x9cé\x90it", "⟨U+009D⟩rm⟨U+009C⟩é⟨U+0090⟩it", 7, "é"),
        ("\x1b\x1b_é\x07", "\x1b⟨U+001B⟩_é⟨U+0007⟩", 4, ""),
        ("\x1bI\x1b[m\x1b[r\x1bm\x1bi", "".join(f"⟨U+001B⟩{c}" for c in SHORT), 12, ""),
        ("\x1b_" + "a" * 5_000, "⟨U+001B⟩_" + "a" * 5_000, 2, "a" * 5_000),
        *((text, text, 0, "ab") for text in ("\x1b[1;31ma\x1b[m\x1b(Bb", "\x1b[1m" * 9 + "ab")),
    ],
    ids=range(10),
)
def test_C16_what_a_sequence_hides_is_told(text: str, model: str, hidden: int, shown: str) -> None:
    assert (for_model(text), for_model(model)) == ((model, hidden), (model, 0))
    assert sanitize(text) == shown


def test_a_name_may_hold_no_mark_that_only_a_script_needs() -> None:
    assert is_shown_whole("❤\ufe0f 👩\u200d👧 é.txt")
    for name in ("git\u00adhub", "می\u200cخواهم", "ש\u200f", "क्\u200d", "葛\U000e0100", "a\u200b"):
        assert not is_shown_whole(name), ascii(name)
    assert sanitize_line("git\u00adhub") == "git⟨U+00AD⟩hub"


@pytest.mark.parametrize(
    "unit", ["a\u200e", "ש\u200ea", "a\u200b\n", "👩\u200d", "क्\u200d", "\U0001f3f4\U000e0067"]
)
def test_C16_hidden_text_costs_no_more_than_its_length(unit: str) -> None:
    def seconds(length: int) -> float:
        begun = time.process_time()
        for_model("é" + unit * length)
        return time.process_time() - begun

    seconds(1)
    short, long = min(seconds(2_000) for _ in range(5)), min(seconds(20_000) for _ in range(3))
    assert long < 40 * short


def test_a_combining_storm_is_cut_and_many_invisible_characters_become_a_count() -> None:
    assert sanitize("e" + "\u0301" * 10_000 + "!") == "e" + "\u0301" * MAX_COMBINING + "!"
    shown = sanitize("x" + "\u200b" * 100)
    assert shown == "x" + "⟨U+200B⟩" * MAX_REVEALED + f"⟨+{100 - MAX_REVEALED} invisible⟩"


def test_what_is_too_long_says_how_much_is_missing() -> None:
    shown = sanitize("a" * (MAX_TEXT + 5))
    assert len(shown) <= MAX_TEXT
    assert shown.endswith("…[+5 characters]")


def test_five_thousand_blank_lines_become_an_empty_label() -> None:
    assert (sanitize_line("\n" * 5_000), sanitize_line(" a \n\n\t b ")) == ("", "a b")


def test_clip_marks_what_it_cut() -> None:
    assert (clip("short", 5), clip("longer", 5)) == ("short", "long…")
    assert clip_middle("abcdef", 3, 3) == "abcdef"
    assert clip_middle("abcdefgh", 3, 3) == "abc\n… [characters 4 to 5 of 8 are left out] …\nfgh"


def test_a_count_agrees_with_its_noun() -> None:
    shown = [counted(number, "tool") for number in (0, 1, 17, 1_052)]
    assert shown == ["0 tools", "1 tool", "17 tools", "1,052 tools"]
