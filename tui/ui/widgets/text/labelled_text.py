"""Text in two columns: gemdeck's own labels on the left, what others wrote on the right."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import Final

from textual.content import Content

from tui.ui.widgets.folded_text import Fold, FoldedText, first_rows

LABEL_WIDTH: Final = 11
"""Cells of the column of labels."""

MAX_WRAPPED: Final = 2_000
"""Characters of a sentence that are broken between words; a longer one is folded."""

_VISIBLE: Final = str.maketrans({"\n": "␊", "\t": "␉", "\r": "␍"})


@dataclass(frozen=True, slots=True)
class LabelledLine:
    """One line, however many rows it takes.

    Attributes:
        label: gemdeck's own word for it; only ever this stands in the left column.
        text: What there is to say. A line break in it is drawn as a character.
        style: How the text looks.
        label_style: How the label looks.
        wraps: Whether it is a sentence of gemdeck's own, which is broken between words.
    """

    label: str = ""
    text: str = ""
    style: str = ""
    label_style: str = "$foreground 60%"
    wraps: bool = False


@dataclass(frozen=True, slots=True)
class _LabelledFold(Fold):
    """The texts at the width beside the labels; `sources` are the lines they belong to."""

    sources: Sequence[LabelledLine] = ()


class LabelledText(FoldedText):
    """Shows lines to their last character; what does not fit into a row goes on in the next.

    A text never reaches the column of the labels, so that none can pass itself off as one.

    Args:
        id: The widget's id.
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        self._source: Sequence[LabelledLine] = ()
        super().__init__(id=id)

    def show_lines(self, lines: Sequence[LabelledLine]) -> None:
        """Show other lines, from the first."""
        self._source = lines
        self.show("")

    def _make_fold(self, width: int) -> "_LabelledFold":
        room = max(1, width - LABEL_WIDTH)
        texts: list[str] = []
        sources: list[LabelledLine] = []
        for line in self._source:
            text = line.text.translate(_VISIBLE)
            if line.wraps and len(text) <= MAX_WRAPPED:
                rows = wrap(text, room) or [""]
                texts += rows
                sources += [line, *[replace(line, label="")] * (len(rows) - 1)]
            else:
                texts.append(text)
                sources.append(line)
        return _LabelledFold(room, texts, first_rows(texts, room), sources)

    def _row(self, row: int) -> Content:
        fold = self._shown
        if not isinstance(fold, _LabelledFold):
            return super()._row(row)
        index = bisect_right(fold.first_rows, row) - 1
        line = fold.sources[index]
        label = line.label if row == fold.first_rows[index] else ""
        text = super()._row(row)
        return Content.assemble(
            (label[: LABEL_WIDTH - 1].ljust(LABEL_WIDTH), line.label_style),
            text.stylize(line.style) if line.style else text,
        )
