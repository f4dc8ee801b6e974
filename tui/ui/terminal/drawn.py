"""What the terminal shows, so that only what differs is written.

Textual draws everything again below a widget whose layout changed, though most of it stays: too
much for a slow connection.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from rich.console import Console
from rich.control import Control
from textual._compositor import ChopsUpdate, CompositorUpdate

_UNSURE: Final = re.compile("[\u0300-\u1fff\u2600-\U0010ffff]")
"""What terminals may draw wider or narrower than Textual counts."""


class Drawn:
    """The pieces of lines that the terminal shows, by the columns where they begin and end."""

    def __init__(self) -> None:
        self._lines: defaultdict[int, dict[tuple[int, int], str]] = defaultdict(dict)

    def forget(self) -> None:
        """Let everything be written again: the terminal shows something else."""
        self._lines.clear()

    def write(self, update: CompositorUpdate, console: Console) -> str:
        """Return the sequences for what an update changes, which the terminal shows from now on."""
        if isinstance(update, ChopsUpdate):
            return "".join(self._changes(update, console))
        self.forget()
        return update.render_segments(console)

    def _changes(self, update: ChopsUpdate, console: Console) -> Iterator[str]:
        for y, first, last in update.spans:
            shown = self._lines[y]
            for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
                if strip is None or x >= last or end <= first:
                    continue
                is_whole = first <= x and end <= last
                text = (strip if is_whole else strip.crop(0, last - x)).render(console)
                if is_whole and shown.get((x, end)) == text:
                    continue
                moves = _UNSURE.search(text)  # whatever stands after it
                for piece in [one for one in shown if x < one[1] and (moves or one[0] < end)]:
                    del shown[piece]
                if is_whole:
                    shown[x, end] = text
                yield Control.move_to(x, y).segment.text + text


class ChangesOnly(CompositorUpdate):
    """An update of which only what differs is written."""

    def __init__(self, update: CompositorUpdate, drawn: Drawn) -> None:
        self._update, self._drawn = update, drawn

    def render_segments(self, console: Console) -> str:
        return self._drawn.write(self._update, console)
