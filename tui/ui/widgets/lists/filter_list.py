"""A list with a filter line; the arrow keys move the cursor while the filter has focus."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.getters import query_one
from textual.message import Message
from textual.widgets import Input

from tui.text import counted
from tui.ui import keymap
from tui.ui.widgets.lists.row_list import Row, RowList
from tui.ui.widgets.text.plain import PlainText

T = TypeVar("T")

MAX_FILTER: Final = 200
"""Characters of a filter."""

MAX_SEARCHED: Final = 400
"""Characters of a description that are searched."""


@dataclass(frozen=True, slots=True)
class ListEntry(Generic[T]):
    """One entry of the list.

    Attributes:
        item: What the entry represents.
        row: How it is drawn.
        label: Its names in lower case; matches here come first.
        text: More lower-case text to search.
    """

    item: T
    row: Row
    label: str
    text: str = ""


def matching(entries: Sequence[ListEntry[T]], query: str) -> Sequence[ListEntry[T]]:
    """Return the entries that contain every word of a query, matches in names first."""
    words = query.lower().split()
    if not words:
        return entries
    named: list[ListEntry[T]] = []
    described: list[ListEntry[T]] = []
    for entry in entries:
        if all(word in entry.label for word in words):
            named.append(entry)
        elif all(word in entry.text or word in entry.label for word in words):
            described.append(entry)
    return named + described


class FilterLine(Input):
    """The input of the filter."""

    def __init__(self, placeholder: str) -> None:
        super().__init__(
            placeholder=placeholder, max_length=MAX_FILTER, compact=True, select_on_focus=False
        )
        self.cursor_blink = False  # a blinking cursor repaints twice a second


class FilterList(Vertical, Generic[T]):
    """A filter, the entries that match it, and their number.

    Args:
        noun: The word for one entry.
        empty: The text shown if there are no entries.
    """

    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(keymap.Place.LIST)

    line = query_one(FilterLine)
    rows = query_one(RowList)

    class Moved(Message):
        """Another entry is under the cursor, or none."""

    class Chosen(Message):
        """The entry under the cursor was chosen."""

    def __init__(self, noun: str, empty: str) -> None:
        super().__init__()
        self._noun = noun
        self._empty = empty
        self._entries: Sequence[ListEntry[T]] = ()
        self.shown: Sequence[ListEntry[T]] = ()

    def compose(self) -> ComposeResult:
        yield FilterLine(f"/ filter {self._noun}s")
        yield RowList()
        yield PlainText(self._empty, classes="empty")
        yield PlainText(classes="count")

    def on_mount(self) -> None:
        self._show()

    @property
    def current(self) -> T | None:
        return self.shown[self.rows.cursor].item if self.shown else None

    def set_entries(self, entries: Sequence[ListEntry[T]]) -> None:
        """Replace the entries; the cursor stays on the same name if the user has moved it."""
        self._entries = entries
        self._show(keep=True)

    def set_filter(self, query: str) -> None:
        self.line.value = query
        self._show()

    def focus_list(self) -> None:
        self.rows.focus()

    def action_filter(self) -> None:
        self.line.focus()

    def action_clear_filter(self) -> None:
        self.line.value = ""
        self.rows.focus()

    def action_move(self, by: int) -> None:
        self.rows.cursor += by

    def action_page(self, direction: int) -> None:
        self.rows.page(direction)

    def action_first(self) -> None:
        self.rows.cursor = 0

    def action_last(self) -> None:
        self.rows.cursor = len(self.shown) - 1

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Enable only the keys that have an effect now."""
        match action:
            case "filter":
                return not self.line.has_focus
            case "clear_filter":
                return self.line.has_focus or bool(self.line.value)
            case _:
                return True

    @on(FilterLine.Changed)
    def _on_filter_changed(self, event: FilterLine.Changed) -> None:
        event.stop()
        self._show()
        self.refresh_bindings()

    @on(FilterLine.Submitted)
    def _on_filter_submitted(self, event: FilterLine.Submitted) -> None:
        event.stop()
        if self.shown:
            self.post_message(self.Chosen())

    @on(RowList.Chosen)
    def _on_row_chosen(self, event: RowList.Chosen) -> None:
        event.stop()
        self.post_message(self.Chosen())

    @on(RowList.Moved)
    def _on_row_moved(self, event: RowList.Moved) -> None:
        event.stop()
        self.post_message(self.Moved())

    def _show(self, *, keep: bool = False) -> None:
        """Apply the filter and draw the matches."""
        keep = keep and bool(self.shown) and (self.has_focus_within or self.rows.cursor > 0)
        label = self.shown[self.rows.cursor].label if keep else None
        self.shown = matching(self._entries, self.line.value)
        cursor = 0
        if label is not None:
            cursor = next((i for i, e in enumerate(self.shown) if e.label == label), 0)
        self.rows.set_rows([entry.row for entry in self.shown], cursor)
        self.set_class(not self._entries, "-empty")
        self.query_one(".count", PlainText).update(self._count_line())

    def _count_line(self) -> str:
        shown, total = len(self.shown), len(self._entries)
        if shown == total:
            return counted(total, self._noun)
        return f"{shown:,} of {counted(total, self._noun)}"
