"""Tells regular expressions of a server that are cheap to try from those that may run for ever.

Python's `re` backtracks and holds the interpreter while it does; no thread and no timeout helps.
So the cost is estimated beforehand, from the expression and the length of the text, and a check
that may be too expensive is skipped. The server checks its arguments itself anyway.
"""

import functools
import re
import warnings
from collections.abc import Iterable
from re import _constants as constants  # type: ignore[attr-defined]  # the parser is not public
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Final

MAX_PATTERN_CHARS: Final = 200
"""Longest expression that is tried."""

MAX_STEPS: Final = 1_000_000
"""Estimated steps that one try may take; roughly 20 ms."""

SMALL_REPEAT: Final = 8
"""Repetitions up to this many are counted as none; ``\\d{4}`` is harmless."""

MAX_TEXT_CHARS: Final = 1_000
"""Longest text that an expression is tried on."""

_REPEATS: Final = frozenset({constants.MAX_REPEAT, constants.MIN_REPEAT})
_EXPENSIVE: Final = frozenset({constants.GROUPREF, constants.GROUPREF_EXISTS})


def find(pattern: str, text: str) -> bool | None:
    """Search `text` as JSON Schema's ``pattern`` does.

    Returns:
        Whether it was found; None if the expression is none of Python's or may be too expensive.
    """
    if len(pattern) > MAX_PATTERN_CHARS or len(text) > MAX_TEXT_CHARS:
        return None
    repeats = _count_repeats(pattern)
    if repeats is None or (len(text) + 1) ** (repeats + 1) > MAX_STEPS:
        return None
    return re.search(pattern, text) is not None


@functools.lru_cache(maxsize=512)
def _count_repeats(pattern: str) -> int | None:
    """Count the open-ended repetitions; None if they are nested or the expression is not ours."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            re.compile(pattern)
            parsed = parser.parse(pattern)
    except (re.error, OverflowError, RecursionError, Warning):
        return None
    try:
        return _count(parsed, inside_repeat=False)
    except _NestedError:
        return None


class _NestedError(Exception):
    """Repetitions are nested, or repeat a choice; both may take exponential time."""


def _count(items: Iterable[Any], *, inside_repeat: bool) -> int:
    total = 0
    for operation, argument in items:
        if operation in _EXPENSIVE or (operation is constants.BRANCH and inside_repeat):
            raise _NestedError
        if operation in _REPEATS:
            _, most, body = argument
            is_open = most is constants.MAXREPEAT or most > SMALL_REPEAT
            if is_open and inside_repeat:
                raise _NestedError
            total += int(is_open)
            total += _count(body, inside_repeat=inside_repeat or most > 1)
        else:
            total += sum(
                _count(body, inside_repeat=inside_repeat) for body in _bodies(operation, argument)
            )
    return total


def _bodies(operation: object, argument: Any) -> list[Any]:  # noqa: ANN401  # the parser's own
    """Give the expressions nested in an operation of the parser."""
    if operation is constants.SUBPATTERN:
        return [argument[-1]]
    if operation is constants.BRANCH:
        return list(argument[1])
    if operation in {constants.ASSERT, constants.ASSERT_NOT}:
        return [argument[1]]
    if operation is getattr(constants, "ATOMIC_GROUP", None):
        return [argument]
    if operation is getattr(constants, "POSSESSIVE_REPEAT", None):
        return [argument[2]]
    return []
