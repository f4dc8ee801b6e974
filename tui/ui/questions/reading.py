"""What of a question was in sight: nothing is allowed before each of its ends was."""

from collections.abc import Sequence
from typing import Any, Final

from textual.screen import Screen
from textual.widget import Widget

from tui.ui.widgets.text.folded_text import Position, position_in

SCROLL_KEYS: Final = {
    "up": (-1, 0),
    "down": (1, 0),
    "pageup": (0, -1),
    "pagedown": (0, 1),
    "home": (0, -1_000_000),
    "end": (0, 1_000_000),
}
"""Keys that scroll, each by rows and pages; they work before an answer counts."""


class ReadProgress:
    """Takes note of the ends that were in sight.

    One view of a question has the class `-fits`: the one that gives way to the answers, and whose
    lines are counted. It has to be seen to its end, as has each one of the class `-read`.

    Args:
        screen: The question.
    """

    def __init__(self, screen: Screen[Any]) -> None:
        self._screen = screen
        self._seen: set[Widget] = set()

    @property
    def main(self) -> Widget:
        return self._screen.query_one(".-fits")

    @property
    def views(self) -> Sequence[Widget]:
        return [view for view in self._screen.query(".-read, .-fits") if view.display]

    @property
    def position(self) -> Position:
        return position_in(self.main)

    @property
    def unread(self) -> Widget | None:
        """The first view whose end is not in sight and never was."""
        self.look()
        return next((view for view in self.views if view not in self._seen), None)

    def look(self) -> None:
        self._seen.update(view for view in self.views if position_in(view).shows_end)

    def words(self, *, short: bool) -> str:
        """Say that there is more to read, where there is."""
        unread = self.unread
        if unread is None:
            return ""
        place = position_in(unread)
        if short:
            return f"{place.first:,}/{place.rows:,} Read to the end: PageDown"
        return f"Read to the end first: PageDown, End · {place.words}"

    def begin_anew(self) -> None:
        self._seen.clear()
