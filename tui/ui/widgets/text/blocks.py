"""Blocks of text that lay themselves out in lines, and the widget that draws them.

Blocks are not widgets, so that a list of a thousand items costs one widget and not three
thousand. Text is passed as `Content`, never as markup.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import ClassVar, Final

from rich.cells import cell_len
from textual import events
from textual.containers import VerticalScroll
from textual.content import Content, Span
from textual.geometry import Size
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget

from tui.ui.widgets.text.plain import (
    CODE,
    TAB,
    UNWRITTEN,
    cuts,
    joined,
    segments,
    with_selection,
    wrap,
    written,
)

MIN_COLUMN: Final = 4
"""Narrowest table column in cells; a table that does not fit is drawn as records."""

COLUMN_GAP: Final = 2
"""Cells between two columns of a table."""

MAX_WORDS: Final = (20, 16, 12, 8, MIN_COLUMN)
"""Longest words in cells that a column keeps whole: the first number that fits all columns."""

MIN_CODE: Final = 6
"""Fewest cells of a row of code."""

CONTINUES: Final = "↳ "
"""The mark before the further rows of a line of code."""

COPY: Final = "copy"
"""Key of the code that a click copies, in the style's metadata."""

BULLETS: Final = ("•", "◦", "▪")
"""Bullets by depth of nesting."""


class Block(ABC):
    """Text that can be laid out in lines of a given width.

    Attributes:
        spaced: Whether a blank line separates it from the previous block.
    """

    spaced: bool = True
    _width: int = -1
    _lines: list[Content]

    def lines(self, width: int) -> list[Content]:
        """Return its lines, at most `width` cells wide; cached for the last width."""
        width = max(1, width)
        if width != self._width:
            self._width = width
            self._lines = self.layout(width)
        return self._lines

    @abstractmethod
    def layout(self, width: int) -> list[Content]:
        """Lay the block out in lines of at most `width` cells."""


def stack(blocks: Sequence[Block], width: int) -> list[Content]:
    """Lay blocks out below each other, with a blank line before each `spaced` one."""
    lines: list[Content] = []
    for block in blocks:
        if lines and block.spaced:
            lines.append(Content(""))
        lines.extend(block.lines(width))
    return lines


class TextBlock(Block):
    """Text wrapped between words, or its first lines, with an ellipsis after the last."""

    def __init__(self, content: Content, *, spaced: bool = True, most: int | None = None) -> None:
        self.content = content
        self.spaced = spaced
        self._most = most

    def layout(self, width: int) -> list[Content]:
        lines = wrap(self.content, width)
        if self._most is None or len(lines) <= self._most:
            return lines
        last = lines[self._most - 1].rstrip().truncate(width - 1)
        return [*lines[: self._most - 1], last + "…"]


class LineBlock(Block):
    """One line drawn to a width, such as a title with a right-aligned part."""

    def __init__(self, draw: Callable[[int], Content], *, spaced: bool = False) -> None:
        self._draw = draw
        self.spaced = spaced

    def layout(self, width: int) -> list[Content]:
        return [self._draw(width).truncate(width, ellipsis=True)]


class CodeBlock(Block):
    """Code on its own background; where a long line goes on, a mark says so.

    Args:
        content: The code.
        language: Its language, which stands above it beside a word to click on, which copies it.
    """

    def __init__(self, content: Content, language: str = "") -> None:
        self.content = content
        self._language = language

    def layout(self, width: int) -> list[Content]:
        room = max(MIN_CODE, width - 2)
        rows = [self._heading(width - 2).stylize(UNWRITTEN)] if self._language else []
        for line in self.content.split("\n", allow_blank=True):
            rows += _wrapped_code(line.expand_tabs(TAB), room)
        return [
            Content.assemble(" ", row, " " * max(0, width - 1 - row.cell_length)).stylize_before(
                CODE
            )
            for row in rows
        ]

    def _heading(self, width: int) -> Content:
        copy = Style.from_meta({COPY: self.content.plain})
        button = Content("copy").stylize(".md-quote").stylize(copy)
        label = styled(self._language, ".md-quote").truncate(max(1, width - 6), ellipsis=True)
        return label.pad_right(max(1, width - label.cell_length - len(button))) + button


def _wrapped_code(line: Content, width: int) -> list[Content]:
    """Wrap a line; each row but the first begins with a mark."""
    first, *rest = joined(line.divide(cuts(line.plain, width, width - len(CONTINUES))))
    return [first, *(styled(CONTINUES, ".md-quote") + row for row in rest)]


class IndentBlock(Block):
    """Blocks after a prefix: `first` on the first line, `rest` on all others."""

    def __init__(
        self, first: Content, rest: Content, blocks: Sequence[Block], *, spaced: bool = True
    ) -> None:
        self._first = first
        self._rest = rest
        self._blocks = blocks
        self.spaced = spaced

    def layout(self, width: int) -> list[Content]:
        inner = stack(self._blocks, width - self._rest.cell_length) or [Content("")]
        return [(self._rest if index else self._first) + line for index, line in enumerate(inner)]


class ListBlock(Block):
    """A bullet or numbered list.

    Args:
        items: The blocks of each item.
        first_number: The number of the first item, or None for bullets.
        depth: The number of lists around it.
    """

    def __init__(
        self, items: Sequence[Sequence[Block]], first_number: int | None, depth: int = 0
    ) -> None:
        self.items = items
        self.first_number = first_number
        self.spaced = depth == 0
        self._depth = depth

    def layout(self, width: int) -> list[Content]:
        last = (self.first_number or 0) + len(self.items) - 1
        margin = len(str(last)) + 2
        lines: list[Content] = []
        for index, blocks in enumerate(self.items):
            if self.first_number is None:
                marker = f"{BULLETS[self._depth % len(BULLETS)]} "
            else:
                marker = f"{self.first_number + index}.".rjust(margin - 1) + " "
            first = Content.styled(marker, ".md-bullet")
            lines.extend(IndentBlock(first, Content(" " * len(marker)), blocks).layout(width))
        return lines


class TableBlock(Block):
    """A table whose columns share the width by their content.

    Args:
        headers: The cells of the header.
        rows: The cells of each row, as many.
        rights: For each column, whether it is right-aligned.
    """

    def __init__(
        self, headers: Sequence[Content], rows: Sequence[Sequence[Content]], rights: Sequence[bool]
    ) -> None:
        self.headers = headers
        self.rows = rows
        self._rights = rights

    def layout(self, width: int) -> list[Content]:
        """Draw header, rule and rows; if the columns do not fit, one line per cell."""
        number = len(self.headers)
        room = width - COLUMN_GAP * (number - 1)
        columns = zip(self.headers, *self.rows, strict=True)
        texts = ["\n".join(cell.plain for cell in cells) for cells in columns]
        natural = [max(map(cell_len, text.split("\n"))) for text in texts]
        words = [max(map(cell_len, text.split()), default=0) for text in texts]
        for most in MAX_WORDS:
            least = [max(MIN_COLUMN, min(word, most)) for word in words]
            if sum(map(min, least, natural)) <= room and room >= number * MIN_COLUMN:
                break
        else:
            return list(self._as_records(width))
        widths = share_width(natural, room, least)
        lines = self._row_lines([cell.stylize_before(".md-th") for cell in self.headers], widths)
        gap = " " * COLUMN_GAP
        lines.append(Content.styled(gap.join("─" * cells for cells in widths), ".md-rule"))
        for row in self.rows:
            lines.extend(self._row_lines(row, widths))
        return lines

    def _row_lines(self, row: Sequence[Content], widths: Sequence[int]) -> list[Content]:
        """Wrap the cells of one row and place them side by side."""
        cells = [wrap(cell, width, marks=False) for cell, width in zip(row, widths, strict=True)]
        gap = Content(" " * COLUMN_GAP)
        lines: list[Content] = []
        for parts in zip_longest(*cells, fillvalue=Content("")):
            padded = [
                _pad(part, width, right=right)
                for part, width, right in zip(parts, widths, self._rights, strict=True)
            ]
            lines.append(gap.join(padded))
        return lines

    def _as_records(self, width: int) -> Iterator[Content]:
        """Draw each row as lines of ``header: cell``."""
        for index, row in enumerate(self.rows):
            if index:
                yield Content("")
            for header, cell in zip(self.headers, row, strict=True):
                label = header.stylize_before(".md-th")
                yield from wrap(Content.assemble(label, ": ", cell), width)


def _pad(cell: Content, width: int, *, right: bool) -> Content:
    blank = max(0, width - cell.cell_length)
    return cell.pad_left(blank) if right else cell.pad_right(blank)


def share_width(natural: Sequence[int], room: int, least: Sequence[int]) -> list[int]:
    """Distribute `room` cells among columns, shrinking the widest first.

    Args:
        natural: The width of each column's content.
        room: The available cells; as many as all columns need at least.
        least: Cells below which a column does not shrink.
    """
    widths = [max(1, min(cells, room)) for cells in natural]
    while sum(widths) > room:
        shrinking = [index for index, floor in enumerate(least) if widths[index] > floor]
        if not shrinking:
            break
        widths[max(shrinking, key=widths.__getitem__)] -= 1
    return widths


def styled(text: str, style: str) -> Content:
    """Return plain text in one style; unlike `Content.styled`, the text may be empty."""
    return Content(text, spans=[Span(0, len(text), style)] if text else [])


TEXT_STYLES: Final = frozenset(
    {
        *("md-h1", "md-h2", "md-h3", "md-strong", "md-em", "md-strike", "md-code", "md-code-block"),
        *("md-link", "md-quote", "md-bullet", "md-rule", "md-th"),
        *("entry-label", "entry-muted", "entry-ok", "entry-warning", "entry-error"),
        *("entry-running", "entry-strong", "entry-match"),
    }
)
"""Component classes of the blocks. The container of the views declares them, not each view:
Textual resolves them for every declaring widget at each change of focus."""


class TextPage(VerticalScroll):
    """Views of blocks below each other, which scroll."""

    COMPONENT_CLASSES: ClassVar[set[str]] = set(TEXT_STYLES)


class BlockView(Widget):
    """One widget for any amount of laid-out text, which the mouse can select.

    An ancestor must have `TEXT_STYLES` among its component classes, as `TextPage` has.

    Args:
        blocks: What it draws, for views without `blocks` of their own.
    """

    DEFAULT_CSS = """
    BlockView { width: 1fr; height: auto; }
    """

    def __init__(self, blocks: Sequence[Block] = ()) -> None:
        super().__init__()
        self._blocks = blocks
        self._laid_out: tuple[int, list[Content]] | None = None
        self._strips: dict[int, tuple[Content, Style, Strip]] = {}
        self._styles_by_name: dict[str, Style] = {}
        self._marked: re.Pattern[str] | None = None

    @property
    def marked_row(self) -> int | None:
        """The first row with a mark."""
        rows = enumerate(self.lines(self.size.width)) if self._marked else ()
        return next((row for row, line in rows if self._matches(line)), None)

    def mark(self, pattern: re.Pattern[str] | None) -> None:
        """Mark what matches in each line."""
        if pattern != self._marked:
            self._marked = pattern
            self._strips.clear()
            self.refresh()

    def blocks(self) -> Sequence[Block]:
        return self._blocks

    def changed(self) -> None:
        """Redraw after `blocks` changed."""
        self._laid_out = None
        self.refresh(layout=True)

    def lines(self, width: int) -> list[Content]:
        if self._laid_out is None or self._laid_out[0] != width:
            self._laid_out = (width, stack(self.blocks(), width))
        return self._laid_out[1]

    def get_content_width(self, container: Size, viewport: Size) -> int:  # noqa: ARG002
        return container.width

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        return len(self.lines(width)) if width else 0

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        lines = self.lines(width)
        base = self.visual_style
        if y >= len(lines):
            return Strip.blank(width, base.rich_style)
        line = lines[y]
        if (shown := with_selection(self, line, y)) is not line:
            return self._draw(shown, y, base)
        cached = self._strips.get(y)
        if cached is None or cached[0] is not line or cached[1] != base:
            cached = self._strips[y] = (line, base, self._draw(line, y, base))
        return cached[2]

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        lines = self.lines(self.size.width)
        return written(lines.__getitem__, len(lines), selection), "\n"

    def on_click(self, event: events.Click) -> None:
        """Copy the block of code whose word for it was clicked."""
        code = event.style.meta.get(COPY)
        if isinstance(code, str):
            event.stop()
            self.app.copy_to_clipboard(self.whole_code(code))

    def whole_code(self, shown: str) -> str:
        """Return the code of which this is drawn; more of it where the text was cut."""
        return shown

    def notify_style_update(self) -> None:
        """Drop cached strips and the old theme's styles."""
        self._styles_by_name.clear()
        self._strips.clear()
        super().notify_style_update()

    def _matches(self, line: Content) -> Sequence[re.Match[str]]:
        return list(self._marked.finditer(line.plain)) if self._marked else ()

    def _draw(self, line: Content, y: int, base: Style) -> Strip:
        for match in self._matches(line):
            line = line.stylize(".entry-match", *match.span())
        return Strip(segments(line, y, base, self._style), line.cell_length)

    def _style(self, style: str | Style) -> Style:
        if isinstance(style, Style):
            return style
        if (found := self._styles_by_name.get(style)) is None:
            found = self._component(style[1:]) if style.startswith(".") else Style.parse(style)
            self._styles_by_name[style] = found
        return found

    def _component(self, name: str) -> Style:
        """Return the style of an ancestor's component class.

        `get_visual_style` leaves out an opaque background, so it is added.
        """
        for node in self.ancestors:
            if isinstance(node, Widget) and name in node.COMPONENT_CLASSES:
                styles = node.get_component_styles(name)
                style = node.get_visual_style(name, partial=True)
                if styles.has_rule("background"):
                    return Style(background=styles.background) + style
                return style
        return Style.null()
