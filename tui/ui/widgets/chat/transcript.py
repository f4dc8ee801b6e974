"""The transcript: the conversation, following its end unless the user scrolls up.

The state holds every entry; only a window of them is mounted (`tui.ui.widgets.chat.window`), one
widget each. While it follows the end, the oldest mounted entries are removed as new ones come.
Once the user scrolls up the visible text stays in place: entries inserted above it shift the
scroll position by exactly their rows.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.getters import query_one
from textual.message import Message
from textual.reactive import var
from textual.widget import Widget
from textual.widgets import Static

from tui.model.chat import ChatNotice, Entry, ModelText, Thought, ToolCall, TurnEnd, UserMessage
from tui.store.state import Transcript as TranscriptState
from tui.ui import keymap
from tui.ui.widgets.chat.entries import (
    EntryView,
    ModelEntry,
    NoticeEntry,
    ThoughtEntry,
    TurnEndEntry,
    UserEntry,
)
from tui.ui.widgets.chat.tool_call import ToolCallEntry
from tui.ui.widgets.chat.window import Window, estimate_rows
from tui.ui.widgets.text.block_view import TEXT_STYLES

_VIEWS: Final[Mapping[type[Entry], Callable[[Any], EntryView]]] = {
    UserMessage: UserEntry,
    ModelText: ModelEntry,
    Thought: ThoughtEntry,
    ToolCall: ToolCallEntry,
    ChatNotice: NoticeEntry,
    TurnEnd: TurnEndEntry,
}


class MoreRow(Static):
    """The row at an edge of the window with the number of entries beyond; a click loads more."""

    class Clicked(Message):
        """More entries are requested."""

        def __init__(self, row: "MoreRow") -> None:
            super().__init__()
            self.row = row

    def show(self, text: str) -> None:
        """Set the text; an empty one hides the row."""
        self.display = bool(text)
        self.update(Content(text))

    def on_click(self, event: events.Click) -> None:
        event.stop()
        self.post_message(self.Clicked(self))


class Transcript(VerticalScroll, inherit_bindings=False):
    """The conversation. While it has focus, a cursor marks the entry that keys act on."""

    COMPONENT_CLASSES: ClassVar[set[str]] = set(TEXT_STYLES)
    BINDING_GROUP_TITLE = "Conversation"
    HELP = "Up and Down select an entry; Enter opens it; `v` shows all of it; `c` copies it."
    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(keymap.Place.CONVERSATION)

    cursor: var[EntryView | None] = var(None)
    """The entry that keys act on while the transcript has focus."""

    earlier = query_one("#earlier", MoreRow)
    later = query_one("#later", MoreRow)

    class ViewRequested(Message):
        """The whole text of an entry is requested."""

        def __init__(self, title: str, text: str) -> None:
            super().__init__()
            self.title = title
            self.text = text

    def __init__(self) -> None:
        super().__init__()
        self._state = TranscriptState()
        self._window = Window()
        self._views: list[EntryView] = []

    def compose(self) -> ComposeResult:
        yield MoreRow(id="earlier")
        yield MoreRow(id="later")

    def on_mount(self) -> None:
        self.anchor()
        self._label_edges()

    @property
    def views(self) -> tuple[EntryView, ...]:
        return tuple(self._views)

    def show(self, state: TranscriptState) -> None:
        before, follows = self._state, self._is_at_end
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
        """Go to the end and follow it."""
        if rebuild or self._window.last < self._total or not self._views:
            self._remove(self._views)
            self._window.move_to_end(self._total, self._rows)
            self._window.last = self._window.first
            self._extend_to(self._total)
        self.anchor()
        self._label_edges()

    def load_earlier(self) -> bool:
        """Mount earlier entries without moving the visible text; False at the start."""
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
        """Mount later entries; False at the end."""
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
        """Move the cursor, or scroll if its entry is longer than the view."""
        view = self.cursor
        if view is None or view not in self._views:
            self._put_cursor_in_view()
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
        """Scroll up a page; at the top, load earlier entries first."""
        if self.scroll_y <= 0:
            self.load_earlier()
        self.call_after_refresh(self.scroll_page_up, animate=False)

    def action_page_down(self) -> None:
        """Scroll down a page; at the bottom, load later entries first."""
        if self.scroll_y >= self.max_scroll_y:
            self.load_later()
        self.call_after_refresh(self.scroll_page_down, animate=False)

    def action_home(self) -> None:
        """Go to the top of the loaded entries; if there already, load more."""
        if self.scroll_y <= 0:
            self.load_earlier()
        else:
            self.scroll_home(animate=False)

    def action_end(self) -> None:
        self.go_to_end()

    def action_activate(self) -> None:
        view = self.cursor
        if view is None:
            return
        if view.expandable:
            self.toggle(view)
        elif links := view.links():
            self.post_message(view.LinksRequested(links))

    def action_view(self) -> None:
        if self.cursor is not None:
            self.post_message(self.ViewRequested(self.cursor.title(), self.cursor.full_text()))

    def action_copy(self) -> None:
        if self.cursor is not None:
            self.app.copy_to_clipboard(self.cursor.full_text())
            self.notify("Copied.", timeout=2)

    def toggle(self, view: EntryView) -> None:
        """Open or close an entry without moving its first line."""
        self.release_anchor()
        view.toggle()
        self.cursor = view
        self.call_after_refresh(self._follow_if_at_end)

    def on_entry_view_toggled(self, event: EntryView.Toggled) -> None:
        event.stop()
        self.toggle(event.view)

    def on_more_row_clicked(self, event: MoreRow.Clicked) -> None:
        event.stop()
        if event.row is self.earlier:
            self.load_earlier()
        else:
            self.load_later()

    def on_click(self, event: events.Click) -> None:
        if isinstance(event.widget, EntryView):
            self.cursor = event.widget

    def on_focus(self) -> None:
        if self.cursor is None or self.cursor not in self._views:
            self._put_cursor_in_view()

    def watch_cursor(self, before: EntryView | None, now: EntryView | None) -> None:
        if before is not None:
            before.remove_class("-cursor")
        if now is not None:
            now.add_class("-cursor")

    @property
    def _is_at_end(self) -> bool:
        return self._window.last >= self._total and self.scroll_y >= self.max_scroll_y

    @property
    def _total(self) -> int:
        return len(self._state.settled) + len(self._state.live)

    def _entry(self, index: int) -> Entry:
        settled = self._state.settled
        return settled[index] if index < len(settled) else self._state.live[index - len(settled)]

    def _rows(self, index: int) -> int:
        return estimate_rows(self._entry(index), self.size.width)

    def _continues(self) -> bool:
        """Whether the mounted entries are still those of the state."""
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
        """Remove the oldest entries that are beyond the limits."""
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

    def _label_edges(self) -> None:
        before, after = self._window.first, self._total - self._window.last
        self.earlier.show(f"↑ {before:,} earlier · PageUp or click loads more" if before else "")
        self.later.show(f"↓ {after:,} later · End goes there" if after else "")

    def _follow_if_at_end(self) -> None:
        if self._is_at_end:
            self.anchor()

    def _put_cursor_in_view(self) -> None:
        bottom = self.scroll_offset.y + self.size.height
        in_view = [view for view in self._views if view.virtual_region.y < bottom]
        self.cursor = in_view[-1] if in_view else None


def entry_view(entry: Entry) -> EntryView:
    """Return the widget for an entry."""
    return _VIEWS[type(entry)](entry)
