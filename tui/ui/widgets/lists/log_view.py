"""A view of log lines that follows the end and draws only the visible rows."""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice
from time import localtime, strftime
from typing import Final

from textual import events
from textual.content import Content

from tui.model.chat import Severity
from tui.model.events import LogLine
from tui.model.frozen import Frozen
from tui.text import clip
from tui.ui import keymap
from tui.ui.widgets.text.folded_text import Fold, FoldedText, fold_beside
from tui.ui.widgets.text.plain import fit, one_line

MAX_LINES: Final = 1_000
"""Log lines kept; the oldest are dropped."""

WIDE: Final = 60
"""Cells from which there is a column for the source; else it stands in a row of its own."""

SOURCE: Final = 12
"""Cells of that column."""

REPEAT: Final = 20
"""Lines of one source after which it is named again, to be in sight wherever one scrolls."""

LOOKS: Final = {
    Severity.INFO: (" ", "$foreground"),
    Severity.WARNING: ("!", "$text-warning"),
    Severity.ERROR: ("✕", "$text-error"),
}
"""The sign and the style of a severity."""

_SOURCE_STYLE: Final = "$text-accent"

_Laid = Sequence[tuple[Content, Content]]
"""What stands on the screen of a line: texts behind labels."""


class LogEntry(Frozen):
    """A log line and the server, or gemdeck, that it belongs to."""

    owner: str
    line: LogLine


class LogView(FoldedText, inherit_bindings=False):
    """Log lines: time, sign, the source where it changes, and text, which is wrapped."""

    AIR = 0
    BINDINGS = keymap.bindings(keymap.Place.LOG)

    def __init__(self) -> None:
        self._entries: deque[tuple[LogEntry, _Laid]] = deque(maxlen=MAX_LINES)
        self._width = 0
        self._source, self._run = "", 0
        self.names_owners = True
        super().__init__()

    @property
    def entries(self) -> tuple[LogEntry, ...]:
        return tuple(entry for entry, _ in self._entries)

    @property
    def last_in_view(self) -> LogEntry | None:
        """The last line in view."""
        bottom = self.scroll_offset.y + self.size.height
        by_line = [entry for entry, laid in self._entries for _ in laid]
        return by_line[bisect_left(self._shown.first_rows[:-1], bottom) - 1] if by_line else None

    def replace(self, entries: Iterable[LogEntry]) -> None:
        """Replace the lines and scroll to the end."""
        self._lay_out(entries)
        self.show("")
        self._follow()

    def append(self, entries: Sequence[LogEntry]) -> None:
        """Append lines; follow them if the end was in view."""
        follow, offset = self.is_vertical_scroll_end, self.scroll_offset.y
        gone = max(0, len(self._entries) + len(entries) - MAX_LINES)
        lines = sum(len(laid) for _, laid in islice(self._entries, gone))
        dropped = self._shown.first_rows[lines] if self._shown.width else 0
        self._entries.extend((entry, self._laid_out(entry)) for entry in entries)
        self._set("")
        self._fold()
        self.refresh()
        if follow:
            self._follow()
        elif dropped:
            self.scroll_to(y=max(0, offset - dropped), animate=False, force=True, immediate=True)

    def on_resize(self, event: events.Resize) -> None:
        follow = self.is_vertical_scroll_end
        super().on_resize(event)
        if follow:
            self._follow()

    def _follow(self) -> None:
        self.scroll_end(animate=False, force=True, immediate=True)

    def _make_fold(self, width: int) -> Fold:
        if width != self._width:
            self._width = width
            self._lay_out(self.entries)
        lines = [line for _, laid in self._entries for line in laid]
        return fold_beside([label for label, _ in lines], [text for _, text in lines], (), width)

    def _lay_out(self, entries: Iterable[LogEntry]) -> None:
        self._source = ""
        laid = ((entry, self._laid_out(entry)) for entry in entries)
        self._entries = deque(laid, maxlen=MAX_LINES)

    def _laid_out(self, entry: LogEntry) -> _Laid:
        """Lay out a line; `names_owners` says whose name tells where it comes from."""
        line, is_wide = entry.line, self._width >= WIDE
        stamp = strftime("%H:%M:%S" if is_wide else "%H:%M", localtime(line.time or 0))
        gutter = f"{stamp if line.time else ' ' * len(stamp)} "
        sign, style = LOOKS[line.severity]
        level = "" if line.level in ("", "info") else f"{line.level}: "
        text = clip(level + one_line(line.text), limit=600)
        source = one_line(entry.owner if self.names_owners else line.source)
        is_new = source != self._source or self._run >= REPEAT
        self._source, self._run = source, 1 if is_new else self._run + 1
        column = f"{fit(source if is_new else '', SOURCE)} " if is_wide else ""
        label = Content.assemble(
            (gutter, "$text-muted"), (f"{sign} ", style), (column, _SOURCE_STYLE)
        )
        laid = [(label, Content.styled(text, style))]
        if is_new and not is_wide:
            laid.insert(0, (Content(), Content.styled(source, _SOURCE_STYLE)))
        return laid
