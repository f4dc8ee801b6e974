"""Which entries of a long conversation are on the screen: a window that follows or slides."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tui.model.chat import ChatNotice, Entry, ModelText, Thought, UserMessage
from tui.ui.widgets.clipping import MAX_SHOWN, MAX_SHOWN_LINES

MAX_ENTRIES: Final = 80
"""Entries mounted while the end is followed."""

MAX_ROWS: Final = 1_200
"""Rows mounted while the end is followed, estimated; one entry alone may have more."""

STEP: Final = 30
"""Entries that one step back or forth brings in."""

MAX_MOUNTED: Final = 140
"""Entries mounted while the user looks around."""

Rows = Callable[[int], int]
"""Estimates the rows of the entry at an index."""


@dataclass(slots=True)
class Window:
    """The entries from index `first` up to, not including, `last` are mounted."""

    first: int = 0
    last: int = 0

    @property
    def size(self) -> int:
        """How many entries are mounted."""
        return self.last - self.first

    def move_to_end(self, total: int, rows: Rows) -> None:
        """Hold as much of the end as the limits allow."""
        self.last = total
        self.first = self._reach_back(total, MAX_ENTRIES, rows)

    def move_earlier(self, rows: Rows) -> None:
        """Bring in earlier entries; let go of late ones where there are too many."""
        self.first = self._reach_back(self.first, STEP, rows)
        self.last = min(self.last, self.first + MAX_MOUNTED)

    def move_later(self, total: int, rows: Rows) -> None:
        """Bring in later entries; let go of early ones where there are too many."""
        budget = MAX_ROWS
        end = min(total, self.last + STEP)
        while self.last < end and budget > 0:
            budget -= rows(self.last)
            self.last += 1
        self.first = max(self.first, self.last - MAX_MOUNTED)

    def grow(self, total: int) -> None:
        """Take in new entries at the end, unless the window is full or elsewhere."""
        room = max(0, MAX_MOUNTED - self.size)
        self.last = min(total, self.last + room)

    def excess(self, rows: Rows) -> int:
        """Count the entries at the top that following the end does not need."""
        return max(0, self._reach_back(self.last, MAX_ENTRIES, rows) - self.first)

    def _reach_back(self, end: int, most: int, rows: Rows) -> int:
        first, budget = end, MAX_ROWS
        while first > 0 and end - first < most:
            budget -= rows(first - 1)
            if budget < 0 and first < end:
                break
            first -= 1
        return first


def estimate_rows(entry: Entry, width: int) -> int:
    """Guess how many rows an entry takes, without laying it out.

    Args:
        entry: The entry.
        width: The cells a row has.
    """
    match entry:
        case UserMessage(text=text) | ModelText(text=text) | ChatNotice(text=text):
            part = text[:MAX_SHOWN]
            lines = min(part.count("\n") + 1, MAX_SHOWN_LINES)
            return 1 + lines + len(part) // max(20, width)
        case Thought():
            return 2
        case _:
            return 2
