"""Parse JSON within limits: strictly from people, leniently from servers.

`read_object` is for text that a person wrote or decides on, and refuses anything ambiguous.
`read_value` is for replies of servers, and repairs what it can.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from tui.text import sanitize_line

T = TypeVar("T")

MAX_DEPTH: Final = 64
"""Deepest nesting in strict parsing."""

MAX_QUOTED: Final = 40
"""Characters of a key quoted in an error."""

MAX_DIGITS: Final = 1_000
"""Longest number, in characters: it costs little to read and to write."""

MAX_ALL_DIGITS: Final = 4_000_000
"""Most digits of all numbers of a reply; they, too, take a tenth of a second."""

FEW: Final = 10_000
"""Structural characters up to which a rough count is enough."""

MAX_STRUCTURE: Final = 400_000
"""Most structural characters of a reply, about 200,000 named values: while they are parsed, in a
tenth of a second, no other thread runs."""

MAX_REPLY_DEPTH: Final = 200
"""Deepest nesting of a reply; the fast parser has the same limit."""

MAX_SAFE_INTEGER: Final = 2**53
"""Larger floats do not identify one integer."""

_STRUCTURAL: Final = b",:[{"
_PLAIN: Final = bytes(set(range(256)) - set(b'",:[{'))
"""All other bytes but quotes."""

_DIGITS: Final = b"0123456789"
_PIECE: Final = 64 * 1024
_ZEROS: Final = bytes.maketrans(_DIGITS, b"0" * 10)

_STRING: Final = re.compile(rb'"[^"]*"')
_UNREADABLE: Final = "cannot be read"
_OUT_OF_RANGE: Final = "a number is out of range"
_TOO_DEEP: Final = "recursion limit exceeded"
_SURROGATE: Final = rb"\ud"
_ESCAPE: Final = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair
    r"|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)


class JsonError(ValueError):
    """A text is not valid JSON; of what it holds the message quotes only a key.

    Attributes:
        reason: What is wrong, without the position.
        line: The line of the error, from 1; 0 if unknown.
        column: The character in that line, from 1; 0 if unknown.
    """

    def __init__(self, reason: str, line: int = 0, column: int = 0) -> None:
        super().__init__(f"line {line}, column {column}: {reason}" if line else reason)
        self.reason, self.line, self.column = reason, line, column


def read_object(
    data: bytes | str, max_depth: int = MAX_DEPTH, *, last_key_counts: bool = False
) -> dict[str, Any]:
    """Read a JSON object as `read_json` does; what else is JSON is an error, too."""
    value = read_json(data, max_depth, last_key_counts=last_key_counts)
    if not isinstance(value, dict):
        raise JsonError("it must be an object: { … }")
    return value


def read_json(
    data: bytes | str, max_depth: int = MAX_DEPTH, *, last_key_counts: bool = False
) -> Any:  # noqa: ANN401 - any JSON
    """Read JSON strictly; `last_key_counts` accepts duplicate keys.

    Raises:
        JsonError: If it is not UTF-8 or not JSON, is nested deeper than `max_depth`, or has a
            duplicate key, NaN, Infinity, a number out of range or a lone surrogate.
    """
    try:
        value = json.loads(
            data if isinstance(data, str) else data.decode("utf-8-sig"),
            object_pairs_hook=None if last_key_counts else _object,
            parse_constant=_constant,
            parse_float=_finite,
            parse_int=_integer,
        )
    except UnicodeDecodeError:
        raise JsonError("not UTF-8 text") from None
    except json.JSONDecodeError as error:
        reason = f"{error.msg[:1].lower()}{error.msg[1:]}"
        raise JsonError(reason, error.lineno, error.colno) from None
    except RecursionError:
        raise JsonError(f"nested deeper than {max_depth} levels") from None
    _check(value, max_depth)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object; refuse duplicate keys, since a reader would see only one."""
    made = dict(pairs)
    if len(made) != len(pairs):
        counts = Counter(key for key, _ in pairs)
        raise JsonError(f'duplicate key "{sanitize_line(counts.most_common(1)[0][0], MAX_QUOTED)}"')
    return made


def _constant(name: str) -> float:
    raise JsonError(f"{name.lstrip('-')} is not a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value) or len(text) > MAX_DIGITS:
        raise JsonError(_OUT_OF_RANGE)
    return value


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise JsonError(_OUT_OF_RANGE)
    return int(text)


def _check(top: object, max_depth: int) -> None:
    """Refuse deep nesting and lone surrogates, without recursion."""
    level: list[object] = [top]
    for _ in range(max_depth + 1):
        deeper: list[object] = []
        for value in level:
            if isinstance(value, str):
                _check_text(value)
            elif isinstance(value, dict):
                deeper += value.keys()
                deeper += value.values()
            elif isinstance(value, list):
                deeper += value
        if not deeper:
            return
        level = deeper
    raise JsonError(f"nested deeper than {max_depth} levels")


def _check_text(text: str) -> None:
    try:
        text.isascii() or text.encode("utf-8")
    except UnicodeEncodeError:
        raise JsonError("lone surrogate in a string") from None


def read_value(text: bytes, count: int | None = None) -> object:
    """Parse one JSON value from a server at a bounded cost.

    Invalid UTF-8 and lone surrogates become U+FFFD, ``NaN`` and ``Infinity`` become strings, and
    a number too large for a float becomes infinite.

    Args:
        text: The JSON text.
        count: Its number of structural characters, if known.

    Raises:
        JsonError: If it is not JSON, nested too deeply, or has too many values or digits.
    """
    from pydantic_core import from_json  # noqa: PLC0415 - not needed for the first frame

    count = structure(text) if count is None else count
    if count > MAX_STRUCTURE:
        raise JsonError("is too complex to be read")
    if _has_long_numbers(text) and _has_long_numbers(_STRING.sub(b"", _without_escapes(text))):
        raise JsonError(f"{_UNREADABLE}: a number has too many digits")
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError as error:
        if _TOO_DEEP in str(error):
            raise JsonError(_UNREADABLE) from error
        return _read_mended(text)


def mapped(
    value: object, kind: type[T], change: Callable[[T], object], key: Callable[[str], str] = str
) -> Any:  # noqa: ANN401 - any JSON
    """Change every value of a kind in a JSON value, such as each text, and every key."""
    match value:
        case Mapping():
            return {key(name): mapped(item, kind, change, key) for name, item in value.items()}
        case list() | tuple():
            return [mapped(item, kind, change, key) for item in value]
    return change(value) if isinstance(value, kind) else value


def whole_numbers(value: object) -> Any:  # noqa: ANN401 - any JSON
    """Write whole floats as integers: to JSON ``3.0`` is ``3``, to some servers it is none."""
    largest = MAX_SAFE_INTEGER
    return mapped(value, float, lambda n: int(n) if n.is_integer() and abs(n) < largest else n)


def text_in(value: Mapping[str, Any], key: str) -> str:
    """Return the text under a key; an empty one if there is none."""
    found = value.get(key)
    return found if isinstance(found, str) else ""


def as_list(value: object) -> list[Any]:
    """Return a list as it is, and nothing in place of what is none."""
    return value if isinstance(value, list) else []


def as_object(value: object) -> dict[str, Any]:
    """Return an object as it is, and an empty one in place of what is none."""
    return value if isinstance(value, dict) else {}


def as_texts(value: object) -> list[str]:
    """Return the texts in a list, without what else is in it."""
    return [one for one in as_list(value) if isinstance(one, str)]


def value_or_none(text: bytes) -> Any:  # noqa: ANN401 - any JSON
    """Read a value like `read_value`; None if it cannot be read."""
    try:
        return read_value(text)
    except JsonError:
        return None


def json_or_text(text: str | bytes) -> object:
    """Read JSON; what is none, such as arguments that were cut, stays text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def writable(value: object) -> Any:  # noqa: ANN401 - any JSON
    """Replace NaN and infinities, which JSON lacks, by their names."""
    return mapped(value, float, lambda n: n if math.isfinite(n) else str(n))


def canonical_text(value: object) -> str:
    """Write a value as all that say the same; what JSON lacks, such as YAML's dates, as text."""
    return json.dumps(writable(whole_numbers(value)), sort_keys=True, default=str)


def structure(text: bytes) -> int:
    """Count the structural characters of a JSON text outside its strings.

    If there are few, those in strings are counted too. The count may stop above `MAX_STRUCTURE`.
    It is an estimate for invalid JSON.
    """
    count = len(text) - len(text.translate(None, _STRUCTURAL))
    if count <= FEW:
        return count
    rest = _without_escapes(text).translate(None, _PLAIN)
    if rest.count(b'"') > 2 * (MAX_STRUCTURE + 1):  # at least one between two strings
        return MAX_STRUCTURE + 1
    return len(_STRING.sub(b"", rest.replace(b'""', b"")).replace(b'"', b""))


def _without_escapes(text: bytes) -> bytes:
    """Take away what could make a quote none."""
    return text.replace(rb"\\", b"").replace(rb"\"", b"") if b"\\" in text else text


def _has_long_numbers(text: bytes) -> bool:
    """Return whether one has too many digits or all have; those in strings count, too.

    Piece by piece, as each step holds the interpreter, and most of what is too long begins so.
    """
    digits = 0
    for start in range(0, len(text), _PIECE):
        piece = text[start : start + _PIECE + MAX_DIGITS].translate(_ZEROS)
        digits += piece.count(b"0", 0, _PIECE)
        if b"0" * (MAX_DIGITS + 1) in piece:
            return True
    return digits > MAX_ALL_DIGITS


def _read_mended(text: bytes) -> object:
    decoded = text.decode("utf-8", "replace")
    if _SURROGATE in text.lower():
        decoded = _ESCAPE.sub(_replace_lone, decoded)
    try:
        value = json.loads(decoded, parse_constant=str)
        _check(value, MAX_REPLY_DEPTH)
    except (ValueError, RecursionError) as error:
        raise JsonError(_UNREADABLE) from error
    return value


def _replace_lone(escape: re.Match[str]) -> str:
    return escape[0] if escape["lone"] is None else "\ufffd"
