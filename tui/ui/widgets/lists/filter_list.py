"""A list with a filter line: type to narrow, arrows to move, without leaving the line."""

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
from tui.ui.widgets.plain import PlainText
from tui.ui.widgets.row_list import Row, RowList

T = TypeVar("T")

MAX_FILTER: Final = 200
"""Characters that a filter may have."""

MAX_SEARCHED: Final = 400
"""Characters of a description that the filter searches."""


@dataclass(frozen=True, slots=True)
class ListEntry(Generic[T]):
    """One entry of the list.

    Attributes:
        item: What the entry stands for.
        row: How it looks.
        label: Its names in lower case; matches here come first.
        text: Further words in lower case that the filter searches.
    """

    item: T
    row: Row
    label: str
    text: str = ""


def matching(entries: Sequence[ListEntry[T]], query: str) -> Sequence[ListEntry[T]]:
    """Choose the entries that hold every word of a query, those with it in their names first."""
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
    """The line to type the filter into."""

    def __init__(self, placeholder: str) -> None:
        super().__init__(
            placeholder=placeholder, max_length=MAX_FILTER, compact=True, select_on_focus=False
        )
        self.cursor_blink = False  # a blink is a repaint twice a second, for ever


class FilterList(Vertical, Generic[T]):
    """Entries, a filter over them, and a word on what is shown.

    Args:
        noun: What one entry is.
        empty: What to say, and to do, when there are none.
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
        self._shown: Sequence[ListEntry[T]] = ()

    def compose(self) -> ComposeResult:
        """Compose the filter line, the list and the count."""
        yield FilterLine(f"/ filter {self._noun}s")
        yield RowList()
        yield PlainText(self._empty, classes="empty")
        yield PlainText(classes="count")

    def on_mount(self) -> None:
        """Begin empty."""
        self._show()

    @property
    def current(self) -> T | None:
        """What the entry under the cursor stands for."""
        return self._shown[self.rows.cursor].item if self._shown else None

    @property
    def shown(self) -> Sequence[ListEntry[T]]:
        """The entries that pass the filter."""
        return self._shown

    def set_entries(self, entries: Sequence[ListEntry[T]]) -> None:
        """Replace the entries.

        The cursor stays on the entry of the same name, but where nobody has moved it yet.
        """
        self._entries = entries
        self._show(keep=True)

    def set_filter(self, query: str) -> None:
        """Narrow the list to a query."""
        self.line.value = query
        self._show()

    def focus_list(self) -> None:
        """Give the list the focus."""
        self.rows.focus()

    def action_filter(self) -> None:
        """Go to the filter line."""
        self.line.focus()

    def action_clear_filter(self) -> None:
        """Show everything again."""
        self.line.value = ""
        self.rows.focus()

    def action_move(self, by: int) -> None:
        """Move the cursor."""
        self.rows.cursor += by

    def action_page(self, direction: int) -> None:
        """Move the cursor by a page."""
        self.rows.page(direction)

    def action_first(self) -> None:
        """Move the cursor to the first row."""
        self.rows.cursor = 0

    def action_last(self) -> None:
        """Move the cursor to the last row."""
        self.rows.cursor = len(self._shown) - 1

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Offer only what has an effect now."""
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
        if self._shown:
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
        """Apply the filter and draw what passes."""
        keep = keep and bool(self._shown) and (self.has_focus_within or self.rows.cursor > 0)
        label = self._shown[self.rows.cursor].label if keep else None
        self._shown = matching(self._entries, self.line.value)
        cursor = 0
        if label is not None:
            cursor = next((i for i, e in enumerate(self._shown) if e.label == label), 0)
        self.rows.set_rows([entry.row for entry in self._shown], cursor)
        self.set_class(not self._entries, "-empty")
        self.query_one(".count", PlainText).update(self._count_line())

    def _count_line(self) -> str:
        shown, total = len(self._shown), len(self._entries)
        if shown == total:
            return counted(total, self._noun)
        return f"{shown:,} of {counted(total, self._noun)}"
