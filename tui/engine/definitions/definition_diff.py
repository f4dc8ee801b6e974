"""Line-by-line differences between two definitions, with invisible characters shown."""

import difflib
import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tui.model.input.arguments import reveal
from tui.model.trust import DifferenceLine
from tui.text import sanitize

CONTEXT: Final = 3
"""Unchanged lines that are shown around a change."""

MAX_COMPARED: Final = 2_000
"""Changed lines that are matched with each other; more are shown as all gone and all new."""

_SAME: Final = " "
_GONE: Final = "-"
_NEW: Final = "+"
_SCHEMAS: Final = {
    "inputSchema": "input schema",
    "outputSchema": "output schema",
    "annotations": "annotations",
}


class UnreadableDefinitionError(Exception):
    """A definition is nested so deeply that nobody can be shown it."""


def difference(before: str | None, after: str) -> tuple[DifferenceLine, ...]:
    """Show how a definition changed.

    Args:
        before: The definition that was known, as JSON text; empty where only its hash was kept,
            None where it is new or the same.
        after: The definition now.

    Returns:
        Every line that came or went, and a few unchanged ones around.

    Raises:
        UnreadableDefinitionError: If it cannot be shown as a whole.
    """
    try:
        new = definition_lines(after)
        words = "The earlier definition was not saved. The current one:"
        if before is None:
            words = "The definition:"
        if before:
            lines = compared_lines(definition_lines(before), new)
            if any(line.sign != _SAME for line in lines):
                return lines
            words = "Only lookalike characters have changed. The current definition:"
    except (ValueError, RecursionError) as error:
        raise UnreadableDefinitionError from error
    return (DifferenceLine(_SAME, words), *(DifferenceLine(_NEW, line) for line in new))


def definition_lines(definition: str) -> list[str]:
    """Write a definition, given as JSON text, as lines to read; complete and safe to show."""
    content = json.loads(definition)
    if not isinstance(content, Mapping):
        return []
    lines: list[str] = []
    for key in ("name", "title"):
        if content.get(key) is not None:
            lines += _text_lines(f"{key}: ", content[key])
    if content.get("description") is not None:
        lines += ["description:", *_text_lines("  ", content["description"])]
    for key, heading in _SCHEMAS.items():
        if content.get(key) is not None:
            lines += [f"{heading}:", *_text_lines("  ", _pretty(content[key]))]
    return lines


def _text_lines(prefix: str, value: object) -> list[str]:
    text = value if isinstance(value, str) else _pretty(value)
    return [f"{prefix}{sanitize(reveal(line))}" for line in text.split("\n")]


def _pretty(value: Any) -> str:  # noqa: ANN401 - whatever JSON there is
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)


def compared_lines(before: list[str], after: list[str]) -> tuple[DifferenceLine, ...]:
    """Return every changed line, with `CONTEXT` unchanged lines around each change."""
    return tuple(_shown(all_lines(before, after)))


def all_lines(before: list[str], after: list[str]) -> Iterator[DifferenceLine]:
    """Return all lines of both lists with their signs."""
    start = _common(before, after)
    end = _common(before[start:][::-1], after[start:][::-1])
    yield from (DifferenceLine(_SAME, line) for line in before[:start])
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    blocks = [("replace", 0, len(old), 0, len(new))]
    if len(old) + len(new) <= MAX_COMPARED:
        blocks = list(difflib.SequenceMatcher(None, old, new).get_opcodes())
    for tag, i1, i2, j1, j2 in blocks:
        sign = _SAME if tag == "equal" else _GONE
        yield from (DifferenceLine(sign, line) for line in old[i1:i2])
        if tag != "equal":
            yield from (DifferenceLine(_NEW, line) for line in new[j1:j2])
    yield from (DifferenceLine(_SAME, line) for line in before[len(before) - end :])


def _common(one: list[str], other: list[str]) -> int:
    """Count the lines that two lists begin with alike."""
    alike = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return len([*alike])


def _shown(lines: Iterator[DifferenceLine]) -> Iterator[DifferenceLine]:
    """Leave out unchanged lines far from any change, and say how many."""
    runs = [(sign, [*run]) for sign, run in itertools.groupby(lines, lambda line: line.sign)]
    for at, (sign, run) in enumerate(runs):
        head, tail = CONTEXT * (at > 0), CONTEXT * (at + 1 < len(runs))
        yield from _shortened(run, head=head, tail=tail) if sign == _SAME else run


def _shortened(run: list[DifferenceLine], *, head: int, tail: int) -> Iterator[DifferenceLine]:
    left_out = len(run) - head - tail
    if left_out <= 1:
        yield from run
        return
    yield from run[:head]
    yield DifferenceLine(_SAME, f"… {left_out} unchanged lines …")
    yield from run[len(run) - tail :]
