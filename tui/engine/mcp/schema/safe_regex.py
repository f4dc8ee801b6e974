"""Searches with regular expressions from servers, bounded in time and memory.

Unlike `re`, the `regex` library has a timeout for searches. Compiling has none: a part that must
occur n times is copied n times, so the compiled size is estimated first.
"""

import functools
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import regex

TIMEOUT: Final = 0.01
"""Seconds that one search may take."""

MAX_PATTERN_CHARS: Final = 200
"""Longest expression that is used."""

MAX_TEXT_CHARS: Final = 1_000
"""Longest text that is searched."""

MAX_SIZE: Final = 1_500
"""Largest compiled expression, in nodes; its compilation takes 10 ms at most."""

_NOT_JSON_SCHEMA: Final = re.compile(r"\(\?(?!:|=|!|<|P<|[aims]+[):])|\[:|\(\*")
"""Syntax that only `regex` has, such as recursion; the estimate does not cover it."""

_TOKEN: Final = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(?P<open>\()|(?P<close>\))|\{(?P<least>\d+)(?:,\d*)?\}|.",
    re.DOTALL,
)


def find(pattern: str, text: str) -> bool | None:
    """Search `text` as JSON Schema's ``pattern`` does.

    Returns:
        Whether it matched; None if the expression is unusable or takes too long.
    """
    compiled = _compile(pattern)
    if compiled is None or len(text) > MAX_TEXT_CHARS:
        return None
    try:
        return compiled.search(text, timeout=TIMEOUT) is not None
    except (TimeoutError, MemoryError):
        return None


@functools.lru_cache(maxsize=64)
def _compile(pattern: str) -> "regex.Pattern[str] | None":
    if len(pattern) > MAX_PATTERN_CHARS or _NOT_JSON_SCHEMA.search(pattern):
        return None
    if _size(pattern) > MAX_SIZE:
        return None
    import regex  # noqa: PLC0415 - few servers need it

    try:
        return regex.compile(pattern, cache_pattern=False)
    except (regex.error, ValueError, OverflowError, RecursionError, MemoryError):
        return None


def _size(pattern: str) -> int:
    """Estimate the nodes of the compiled expression."""
    groups: list[list[int]] = [[0]]  # the sizes of the parts of each open group
    for token in _TOKEN.finditer(pattern):
        if token["open"]:
            groups.append([2])
        elif token["close"] and len(groups) > 1:
            whole = sum(groups.pop())
            groups[-1].append(whole)
        elif token["least"]:
            groups[-1][-1] *= max(1, int(token["least"]))
        else:
            groups[-1].append(1)
    return sum(map(sum, groups))
