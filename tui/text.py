"""Sanitize external text: from servers, models, settings files, URLs and exceptions.

Every external string passes `sanitize` (or `sanitize_line`) once, where it enters, so that it
cannot move the cursor, write to the clipboard or hide text. Data for the model passes `for_model`
instead, which leaves it as it is but for hidden text. What is hidden is decided in one place for
both, `_reveal`. Errors for the user are at the end.
"""

import codecs
import re
import unicodedata
from collections.abc import Callable
from typing import Any, Final

MAX_TEXT: Final = 1_000_000
"""Longest text kept, in characters; the rest is counted, not shown."""

USUAL_BASE64: Final = str.maketrans("-_", "+/")
"""From the letters of Base64 for addresses to the usual ones."""

MAX_LINE: Final = 2_000
"""Longest one-line label kept, in characters."""

CLIP_NOTICE: Final = 100
"""Longest notice about a cut, in characters; a text within this margin is not cut again."""

MAX_COMBINING: Final = 8
"""Combining marks kept per base character; more would cover neighboring rows."""

MAX_REVEALED: Final = 8
"""Hidden characters spelled out in one run; the rest are counted."""

MAX_RUN: Final = 4096
"""Repetitions that one match covers; each takes memory until it ends."""

# Patterns, not compiled ones: that takes 4 ms, and the first frame needs none.
_STRING: Final = r"""
    (?:\x1b[P\]X^_]|[\x90\x9d\x98\x9e\x9f])   # DCS, OSC, SOS, PM, APC: a string ...
        [^\x07\x1b\x90\x98\x9c-\x9f]{0,4096}+ # ... of bounded length, never searched twice ...
        (?:\x07|\x1b\\|\x9c|(?=[\x1b\x90\x98\x9d-\x9f])|\Z)  # ... up to its end or the next one
    """
_CODE: Final = r"""
      (?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?       # CSI
    | \x1b[ -/]*[0-~]?                        # two-character and charset escapes
    """
ESCAPE_SEQUENCE: Final = f"{_STRING}|{_CODE}"
_HIDING: Final = rf"""
      (?P<string>{_STRING}|\x1b[P\]X^_]|[\x90\x9d\x98\x9e\x9f])
    | (?:(?!\x1b[P\]X^_])(?:{_CODE})){{1,{MAX_RUN}}}
    """
"""Strings, also those that are too long to drop, and runs of other sequences."""

_COLOR: Final = r"(?:\x1b\[|\x9b)[0-?]*m"
MAX_CODES: Final = 3
"""Sequences but for colors that the model gets in one run; more could spell a text in letters."""

_CLEAN: Final = r"[\n\t -~\u00a1-\u00ac\u00ae-\u02ff\u2010-\u2027\u3041-\u30ff\u4e00-\u9fff]*\Z"
"""Text that needs no sanitizing: the fast path."""

_MARK: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Within brackets of a pattern: Unicode's Default_Ignorable_Code_Point, the blank of Braille, and
the controls of annotations and of hieroglyphs. A test compares them with those of `regex`, which
is too slow to import here."""

INVISIBLE: Final = frozenset(
    chr(code)
    for first, last in re.findall("(.)(?:-(.))?", _MARK)
    for code in range(ord(first), ord(last or first) + 1)
)
"""The same, one by one."""

LATIN_ALIKE: Final = str.maketrans(
    "авсеһіјкмнорԛгѕтхуѵѡԁԍьҽӏαβγεηικνορτυχωɑɡıɩ",
    "abcehijkmhopqrstxyvwdgbelabyenlkvoptuxwagil",
)
"""Cyrillic, Greek and other letters that look like Latin ones, in lower case."""

_EMOJI_PLANE: Final = "\U0001f000-\U0001fffd"
_EMOJI: Final = "©®‼⁉™\u2139↔-↙↩↪⌚⌛⌨⏏⏩-⏳⏸-⏺Ⓜ▪▫▶◀◻-◾☀-➿⤴⤵⬅-⬇⬛⬜⭐⭕〰〽㊗㊙" + _EMOJI_PLANE
_RIGHT_TO_LEFT: Final = "\u0590-\u061b\u061d-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff"
_JOINED: Final = (  # Arabic to Mandaic, Devanagari to Sinhala, Tibetan, Burmese, Khmer and more
    "\u0620-\u06d3\u06d5-\u08ff\u0900-\u0963\u0971-\u0dff\u0f40-\u0fbc\u1000-\u109f\u1700-\u17b3"
    "\u17b6-\u17d3\u1820-\u18aa\u1900-\u1c4f\ua800-\ua8ff\ua930-\uaaff\uabc0-\uabff\ufb50-\ufdfb"
    "\ufe70-\ufefc\U00010a00-\U00010aef\U00010d00-\U00010d27\U00011000-\U00011fff\U0001e900-\U0001e94b"
)
_VIRAMA: Final = "\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca\u1039\u17d2"
_UNSPACED: Final = "\u0e00-\u0e4e\u0e80-\u0ecd\u1000-\u109f\u1780-\u17b3\u17b6-\u17d3\u1950-\u19df"
"""Thai, Lao, Burmese, Khmer, Tai: a zero-width space is where their lines may break."""

_HAN: Final = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufad9\U00020000-\U0003fffd"

_OF_HAN: Final = rf"[\ufe00-\ufe02\U000e0100-\U000e011f](?<=[{_HAN}].)"

# Each alternative begins with its mark, which is what makes a search fast.
_OF_EMOJI: Final = rf"""
      \U0001f3f4 \U000e0067\U000e0062 (?:         # the flags of England, Scotland, Wales ...
        \U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074|\U000e0077\U000e006c\U000e0073
      ) \U000e007f                                # ... of all that tags can spell
    | [\ufe0e\ufe0f] (?<=[{_EMOJI}].)
    | \ufe0f (?<=[#*0-9].) (?=\u20e3)             # a keycap
    | \u200d (?: (?<=[{_EMOJI}].) | (?<=[{_EMOJI}]\ufe0f.) ) (?=[{_EMOJI}])
    """
_OF_SCRIPT: Final = rf"""{_OF_EMOJI}
    | \u00ad (?: (?<=[^\W\d_].) | (?<=[\u0300-\u036f].) ) (?=[^\W\d_])  # where a word may divide
    | [\u200c\u200d] (?<=[{_JOINED}].) (?<!\d.) (?=[{_JOINED}]) (?!\d)
    | \u200c (?<=[{_JOINED}].) (?<!\d.) (?=\w)   # a foreign word or a number ...
    | \u200c (?<=[\w)\]»”].) (?=[{_JOINED}]) (?!\d)  # ... and its ending
    | [\u200c\u200d] (?<=[{_VIRAMA}].) (?![{_MARK}])
    | \u200b (?<=[{_UNSPACED}].) (?=[{_UNSPACED}])
    | [\u180b-\u180d\u180f] (?<=[\u1820-\u18aa].)
    | \u180e (?: (?<=[\u1820-\u18aa].) | (?<=[\u1820-\u18aa][\u180b-\u180d].) ) (?=[\u1820-\u18aa])
    | \u2800 (?<=[\u2801-\u28ff].) (?=[\u2801-\u28ff])
    | {_OF_HAN}  # 32: no ideograph has more
    | [\ufe00\ufe01] (?<=[\u2018\u2019\u201c\u201d、。\uff01\uff0c\uff0e\uff1a\uff1b\uff1f].)
    | \ufe00 (?<=[0∅∩\u222a≨≩≲≳⊊⊋⊓⊔⊕⊗⊜⋚⋛⨼⨽⪝⪞⪬⪭⫋⫌\uff10\u1000-\u1080\ua856-\ua868\uaa60-\uaa80].)
    | [\ufe00-\ufe06] (?<=[\U00013000-\U0001342f].)
    """
"""The invisible marks that belong to the writing of a language, or to an emoji."""

_RUN: Final = rf"{_OF_HAN}(?:[{_HAN}]{_OF_HAN}){{3,{MAX_RUN}}}"
"""Selectors of four ideographs or more on end: no name has as many, and they can tell a text."""

_HIDDEN: Final = rf"""
    (?=[\U0001f3f4{_MARK}])(?:(?P<run>{_RUN})|{_OF_SCRIPT}|(?P<hidden>[{_MARK}]+))
    """
_HIDDEN_IN_REVERSED: Final = rf"""
      [\u200e\u200f\u061c] (?<![{_MARK}].) (?![{_MARK}])
      (?: (?<![^\W\d_].) | (?<=[{_RIGHT_TO_LEFT}].) | (?![^\W\d_]) | (?=[{_RIGHT_TO_LEFT}]) )
    | {_HIDDEN}
    """
"""The same in a line with letters that are written from the right, where direction marks belong to
it: neither in a run nor between two letters that are written from the left."""

_BYTE_ORDER_MARK: Final = "\ufeff"
_SOFT_HYPHEN: Final = "\u00ad"


def sanitize(text: str, limit: int = MAX_TEXT) -> str:
    """Make external text safe to show.

    Escape sequences are dropped. Other control characters become visible symbols,
    unassigned and private ones the replacement character, but for emoji and ideographs, which may
    be newer than our tables. Hidden text is spelled out as ``⟨U+202E⟩``. Newlines and tabs stay.

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
        kept = _visible(without_sequences(kept.replace("\r\n", "\n")))
        kept = _reveal(kept.removeprefix(_BYTE_ORDER_MARK))[0]
    cut = max(len(text), len(kept)) - limit
    if cut <= 0:
        return kept
    marker = f"…[+{cut} characters]"
    return _without_hidden(kept[: max(0, limit - len(marker))]) + marker


def without_sequences(text: str) -> str:
    """Return a text without the escape sequences that control a terminal."""
    return re.sub(ESCAPE_SEQUENCE, "", text, flags=re.VERBOSE)


def usual_base64(data: str) -> str:
    """Write base64 in one line, in the usual alphabet, and with its padding."""
    data = "".join(data.split()).translate(USUAL_BASE64).rstrip("=")
    return data + "=" * (-len(data) % 4)


def sanitize_line(text: str, limit: int = MAX_LINE) -> str:
    """Make external text safe as a one-line label.

    Runs of white space, including newlines and tabs, become one space. Soft hyphens are spelled
    out, as a label may be a name, which they would make look like another one.
    """
    if len(text) <= limit and text.isascii() and text.isprintable() and "  " not in text:
        return text.strip()
    line = " ".join(sanitize(text, limit * 4).split())
    line = line.replace(_SOFT_HYPHEN, _spelled(_SOFT_HYPHEN))
    return line if len(line) <= limit else _without_hidden(line[: limit - 1]) + "…"


def for_model(text: str) -> tuple[str, int]:
    """Return data for the model: the same text with hidden text spelled out, and its length.

    Hidden is also what a terminal drops with an escape sequence: a string in one, and letters in a
    run of them. Anything else stays, since the model may write it back: other control characters,
    and a byte order mark at the start.
    """
    if text.isascii() and "\x1b" not in text:  # most texts
        return text, 0
    dropped = 0

    def decide(found: re.Match[str]) -> str:
        nonlocal dropped
        run = found[0]
        codes = re.findall("[\x1b\x9b]", re.sub(_COLOR, "", run))
        if found["string"] is None and len(codes) <= MAX_CODES:
            return run
        dropped += len(run)
        return re.sub("[\x07\x1b\x90-\x9f]", lambda control: _spelled(control[0]), run)

    start = int(text.startswith(_BYTE_ORDER_MARK))
    revealed, hidden = _reveal(re.sub(_HIDING, decide, text[start:], flags=re.VERBOSE))
    return text[:start] + revealed, dropped + hidden


def noted_for_model(text: str) -> str:
    """Return data for the model as `for_model`, with a last line on what was hidden, if any was."""
    revealed, hidden = for_model(text)
    return "\n".join(filter(None, (revealed, note_hidden(hidden))))


def note_hidden(number: int) -> str:
    """Say that hidden characters were spelled out; nothing if there were none."""
    words = f"[{counted(number, 'invisible character')} in this text: spelled out as ⟨U+…⟩.]"
    return words if number else ""


def decoded(data: bytes | bytearray) -> str:
    """Read a text in UTF-8, or in UTF-16 where it begins with the mark of that."""
    is_wide = data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # as of PowerShell
    return data.decode("utf-16" if is_wide else "utf-8-sig", "replace")


def note_lost(data: bytes | bytearray, text: str) -> str:
    """Say that data is not UTF-8, which its text lacks; nothing if it is."""
    lost = text.count("\ufffd") > data.count("\ufffd".encode())
    return "[Not UTF-8: the characters shown as \ufffd are lost.]" if lost else ""


def is_shown_whole(name: str, limit: int = MAX_LINE) -> bool:
    """Return whether a name has no other form on the screen, and no invisible mark but emoji's."""
    if not name or sanitize_line(name, limit) != name:
        return False
    return name.isascii() or INVISIBLE.isdisjoint(re.sub(_OF_EMOJI, "", name, flags=re.VERBOSE))


def counted(number: int, noun: str) -> str:
    """Return a count with its noun: ``1 tool``, ``17 tools``, ``1,052 tools``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def clip(text: str, limit: int) -> str:
    """Cut a text to `limit` characters, including an ellipsis."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def clip_end(text: str, most: int) -> str:
    """Keep the first `most` characters, and count the others; few others stay."""
    dropped = len(text) - most
    if dropped <= CLIP_NOTICE:
        return text
    return f"{text[:most]}\n… [clipped; {dropped:,} characters were dropped]"


def clip_middle(text: str, head: int, tail: int) -> str:
    """Keep the first `head` and the last `tail` characters, and say which ones were cut."""
    end = len(text) - tail
    if end <= head:
        return text
    left_out = f"characters {head + 1:,} to {end:,} of {len(text):,} are left out"
    return f"{text[:head]}\n… [{left_out}] …\n{text[end:]}"


def _spelled(run: str) -> str:
    more = f"⟨+{len(run) - MAX_REVEALED} invisible⟩" if len(run) > MAX_REVEALED else ""
    return "".join(f"⟨U+{ord(character):04X}⟩" for character in run[:MAX_REVEALED]) + more


def _reveal(text: str, spell: Callable[[str], str] = _spelled) -> tuple[str, int]:
    """Spell out hidden text, and count its characters.

    Marks that cannot be seen pass where the writing of a language or an emoji needs them, which
    their neighbors in the same line decide: a joiner or a soft hyphen alone between letters, one
    selector after what has variants (not after four ideographs on end), a direction mark in a line
    that is written from the right, the marks of an emoji, the tags of three flags. Each of them
    could still tell a bit, and a selector after an ideograph five, to who reads them; a text
    without them would be misspelled.

    Args:
        text: The text, without a byte order mark at its start.
        spell: Writes a run of hidden characters; by default as ``⟨U+200B⟩``.
    """
    if not re.search(f"[{_MARK}]", text):
        return text, 0
    hidden = 0

    def decide(found: re.Match[str]) -> str:
        nonlocal hidden
        if not (run := found["hidden"] or found["run"]):
            return found[0]
        hidden += len(re.findall(f"[{_MARK}]", run))
        return re.sub(f"[{_MARK}]+", lambda marks: spell(marks[0]), run)

    lines, reversed_line = text.split("\n"), f"[{_RIGHT_TO_LEFT}]"
    for number, line in enumerate(lines):
        if not line.isascii():
            pattern = _HIDDEN_IN_REVERSED if re.search(reversed_line, line) else _HIDDEN
            lines[number] = re.sub(pattern, decide, line, flags=re.VERBOSE)
    return "\n".join(lines), hidden


def _without_hidden(text: str) -> str:
    """Return the beginning of a text that was revealed: without the marks that had their end."""
    return _reveal(text, lambda _: "")[0]


def _visible(text: str) -> str:
    """Give each character a visible form, but for invisible marks; cut piles of combining ones."""
    kinds = {character: unicodedata.category(character) for character in set(text)}
    text = text.translate({ord(c): _visible_character(c, kind) for c, kind in kinds.items()})
    combining = {one for one, kind in kinds.items() if kind in {"Mn", "Me"}} - INVISIBLE
    shape = text.translate(dict.fromkeys(map(ord, combining), "\u0301"))
    if re.search(f"(?:\u0301[\u200c\u200d]?){{{MAX_COMBINING + 1}}}", shape):
        one = f"(?:[{''.join(combining)}][\u200c\u200d]?)"
        text = re.sub(f"({one}{{{MAX_COMBINING}}}){one}+", r"\1", text)
    return text


def _visible_character(character: str, category: str) -> str:
    if character in "\n\t":
        return character
    if category == "Cc":
        code = ord(character)
        return chr(0x2400 + code) if code < 0x20 else "\ufffd"
    if category in {"Cs", "Co", "Cn"} and character not in INVISIBLE:
        is_new = re.match(f"[{_EMOJI_PLANE}{_HAN}]", character)
        return character if is_new and category == "Cn" else "\ufffd"
    return "\n" if category in {"Zl", "Zp"} else character


class AdvisedError(Exception):
    """Something did not work; the text says what, in a sentence for the user.

    Attributes:
        advice: What the user can do about it, or an empty string.
        reply: The server's own error reply, with its code and data; empty if there was none.
    """

    def __init__(self, message: str, advice: str = "", reply: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.advice, self.reply = advice, reply or {}
