"""Text in two columns: gemdeck's labels on the left, text from outside on the right."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from textual.content import Content

from tui.model.frozen import Frozen
from tui.model.trust import DifferenceLine
from tui.ui.widgets.text.difference import SIGN_STYLES, marked
from tui.ui.widgets.text.folded_text import Fold, FoldedText, fold_beside

LABEL_WIDTH: Final = 11
"""Cells of the column of labels."""

WARNING_STYLE: Final = "bold $text-warning"
"""How a warning looks, beside the word that it begins with."""

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


def listed(label: str, names: Sequence[str], before: str = "") -> Iterator[LabelledLine]:
    """Lay out lines behind one label, such as those of a text."""
    for number, name in enumerate(names):
        yield LabelledLine("" if number else label, f"{before}{name}")


def difference_lines(difference: Iterable[DifferenceLine]) -> Iterator[LabelledLine]:
    """Lay out a difference: the sign stands in the column of the labels."""
    for line in difference:
        style = SIGN_STYLES.get(line.sign, "")
        label = (line.sign if style else "").rjust(LABEL_WIDTH - 2)
        yield LabelledLine(label, line.text, label_style=style, sign=line.sign)


def warning_line(label: str, words: str) -> LabelledLine:
    """Write a warning of gemdeck's own."""
    return LabelledLine(label, words, WARNING_STYLE, WARNING_STYLE)


class LabelledText(FoldedText):
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
        return fold_beside(labels, texts, signs, width)
