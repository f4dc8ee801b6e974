"""A view of log lines that follows the end and draws only the visible rows."""

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


@dataclass(frozen=True, slots=True)
class Lead:
    """The cells of the columns before the text, 0 for none.

    Without a column for the level it stands in the text, unless it is the usual one.
    """

    time: int
    level: int
    source: int

    @property
    def width(self) -> int:
        return sum(cells + 1 for cells in (self.time, self.level, self.source) if cells)


LEADS: Final = ((60, Lead(8, 9, 10)), (42, Lead(8, 5, 7)), (0, Lead(5, 0, 7)))
"""The columns that fit from a width up."""

_SHORT: Final = {"warning": "warn", "critical": "crit", "emergency": "emerg", "notice": "note"}
"""Levels that are too long for the narrow column."""


def wrapped(text: str, width: int) -> list[str]:
    """Wrap one line between words, or within a word that is too long."""
    lines = wrap(text, width, break_on_hyphens=False)
    if text.isascii():
        return lines
    return [chunk for line in lines for chunk in chop_cells(line, width)]


class LogView(ScrollView, can_focus=True, inherit_bindings=False):
    """Log lines: time, level, source and text, which is wrapped if it is too long."""

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
        self.names_owners = True

    @property
    def entries(self) -> tuple[LogEntry, ...]:
        return tuple(self._entries)

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
        for entry in entries:
            self._add(entry)
        self._resized()

    def _resized(self) -> None:
        self.virtual_size = Size(self._width, len(self._rows))
        self.refresh()

    def _laid_out(self, entry: LogEntry) -> Iterable[_Row]:
        """Return the rows of a line; `names_owners` says whose name its source column has."""
        line = entry.line
        lead = next(lead for least, lead in LEADS if self._width >= least)
        form = "%H:%M:%S" if lead.time == len("00:00:00") else "%H:%M"
        stamp = strftime(form, localtime(line.time)) if line.time else ""
        style = f"log-view--{line.severity.value}"
        level = line.level or line.severity.value
        is_said = not lead.level and (line.level or line.severity is not Severity.INFO)
        short = level if len(level) <= lead.level else _SHORT.get(level, level)
        text = clip((f"{level}: " if is_said else "") + one_line(line.text), MAX_CHARACTERS)
        chunks = wrapped(text, max(8, self._width - lead.width))
        source = one_line(entry.owner if self.names_owners else line.source)
        yield (
            (fit(stamp, lead.time) + " ", "log-view--time"),
            (fit(short, lead.level) + " " if lead.level else "", style),
            (fit(source, lead.source) + " ", "log-view--source"),
            (chunks[0] if chunks else "", style),
        )
        for chunk in islice(chunks, 1, None):
            yield (" " * lead.width, "log-view--time"), (chunk, style)

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
