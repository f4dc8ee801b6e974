"""How the rows of the screen are shared among the parts of the confirmation."""

from typing import Final

TALL: Final = 30
"""Rows from which the dialog has air."""

MIDDLING: Final = 20
"""Rows from which the server's words have more than one row."""

SHORT: Final = 15
"""Rows from which there are labels, and what the server says."""

NARROW: Final = 80
"""Columns below which the dialog takes the whole width."""

_TALL_ROWS: Final = 15
"""Rows beside arguments, facts and notes on a tall screen: frame 2, the server's words 5, the
heading 2, buttons 4, hint 2."""

_MIDDLING_ROWS: Final = 10
"""The same where there is less air: frame 2, words 3, heading 1, buttons 3, hint 1."""

_SHORT_ROWS: Final = 9
"""The same with one row of the server's words."""

_TINY_ROWS: Final = 6
"""The same on the smallest screen: frame 2, buttons 3, hint 1."""

_TINY_FACTS: Final = 2
"""Facts in sight on the smallest screen: server and tool."""


def note_rows(height: int, wanted: int) -> int:
    """Give the rows for gemdeck's own notes, which scroll where they take more."""
    if height >= TALL:
        return min(wanted, 4)
    return min(wanted, 2 if height >= SHORT else 1)


def claim_rows(height: int) -> int:
    """Give the most rows for what the server claims."""
    if height >= TALL:
        return 3
    return 2 if height >= MIDDLING else 1


def argument_rows(height: int, facts: int, noted: int) -> int:
    """Give the rows that nothing else needs.

    Args:
        height: Rows of the screen.
        facts: Rows of server, tool and claims.
        noted: Rows of notes, see `note_rows`.
    """
    if height >= TALL:
        others = _TALL_ROWS + facts + noted + (1 if noted else 0)
    elif height >= MIDDLING:
        others = _MIDDLING_ROWS + facts + noted
    elif height >= SHORT:
        others = _SHORT_ROWS + facts + noted
    else:
        others = _TINY_ROWS + min(facts, _TINY_FACTS) + noted
    return max(1, height - others)
