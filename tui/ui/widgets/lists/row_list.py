"""A list of one-line rows that draws only the visible ones, so it can have ten thousand."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, ClassVar, Final, TypeVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import var
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tui.model.frozen import Frozen
from tui.model.input.fuzzy import positions
from tui.ui.widgets.status import Tone
from tui.ui.widgets.text.plain import cells, fit, one_line

T = TypeVar("T")

MAX_LEAD: Final = 14
"""Widest leading column, in cells."""

MIN_LABEL: Final = 4
"""Cells of a label that are shown beside a long word on the right."""

WIDEST: Final = 32
"""Cells of the column of labels at most; what is wider sticks out, so that all differ."""

INDENT: Final = 2
"""Cells before rows that stand below headings."""

MIN_NOTE: Final = 12
"""Cells of a note below which none is shown."""


class Row(Frozen):
    """One row: leading column, label, a note if there is room, and a right-aligned word.

    Where the list `shows_columns`, those stand behind it. The notes of rows with columns have one
    left edge, so that a label that is too wide has none.

    A heading has the whole width; the rows below it are indented where leads are not drawn. A tone,
    ``good``, ``busy``, ``off`` or ``bad``, is that of the word.
    """

    lead: str
    label: str
    tail: str = ""
    faint: bool = False
    note: str = ""
    is_heading: bool = False
    tone: str = ""
    columns: tuple[str, ...] = ()


class Lazy(Sequence[T]):
    """What is made of other things, each when it is asked for: of ten thousand few are drawn."""

    def __init__(self, made_of: Sequence[Any], make: Callable[[Any], T]) -> None:
        self._made_of, self._make = made_of, make

    def __len__(self) -> int:
        return len(self._made_of)

    def __getitem__(self, index: int) -> T:  # type: ignore[override]  # no slices
        return self._make(self._made_of[index])


class RowList(ScrollView, can_focus=True, inherit_bindings=False):
    """Rows with a cursor. The container binds the keys.

    Args:
        clicks: The clicks that choose a row.
        widest: Cells of the column of labels at most, where others are usual.
    """

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"row-list--{part}" for part in ("lead", "label", "tail", "match", "cursor", "hover", *Tone)
    }

    cursor: var[int] = var(0, init=False)
    """The index of the row under the cursor; 0 in an empty list."""
    hovered: var[int] = var(-1)

    class Moved(Message):
        """The cursor is on another row, or its row changed."""

    class Chosen(Message):
        """The row under the cursor was clicked, as often as it takes."""

    def __init__(self, clicks: int = 2, widest: int = WIDEST) -> None:
        super().__init__()
        self._clicks = clicks
        self._widest = widest
        self.rows: Sequence[Row] = ()
        self.words: Sequence[str] = ()
        """Lower-case words to mark in labels or notes, else their letters in labels."""
        self.shows_columns = False
        self._columns: list[int] = []
        self._lead_width = self._label_width = self._indent = 0

    @property
    def room(self) -> int:
        """The cells of a row, without the one of air before a scrollbar."""
        return self.scrollable_content_region.width - self.show_vertical_scrollbar

    def set_rows(self, rows: Sequence[Row], cursor: int = 0, *, has_leads: bool = True) -> None:
        """Replace all rows and go to one; without leads, headings say what they would.

        The columns are as wide as the rows need them, or the last of lazy ones, which are alike.
        """
        is_moved = (cursor, len(rows)) != (self.cursor, len(self.rows))
        self.rows = rows
        measured = [rows[-1]] if rows and isinstance(rows, Lazy) else rows
        longest = max((len(row.lead) for row in measured), default=0)
        self._lead_width = min(longest, MAX_LEAD) if has_leads else 0
        self._indent = 0 if has_leads or not any(row.is_heading for row in measured) else INDENT
        widths = [cells(row.label) for row in measured if row.note]
        widest = WIDEST if self.shows_columns else self._widest
        self._label_width = max((one for one in widths if one <= widest), default=0)
        columns = zip(*(row.columns for row in measured if row.columns), strict=True)
        self._columns = [max(map(len, one)) + 2 for one in columns]
        self.virtual_size = Size(self.size.width, len(rows))
        self.set_reactive(RowList.cursor, self.validate_cursor(cursor))
        if is_moved:
            self._scroll_to_cursor()
        self.refresh()
        self.post_message(self.Moved())

    def validate_cursor(self, cursor: int) -> int:
        return max(0, min(cursor, len(self.rows) - 1))

    def watch_cursor(self, before: int, now: int) -> None:
        self._refresh_rows(before, now)
        self._scroll_to_cursor()
        self.post_message(self.Moved())

    def watch_hovered(self, before: int, now: int) -> None:
        self._refresh_rows(before, now)

    def turn(self, by: int) -> None:
        """Move the cursor, from the last row to the first and back."""
        self.cursor = (self.cursor + by) % max(1, len(self.rows))

    def action_page(self, direction: int) -> None:
        self.cursor += direction * max(1, self.size.height - 1)

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        index = y + self.scroll_offset.y
        base = self.rich_style
        if index >= len(self.rows):
            return Strip.blank(width, base)
        row, style = self.rows[index], base + self._row_style(index)
        bold = style + Style(bold=True) if row.is_heading else style
        parts = self._parts(row, self.room)
        drawn = [Segment(text, bold + self._ink(name)) for text, name in parts if text]
        return Strip(drawn).extend_cell_length(width, style)

    def _ink(self, component: str) -> Style:
        """Return the style of a component class without its background, for that of a cursor."""
        style = self.get_component_rich_style(component)
        return Style(color=style.color, bold=style.bold, underline=style.underline)

    def _parts(self, row: Row, width: int) -> Iterator[tuple[str, str]]:
        """Lay a row out in a width: pairs of text and component class."""
        columns = zip(row.columns, self._columns if self.shows_columns else (), strict=False)
        facts = "".join(fact.rjust(wide) for fact, wide in columns)
        width -= len(facts)
        lead = min(self._lead_width, width // 4 + 1) + 2 if self._lead_width else self._indent
        text = row.lead if self._lead_width else ""
        if row.is_heading:
            lead = 0
        tail = f" {one_line(row.tail)}" if row.tail else ""
        tail = tail[: max(0, width - lead - MIN_LABEL)]
        room = width - lead - len(tail)
        note = room - max(self._label_width, cells(row.label)) - 2
        is_ragged = bool(row.columns) and cells(row.label) > self._label_width
        note = note if row.note and note >= MIN_NOTE and not is_ragged else 0
        label = fit(one_line(row.label), room - note - 2 if note else room)
        label_class = "row-list--lead" if row.faint else "row-list--label"
        words = () if row.is_heading else self.words
        said = f"  {fit(one_line(row.note), note)}" if note else ""
        noted = [word for word in words if word not in label.lower() and word in said.lower()]
        yield fit(fit(one_line(text), lead - 2), lead), "row-list--lead"
        yield from _marked(label, label_class, [word for word in words if word not in noted])
        yield from _marked(said, "row-list--lead", noted)
        yield tail, f"row-list--{row.tone or 'tail'}"
        yield facts, "row-list--lead"

    def _row_style(self, index: int) -> Style:
        if index == self.cursor:
            return self.get_component_rich_style("row-list--cursor", partial=True)
        if index == self.hovered:
            return self.get_component_rich_style("row-list--hover", partial=True)
        return Style.null()

    def _refresh_rows(self, *indexes: int) -> None:
        for index in indexes:
            self.refresh(Region(0, index - self.scroll_offset.y, self.size.width, 1))

    def _scroll_to_cursor(self) -> None:
        """Bring the row under the cursor into sight, with its heading if that is the row above."""
        above = self.cursor > 0 and self.rows[self.cursor - 1].is_heading
        rows = Region(0, self.cursor - above, 1, 1 + above)
        self.scroll_to_region(rows, animate=False, force=True, immediate=True)

    def on_resize(self, event: events.Resize) -> None:
        self.virtual_size = Size(event.size.width, len(self.rows))
        self._scroll_to_cursor()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        index = event.y + self.scroll_offset.y
        self.hovered = index if index < len(self.rows) else -1

    def on_leave(self, _: events.Leave) -> None:
        self.hovered = -1

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the clicked row; usually a double click chooses it."""
        index = event.y + self.scroll_offset.y
        if index < len(self.rows):
            self.cursor = index
            if event.chain == self._clicks or self.rows[index].is_heading:
                self.post_message(self.Chosen())


def _marked(text: str, style: str, words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Give a text in pieces, those that match words in a style of their own."""
    low = text.lower()
    marks = {at for word in words for at in positions(word, low)}
    for is_mark, places in groupby(range(len(text)), marks.__contains__):
        yield "".join(text[at] for at in places), "row-list--match" if is_mark else style
