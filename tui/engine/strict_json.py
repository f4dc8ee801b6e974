"""JSON as gemdeck writes it and nothing else: what is ambiguous or dangerous is refused."""

import json
import math
from typing import Any, Final

MAX_DEPTH: Final = 64
"""Deepest nesting of objects and lists."""


class BadJsonError(Exception):
    """A text is not the JSON that was expected; the message never quotes it."""


def parse_object(data: bytes) -> dict[str, Any]:
    """Parse a JSON object.

    Raises:
        BadJsonError: If it is not UTF-8 or not JSON, its top is no object, a key stands twice
            in one object, it nests deeper than `MAX_DEPTH`, or it holds NaN, Infinity, a number
            out of range or half a surrogate pair.
    """
    try:
        value = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_float=_finite,
        )
    except UnicodeDecodeError:
        raise BadJsonError("not UTF-8 text") from None
    except (ValueError, RecursionError):
        raise BadJsonError("not valid JSON") from None
    if not isinstance(value, dict):
        raise BadJsonError("not a JSON object")
    _check(value)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object; of a key that stands twice a reader would see only one."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise BadJsonError("a key stands twice")
    return made


def _constant(_name: str) -> float:
    raise BadJsonError("a number is out of range")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise BadJsonError("a number is out of range")
    return value


def _check(top: object) -> None:
    """Refuse deep nesting and half surrogate pairs, without recursion."""
    level: list[object] = [top]
    for _ in range(MAX_DEPTH + 1):
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
    raise BadJsonError(f"nested deeper than {MAX_DEPTH} levels")


def _check_text(text: str) -> None:
    try:
        text.isascii() or text.encode("utf-8")
    except UnicodeEncodeError:
        raise BadJsonError("half a surrogate pair in a string") from None
