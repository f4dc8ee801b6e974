"""The arguments of a call as text: complete, without hidden characters, and parsed strictly.

The text that is shown, edited and sent is the same, so that an answer applies to exactly what
was on the screen.
"""

import functools
import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any, Final

from tui.model.bounded_json import read_object
from tui.text import sanitize

MAX_ARGUMENTS: Final = 320 * 1024
"""Longest arguments of a call, in characters of JSON; nobody could review longer ones.

A tool's result of the default size fits in, even if JSON writes each character as six.
"""

MAX_DEPTH: Final = 200
"""Deepest nesting of edited arguments."""

_SHOWN_CATEGORIES: Final = frozenset("LNPSZ")

BLANK: Final = "␠"
"""Stands, with a count behind it, for several blanks in a row or for one at an end."""

_BLANK_RUN: Final = re.compile(r"\A +| {2,}| +\Z")
"""Blanks that could push something out of sight, or that an end hides."""


def canonical_json(arguments: Mapping[str, Any], *, sorts: bool = True) -> str:
    """Write arguments as indented JSON with sorted keys, so that equal objects look equal.

    Unless it `sorts`, the keys stay in their order.

    Invisible and control characters are written as JSON escapes, so that the text is JSON for
    exactly the given object and passes `sanitize` unchanged.

    Raises:
        ValueError: If the arguments are not JSON, such as NaN, or exceed `MAX_ARGUMENTS`.
    """
    try:
        text = json.dumps(arguments, indent=2, sort_keys=sorts, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError("the arguments are not JSON") from error
    except RecursionError as error:
        raise ValueError("the arguments are nested too deeply") from error
    if len(text) > MAX_ARGUMENTS:
        raise ValueError(f"the arguments are longer than {MAX_ARGUMENTS} characters")
    return text if sanitize(text) == text else "".join(map(reveal_character, text))


def read_arguments(text: str) -> dict[str, Any]:
    """Parse arguments that a person wrote as JSON; raises `JsonError` as `read_object` does."""
    return read_object(text, MAX_DEPTH)


def reveal(text: str) -> str:
    """Replace invisible characters by JSON escapes, except line breaks and tabs."""
    if sanitize(text) == text:
        return text
    return "".join(c if c == "\t" else reveal_character(c) for c in text)


def json_line(value: object) -> str:
    """Write a value as one line of JSON in which nothing is hidden."""
    return reveal(json.dumps(value, ensure_ascii=False, sort_keys=True))


@functools.lru_cache(maxsize=4_096)
def reveal_character(character: str) -> str:
    """Return a character, or the JSON escape of one that cannot be seen."""
    if " " <= character <= "~" or character == "\n":
        return character
    if unicodedata.category(character)[0] in _SHOWN_CATEGORIES and sanitize(character) == character:
        return character
    return json.dumps(character)[1:-1].replace("\x7f", "\\u007f")


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
    revealed = "".join(map(_revealed, text))
    return _BLANK_RUN.sub(lambda run: f"⟨{BLANK}\N{MULTIPLICATION SIGN}{len(run[0])}⟩", revealed)


def _revealed(character: str) -> str:
    if character in {"\\", BLANK} or (character.isspace() and character != " "):
        return json.dumps(character)[1:-1]
    return reveal_character(character)
