"""The text of a command as shown to the user: complete, with invisible characters escaped."""

import functools
import itertools
import json
import unicodedata
from typing import Final

from tui.text import sanitize

BLANK: Final = "␠"
"""Stands, with a count behind it, for several blanks in a row or for one at an end."""

_SHOWN: Final = frozenset("LNPS")


def spelled(text: str) -> str:
    r"""Write a text so that it can be told from every other one, on one line.

    Blanks that could push something out of sight are counted in brackets; line ends, control
    characters, invisible ones, combining marks and backslashes are written as in JSON; an empty
    text is ``""``. Nothing is left out, whatever its length, and `sanitize` changes nothing.
    """
    if not text:
        return '""'
    if text == '""':
        return r"\"\""
    pieces: list[str] = []
    at = 0
    for blank, run in itertools.groupby(text, key=" ".__eq__):
        characters = list(run)
        count, end = len(characters), at + len(characters)
        if not blank:
            pieces += map(_revealed, characters)
        elif count > 1 or at == 0 or end == len(text):
            pieces.append(f"⟨{BLANK}\N{MULTIPLICATION SIGN}{count}⟩")
        else:
            pieces.append(" ")
        at = end
    return "".join(pieces)


@functools.lru_cache(maxsize=4_096)
def _revealed(character: str) -> str:
    if "!" <= character <= "~" and character != "\\":
        return character
    shown = character not in {"\\", BLANK} and unicodedata.category(character)[0] in _SHOWN
    if shown and sanitize(character) == character:
        return character
    return json.dumps(character)[1:-1].replace("\x7f", "\\u007f")
