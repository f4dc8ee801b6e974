"""A scrolling view of any amount of plain text that computes only the visible rows."""

import re
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any, ClassVar, Final

from textual import events
from textual.content import Content
from textual.errors import NoWidget
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget

from tui.model.frozen import Frozen
from tui.ui.widgets.text.difference import GROUNDS
from tui.ui.widgets.text.plain import JOIN, TAB, cells, cuts, segments, with_selection, written

MAX_EXACT: Final = 10_000
"""Characters of a line that is broken between words; longer ones are cut without looking."""


class _Lines(Sequence[str]):
    """The lines of a text, each cut out of it when it is asked for: a long text is held once."""

    def __init__(self, text: str) -> None:
        self._text = text.expandtabs(TAB) if "\t" in text else text
        self._ends = array("q", (at.start() for at in re.finditer("\n", self._text)))
        self._ends.append(len(self._text))

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, line: Any) -> Any:  # noqa: ANN401 - slices, of which nobody asks for
        return self._text[self._ends[line - 1] + 1 if line else 0 : self._ends[line]]


class Fold(Frozen):
    """A text at a width: its lines, and the first row of each, with the number of rows last.

    Lines of a difference have signs. Lines beside labels leave the cells of those free below them.
    """

    width: int
    lines: Sequence[str | Content] = ()
    first_rows: Sequence[int] = (0,)
    signs: Sequence[str] = ()
    labels: Sequence[Content] = ()


class Position(Frozen):
    """What of a text is in sight: the first row there, how many there are, how many fit."""

    first: int
    rows: int
    height: int

    @property
    def shows_end(self) -> bool:
        return bool(self.rows and self.height) and self.first - 1 + self.height >= self.rows

    @property
    def left(self) -> int:
        """The rows below those in sight."""
        return max(0, self.rows - self.first + 1 - self.height)


class FoldedText(ScrollView, can_focus=True):
    """Show a text in full, with long lines folded.

    Layout takes one pass over the lengths of the lines; drawing only touches visible rows.

    Args:
        text: The text.
        id: The widget's id.
        classes: The widget's classes.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"difference--{name}" for name in ("added", "removed", "added-word", "removed-word")
    }
    AIR: ClassVar[int] = 1
    """Cells between the text and the scrollbar."""

    DEFAULT_CSS = """
    FoldedText { overflow-x: hidden; scrollbar-size: 0 1; scrollbar-gutter: stable; }
    """

    def __init__(
        self,
        text: str | Content = "",
        *,
        id: str | None = None,  # noqa: A002 - Textual's name
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._lines: Sequence[str | Content] = ()
        # Textual asks for the height with and without a scrollbar.
        self._folded = lru_cache(maxsize=3)(self._make_fold)
        self._shown = Fold(0)
        self._set(text)

    @property
    def row_count(self) -> int:
        return self._shown.first_rows[-1]

    def show(self, text: str | Content) -> None:
        """Replace the text and scroll to its start."""
        self._set(text)
        self._fold()
        self.scroll_home(animate=False, immediate=True)
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        """Need as many rows as the text takes; the styles bound what is given."""
        fold = self._folded(max(1, width - self.scrollbar_size_vertical - self.AIR))
        if not self._shown.width:
            # Drawn for the first time, it is complete before it hears of its size.
            self._shown = fold
            self.set_reactive(FoldedText.virtual_size, Size(fold.width, self.row_count))
        return fold.first_rows[-1]

    def render_line(self, y: int) -> Strip:
        row = y + self.scroll_offset.y
        if row >= self.row_count:
            return Strip.blank(self.size.width, self.visual_style.rich_style)
        signs = self._shown.signs
        sign = signs[bisect_right(self._shown.first_rows, row) - 1] if signs else ""
        style = self.get_visual_style(*[GROUNDS[sign]] if sign in GROUNDS else ())
        piece = with_selection(self, self._row(row), row)
        drawn = Strip(segments(piece, row, style, self._parse))
        return drawn.adjust_cell_length(self.size.width, style.rich_style)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        return written(self._row, self.row_count, selection), "\n"

    def on_resize(self, event: events.Resize) -> None:  # noqa: ARG002
        self._fold()

    def _set(self, text: str | Content) -> None:
        self._lines = (
            text.split("\n", allow_blank=True) if isinstance(text, Content) else _Lines(text)
        )
        self._folded.cache_clear()
        self._shown = Fold(0)

    def _fold(self) -> None:
        """Lay the text out at the current width."""
        width = self.scrollable_content_region.width - self.AIR
        if width >= 1 and width != self._shown.width:
            self._shown = self._folded(width)
            self.virtual_size = Size(width, self.row_count)

    def _make_fold(self, width: int) -> Fold:
        """Lay the text out at a width."""
        return Fold(width, self._lines, first_rows(self._lines, width))

    def _parse(self, style: str | Style) -> Style:
        """Read a style; what begins with a dot is a component class."""
        if isinstance(style, Style):
            return style
        if style.startswith("."):
            return self.get_visual_style(style[1:], partial=True)
        return Style.parse(style)

    def _row(self, row: int) -> Content:
        """Cut one row out of its line."""
        fold = self._shown
        index = bisect_right(fold.first_rows, row) - 1
        line = fold.lines[index]
        part = row - fold.first_rows[index]
        plain = line if isinstance(line, str) else line.plain
        label = fold.labels[index] if fold.labels else Content()
        width = max(1, fold.width - label.cell_length)
        if len(plain) <= MAX_EXACT:
            start, end = _offsets(plain, width)[part : part + 2]
        else:
            step = _step(plain, width)
            start, end = part * step, (part + 1) * step
        piece = Content(line[start:end]) if isinstance(line, str) else line[start:end]
        if part == 0:
            return label + piece
        before = plain[max(0, start - width) : start]
        blanks = len(before) - len(before.rstrip())
        return Content(" " * label.cell_length) + piece.stylize(f"{JOIN}{blanks}")


def position_in(view: Widget) -> Position:
    """Return what of a scrolling widget is in sight."""
    rows = view.row_count if isinstance(view, FoldedText) else view.virtual_size.height
    try:
        place = view.screen.find_widget(view)
    except NoWidget:
        return Position(1, rows, 0)
    visible = place.visible_region
    drawn = visible.bottom - place.region.y if visible else 0
    return Position(view.scroll_offset.y + 1, rows, min(drawn, view.size.height))


def fold_beside(
    labels: Sequence[Content], texts: Sequence[Content], signs: Sequence[str], width: int
) -> Fold:
    """Lay out texts beside their labels in `width` cells together.

    Texts never enter the column of labels, so none can pass for one.
    """
    rooms = (max(1, width - label.cell_length) for label in labels)
    rows = (0, *accumulate(map(rows_of, texts, rooms)))
    return Fold(width, texts, rows, signs, labels)


def first_rows(lines: Sequence[str | Content], width: int) -> Sequence[int]:
    """Return the first row of each line, followed by the number of rows."""
    return array("q", accumulate((rows_of(line, width) for line in lines), initial=0))


def rows_of(line: str | Content, width: int) -> int:
    """Return the rows that a line takes at a width."""
    plain = line if isinstance(line, str) else line.plain
    if len(plain) <= MAX_EXACT:
        return 1 if cells(plain) <= width else len(_offsets(plain, width)) - 1
    return -(-len(plain) // _step(plain, width))


def _step(text: str, width: int) -> int:
    """Return the characters a row of a long line holds."""
    return width if text.isascii() else max(1, width // 2)


@lru_cache(maxsize=2_000)
def _offsets(text: str, width: int) -> Sequence[int]:
    """Return the offset of each row of a line, followed by the line's length."""
    return [0, *cuts(text, width), len(text)]
