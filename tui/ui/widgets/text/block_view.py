"""`BlockView`: a widget that lays blocks out and draws the visible lines."""

import re
from collections.abc import Sequence
from typing import Final

from rich.segment import Segment
from textual import events
from textual.content import Content
from textual.geometry import Size
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget

from tui.ui.widgets.text.blocks import COPY, Block, stack

TEXT_STYLES: Final = frozenset(
    {
        "md-h1",
        "md-h2",
        "md-h3",
        "md-strong",
        "md-em",
        "md-strike",
        "md-code",
        "md-code-block",
        "md-link",
        "md-quote",
        "md-bullet",
        "md-rule",
        "md-th",
        "entry-label",
        "entry-muted",
        "entry-ok",
        "entry-warning",
        "entry-error",
        "entry-running",
        "entry-strong",
        "entry-match",
    }
)
"""Component classes of the blocks. The container of the views declares them, not each view:
Textual resolves them for every declaring widget at each change of focus."""


class BlockView(Widget):
    """One widget for any amount of laid-out text, which the mouse can select.

    An ancestor must have `TEXT_STYLES` among its component classes.
    """

    DEFAULT_CSS = """
    BlockView { width: 1fr; height: auto; }
    """

    def __init__(self) -> None:
        super().__init__()
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
        return ()

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
        span = self._selected_span(y)
        if span is not None:
            selected = Style.from_styles(self.screen.get_component_styles("screen--selection"))
            start, end = span
            line = line.stylize(selected, start, len(line) if end == -1 else end)
            return self._draw(line, y, base)
        cached = self._strips.get(y)
        if cached is None or cached[0] is not line or cached[1] != base:
            cached = self._strips[y] = (line, base, self._draw(line, y, base))
        return cached[2]

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        text = "\n".join(line.plain.rstrip() for line in self.lines(self.size.width))
        return selection.extract(text), "\n"

    def selection_updated(self, selection: Selection | None) -> None:  # noqa: ARG002
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Copy the block of code whose word for it was clicked."""
        code = event.style.meta.get(COPY)
        if isinstance(code, str):
            event.stop()
            self.app.copy_to_clipboard(code)
            self.notify("Copied.", timeout=2)

    def notify_style_update(self) -> None:
        """Drop cached strips and the old theme's styles."""
        self._styles_by_name.clear()
        self._strips.clear()
        super().notify_style_update()

    def _selected_span(self, y: int) -> tuple[int, int] | None:
        selection = self.text_selection
        return None if selection is None else selection.get_span(y)

    def _matches(self, line: Content) -> Sequence[re.Match[str]]:
        return list(self._marked.finditer(line.plain)) if self._marked else ()

    def _draw(self, line: Content, y: int, base: Style) -> Strip:
        """Convert a line to segments that carry their offset in the text, for selections."""
        for match in self._matches(line):
            line = line.stylize(".entry-match", *match.span())
        segments: list[Segment] = []
        x = 0
        for text, style in line.render(base, end="", parse_style=self._style):
            segments.append(Segment(text, (base + style).rich_style_with_offset(x, y)))
            x += len(text)
        return Strip(segments, line.cell_length)

    def _style(self, style: str | Style) -> Style:
        if isinstance(style, Style):
            return style
        found = self._styles_by_name.get(style)
        if found is None:
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
