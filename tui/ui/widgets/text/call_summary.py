"""A tool call in a few words: its arguments in one line, its result in another."""

import json
import re
from collections.abc import Iterator
from typing import Final

from tui.text import clip, counted, sanitize_line

MAX_SCANNED: Final = 20_000
"""Characters of the arguments that are read."""

MAX_VALUE: Final = 60
"""Characters of a value; longer ones are cut and stand last."""

MAX_KEY: Final = 40
"""Characters of an argument's name."""

MAX_SUMMARY: Final = 400
"""Characters of a result that are read for its line."""

_OPEN: Final = {"{": "{…}", "[": "[…]"}
_NAMED: Final = re.compile(r'  "(?P<key>(?:[^"\\]|\\.)*)": ?(?P<value>.*?),?')
_BARE: Final = re.compile(r"[^\s\"'=,]+")


def arguments_line(arguments: str) -> str:
    """Return the arguments in one line: short values whole and first, then parts of long ones.

    Args:
        arguments: An object as indented JSON, with one of its values on each line of two blanks.
    """
    short, long = list[str](), list[str]()
    for line in arguments[:MAX_SCANNED].split("\n"):
        named = _NAMED.fullmatch(line)
        if named is None:
            continue
        for value, is_short in _value(named["value"]):
            words = f"{sanitize_line(named['key'], MAX_KEY)}={value}"
            (short if is_short else long).append(words)
    return "  ".join((*short, *long))


def _value(written: str) -> Iterator[tuple[str, bool]]:
    """Give a value as it is shown, and whether it is short; nothing for null."""
    try:
        value = json.loads(written)
    except (ValueError, RecursionError):  # it goes on in the next lines, or is cut
        yield _OPEN.get(written, "…"), False
        return
    if not isinstance(value, str):
        if value is not None:
            yield clip(written, MAX_VALUE), len(written) <= MAX_VALUE
        return
    lines = value.strip("\n").count("\n") + 1
    if lines > 1:
        yield counted(lines, "line"), False
        return
    text = sanitize_line(value, MAX_VALUE + 1)
    kept = clip(text, MAX_VALUE)
    yield kept if _BARE.fullmatch(kept) else json.dumps(kept, ensure_ascii=False), text == kept


def result_line(result: str) -> str:
    """Return a result in one line: the number of its lines, and its first words."""
    text = result.strip()
    first = text[:MAX_SUMMARY].split("\n", 1)[0].strip()
    if len(first) < 3:  # a bracket of JSON
        first = " ".join(text[:MAX_SUMMARY].split())
    lines = text.count("\n") + 1
    return f"{counted(lines, 'line')} · {first}" if lines > 1 else first
