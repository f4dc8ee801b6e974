"""Limits of what the transcript mounts and draws: a window of entries, and a part of each text.

The viewer shows the whole of a text.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tui.model.chat import ChatNotice, Entry, ModelText, UserMessage

MAX_SHOWN_LINES: Final = 200
"""Lines drawn of one text."""

MAX_SHOWN: Final = 16_000
"""Characters drawn of one text."""

MAX_MARKDOWN: Final = 20_000
"""Characters of a text that are parsed as Markdown; the rest is plain text."""

MAX_MARKDOWN_LINES: Final = 1_000
"""Lines of a text that are parsed as Markdown; they limit list items and table rows."""

MAX_BLOCKS: Final = 300
"""Markdown blocks drawn of one text; the rest is plain text."""

MAX_ENTRIES: Final = 80
"""Entries mounted while the transcript follows the end."""

MAX_ROWS: Final = 1_200
"""Estimated rows mounted while it follows the end; a single entry may have more."""

STEP: Final = 30
"""Entries that are loaded in one step."""

MAX_MOUNTED: Final = 140
"""Entries mounted while the user has scrolled up."""

Rows = Callable[[int], int]
"""Estimates the rows of the entry at an index."""


@dataclass(slots=True)
class Window:
    """The mounted entries: from index `first` up to, but not including, `last`."""

    first: int = 0
    last: int = 0

    @property
    def size(self) -> int:
        return self.last - self.first

    def move_to_end(self, total: int, rows: Rows) -> None:
        """Show as much of the end as the limits allow."""
        self.last = total
        self.first = self._reach_back(total, MAX_ENTRIES, rows)

    def move_to(self, index: int, total: int, rows: Rows) -> None:
        """Show an entry with what stands before and after it."""
        self.first = self._reach_back(index, STEP, rows)
        self.last, budget = index + 1, MAX_ROWS
        while self.last < total and self.size < MAX_ENTRIES and budget > 0:
            budget -= rows(self.last)
            self.last += 1

    def move_earlier(self, rows: Rows) -> None:
        """Add earlier entries, and drop the latest if there are too many."""
        self.first = self._reach_back(self.first, STEP, rows)
        self.last = min(self.last, self.first + MAX_MOUNTED)

    def move_later(self, total: int, rows: Rows) -> None:
        """Add later entries, and drop the earliest if there are too many."""
        budget = MAX_ROWS
        end = min(total, self.last + STEP)
        while self.last < end and budget > 0:
            budget -= rows(self.last)
            self.last += 1
        self.first = max(self.first, self.last - MAX_MOUNTED)

    def grow(self, total: int) -> None:
        """Add new entries at the end while there is room."""
        room = max(0, MAX_MOUNTED - self.size)
        self.last = min(total, self.last + room)

    def excess(self, rows: Rows) -> int:
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
    """Estimate the rows of an entry at a width in cells, without laying it out."""
    match entry:
        case UserMessage(text=text) | ModelText(text=text) | ChatNotice(text=text):
            part = text[:MAX_SHOWN]
            lines = min(part.count("\n") + 1, MAX_SHOWN_LINES)
            return 1 + lines + len(part) // max(20, width)
        case _:
            return 2


def shown_part(text: str) -> tuple[str, int]:
    """Cut a text to the transcript's limits.

    Returns:
        The part to show, and the number of characters left out.
    """
    part = text[:MAX_SHOWN]
    lines = part.split("\n", MAX_SHOWN_LINES)
    if len(lines) > MAX_SHOWN_LINES:
        part = "\n".join(lines[:MAX_SHOWN_LINES])
    return part, len(text) - len(part)


def markdown_part(text: str) -> str:
    """Return the part of a text to parse: whole lines, unless the first is too long."""
    if len(text) <= MAX_MARKDOWN and text.count("\n") < MAX_MARKDOWN_LINES:
        return text
    lines = text[:MAX_MARKDOWN].split("\n", MAX_MARKDOWN_LINES)
    return "".join(f"{line}\n" for line in lines[:-1]) or text[:MAX_MARKDOWN]
