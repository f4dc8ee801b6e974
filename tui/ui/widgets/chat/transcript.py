"""The transcript: a window on the conversation that follows its end, or stays where it was put.

The state holds every entry; only a window of them is mounted (`tui.ui.widgets.window`), one
widget each. While the end is followed the oldest mounted entries go as new ones come. Once the
user scrolls up nothing moves under his eyes: entries that come in above shift the scroll position
by exactly the rows they take.
"""

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.getters import query_one
from textual.message import Message
from textual.reactive import var
from textual.widget import Widget
from textual.widgets import Static

from tui.model.chat import ChatNotice, Entry, ModelText, Thought, ToolCall, UserMessage
from tui.store.state import Transcript as TranscriptState
from tui.ui.widgets.block_view import TEXT_STYLES
from tui.ui.widgets.entries import (
    EntryView,
    ModelEntry,
    NoticeEntry,
    ThoughtEntry,
    UserEntry,
)
from tui.ui.widgets.tool_call import ToolCallEntry
from tui.ui.widgets.window import Window, estimate_rows


class MoreRow(Static):
    """The row at an edge of the window that says how much lies beyond and loads it on click."""

    class Clicked(Message):
        """The user wants what lies beyond."""

        def __init__(self, row: "MoreRow") -> None:
            super().__init__()
            self.row = row

    def show(self, text: str) -> None:
        """Say what lies beyond; nothing takes the row away."""
        self.display = bool(text)
        self.update(Content(text))

    def on_click(self, event: events.Click) -> None:
        """Ask for more."""
        event.stop()
        self.post_message(self.Clicked(self))


class Transcript(VerticalScroll, inherit_bindings=False):
    """The conversation.

    While it has focus a cursor marks one entry, which keys act upon.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = set(TEXT_STYLES)
    BINDING_GROUP_TITLE = "Conversation"
    HELP = "Up and Down choose an entry; Enter opens it; `v` shows the whole; `c` copies it."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "Entry before", id="transcript.up", show=False),
        Binding("down", "move(1)", "Entry after", id="transcript.down", show=False),
        Binding("pageup", "page_up", "Page up", id="transcript.page-up", show=False),
        Binding("pagedown", "page_down", "Page down", id="transcript.page-down", show=False),
        Binding("home", "home", "To the top", id="transcript.home", show=False),
        Binding("end", "end", "To the end", id="transcript.end", show=False),
        Binding(
            "enter,space",
            "activate",
            "open",
            id="transcript.open",
            key_display="↵",
            tooltip="Open or close the entry, or follow its link",
        ),
        Binding("v", "view", "whole text", id="transcript.view", tooltip="Show the whole text"),
        Binding("c", "copy", "copy", id="transcript.copy", tooltip="Copy the text of the entry"),
    ]

    cursor: var[EntryView | None] = var(None)
    """The entry that keys act upon while the transcript has focus."""

    earlier = query_one("#earlier", MoreRow)
    later = query_one("#later", MoreRow)

    class ViewRequested(Message):
        """The user wants to read a whole text."""

        def __init__(self, title: str, text: str) -> None:
            super().__init__()
            self.title = title
            self.text = text

    class LinksRequested(Message):
        """The user wants to follow one of these links."""

        def __init__(self, links: list[str]) -> None:
            super().__init__()
            self.links = links

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._state = TranscriptState()
        self._window = Window()
        self._views: list[EntryView] = []

    def compose(self) -> ComposeResult:
        """Lay out the two edges; entries come between them."""
        yield MoreRow(id="earlier")
        yield MoreRow(id="later")

    def on_mount(self) -> None:
        """Begin at the end."""
        self.anchor()
        self._label_edges()

    @property
    def views(self) -> tuple[EntryView, ...]:
        """The mounted entries, oldest first."""
        return tuple(self._views)

    @property
    def follows(self) -> bool:
        """Whether the end is in sight, so that it is followed."""
        return self._window.last >= self._total and self.scroll_y >= self.max_scroll_y

    def show(self, state: TranscriptState) -> None:
        """Show another state of the conversation."""
        before, follows = self._state, self.follows
        self._state = state
        if state.epoch != before.epoch or not self._continues():
            self.go_to_end(rebuild=True)
            return
        if not self._views:
            self.go_to_end()
            return
        for index, view in enumerate(self._views, self._window.first):
            view.show(self._entry(index))
        self._window.grow(self._total)
        self._mount_missing_at_end()
        if follows:
            self._prune_top()
        self._label_edges()

    def go_to_end(self, *, rebuild: bool = False) -> None:
        """Show the end and follow it from now on."""
        if rebuild or self._window.last < self._total or not self._views:
            self._remove(self._views)
            self._window.move_to_end(self._total, self._rows)
            self._window.last = self._window.first
            self._extend_to(self._total)
        self.anchor()
        self._label_edges()

    def load_earlier(self) -> bool:
        """Bring in earlier entries above, without moving what is in sight; False at the start."""
        if self._window.first == 0:
            return False
        before, kept = self._window.first, self._views[0]
        above = self._rows_above(kept)
        self._window.move_earlier(self._rows)
        added = [entry_view(self._entry(index)) for index in range(self._window.first, before)]
        self._remove(self._views[self._window.last - before :])
        self._views[:0] = added
        self.mount_all(added, after=self.earlier)
        self._label_edges()
        self._shift(self._rows_above(kept) - above)
        return True

    def load_later(self) -> bool:
        """Bring in later entries below; False where there are none."""
        if self._window.last >= self._total:
            return False
        first, last, kept = self._window.first, self._window.last, self._views[-1]
        above = self._rows_above(kept)
        self._window.move_later(self._total, self._rows)
        end, self._window.last = self._window.last, last
        self._remove(self._views[: self._window.first - first])
        self._extend_to(end)
        self._label_edges()
        self._shift(self._rows_above(kept) - above)
        return True

    def action_move(self, step: int) -> None:
        """Move the cursor, or scroll where the entry under it is longer than the view."""
        view = self.cursor
        if view is None or view not in self._views:
            self._put_cursor_in_sight()
            return
        top, bottom = view.virtual_region.y, view.virtual_region.bottom
        view_top, view_bottom = self.scroll_offset.y, self.scroll_offset.y + self.size.height
        if (step > 0 and bottom > view_bottom) or (step < 0 and top < view_top):
            self.scroll_relative(y=step * 2, animate=False)
            return
        index = self._views.index(view) + step
        if index < 0 and self.load_earlier():
            index = self._views.index(view) - 1
        elif index >= len(self._views) and self.load_later():
            index = self._views.index(view) + 1
        if 0 <= index < len(self._views):
            self.cursor = self._views[index]
            self.scroll_to_widget(self.cursor, animate=False)
        else:
            self.scroll_relative(y=step * 2, animate=False)

    def action_page_up(self) -> None:
        """Scroll up a page; at the top, bring in earlier entries first."""
        if self.scroll_y <= 0:
            self.load_earlier()
        self.call_after_refresh(self.scroll_page_up, animate=False)

    def action_page_down(self) -> None:
        """Scroll down a page; at the bottom, bring in later entries first."""
        if self.scroll_y >= self.max_scroll_y:
            self.load_later()
        self.call_after_refresh(self.scroll_page_down, animate=False)

    def action_home(self) -> None:
        """Go to the top of what is loaded; there already, load more."""
        if self.scroll_y <= 0:
            self.load_earlier()
        else:
            self.scroll_home(animate=False)

    def action_end(self) -> None:
        """Go to the end and follow it."""
        self.go_to_end()

    def action_activate(self) -> None:
        """Open or close the entry under the cursor, or follow its links."""
        view = self.cursor
        if view is None:
            return
        if view.expandable:
            self.toggle(view)
        elif links := view.links():
            self.post_message(self.LinksRequested(links))

    def action_view(self) -> None:
        """Show the whole text of the entry under the cursor."""
        if self.cursor is not None:
            self.post_message(self.ViewRequested(self.cursor.title(), self.cursor.full_text()))

    def action_copy(self) -> None:
        """Copy the text of the entry under the cursor."""
        if self.cursor is not None:
            self.app.copy_to_clipboard(self.cursor.full_text())
            self.notify("Copied.", timeout=2)

    def toggle(self, view: EntryView) -> None:
        """Open or close an entry while its first line stays where it is."""
        self.release_anchor()
        view.toggle()
        self.cursor = view
        self.call_after_refresh(self._follow_if_at_end)

    def on_entry_view_toggled(self, event: EntryView.Toggled) -> None:
        """Open or close the clicked entry."""
        event.stop()
        self.toggle(event.view)

    def on_more_row_clicked(self, event: MoreRow.Clicked) -> None:
        """Load what lies beyond the clicked edge."""
        event.stop()
        if event.row is self.earlier:
            self.load_earlier()
        else:
            self.load_later()

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on the clicked entry."""
        if isinstance(event.widget, EntryView):
            self.cursor = event.widget

    def on_focus(self) -> None:
        """Show the cursor on the last entry in sight."""
        if self.cursor is None or self.cursor not in self._views:
            self._put_cursor_in_sight()

    def watch_cursor(self, before: EntryView | None, now: EntryView | None) -> None:
        """Mark the entry."""
        if before is not None:
            before.remove_class("-cursor")
        if now is not None:
            now.add_class("-cursor")

    @property
    def _total(self) -> int:
        return len(self._state.settled) + len(self._state.live)

    def _entry(self, index: int) -> Entry:
        settled = self._state.settled
        return settled[index] if index < len(settled) else self._state.live[index - len(settled)]

    def _rows(self, index: int) -> int:
        return estimate_rows(self._entry(index), self.size.width)

    def _continues(self) -> bool:
        """Tell whether the mounted entries are still those of the state."""
        if self._window.last > self._total:
            return False
        return all(
            view.entry.id == self._entry(index).id
            for index, view in enumerate(self._views, self._window.first)
        )

    def _mount_missing_at_end(self) -> None:
        end, self._window.last = self._window.last, self._window.first + len(self._views)
        self._extend_to(end)

    def _extend_to(self, end: int) -> None:
        """Mount the entries from the window's end up to `end`."""
        added = [entry_view(self._entry(index)) for index in range(self._window.last, end)]
        self._window.last = end
        if added:
            self._views.extend(added)
            self.mount_all(added, before=self.later)

    def _prune_top(self) -> None:
        """Let go of the oldest entries that following the end does not need."""
        excess = self._window.excess(self._rows)
        if excess:
            self._remove(self._views[:excess])
            self._window.first += excess

    def _remove(self, views: list[EntryView]) -> None:
        gone = set(views)
        if self.cursor in gone:
            self.cursor = None
        self._views = [view for view in self._views if view not in gone]
        self.remove_children(gone)

    def _rows_above(self, view: EntryView) -> int:
        """Count the rows above a mounted view, also of entries that are not laid out yet."""
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
        """Move the scroll position with what is in sight, in the same layout that moves it."""
        position = max(0, self.scroll_offset.y + rows)
        self.release_anchor()
        self.set_reactive(Widget.scroll_y, float(position))
        self.set_reactive(Widget.scroll_target_y, float(position))
        self.vertical_scrollbar.position = position

    def _label_edges(self) -> None:
        before, after = self._window.first, self._total - self._window.last
        self.earlier.show(f"↑ {before:,} earlier · PageUp or click loads more" if before else "")
        self.later.show(f"↓ {after:,} later · End goes there" if after else "")

    def _follow_if_at_end(self) -> None:
        if self._window.last >= self._total and self.scroll_y >= self.max_scroll_y:
            self.anchor()

    def _put_cursor_in_sight(self) -> None:
        bottom = self.scroll_offset.y + self.size.height
        in_sight = [view for view in self._views if view.virtual_region.y < bottom]
        self.cursor = in_sight[-1] if in_sight else None


def entry_view(entry: Entry) -> EntryView:
    """Make the widget for an entry."""
    match entry:
        case UserMessage():
            return UserEntry(entry)
        case ModelText():
            return ModelEntry(entry)
        case Thought():
            return ThoughtEntry(entry)
        case ToolCall():
            return ToolCallEntry(entry)
        case ChatNotice():
            return NoticeEntry(entry)
