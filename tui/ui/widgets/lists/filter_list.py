"""A list with a filter line; the arrow keys move the cursor while the filter has focus."""

from collections.abc import Container, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import ClassVar, Final, Generic, TypeAlias, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.getters import query_one
from textual.message import Message
from textual.widgets import Input

from tui.model.frozen import Frozen
from tui.model.input.fuzzy import in_order
from tui.text import counted
from tui.ui import keymap
from tui.ui.widgets.key_bar import SaysWhy, with_keys
from tui.ui.widgets.lists.row_list import WIDEST, Lazy, Row, RowList
from tui.ui.widgets.text.plain import PlainText, count, one_line

T = TypeVar("T")

MAX_SEARCHED: Final = 400
"""Characters of a description that are searched."""


class ListEntry(Frozen, Generic[T]):
    """One entry of the list.

    Attributes:
        item: What the entry represents.
        row: How it is drawn.
        label: Its names in lower case; matches here come first.
        text: More lower-case text to search.
        group: The heading it stands below; entries of one group follow each other.
    """

    item: T
    row: Row
    label: str
    text: str = ""
    group: str = ""


class Group(Frozen):
    """The heading of entries that belong together.

    Attributes:
        label: Its name.
        count: The number of its entries.
        row: How it is drawn.
    """

    label: str
    count: int
    row: Row


def grouped(
    entries: Sequence[ListEntry[T]], folded: Container[str], columns: tuple[str, ...] = ()
) -> Sequence[ListEntry[T] | Group]:
    """Put a heading before the entries of each group; those of folded groups are left out.

    The headings name the `columns`.
    """
    shown: list[ListEntry[T] | Group] = []
    for name, members in groupby(entries, lambda entry: entry.group):
        listed = list(members)
        if name:
            glyph = "▸" if name in folded else "▾"
            number = count(len(listed))
            row = Row("", f"{glyph} {one_line(name)}", number, is_heading=True, columns=columns)
            shown.append(Group(name, len(listed), row))
        if name not in folded:
            shown += listed
    return shown


def matching(entries: Sequence[ListEntry[T]], query: str) -> Sequence[ListEntry[T]]:
    """Return the entries that match every word of a query.

    First those with the words in their names, and then in what stands before those, then those
    with them in their descriptions, then those with their letters in what is shown as the name,
    where they end soonest first.
    """
    if not (words := query.lower().split()):
        return entries
    letters = [in_order(word).match for word in words]
    named: list[ListEntry[T]] = []
    described: list[ListEntry[T]] = []
    scattered: list[tuple[int, ListEntry[T]]] = []
    for entry in entries:
        if all(word in entry.label for word in words):
            named.append(entry)
        elif all(word in entry.text or word in entry.label for word in words):
            described.append(entry)
        else:
            name = entry.row.label.lower()
            found = [fits.end() for match in letters if (fits := match(name))]
            if len(found) == len(words):
                scattered.append((sum(found), entry))
    named.sort(key=lambda one: not all(word in one.row.label.lower() for word in words))
    scattered.sort(key=itemgetter(0))
    return [*named, *described, *(entry for _, entry in scattered)]


class FilterLine(Input, inherit_bindings=False):
    """The input of the filter. Up and Down are left to what it stands in."""

    BINDINGS: ClassVar[list[BindingType]] = [*Input.BINDINGS]

    def __init__(self, placeholder: str) -> None:
        super().__init__(
            placeholder=placeholder, max_length=200, compact=True, select_on_focus=False
        )


class FilterList(SaysWhy, Vertical, Generic[T]):
    """A filter, the entries that match it, and their number.

    Without a filter the entries stand below headings that fold, if they have groups.

    Args:
        noun: The word for one entry.
        empty: The text shown if there are no entries, with keys between backticks.
        prompt: The text in an empty filter, if it is not the usual one.
        entries: The entries at first.
        clicks: The clicks that choose an entry.
        widest: Cells of the column of names, as for `RowList`.
        columns: The names of the columns of rows.

    Attributes:
        remark: What is said behind the number of entries; shown with the next ones.
        shown: The entries that match.
    """

    BINDINGS = keymap.bindings(keymap.Place.LIST)

    line = query_one(FilterLine)
    rows = query_one(RowList)

    class Moved(Message):
        """Another entry is under the cursor, or none."""

    Chosen: TypeAlias = RowList.Chosen
    """An entry was chosen; never a heading, which folds."""

    def __init__(
        self,
        noun: str,
        empty: str = "",
        prompt: str = "",
        *,
        entries: Sequence[ListEntry[T]] = (),
        clicks: int = 2,
        widest: int = WIDEST,
        columns: tuple[str, ...] = (),
    ) -> None:
        super().__init__()
        self._columns = columns
        self._clicks, self._widest = clicks, widest
        self._noun = noun
        self._empty = empty
        self._prompt = prompt or f"/ filter {noun}s"
        self._entries = entries
        self.remark = ""
        self._folded: set[str] = set()
        self.shown: Sequence[ListEntry[T]] = ()
        self._lines: Sequence[ListEntry[T] | Group] = ()

    def compose(self) -> ComposeResult:
        yield FilterLine(self._prompt)
        yield RowList(self._clicks, self._widest)
        yield PlainText(classes="empty")
        yield PlainText(classes="count")

    def on_mount(self) -> None:
        self._show()

    @property
    def current(self) -> T | None:
        at = self._at_cursor
        return at.item if isinstance(at, ListEntry) else None

    @property
    def group(self) -> Group | None:
        """The group whose heading is under the cursor."""
        at = self._at_cursor
        return at if isinstance(at, Group) else None

    @property
    def _at_cursor(self) -> ListEntry[T] | Group | None:
        return self._lines[self.rows.cursor] if self._lines else None

    def set_entries(self, entries: Sequence[ListEntry[T]]) -> None:
        """Replace the entries; the cursor stays on the same name if the user has moved it."""
        self._entries = entries
        self._show(keep=True)

    def set_filter(self, query: str) -> None:
        self.line.value = query
        self._show()

    def select(self, item: T) -> None:
        """Put the cursor on an entry, without a filter."""
        self.line.value = ""
        self._folded.clear()
        self._show()
        lines = enumerate(self._lines)
        same = (i for i, one in lines if isinstance(one, ListEntry) and one.item == item)
        self.rows.cursor = next(same, self.rows.cursor)

    def action_filter(self) -> None:
        self.screen.set_focus(self.line)  # at once: what is typed next is meant for it

    def action_clear_filter(self) -> None:
        self.line.value = ""
        self.rows.focus()

    def action_move(self, by: int) -> None:
        """Move the cursor; in a list without a filter line it goes round."""
        if self.line.display:
            self.rows.cursor += by
        else:
            self.rows.turn(by)

    def action_page(self, direction: int) -> None:
        self.rows.action_page(direction)

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str:  # noqa: ARG002
        if not self.is_attached:  # a key that was still on its way
            return "This list has closed."
        is_typing, is_filtered = self.line.has_focus, bool(self.line.value)
        match action:
            case "filter" if is_typing or not self.line.display:
                return "The filter is open." if is_typing else "This list has no filter."
            case "clear_filter" if not is_typing and not is_filtered:
                return "No filter to clear."
            case "fold" | "toggle_fold" if is_typing or is_filtered:
                return "Groups cannot fold while a filter is set: clear it first."
            case _:
                return ""

    def action_toggle_fold(self) -> None:
        """Fold or unfold the group of the entry under the cursor."""
        name = self._group_name()
        self._fold(name, name not in self._folded)

    def action_fold(self, folds: bool) -> None:
        self._fold(self._group_name(), folds)

    def _group_name(self) -> str:
        at = self._at_cursor
        return at.group if isinstance(at, ListEntry) else at.label if at is not None else ""

    def _fold(self, name: str, folds: bool) -> None:
        if name and folds != (name in self._folded):
            self._folded ^= {name}
            self._show(keep=True)
            headings = (i for i, one in enumerate(self._lines) if one.label == name)
            self.rows.cursor = next(headings, 0) if folds else self.rows.cursor

    @on(FilterLine.Changed)
    def _on_filter_changed(self, event: FilterLine.Changed) -> None:
        event.stop()
        self._show()
        self.refresh_bindings()

    @on(FilterLine.Submitted)
    def _on_filter_submitted(self, event: FilterLine.Submitted) -> None:
        event.stop()
        self.submit()

    def submit(self) -> None:
        """Go on from the filter to what it lists."""
        if self.shown:
            self.rows.focus()

    @on(RowList.Chosen)
    def _fold_chosen(self, event: RowList.Chosen) -> None:
        if self.group is not None:
            event.stop()
            self.action_toggle_fold()

    @on(RowList.Moved)
    def _on_row_moved(self, event: RowList.Moved) -> None:
        event.stop()  # what this list itself moved goes no further than here
        self.post_message(self.Moved())

    def _show(self, *, keep: bool = False) -> None:
        """Apply the filter and draw the matches."""
        keep = keep and bool(self._lines) and (self.has_focus_within or self.rows.cursor > 1)
        before = self._at_cursor if keep else None
        self._lines, self.rows.words = self._find(self.line.value.lower())
        is_flat = self.shown is not self._entries
        has_leads = is_flat or not any(isinstance(one, Group) for one in self._lines)
        lines, row = self._lines, attrgetter("row")
        rows = Lazy(lines, row) if isinstance(lines, Lazy) else [*map(row, lines)]
        self.rows.set_rows(rows, self._place_of(before), has_leads=has_leads)
        self.set_class(not self._entries, "-empty")
        self.set_class(bool(self._entries) and not self._lines, "-not-found")
        self.query_one(".empty", PlainText).update(with_keys(self._empty_words()))
        self.query_one(".count", PlainText).update(self._count_line())

    def _find(self, query: str) -> tuple[Sequence[ListEntry[T] | Group], Sequence[str]]:
        """Apply a filter: return what is listed, and the words that are marked in it."""
        self.shown = matching(self._entries, query)
        is_flat = self.shown is not self._entries
        lines = self.shown if is_flat else grouped(self.shown, self._folded, self._columns)
        return lines, query.split()

    def _place_of(self, before: ListEntry[T] | Group | None) -> int:
        """Return the line that the cursor was on, or that of the first entry."""
        lines = self._lines
        first = int(len(lines) > 1 and isinstance(lines[0], Group))
        same = (i for i, one in enumerate(lines) if before and one.label == before.label)
        return next(same, first)

    def _empty_words(self) -> str:
        """Say why no entry is shown."""
        if not self._entries:
            return self._empty
        clear = " `Esc` clears the filter." if self.check_action("clear_filter", ()) else ""
        return f"No match.{clear}"

    def _count_line(self) -> str:
        shown, total = len(self.shown), len(self._entries)
        few = f"{shown:,} of " if shown != total else ""
        return f"{few}{counted(total, self._noun)}{self.remark}"


class DialogFilterList(FilterList[T]):
    """The list of a dialog: Enter in the filter chooses, Esc closes whatever was typed."""

    def submit(self) -> None:
        if self.shown:
            self.post_message(self.Chosen())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "clear_filter" and super().check_action(action, parameters)
