"""Tells regular expressions of a server that are cheap to try from those that may run for ever.

Python's `re` backtracks and holds the interpreter while it does; no thread and no timeout helps.
So the cost is estimated beforehand, from the expression and the length of the text, and a check
that may be too expensive is skipped. The server checks its arguments itself anyway.
"""

import functools
import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from re import _constants as constants  # type: ignore[attr-defined]  # the parser is not public
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Final

MAX_PATTERN_CHARS: Final = 200
"""Longest expression that is tried."""

MAX_STEPS: Final = 1_000_000
"""Estimated steps that one try may take; roughly 20 ms."""

MAX_TEXT_CHARS: Final = 1_000
"""Longest text that an expression is tried on."""

_REPEATS: Final = frozenset({constants.MAX_REPEAT, constants.MIN_REPEAT})
_ATOMS: Final = frozenset(
    {
        constants.ANY,
        constants.AT,
        constants.FAILURE,
        constants.IN,
        constants.LITERAL,
        constants.NOT_LITERAL,
    }
)
"""Operations that take one step and can be taken in one way only."""

_POSSESSIVE_REPEAT: Final = getattr(constants, "POSSESSIVE_REPEAT", None)
_ATOMIC_GROUP: Final = getattr(constants, "ATOMIC_GROUP", None)


def find(pattern: str, text: str) -> bool | None:
    """Search `text` as JSON Schema's ``pattern`` does.

    Returns:
        Whether it was found; None if the expression is none of Python's or may be too expensive.
    """
    steps = estimate(pattern, len(text))
    if steps is None or steps > MAX_STEPS:
        return None
    return re.search(pattern, text) is not None


def estimate(pattern: str, length: int) -> int | None:
    """Give an upper bound for the steps that a search takes, and its order of magnitude.

    Args:
        pattern: The expression.
        length: Characters of the text to be searched.

    Returns:
        The steps, `MAX_STEPS` + 1 for all that are more; None if the expression or the text is
        too long, or the expression is none of Python's.
    """
    if len(pattern) > MAX_PATTERN_CHARS or length > MAX_TEXT_CHARS:
        return None
    parsed = _parse(pattern)
    if parsed is None:
        return None
    try:
        cost = _sequence_cost(parsed, length)
    except _TooExpensiveError:
        return MAX_STEPS + 1
    starts = 1 if _is_anchored(parsed) else length + 1
    return min(starts * cost.steps + length, MAX_STEPS + 1)


@dataclass(frozen=True, slots=True)
class _Cost:
    """What matching a part of an expression at one place can cost at most.

    Attributes:
        ways: In how many ways it can match, each of which backtracking may try.
        steps: What trying all of them takes.
    """

    ways: int
    steps: int


class _TooExpensiveError(Exception):
    """The cost is beyond `MAX_STEPS`, or nobody can tell."""


@functools.lru_cache(maxsize=512)
def _parse(pattern: str) -> Any:  # noqa: ANN401  # the parser's own
    """Parse an expression; None if it is none of Python's."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            re.compile(pattern)
            return parser.parse(pattern)
    except (re.error, OverflowError, RecursionError, Warning):
        return None


def _is_anchored(parsed: Any) -> bool:  # noqa: ANN401  # the parser's own
    """Tell whether an expression can match at the start of the text only."""
    starts = {constants.AT_BEGINNING, constants.AT_BEGINNING_STRING}
    first = parsed[0] if len(parsed) else (None, None)
    is_multiline = parsed.state.flags & re.MULTILINE
    return first[0] is constants.AT and first[1] in starts and not is_multiline


def _sequence_cost(items: Iterable[Any], length: int) -> _Cost:
    """Estimate parts one after the other: each is tried anew for every way of those before."""
    ways, steps = 1, 0
    for operation, argument in items:
        cost = _cost(operation, argument, length)
        steps = _bounded(steps + ways * cost.steps)
        ways = _bounded(ways * cost.ways)
    return _Cost(ways, max(1, steps))


def _cost(operation: Any, argument: Any, length: int) -> _Cost:  # noqa: ANN401  # the parser's own
    if operation in _ATOMS:
        return _Cost(1, 1)
    if operation in _REPEATS:
        return _repeat_cost(argument, length)
    if operation is constants.SUBPATTERN:
        return _sequence_cost(argument[-1], length)
    if operation is constants.BRANCH:
        costs = [_sequence_cost(branch, length) for branch in argument[1]]
        return _Cost(sum(c.ways for c in costs), _bounded(sum(c.steps for c in costs)))
    if operation in {constants.ASSERT, constants.ASSERT_NOT}:
        return _Cost(1, _sequence_cost(argument[1], length).steps)
    if operation is _ATOMIC_GROUP:
        return _Cost(1, _sequence_cost(argument, length).steps)
    if operation is _POSSESSIVE_REPEAT:
        return _Cost(1, _repeat_cost(argument, length).steps)
    raise _TooExpensiveError


def _repeat_cost(argument: Any, length: int) -> _Cost:  # noqa: ANN401  # the parser's own
    """Estimate a repetition: a body with several ways multiplies them with each round."""
    least, most, body = argument
    rounds = min(most, max(least, length + 1))
    one = _sequence_cost(body, length)
    if one.ways == 1:
        ways = rounds - least + 1
        return _Cost(_bounded(ways), _bounded(max(1, rounds * one.steps)))
    ways, steps, in_round = int(least == 0), 1, 1
    for number in range(1, rounds + 1):
        steps = _bounded(steps + in_round * one.steps)
        in_round = _bounded(in_round * one.ways)
        ways += in_round if number >= least else 0
    return _Cost(_bounded(ways), steps)


def _bounded(number: int) -> int:
    if number > MAX_STEPS:
        raise _TooExpensiveError
    return number
