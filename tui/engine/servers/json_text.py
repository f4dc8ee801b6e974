"""Reads JSON of servers: forgiving, and at a cost that no text of theirs can drive up.

The quick parser keeps the interpreter to itself until it is done. That is short for a text of
few values, however long their strings; for one of millions it is seconds. So a text is looked
at before: one of many values goes through the standard library's parser in Python, which lets
other threads run in between, and one of too many is refused.
"""

import json
import re
from json import decoder, scanner
from typing import Any, Final

from pydantic_core import from_json

FEW: Final = 10_000
"""Structural characters that are not worth a closer look."""

EASY_STRUCTURE: Final = 200_000
"""Structural characters of a text that the quick parser reads in hundredths of a second."""

MAX_STRUCTURE: Final = 600_000
"""Most structural characters of a text that is read at all: 300,000 named values or so."""

MAX_DEPTH: Final = 200
"""Deepest nesting that is read; the quick parser has the same limit."""

_STRUCTURAL: Final = (b",", b":", b"[", b"{")
_STRINGS_AT_A_TIME: Final = 50_000
_TOO_DEEP: Final = "recursion limit exceeded"
_SURROGATE: Final = rb"\ud"
_ESCAPE: Final = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair
    r"|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)


class UnreadableError(ValueError):
    """A text is no JSON, or none that is read; the words go on from what it was."""

    def __init__(self, words: str = "cannot be read") -> None:
        super().__init__(words)


def parse(text: bytes, count: int | None = None) -> object:
    """Read one JSON value.

    What JSON knows no sign for and servers send all the same is mended: bytes that are no
    UTF-8 and halves of a surrogate pair become U+FFFD, and ``NaN`` and ``Infinity`` strings.
    A number too large for a float is infinite.

    Args:
        text: What to read.
        count: How many structural characters it has, if that is known.

    Raises:
        UnreadableError: If it is no JSON, nested too deeply, or of too many values.
    """
    count = structure(text) if count is None else count
    if count > MAX_STRUCTURE:
        raise UnreadableError("is too complex to be read")
    if count > EASY_STRUCTURE:
        return _parse_in_steps(text)
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError as error:
        if _TOO_DEEP in str(error):
            raise UnreadableError from error
        return _parse_in_steps(text)


def structure(text: bytes) -> int:
    """Count the structural characters of a JSON text outside its strings.

    Where there are few, those in strings are counted too. Once there are more than
    `MAX_STRUCTURE` of them, the count may end. It is an estimate for what is no JSON.
    """
    count = _count(text)
    if count <= FEW:
        return count
    rest = text.replace(rb"\\", b"").replace(rb"\"", b"")
    if rest.count(b'"') > 2 * (MAX_STRUCTURE + 1):  # there is a structural one between strings
        return MAX_STRUCTURE + 1
    count = 0
    while rest and count <= MAX_STRUCTURE:
        pieces = rest.split(b'"', 2 * _STRINGS_AT_A_TIME)
        rest = pieces.pop() if len(pieces) > 2 * _STRINGS_AT_A_TIME else b""
        count += _count(b"".join(pieces[::2]))
    return count


def _count(text: bytes) -> int:
    return sum(text.count(character) for character in _STRUCTURAL)


def _parse_in_steps(text: bytes) -> object:
    words = text.decode("utf-8", "replace")
    if _SURROGATE in text.lower():
        words = _ESCAPE.sub(_whole, words)
    try:
        return _SteppingDecoder().decode(words)
    except (ValueError, RecursionError) as error:
        raise UnreadableError from error


def _whole(escape: re.Match[str]) -> str:
    return escape[0] if escape["lone"] is None else "\ufffd"


class _SteppingDecoder(json.JSONDecoder):
    """The standard library's decoder in Python, bounded in depth."""

    def __init__(self) -> None:
        super().__init__(parse_constant=str)
        self._depth = 0
        self.parse_object = self._object
        self.parse_array = self._array
        self.scan_once = scanner.py_make_scanner(self)  # type: ignore[attr-defined]  # not in typeshed

    def _object(self, *arguments: Any) -> tuple[object, int]:  # noqa: ANN401 - as the library's
        return self._descend(decoder.JSONObject, arguments)  # type: ignore[attr-defined]  # ditto

    def _array(self, *arguments: Any) -> tuple[object, int]:  # noqa: ANN401 - as the library's
        return self._descend(decoder.JSONArray, arguments)  # type: ignore[attr-defined]  # ditto

    def _descend(self, parse_one: Any, arguments: Any) -> tuple[object, int]:  # noqa: ANN401
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise UnreadableError
        found: tuple[object, int] = parse_one(*arguments)
        self._depth -= 1
        return found
