"""The arguments of a call on the screen: names and line numbers beside what they belong to."""

from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate
from typing import Final

from rich.cells import cell_len
from textual.content import Content

from tui.model.frozen import dataclass
from tui.model.input.arguments import ArgumentsError, read_arguments
from tui.model.requests import FileChange
from tui.ui.questions.calls.argument_lines import (
    MAX_LINES,
    MAX_REVIEWED,
    MUTED,
    ArgumentLine,
    argument_lines,
)
from tui.ui.questions.calls.call_view import both_ends, coloured_arguments
from tui.ui.widgets.text.folded_text import Fold, FoldedText, rows_of

MIN_COLUMN: Final = 8
"""Cells that the column of names may have at any width."""

GAP: Final = 2
"""Cells between names or numbers and the text."""


@dataclass(frozen=True, slots=True)
class _ArgumentsFold(Fold):
    """The texts beside their labels, the line each belongs to, and the cells before each text."""

    sources: Sequence[ArgumentLine] = ()
    columns: Sequence[int] = ()

    def width_of(self, line: int) -> int:
        return max(1, self.width - self.columns[line])


class ArgumentsText(FoldedText):
    """Show arguments in full, folded, as lines or as one text.

    What is sent never enters the column of names and numbers, so it cannot pass for one.
    """

    _source: Sequence[ArgumentLine] = ()

    def show_arguments(
        self, arguments: str, change: FileChange | None, *, as_json: bool = False
    ) -> None:
        """Show arguments to be read, or as JSON if that is asked for or they are too long.

        Args:
            arguments: The arguments as canonical JSON.
            change: How they differ from a file.
            as_json: Whether JSON is asked for.
        """
        lines = arguments.count("\n") + arguments.count("\\n")
        if not as_json and len(arguments) <= MAX_REVIEWED and lines <= MAX_LINES:
            with suppress(ArgumentsError):
                self.show_lines(argument_lines(read_arguments(arguments), change))
                return
        self.show(coloured_arguments(arguments))

    def show_lines(self, lines: Sequence[ArgumentLine]) -> None:
        """Show arguments that are laid out, from their first line."""
        self._source = lines
        super().show("")

    def show(self, text: str | Content) -> None:
        """Show arguments as one text."""
        self._source = ()
        super().show(text)

    def _make_fold(self, width: int) -> Fold:
        if not self._source:
            return super()._make_fold(width)
        names = [cell_len(line.label) for line in self._source if line.is_name]
        numbers = [cell_len(line.label) for line in self._source if not line.is_name]
        column = min(max(names, default=0) + GAP, max(MIN_COLUMN, width // 4))
        sources: list[ArgumentLine] = []
        for line in self._source:
            if line.is_name and cell_len(line.label) > column - GAP:
                label = both_ends(line.label, column - GAP)
                name = Content.assemble(("named ", MUTED), (line.label, "bold"))
                sources.append(ArgumentLine(label, name, is_name=True))
                line = replace(line, label="")  # noqa: PLW2901 - the value below its name
            sources.append(line)
        beside = max(numbers, default=0) + GAP
        columns = [column if line.is_name else beside for line in sources]
        texts = [line.text for line in sources]
        rooms = (max(1, width - before) for before in columns)
        rows = (0, *accumulate(map(rows_of, texts, rooms)))
        return _ArgumentsFold(width, texts, rows, sources, columns)

    def _row(self, row: int) -> Content:
        fold = self._shown
        if not isinstance(fold, _ArgumentsFold):
            return super()._row(row)
        index = bisect_right(fold.first_rows, row) - 1
        line, column = fold.sources[index], fold.columns[index]
        label = line.label if row == fold.first_rows[index] else ""
        room = column - GAP
        pad = " " * max(0, room - cell_len(label))
        label = f"{label}{pad}" if line.is_name else f"{pad}{label}"
        return Content.assemble((label + " " * GAP, line.label_style), super()._row(row))
