"""What the lines of a difference look like: their ground, and the words that changed in them."""

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from itertools import accumulate, groupby, pairwise
from operator import itemgetter
from time import thread_time
from typing import Final

from textual.content import Content, Span

MAX_MARKED: Final = 2_000
"""Characters of a line in which changed words are marked."""

MAX_WORDS: Final = 100
"""Words between what two lines begin and end with alike that are compared one by one."""

MAX_CHANGED: Final = 0.6
"""Part of two lines that may differ; beyond it they are two lines, not one that changed."""

MAX_SECONDS: Final = 0.03
"""Seconds of processor time after which the rest of a difference stays without marks."""

GROUNDS: Final = {"+": "difference--added", "-": "difference--removed"}
"""The component classes of the rows of a line, by its sign."""

SIGN_STYLES: Final = {"+": "$text-success", "-": "$text-error"}

_WORD: Final = re.compile(r"\w+|\s+|.")


def marked(lines: Iterable[tuple[str, Content]]) -> Sequence[tuple[str, Content]]:
    """Mark the words that differ where added lines take the place of removed ones.

    Args:
        lines: The lines behind their signs: ``+``, ``-`` or another one.

    Returns:
        The same lines in the same order; a word that changed has the component class of its
        line's ground, followed by ``-word``, behind a dot as its style.
    """
    until = thread_time() + MAX_SECONDS
    runs = [(sign, [*run]) for sign, run in groupby(lines, itemgetter(0))]
    for (sign, removed), (other, added) in pairwise(runs):
        for at in range(min(len(removed), len(added)) if sign + other == "-+" else 0):
            if thread_time() < until:
                old, new = _pair(removed[at][1], added[at][1])
                removed[at], added[at] = ("-", old), ("+", new)
    return [line for _, run in runs for line in run]


def _pair(old: Content, new: Content) -> tuple[Content, Content]:
    """Mark what differs between a line and the one that replaces it."""
    if max(len(old), len(new)) > MAX_MARKED:
        return old, new
    words = _WORD.findall(old.plain), _WORD.findall(new.plain)
    start = _common(*words)
    end = _common(*(side[start:][::-1] for side in words))
    inner = [side[start : len(side) - end] for side in words]
    changed = [(0, len(inner[0]), 0, len(inner[1]))]
    if max(map(len, inner)) <= MAX_WORDS:
        matcher = SequenceMatcher(None, inner[0], inner[1], autojunk=False)
        changed = [block[1:] for block in matcher.get_opcodes() if block[0] != "equal"]
    places = [
        _places(side, [(start + one[at], start + one[at + 1]) for one in changed])
        for side, at in zip(words, (0, 2), strict=True)
    ]
    if sum(b - a for one in places for a, b in one) > MAX_CHANGED * (len(old) + len(new)):
        return old, new
    styles = ".difference--removed-word", ".difference--added-word"
    old, new = (
        line.add_spans([Span(a, b, style) for a, b in one if a < b])
        for line, one, style in zip((old, new), places, styles, strict=True)
    )
    return old, new


def _places(words: Sequence[str], runs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Turn runs of words into places in the text that they make up."""
    ends = [0, *accumulate(map(len, words))]
    return [(ends[first], ends[last]) for first, last in runs]


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Count the words that two lines begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((number for number, (a, b) in pairs if a != b), min(len(one), len(other)))
