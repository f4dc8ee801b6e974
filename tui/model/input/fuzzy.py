"""Fuzzy search: the names that contain what was typed, letter after letter."""

import heapq
import re
from collections.abc import Iterable, Sequence
from typing import Final

MAX_TYPED: Final = 200
"""Characters of what was typed that are looked for."""

_Rank = tuple[bool, bool, bool, bool, int]


def best(typed: str, names: Iterable[str], limit: int) -> list[str]:
    """Return the names that fit best: those that begin so, contain it whole, then its letters.

    Linear in the length of the names, whatever they are.
    """
    wanted = typed.casefold()[:MAX_TYPED]
    letters = in_order(wanted)
    found = (
        (_rank(wanted, folded), number, name)
        for number, name in enumerate(names)
        if letters.match(folded := name.casefold())
    )
    return [name for _, _, name in heapq.nsmallest(limit, found)]


def positions(wanted: str, text: str) -> Sequence[int]:
    """Return where the characters of a word stand in a text: together, else one after another."""
    if (start := text.find(wanted)) >= 0:
        return range(start, start + len(wanted))
    found = [start := text.find(one, start + 1) for one in wanted]
    return () if -1 in found else found


def in_order(wanted: str) -> re.Pattern[str]:
    """Match a text that holds these letters in their order; possessive, so never tried twice."""
    steps = (f"[^{re.escape(one)}]*+{re.escape(one)}" for one in wanted)
    return re.compile("".join(steps), re.DOTALL)


def _rank(wanted: str, name: str) -> _Rank:
    """Rank a name, the best lowest: its last part counts more than where that is."""
    last = name.rstrip("/").rpartition("/")[2]
    begins, ends = name.startswith(wanted), last.startswith(wanted)
    return not begins, not ends, wanted not in last, wanted not in name, len(name)
