"""Text in two columns: gemdeck's labels on the left, text from outside on the right."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from textual.content import Content

from tui.model.frozen import Frozen
from tui.ui.widgets.text.difference import marked
from tui.ui.widgets.text.folded_text import Fold, FoldedText, rows_of

LABEL_WIDTH: Final = 11
"""Cells of the column of labels."""

_VISIBLE: Final = str.maketrans({"\n": "␊", "\t": "␉", "\r": "␍"})


class LabelledLine(Frozen):
    """One line, which may take several rows.

    Attributes:
        label: gemdeck's label; nothing else is drawn in the left column.
        text: The text; line breaks are drawn as visible characters.
        style: The style of the text.
        label_style: The style of the label.
        sign: The sign of a line of a difference, which is drawn on its ground.
    """

    label: str = ""
    text: str = ""
    style: str = ""
    label_style: str = "$text-muted"
    sign: str = ""


class _ColumnFold(Fold):
    """Texts, and the label beside each, whose cells are left free below it."""

    labels: Sequence[Content] = ()

    def width_of(self, line: int) -> int:
        return max(1, self.width - self.labels[line].cell_length)


class ColumnText(FoldedText):
    """Show lines in full, folded, beside labels.

    Texts never enter the column of labels, so none can pass for one.
    """

    def fold_beside(
        self, labels: Sequence[Content], texts: Sequence[Content], signs: Sequence[str], width: int
    ) -> Fold:
        """Lay out texts beside their labels in `width` cells together."""
        rooms = (max(1, width - label.cell_length) for label in labels)
        rows = (0, *accumulate(map(rows_of, texts, rooms)))
        return _ColumnFold(width, texts, rows, signs, labels)

    def _row(self, row: int) -> Content:
        fold, text = self._shown, super()._row(row)
        if not isinstance(fold, _ColumnFold):
            return text
        index = bisect_right(fold.first_rows, row) - 1
        label = fold.labels[index]
        is_first = row == fold.first_rows[index]
        return (label if is_first else Content(" " * label.cell_length)) + text


class LabelledText(ColumnText):
    """Show lines behind gemdeck's labels."""

    def __init__(self, *, classes: str | None = None) -> None:
        self._source: Sequence[LabelledLine] = ()
        super().__init__(classes=classes)

    def show_lines(self, lines: Sequence[LabelledLine]) -> None:
        """Replace the lines and scroll to the first."""
        self._source = lines
        self.show("")

    def _make_fold(self, width: int) -> Fold:
        signs = [line.sign for line in self._source]
        styled = (Content.styled(one.text.translate(_VISIBLE), one.style) for one in self._source)
        texts = [text for _, text in marked(zip(signs, styled, strict=True))]
        labels = [
            Content.styled(one.label[: LABEL_WIDTH - 1].ljust(LABEL_WIDTH), one.label_style)
            for one in self._source
        ]
        return self.fold_beside(labels, texts, signs, width)
