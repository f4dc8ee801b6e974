"""A frame whose scrolling part gives way, so that all else is in sight."""

from typing import Any, Final

from textual.containers import Vertical
from textual.geometry import Region, Size
from textual.layout import ArrangeResult, Layout, WidgetPlacement
from textual.layouts.vertical import VerticalLayout
from textual.screen import Screen
from textual.widget import Widget

from tui.ui.widgets.text.folded_text import FoldedText

WORDY: Final = 72
"""Columns from which the buttons and the last line have all their words."""

AIRY: Final = 80
"""Columns from which a frame has air at its sides."""

WIDTHS: Final = ((0, "-narrow"), (WORDY, "-wordy"), (AIRY, "-wide"))
"""Columns from which a question has air at its sides, and words."""

HEIGHTS: Final = ((0, "-tiny"), (15, "-short"), (20, "-middling"), (30, "-tall"))
"""Rows from which a question has more of the text around, and air."""


def fit(screen: Screen[Any]) -> None:
    """Look as the size of the terminal wants it.

    Textual's own breakpoints come after the first frame, which would be drawn twice.
    """
    for sizes, size in zip((WIDTHS, HEIGHTS), screen.app.size, strict=True):
        fitting = [name for least, name in sizes if size >= least]
        for _, name in sizes:
            screen.set_class(name == fitting[-1], name)


class _FrameLayout(VerticalLayout):
    """From top to bottom; what is too much is taken from the one part that scrolls."""

    def arrange(
        self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True
    ) -> ArrangeResult:
        placements = list(super().arrange(parent, children, size, greedy))
        self._give_way(placements, size)
        for one in placements:
            view = one.widget
            if isinstance(view, FoldedText) and view.row_count > one.region.height:
                # With its scrollbar in the first frame, nothing jumps in the second one.
                view.set_reactive(Widget.show_vertical_scrollbar, True)
        return placements

    def _give_way(self, placements: list[WidgetPlacement], size: Size) -> None:
        at = next((n for n, one in enumerate(placements) if one.widget.has_class("-fits")), -1)
        bottom = max((one.region.bottom for one in placements), default=0)
        if at < 0 or not size.height or bottom <= size.height:
            return
        x, y, width, height = placements[at].region
        excess = min(bottom - size.height, max(0, height - 1))
        placements[at] = placements[at]._replace(region=Region(x, y, width, height - excess))
        for number in range(at + 1, len(placements)):
            moved = placements[number].region.translate((0, -excess))
            placements[number] = placements[number]._replace(region=moved)
        placements[at].widget.set_reactive(Widget.show_vertical_scrollbar, True)


class Frame(Vertical):
    """A frame as high as what it holds, in which every answer is in sight at any size."""

    _LAYOUT: Final = _FrameLayout()

    @property
    def layout(self) -> Layout:
        return self._LAYOUT
