"""How the arguments of a call are shown: complete, and with nothing hidden in them."""

import functools
import json
import unicodedata
from collections.abc import Mapping
from typing import Any, Final

from tui.text import sanitize

MAX_ARGUMENTS: Final = 256 * 1024
"""Longest arguments of a call, in characters of JSON; longer ones cannot be judged by anybody."""

_SHOWN_CATEGORIES: Final = frozenset("LNPSZ")


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


@functools.lru_cache(maxsize=4_096)
def _reveal(character: str) -> str:
    if " " <= character <= "~" or character == "\n":
        return character
    shown = unicodedata.category(character)[0] in _SHOWN_CATEGORIES
    if shown and sanitize(character) == character:
        return character
    return json.dumps(character)[1:-1].replace("\x7f", "\\u007f")
