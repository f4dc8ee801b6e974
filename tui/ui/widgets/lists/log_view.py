"""A view of log lines that follows the end and draws only the visible rows."""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable
from itertools import islice
from textwrap import wrap
from time import localtime, strftime
from typing import ClassVar, Final

from rich.cells import chop_cells
from textual.binding import BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tui.model.chat import Severity
from tui.model.events import LogLine
from tui.model.frozen import dataclass
from tui.text import clip
from tui.ui import keymap
from tui.ui.widgets.text.plain import fit, one_line, painted

MAX_LINES: Final = 1_000
"""Log lines kept; the oldest are dropped."""

MAX_CHARACTERS: Final = 600
"""Characters shown of one log line."""

_Row = tuple[tuple[str, str], ...]
"""One row on the screen: pairs of text and component class."""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A log line and the server, or gemdeck, that it belongs to."""

    owner: str
    line: LogLine


WIDE: Final = 60
"""Cells from which there is a column for the source; else it stands in a row of its own."""

SOURCE: Final = 12
"""Cells of that column."""

REPEAT: Final = 20
"""Lines of one source after which it is named again, to be in sight wherever one scrolls."""

SIGNS: Final = {Severity.INFO: " ", Severity.WARNING: "!", Severity.ERROR: "✕"}
"""How a severity looks without colors."""


def wrapped(text: str, width: int) -> list[str]:
    """Wrap one line between words, or within a word that is too long."""
    lines = wrap(text, width, break_on_hyphens=False)
    if text.isascii():
        return lines
    return [chunk for line in lines for chunk in chop_cells(line, width)]


class LogView(ScrollView, can_focus=True, inherit_bindings=False):
    """Log lines: time, sign, the source where it changes, and text, which is wrapped."""

    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(keymap.Place.LOG)

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"log-view--{part}" for part in ("time", "source", "info", "warning", "error")
    }

    def __init__(self) -> None:
        super().__init__()
        self._entries: deque[LogEntry] = deque(maxlen=MAX_LINES)
        self._rows: list[_Row] = []
        self._starts: deque[int] = deque(maxlen=MAX_LINES)
        self._width = 0
        self._source, self._run = "", 0
        self.names_owners = True

    @property
    def entries(self) -> tuple[LogEntry, ...]:
        return tuple(self._entries)

    @property
    def last_in_view(self) -> LogEntry | None:
        """The last line in view."""
        bottom = self.scroll_offset.y + self.size.height
        return self._entries[bisect_left(self._starts, bottom) - 1] if self._entries else None

    def replace(self, entries: Iterable[LogEntry]) -> None:
        """Replace the lines and scroll to the end."""
        self._entries = deque(entries, maxlen=MAX_LINES)
        self._lay_out()
        self.scroll_end(animate=False, force=True, immediate=True)

    def append(self, entries: Iterable[LogEntry]) -> None:
        """Append lines; follow them if the end was in view."""
        follow = self.is_vertical_scroll_end
        offset = self.scroll_offset.y
        dropped = 0
        for entry in entries:
            if len(self._entries) == MAX_LINES:
                self._entries.popleft()
                self._starts.popleft()
                dropped = self._starts[0] if self._starts else len(self._rows)
            self._add(entry)
        if dropped:
            del self._rows[:dropped]
            self._starts = deque((start - dropped for start in self._starts), maxlen=MAX_LINES)
        self._resized()
        if follow:
            self.scroll_end(animate=False, force=True, immediate=True)
        elif dropped:
            self.scroll_to(y=max(0, offset - dropped), animate=False, force=True, immediate=True)

    def _add(self, entry: LogEntry) -> None:
        self._entries.append(entry)
        self._starts.append(len(self._rows))
        self._rows.extend(self._laid_out(entry))

    def _lay_out(self) -> None:
        self._width = self.scrollable_size.width
        entries = tuple(self._entries)
        self._entries.clear()
        self._starts.clear()
        self._rows.clear()
        self._source = ""
        for entry in entries:
            self._add(entry)
        self._resized()

    def _resized(self) -> None:
        self.virtual_size = Size(self._width, len(self._rows))
        self.refresh()

    def _laid_out(self, entry: LogEntry) -> Iterable[_Row]:
        """Return the rows of a line; `names_owners` says whose name tells where it comes from."""
        line, is_wide = entry.line, self._width >= WIDE
        stamp = strftime("%H:%M:%S" if is_wide else "%H:%M", localtime(line.time or 0))
        gutter = f"{stamp if line.time else ' ' * len(stamp)} "
        style = f"log-view--{line.severity.value}"
        level = "" if line.level in ("", "info") else f"{line.level}: "
        text = clip(level + one_line(line.text), MAX_CHARACTERS)
        source = one_line(entry.owner if self.names_owners else line.source)
        is_new = source != self._source or self._run >= REPEAT
        self._source, self._run = source, 1 if is_new else self._run + 1
        column = f"{fit(source if is_new else '', SOURCE)} " if is_wide else ""
        if is_new and not is_wide:
            yield ((fit(source, self._width), "log-view--source"),)
        lead = len(gutter) + 2 + len(column)
        chunks = wrapped(text, max(8, self._width - lead)) or [""]
        yield (
            (gutter, "log-view--time"),
            (f"{SIGNS[line.severity]} ", style),
            (column, "log-view--source"),
            (chunks[0], style),
        )
        for chunk in islice(chunks, 1, None):
            yield (" " * lead, "log-view--time"), (chunk, style)

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        index = y + self.scroll_offset.y
        base = self.rich_style
        if index >= len(self._rows):
            return Strip.blank(width, base)
        return painted(self, self._rows[index], base).adjust_cell_length(width, base)

    def on_resize(self) -> None:
        if self.scrollable_size.width != self._width:
            follow = self.is_vertical_scroll_end
            self._lay_out()
            if follow:
                self.scroll_end(animate=False, force=True, immediate=True)
