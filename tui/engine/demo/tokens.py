"""Cuts a request into words, numbers, quotations and the like."""

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from tui.engine.demo.words import STOP_WORDS, stem

MAX_QUOTATION: Final = 2_000
"""Longest quotation that is recognised as one, in characters."""

MAX_DIGITS: Final = 15
"""Digits of the longest number that is read as one."""


class Shape(StrEnum):
    """What a token looks like."""

    QUOTATION = "quotation"
    URL = "url"
    EMAIL = "email"
    DATE = "date"
    TIME = "time"
    PATH = "path"
    HASHTAG = "hashtag"
    NUMBER = "number"
    WORD = "word"
    MARK = "mark"


_TOKEN: Final = re.compile(
    rf"""
      (?P<quotation> "[^"]{{0,{MAX_QUOTATION}}}" | “[^”]{{0,{MAX_QUOTATION}}}”
                   | «[^»]{{0,{MAX_QUOTATION}}}» | `[^`]{{0,{MAX_QUOTATION}}}`
                   | (?<!\w)'[^']{{0,{MAX_QUOTATION}}}'(?!\w) )
    | (?P<url> [a-z][a-z0-9+.-]{{1,20}}://[^\s"'<>]+ )
    | (?P<email> (?<![\w.+-])\w[\w.+-]{{0,63}}@[\w-]+(?:\.[\w-]+)+ )
    | (?P<date> \d{{4}}-\d\d-\d\d
                (?:[T ]\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:?\d\d)?)? (?!\w) )
    | (?P<time> \d{{1,2}}:\d\d(?::\d\d)? (?!\w) )
    | (?P<path> (?:~|\.{{1,2}}|[A-Za-z]:)?[/\\][^\s,;]* | (?<![\w.-])[\w.-]{{1,200}}(?:/[\w.-]+)+
              | (?<![\w-])[\w-]{{1,200}}\.[A-Za-z]\w{{0,5}}(?!\w) )
    | (?P<hashtag> \#[^\W\d]\w* )
    | (?P<number> (?:(?<![\w)])[-+])?\d{{1,{MAX_DIGITS}}}(?:\.\d{{1,{MAX_DIGITS}}})?(?!\w) )
    | (?P<word> \w[\w'\u2019-]* )
    | (?P<mark> [^\w\s] )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_APOSTROPHE: Final = re.compile("['\u2019]")
_NUMBER_WORDS: Final = {
    **{"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7},
    **{"eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12},
}
"""Without "one", which mostly is no number."""


@dataclass(frozen=True, slots=True)
class Token:
    """One piece of a request.

    Attributes:
        shape: What it looks like.
        text: What it says; a quotation without its marks, a hashtag without its ``#``.
        start: Its first character in the request.
        end: One past its last.
    """

    shape: Shape
    text: str
    start: int
    end: int

    @property
    def root(self) -> str:
        """The stem of a word; nothing for any other token."""
        return stem(self.text) if self.shape is Shape.WORD else ""

    @property
    def folded(self) -> str:
        """The text for comparing."""
        return self.text.casefold()

    @property
    def says_nothing(self) -> bool:
        """Whether it is a stop word, also where another is run together with it: ``what's``."""
        return _APOSTROPHE.split(self.folded)[0] in STOP_WORDS

    @property
    def number(self) -> int | float | None:
        """The number that it is, or None: whole ones as int, ``three`` as 3."""
        if self.shape is Shape.NUMBER:
            value = float(self.text)
            return int(value) if value.is_integer() else value
        return _NUMBER_WORDS.get(self.folded) if self.shape is Shape.WORD else None

    def is_mark(self, marks: str) -> bool:
        """Tell whether it is one of these punctuation marks."""
        return self.shape is Shape.MARK and self.text in marks


def tokenize(text: str) -> tuple[Token, ...]:
    """Cut a request into its tokens, in order; white space between them is left out."""
    return tuple(
        _token(Shape(match.lastgroup or "mark"), match.group(), match.start(), match.end())
        for match in _TOKEN.finditer(text)
    )


def find_json_object(text: str) -> tuple[dict[str, Any] | None, tuple[int, int]]:
    """Find the first JSON object in a text, and where it stands."""
    start = text.find("{")
    if start < 0:
        return None, (0, 0)
    decoder = json.JSONDecoder(parse_constant=_refuse)
    try:
        value, end = decoder.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None, (0, 0)
    return value, (start, end)


def _token(shape: Shape, text: str, start: int, end: int) -> Token:
    match shape:
        case Shape.QUOTATION:
            return Token(shape, text[1:-1], start, end)
        case Shape.HASHTAG:
            return Token(shape, text[1:], start, end)
        case Shape.URL | Shape.PATH if text[-1] in ".?!:)" and len(text) > 1:
            kept = text.rstrip(".?!:)") or text[0]
            return Token(shape, kept, start, start + len(kept))
        case _:
            return Token(shape, text, start, end)


def _refuse(constant: str) -> object:
    """Refuse ``NaN`` and ``Infinity``, which are not JSON."""
    raise ValueError(constant)
