"""The arguments of a call as text: complete, with nothing hidden in them, and read back strictly.

What is asked about, what may be edited and what is sent are the same text, so that an answer is
about exactly what was on the screen.
"""

import functools
import json
import math
import unicodedata
from collections.abc import Mapping
from typing import Any, Final

from tui.text import clip, sanitize, sanitize_line

MAX_ARGUMENTS: Final = 256 * 1024
"""Longest arguments of a call, in characters of JSON; longer ones cannot be judged by anybody."""

MAX_DIGITS: Final = 1_000
"""Longest number in edited arguments, in characters."""

MAX_QUOTED: Final = 40
"""Characters of a key that a complaint quotes."""

_SHOWN_CATEGORIES: Final = frozenset("LNPSZ")


class ArgumentsError(ValueError):
    """A text is no JSON object that could be sent; the message says why, for the user.

    Attributes:
        line: Where it goes wrong, from 1; 0 where no one place does.
        column: The character in that line, from 1; 0 where no one place does.
    """

    def __init__(self, reason: str, line: int = 0, column: int = 0) -> None:
        place = f"line {line}, column {column}: " if line else ""
        super().__init__(f"{place}{reason}")
        self.line = line
        self.column = column


def canonical_json(arguments: Mapping[str, Any]) -> str:
    """Write arguments as indented JSON with sorted keys, so that equal objects look equal.

    Characters that do not show, or that act on a terminal, are written as JSON escapes. The
    text therefore is still JSON for exactly the given object, and passes `sanitize` unchanged.

    Raises:
        ValueError: If the arguments are no JSON, such as NaN, or longer than `MAX_ARGUMENTS`.
    """
    try:
        text = json.dumps(arguments, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError("the arguments are not JSON") from error
    except RecursionError as error:
        raise ValueError("the arguments are nested too deeply") from error
    if len(text) > MAX_ARGUMENTS:
        raise ValueError(f"the arguments are longer than {MAX_ARGUMENTS} characters")
    if sanitize(text) == text:
        return text
    return "".join(map(_reveal, text))


def read_arguments(text: str) -> dict[str, Any]:
    """Read arguments that somebody wrote as JSON.

    Raises:
        ArgumentsError: If it is not JSON or no object, or says what a reader would not see or a
            server not get: a key twice, NaN, a number out of range, half a surrogate pair.
    """
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_float=_finite,
            parse_int=_whole,
        )
    except json.JSONDecodeError as error:
        reason = f"{error.msg[:1].lower()}{error.msg[1:]}"
        raise ArgumentsError(reason, error.lineno, error.colno) from None
    except RecursionError:
        raise ArgumentsError("nested too deeply") from None
    if not isinstance(value, dict):
        raise ArgumentsError("the arguments have to be an object: { … }")
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except RecursionError:
        raise ArgumentsError("nested too deeply") from None
    except UnicodeEncodeError:
        raise ArgumentsError("half a surrogate pair stands in a text") from None
    return value


def reveal(text: str) -> str:
    """Write characters that do not show as JSON escapes; line breaks and tabs stay."""
    if sanitize(text) == text:
        return text
    return "".join(c if c == "\t" else _reveal(c) for c in text)


@functools.lru_cache(maxsize=4_096)
def _reveal(character: str) -> str:
    if " " <= character <= "~" or character == "\n":
        return character
    shown = unicodedata.category(character)[0] in _SHOWN_CATEGORIES
    if shown and sanitize(character) == character:
        return character
    return json.dumps(character)[1:-1].replace("\x7f", "\\u007f")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in pairs:
        if key in made:
            quoted = clip(sanitize_line(key), MAX_QUOTED)
            raise ArgumentsError(f"the key {quoted!r} stands twice in one object")
        made[key] = value
    return made


def _constant(name: str) -> float:
    raise ArgumentsError(f"{name.lstrip('-')} is no number of JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value) or len(text) > MAX_DIGITS:
        raise ArgumentsError("a number is out of range")
    return value


def _whole(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ArgumentsError("a number is out of range")
    return int(text)
