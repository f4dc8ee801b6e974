"""Sanitize external text: from servers, models, settings files, URLs and exceptions.

Every external string passes `sanitize` (or `sanitize_line`) once, where it enters, so that it
cannot move the cursor, write to the clipboard or hide text. Data for the model passes `for_model`
instead, which leaves it as it is but for hidden commands. Errors for the user are at the end.
"""

import re
import unicodedata
from typing import Final

MAX_TEXT: Final = 1_000_000
"""Longest text kept, in characters; the rest is counted, not shown."""

MAX_LINE: Final = 2_000
"""Longest one-line label kept, in characters."""

MAX_COMBINING: Final = 8
"""Combining marks kept per base character; more would cover neighboring rows."""

MAX_REVEALED: Final = 8
"""Invisible characters spelled out in a text; the rest are counted."""

# Patterns, not compiled ones: that takes 4 ms, and the first frame needs none.
ESCAPE_SEQUENCE: Final = r"""
    (?:\x1b[P\]X^_]|[\x90\x9d\x98\x9e\x9f])   # DCS, OSC, SOS, PM, APC: a string ...
        [^\x07\x1b\x90\x98\x9c-\x9f]{0,4096}+ # ... of bounded length, never searched twice ...
        (?:\x07|\x1b\\|\x9c|(?=[\x1b\x90\x98\x9d-\x9f])|\Z)  # ... up to its end or the next one
    | (?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?       # CSI
    | \x1b[ -/]*[0-~]?                        # two-character and charset escapes
    """
_CLEAN: Final = r"[\n\t -~\u00a1-\u00ac\u00ae-\u02ff\u2010-\u2027\u3041-\u30ff\u4e00-\u9fff]*\Z"
"""Text that needs no sanitizing: the fast path."""

_IGNORABLE_RANGES: Final = (
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)
INVISIBLE: Final = frozenset(
    {"\u2800"}.union(*(map(chr, range(first, last + 1)) for first, last in _IGNORABLE_RANGES))
)
"""Unicode's Default_Ignorable_Code_Point, and the blank of Braille, which is a symbol. A test
compares the ranges with those of `regex`, which is too slow to import here."""

LATIN_ALIKE: Final = str.maketrans(
    "авсеһіјкмнорԛгѕтхуѵѡԁԍьҽӏαβγεηικνορτυχωɑɡıɩ",
    "abcehijkmhopqrstxyvwdgbelabyenlkvoptuxwagil",
)
"""Cyrillic, Greek and other letters that look like Latin ones, in lower case."""

_HIDDEN: Final = r"""
    (?P<flag> \U0001f3f4                       # a black flag, the tags of a region in it ...
        (?: [\U000e0061-\U000e007a]{2} | [\U000e0030-\U000e0039]{3} )
        [\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,4} \U000e007f )  # ... and the end
    | [\u202d\u202e\u2066-\u2069\U000e0000-\U000e007f]
    """
"""What a reader cannot see but a model obeys: bidi overrides, bidi isolates, tags outside flags."""

_ZERO_WIDTH_JOINER: Final = "\u200d"
_EMOJI_PRESENTATION: Final = "\ufe0f"


def sanitize(text: str, limit: int = MAX_TEXT) -> str:
    """Make external text safe to show.

    Escape sequences are dropped. Other control characters become visible symbols,
    unassigned and private ones the replacement character. Bidirectional controls, zero-width,
    tag and other invisible characters are spelled out as ``⟨U+202E⟩``. Newlines and tabs stay.

    Args:
        text: Anything, however hostile.
        limit: Most characters kept; a marker says how many were cut.

    Returns:
        Text without any code point that a terminal acts on. Applying the function
        again changes nothing.
    """
    if len(text) <= limit and text.isascii() and text.isprintable():  # most texts
        return text
    kept = text[:limit]
    if not re.match(_CLEAN, kept):
        kept = _rewrite(without_sequences(kept.replace("\r\n", "\n")))
    cut = max(len(text), len(kept)) - limit
    if cut <= 0:
        return kept
    marker = f"…[+{cut} characters]"
    whole = kept[: max(0, limit - len(marker))].rstrip(_ZERO_WIDTH_JOINER + _EMOJI_PRESENTATION)
    return whole + marker


def without_sequences(text: str) -> str:
    """Return a text without the escape sequences that control a terminal."""
    return re.sub(ESCAPE_SEQUENCE, "", text, flags=re.VERBOSE)


def sanitize_line(text: str, limit: int = MAX_LINE) -> str:
    """Make external text safe as a one-line label.

    Runs of white space, including newlines and tabs, become one space.
    """
    if len(text) <= limit and text.isascii() and text.isprintable() and "  " not in text:
        return text.strip()
    return clip(" ".join(sanitize(text, limit * 4).split()), limit)


def for_model(text: str) -> tuple[str, int]:
    """Return data for the model: the same text with hidden commands spelled out, and their number.

    Only bidi overrides, bidi isolates and tags outside the emoji of a region's flag are hidden
    commands; they become ``⟨U+202E⟩``. Anything else stays, since the model may write it back.
    """
    if text.isascii():  # most texts
        return text, 0
    count = 0

    def spell_out(found: re.Match[str]) -> str:
        nonlocal count
        if found["flag"]:
            return found[0]
        count += 1
        return _spelled(found[0])

    shown = re.sub(_HIDDEN, spell_out, text, flags=re.VERBOSE)
    return shown, count


def is_shown_whole(name: str, limit: int = MAX_LINE) -> bool:
    """Return whether `sanitize_line` leaves a name unchanged."""
    return bool(name) and sanitize_line(name, limit) == name


def counted(number: int, noun: str) -> str:
    """Return a count with its noun: ``1 tool``, ``17 tools``, ``1,052 tools``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def clip(text: str, limit: int) -> str:
    """Cut a text to `limit` characters, including an ellipsis."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def clip_middle(text: str, head: int, tail: int) -> str:
    """Keep the first `head` and the last `tail` characters, and say which ones were cut."""
    end = len(text) - tail
    if end <= head:
        return text
    left_out = f"characters {head + 1:,} to {end:,} of {len(text):,} are left out"
    return f"{text[:head]}\n… [{left_out}] …\n{text[end:]}"


def _rewrite(text: str) -> str:
    """Replace unsafe characters one by one."""
    pieces: list[str] = []
    before = ""
    combining = revealed = 0
    for index, character in enumerate(text):
        category = unicodedata.category(character)
        if category in {"Mn", "Me"} and character not in INVISIBLE:
            combining += 1
            if combining <= MAX_COMBINING:
                pieces.append(character)
                before = character
            continue
        combining = 0
        if _is_invisible(character, category) and not _joins_emoji(
            before, character, text[index + 1 : index + 2]
        ):
            revealed += 1
            if revealed <= MAX_REVEALED:
                pieces.append(_spelled(character))
            before = ""
            continue
        before = _visible(character, category)
        pieces.append(before)
    if revealed > MAX_REVEALED:
        pieces.append(f"⟨+{revealed - MAX_REVEALED} invisible⟩")
    return "".join(pieces)


def _spelled(character: str) -> str:
    return f"⟨U+{ord(character):04X}⟩"


def _visible(character: str, category: str) -> str:
    """Return the visible form of one character."""
    if character in "\n\t":
        return character
    if category == "Cc":
        code = ord(character)
        return chr(0x2400 + code) if code < 0x20 else "\ufffd"
    if category in {"Cs", "Co", "Cn"}:
        return "\ufffd"
    if category in {"Zl", "Zp"}:
        return "\n"
    return character


def _is_invisible(character: str, category: str) -> bool:
    return category == "Cf" or character in INVISIBLE


def _joins_emoji(before: str, character: str, after: str) -> bool:
    """Return whether a joiner or variation selector is part of an emoji.

    `before` is the last output character, or empty if it was spelled out. The original one may
    be gone, so checking it would give another result when the output is sanitized again.
    """
    if not before or character not in {_ZERO_WIDTH_JOINER, _EMOJI_PRESENTATION}:
        return False
    category = unicodedata.category(before)
    if character == _EMOJI_PRESENTATION:
        return category in {"So", "Sm", "Po", "Nd"} or before in "\u2139\u3030"
    joinable = category in {"So", "Sk"} or before == _EMOJI_PRESENTATION
    return joinable and _is_symbol(after)


def _is_symbol(character: str) -> bool:
    """Return whether this is a visible symbol; ``character`` may be empty."""
    if not character or character in INVISIBLE:
        return False
    return unicodedata.category(character) == "So"


class AdvisedError(Exception):
    """Something did not work; the text says what, in a sentence for the user.

    Attributes:
        advice: What the user can do about it, or an empty string.
    """

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice
