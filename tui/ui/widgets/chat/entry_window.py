"""A scrolling window of a conversation, following its end unless the user scrolls up.

The state holds every entry; only a window of them is mounted, one widget each. While it follows
the end, the oldest mounted entries are removed as new ones come.
Once the user scrolls up the visible text stays in place: entries inserted above it shift the
scroll position by exactly their rows.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from textual import events
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.getters import query_one
from textual.widget import Widget

from tui.model.chat import ChatNotice, Entry, ModelText, Thought, ToolCall, TurnEnd, UserMessage
from tui.store.state import TranscriptState
from tui.ui.widgets.chat.entries import (
    MAX_SHOWN,
    MAX_SHOWN_LINES,
    EntryView,
    ModelEntry,
    NoticeEntry,
    ThoughtEntry,
    TurnEndEntry,
    UserEntry,
)
from tui.ui.widgets.chat.tool_call import ToolCallEntry
from tui.ui.widgets.text.blocks import TEXT_STYLES
from tui.ui.widgets.text.plain import PlainText

MAX_ENTRIES: Final = 40
"""Entries mounted while the transcript follows the end."""

MAX_ROWS: Final = 1_200
"""Rows of text, as estimated, mounted while it follows the end, and loaded in one step."""

ROW: Final = 80
"""Characters of a row for that estimate."""

STEP: Final = 20
"""Entries that are loaded in one step, and on each side of one that is gone to."""

MAX_MOUNTED: Final = 80
"""Entries mounted while the user has scrolled up."""

_VIEWS: Final[Mapping[type[Entry], Callable[[Any], EntryView]]] = {
    UserMessage: UserEntry,
    ModelText: ModelEntry,
    Thought: ThoughtEntry,
    ToolCall: ToolCallEntry,
    ChatNotice: NoticeEntry,
    TurnEnd: TurnEndEntry,
}


class MoreRow(PlainText):
    """The row at an edge of the window with the number of entries beyond; a click loads more."""


class EntryWindow(VerticalScroll, inherit_bindings=False):
    """The mounted part of a conversation."""

    COMPONENT_CLASSES: ClassVar[set[str]] = set(TEXT_STYLES)

    earlier = query_one(".earlier", MoreRow)
    later = query_one(".later", MoreRow)

    def __init__(self) -> None:
        super().__init__()
        self._state = TranscriptState()
        self._first = 0  # the index of the first entry that is mounted
        self._views: list[EntryView] = []
        self._marked: re.Pattern[str] | None = None
        self._holds = False

    def compose(self) -> ComposeResult:
        yield MoreRow(classes="earlier")
        yield MoreRow(classes="later")

    def on_mount(self) -> None:
        self.watch(self, "virtual_size", self._follow_overflow)
        self.anchor()
        self._label_edges()

    def anchor(self, anchor: bool = True) -> None:
        """Follow the end, from where there is more than fits; while hidden, once it is shown.

        Textual would push a short conversation down, and let go of it at the first key.
        """
        self._holds = False
        super().anchor(anchor and self._overflows)

    def release_anchor(self) -> None:
        """Stay where the user is."""
        self._holds = True
        super().release_anchor()

    @property
    def follows_end(self) -> bool:
        """Whether it stays at its end as it grows."""
        return not self._holds or self._is_at_end

    @property
    def views(self) -> tuple[EntryView, ...]:
        return tuple(self._views)

    def show(self, state: TranscriptState) -> None:
        before, follows = self._state, self._is_at_end
        self._state = state
        is_same = state.epoch == before.epoch
        if not is_same or not (self._continues() or self._goes_on_without_passed()):
            self.go_to_end(rebuild=True)
            return
        if not self._views:
            self.go_to_end()
            return
        for index, view in enumerate(self._views, self._first):
            view.show(self._entry(index))
        if follows and self._total - self._last > MAX_ENTRIES:
            self.go_to_end(rebuild=True)  # after it was hidden for long
            return
        self._mount_to(self._first + MAX_MOUNTED)
        if follows:
            self._drop_before(self._start(self._last))
        self._label_edges()

    def go_to_end(self, *, rebuild: bool = False) -> None:
        """Go to the end and follow it."""
        if rebuild or self._last < self._total or not self._views:
            self._remove(self._views)
            self._first = self._start(self._total)
            self._mount_to(self._total)
        self.anchor()
        self._label_edges()

    def load_earlier(self) -> bool:
        """Mount earlier entries without moving the visible text; False at the start."""
        if self._first == 0:
            return False
        before, kept = self._first, self._views[0]
        above = self._rows_above(kept)
        self._first = self._start(before, STEP)
        added = [self._view(index) for index in range(self._first, before)]
        self._remove(self._views[self._first + MAX_MOUNTED - before :])
        self._views[:0] = added
        self.mount_all(added, after=self.earlier)
        self._label_edges()
        self._shift(self._rows_above(kept) - above)
        return True

    def load_later(self) -> bool:
        """Mount later entries; False at the end."""
        if self._last >= self._total:
            return False
        kept, last = self._views[-1], min(self._total, self._last + STEP)
        above = self._rows_above(kept)
        self._drop_before(last - MAX_MOUNTED)
        self._mount_to(last)
        self._label_edges()
        self._shift(self._rows_above(kept) - above)
        return True

    def reveal(self, index: int) -> EntryView:
        """Scroll to an entry, to its first mark if it has one, mounting what is around it first."""
        if not self._first <= index < self._last:
            self._remove(self._views)
            self._first = max(0, index - STEP)
            self._mount_to(index + STEP)
            self._label_edges()
        view = self._views[index - self._first]
        self.release_anchor()
        self.call_after_refresh(lambda: self._scroll_to_row(view, view.marked_row or 0))
        return view

    def mark(self, pattern: re.Pattern[str] | None) -> None:
        """Mark what matches in all entries."""
        self._marked = pattern
        self.set_class(pattern is not None, "-searching")
        for view in self._views:
            view.mark(pattern)

    def on_click(self, event: events.Click) -> None:
        if event.widget is self.earlier:
            self.load_earlier()
        elif event.widget is self.later:
            self.load_later()

    @property
    def _overflows(self) -> bool:
        """Whether there is more than fits; a hidden widget has no size, and nothing to fit into."""
        return bool(self.size) and self.virtual_size.height > self.size.height

    def on_resize(self) -> None:
        self._follow_overflow()

    def _follow_overflow(self) -> None:
        """Begin to follow the end, or stop it."""
        if self.size and not (self._overflows and (self._holds or self.is_anchored)):
            self.anchor()

    @property
    def _last(self) -> int:
        """The index after the last entry that is mounted."""
        return self._first + len(self._views)

    @property
    def _is_at_end(self) -> bool:
        return self._last >= self._total and self.scroll_y >= self.max_scroll_y

    @property
    def _total(self) -> int:
        return len(self._state.settled) + len(self._state.live)

    def _entry(self, index: int) -> Entry:
        settled = self._state.settled
        return settled[index] if index < len(settled) else self._state.live[index - len(settled)]

    def _continues(self) -> bool:
        """Whether the mounted entries are still those of the state."""
        if self._last > self._total:
            return False
        return all(
            view.entry.id == self._entry(index).id
            for index, view in enumerate(self._views, self._first)
        )

    def _goes_on_without_passed(self) -> bool:
        """Take away the notices that have passed; return whether what is left is of the state."""
        left = {self._entry(index).id for index in range(self._first, self._total)}
        gone = [view for view in self._views if view.entry.id not in left]
        self._remove(gone)
        return self._continues()

    def _view(self, index: int) -> EntryView:
        """Return a new widget for an entry."""
        entry = self._entry(index)
        view = _VIEWS[type(entry)](entry)
        view.mark(self._marked)
        return view

    def _mount_to(self, last: int) -> None:
        """Mount the entries before this index that are not mounted yet."""
        if added := [self._view(index) for index in range(self._last, min(last, self._total))]:
            self._views.extend(added)
            self.mount_all(added, before=self.later)

    def _drop_before(self, first: int) -> None:
        """Remove the entries before this index."""
        if first > self._first:
            self._remove(self._views[: first - self._first])
            self._first = first

    def _start(self, end: int, most: int = MAX_ENTRIES) -> int:
        """Return the first of the entries to mount before `end`: fewer of those that are long."""
        start, rows = end, 0
        while start > max(0, end - most) and rows < MAX_ROWS:
            start -= 1
            entry = self._entry(start)
            if isinstance(entry, UserMessage | ModelText):
                text = entry.text[:MAX_SHOWN]
                rows += min(text.count("\n"), MAX_SHOWN_LINES) + len(text) // ROW
        return start

    def _remove(self, views: Sequence[EntryView]) -> None:
        gone = set(views)
        self._views = [view for view in self._views if view not in gone]
        self.remove_children(gone)

    def _rows_above(self, view: EntryView) -> int:
        """Count the rows above a mounted view, including entries not laid out yet."""
        rows = margin_below = 0
        if self.earlier.display:
            rows += self.earlier.styles.gutter.height + 1
            margin_below = self.earlier.styles.margin.bottom
        for mounted in self._views:
            margin = mounted.styles.margin
            rows += max(margin_below, margin.top)
            if mounted is view:
                break
            gutter = mounted.styles.gutter
            width = self.scrollable_content_region.width - margin.width - gutter.width
            rows += len(mounted.lines(width)) + gutter.height
            margin_below = margin.bottom
        return rows

    def _shift(self, rows: int) -> None:
        """Shift the scroll position in the same layout that shifts the visible text."""
        position = max(0, self.scroll_offset.y + rows)
        self.release_anchor()
        self.set_reactive(Widget.scroll_y, float(position))
        self.set_reactive(Widget.scroll_target_y, float(position))
        self.vertical_scrollbar.position = position

    def _scroll_to_row(self, view: EntryView, row: int) -> None:
        """Scroll so that a row of an entry stands below the top, with what led to it above."""
        if view in self._views:
            above = self.size.height // 4
            self.scroll_to(y=view.virtual_region.y + row - above, animate=False)
            self.call_after_refresh(self._follow_if_at_end)

    def _label_edges(self) -> None:
        before, after = self._first, self._total - self._last
        self.earlier.say(f"↑ {before:,} earlier · PageUp or click for more" if before else "")
        self.later.say(f"↓ {after:,} later · End to jump there" if after else "")

    def _follow_if_at_end(self) -> None:
        if self._is_at_end:
            self.anchor()
