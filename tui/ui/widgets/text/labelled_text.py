"""Text in two columns: gemdeck's labels on the left, text from outside on the right."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from textwrap import wrap
from typing import Final

from textual.content import Content

from tui.model.frozen import dataclass
from tui.ui.widgets.text.difference import marked
from tui.ui.widgets.text.folded_text import Fold, FoldedText, first_rows

LABEL_WIDTH: Final = 11
"""Cells of the column of labels."""

MAX_WRAPPED: Final = 2_000
"""Characters of a sentence that is wrapped between words; a longer one is folded."""

_VISIBLE: Final = str.maketrans({"\n": "␊", "\t": "␉", "\r": "␍"})


@dataclass(frozen=True, slots=True)
class LabelledLine:
    """One line, which may take several rows.

    Attributes:
        label: gemdeck's label; nothing else is drawn in the left column.
        text: The text; line breaks are drawn as visible characters.
        style: The style of the text.
        label_style: The style of the label.
        wraps: Whether to wrap between words; for gemdeck's own sentences.
        sign: The sign of a line of a difference, which is drawn on its ground.
    """

    label: str = ""
    text: str = ""
    style: str = ""
    label_style: str = "$text-muted"
    wraps: bool = False
    sign: str = ""


@dataclass(frozen=True, slots=True)
class _LabelledFold(Fold):
    """The texts at the width beside the labels, and the line each belongs to."""

    sources: Sequence[LabelledLine] = ()


class LabelledText(FoldedText):
    """Show lines in full, folded.

    Texts never enter the column of labels, so none can pass for a label.
    """

    def __init__(self, *, classes: str | None = None) -> None:
        self._source: Sequence[LabelledLine] = ()
        super().__init__(classes=classes)

    def show_lines(self, lines: Sequence[LabelledLine]) -> None:
        """Replace the lines and scroll to the first."""
        self._source = lines
        self.show("")

    def _make_fold(self, width: int) -> "_LabelledFold":
        room = max(1, width - LABEL_WIDTH)
        texts: list[str | Content] = []
        sources: list[LabelledLine] = []
        shown = [line.text.translate(_VISIBLE) for line in self._source]
        shown_signs = (line.sign for line in self._source)
        drawn = marked(zip(shown_signs, map(Content, shown), strict=True))
        for line, text, (_, content) in zip(self._source, shown, drawn, strict=True):
            if line.wraps and len(text) <= MAX_WRAPPED:
                rows = wrap(text, room) or [""]
                texts += rows
                sources += [line, *[replace(line, label="")] * (len(rows) - 1)]
            else:
                texts.append(content if line.sign else text)
                sources.append(line)
        signs = [line.sign for line in sources]
        return _LabelledFold(room, texts, first_rows(texts, room), signs, sources)

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
