"""The transcript with a cursor on the entry that keys act on, its search, and what waits below."""

import re
from collections.abc import Sequence
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.getters import query_one
from textual.reactive import var
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from tui.model.chat import ChatNotice, Entry, ModelText, Thought, ToolCall, TurnEnd, UserMessage
from tui.store.state import TranscriptState
from tui.ui import keymap
from tui.ui.messages import DataMessage
from tui.ui.widgets.chat.entries import EntryView, ModelEntry
from tui.ui.widgets.chat.entry_window import EntryWindow
from tui.ui.widgets.chat.tool_call import call_name
from tui.ui.widgets.key_bar import SaysWhy
from tui.ui.widgets.lists.filter_list import FilterLine
from tui.ui.widgets.text.links import examine
from tui.ui.widgets.text.plain import PlainText, one_line

MAX_SHOWN = 200
"""Characters drawn of one message."""


class QueuedMessages(OptionList):
    """One row for each message that waits; hidden while there is none."""

    ALLOW_SELECT: ClassVar[bool] = False
    BINDINGS = keymap.bindings(keymap.Place.QUEUE)

    class Taken(DataMessage):
        """A message is wanted back, or no more."""

        text: str
        give_back: bool

    def __init__(self) -> None:
        super().__init__(markup=False, compact=True)
        self._texts: Sequence[str] = ()
        self.display = False

    def show(self, texts: Sequence[str]) -> None:
        """Show these messages, the next one first."""
        at, self._texts = self.highlighted, texts
        self.set_options(Option(Content(f"  · {one_line(text[:MAX_SHOWN])}")) for text in texts)
        self.highlighted = min(at if at is not None else len(texts), len(texts) - 1)
        self.display = bool(texts)

    def on_focus(self) -> None:
        self.highlighted = len(self._texts) - 1

    def action_take(self, give_back: bool) -> None:
        """Take the message out of the queue, back into the composer or for good."""
        if self.highlighted is not None:
            self.post_message(self.Taken(self._texts[self.highlighted], give_back=give_back))


class SearchLine(Horizontal):
    """Search as one types; the newest entry with the words comes first.

    Args:
        transcript: The conversation.
    """

    BINDINGS = keymap.bindings(keymap.Place.SEARCH)

    words = query_one(FilterLine)
    count = query_one(PlainText)

    def __init__(self, transcript: "Transcript") -> None:
        super().__init__()
        self._transcript = transcript

    def compose(self) -> ComposeResult:
        yield FilterLine("search the conversation")
        yield PlainText()

    def action_close(self) -> None:
        """Close the line; the cursor stays where the search led."""
        self._transcript.mark(None)
        self._transcript.focus()
        self.remove()

    @on(Input.Changed)
    @on(Input.Submitted)
    def _search(self, event: Input.Changed | Input.Submitted) -> None:
        self.action_step(-1 if isinstance(event, Input.Submitted) else 0)

    def action_step(self, step: int) -> None:
        words = self.words.value.strip()
        number, total = self._transcript.find(words, step)
        self.count.update(f"{number:,} of {total:,}" if total else "not found" if words else "")


def searched_text(entry: Entry) -> str:
    """Return what is searched of an entry."""
    match entry:
        case UserMessage(text=text):
            return text
        case ModelText(text=text) | Thought(text=text):
            return text.replace("**", "").replace("`", "")  # as it is drawn
        case ToolCall():
            return "\n".join((entry.tool, entry.server, entry.arguments, entry.result))
        case ChatNotice():
            return f"{entry.text}\n{entry.advice}"
        case TurnEnd():
            return ""


class Transcript(SaysWhy, EntryWindow, inherit_bindings=False):
    """The conversation. While it has focus, a cursor marks the entry that keys act on."""

    BINDINGS = keymap.bindings(keymap.Place.CONVERSATION)

    cursor: var[EntryView | None] = var(None)
    """The entry that keys act on while the transcript has focus."""

    class ViewRequested(DataMessage):
        """The whole text of an entry is requested, of a call its tree and pictures as well."""

        title: str
        text: str
        call: ToolCall | None

    def __init__(self) -> None:
        super().__init__()
        self._codes: list[str] = []
        self._found: EntryView | None = None

    def show(self, state: TranscriptState) -> None:
        before = self._task_keys
        super().show(state)
        if self._task_keys != before:
            self.refresh_bindings()

    def take_newest(self) -> None:
        """Go to the end, and put the cursor on the newest entry."""
        self.go_to_end()
        self.cursor = next((view for view in reversed(self._views) if view.selectable), None)
        self.focus()

    def select(self, entry: str) -> None:
        """Put the cursor on an entry with an id, if it is still there."""
        index = next((i for i in range(self._total) if self._entry(i).id == entry), None)
        if index is None:
            self.notify("That entry is no longer in the conversation.", markup=False)
        else:
            self.cursor = self.reveal(index)

    def view_result(self, call: ToolCall) -> None:
        """Show the result of a tool."""
        self.post_message(self.ViewRequested(call_name(call), call.result, call))

    def find(self, words: str, step: int = 0) -> tuple[int, int]:
        """Go to an entry with these words, at or before the cursor, or a step further.

        Returns:
            The number of that entry among those that have them, and their number.
        """
        self.mark(re.compile(re.escape(words), re.IGNORECASE) if words else None)
        low = words.casefold()
        indexes = range(self._total) if words else ()
        found = [i for i in indexes if low in searched_text(self._entry(i)).casefold()]
        if not found:
            self._show_found(None)
            return 0, 0
        place = self._cursor_index()
        number = sum(index <= place for index in found) - 1
        if step > 0 or (step < 0 and found[number] == place):
            number += step
        number %= len(found)
        self._show_found(found[number])
        return number + 1, len(found)

    async def action_search(self) -> None:
        """Open the line with the words to search for."""
        if self.parent is not None:
            if not self.parent.query(SearchLine):
                await self.screen.mount(SearchLine(self), after=self)
            self.screen.set_focus(self.parent.query_one(SearchLine).words)

    def action_move(self, step: int) -> None:
        """Move the cursor, or scroll if its entry is longer than the view."""
        if (view := self.cursor) is None or view not in self._views:
            self._put_cursor_in_view()
            return
        top, bottom = view.virtual_region.y, view.virtual_region.bottom
        view_top, view_bottom = self.scroll_offset.y, self.scroll_offset.y + self.size.height
        is_longer = (step > 0 and bottom > view_bottom) or (step < 0 and top < view_top)
        found = None if is_longer else self._neighbour(view, step)
        if found is None:
            self.scroll_relative(y=step * 2, animate=False)
        else:
            self.cursor = found
            self.scroll_to_widget(found, animate=False)

    def action_turn(self, step: int) -> None:
        """Go to the message that began this turn, or to that of the turn before or after."""
        place = self._cursor_index()
        others = reversed(range(place)) if step < 0 else range(place + 1, self._total)
        found = next((i for i in others if isinstance(self._entry(i), UserMessage)), None)
        if found is not None:
            self.cursor = self.reveal(found)
        elif step > 0:
            self.take_newest()

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
        if (view := self.cursor) is not None and view.expandable:
            self.toggle(view)
        else:
            self.action_follow()

    def action_follow(self) -> None:
        """Follow the link of the entry, or offer its links."""
        if self.cursor is not None and (links := self.cursor.links()):
            self.cursor.follow(links)

    def action_view(self) -> None:
        if (view := self.cursor) is not None:
            call = view.entry if isinstance(view.entry, ToolCall) else None
            self.post_message(self.ViewRequested(view.title(), view.full_text(), call))

    async def action_frames(self) -> None:
        """Show what was said for the call."""
        if self.cursor is not None:
            await self.run_action(f"screen.show_frames({self.cursor.entry.id!r})")

    async def action_task(self, what: str) -> None:
        """Let the turn go on without the task of the call, or cancel it."""
        if self.cursor is not None:
            await self.run_action(f"screen.use_task({what!r}, {self.cursor.entry.id!r})")

    def action_copy(self) -> None:
        if self.cursor is not None:
            self.app.copy_to_clipboard(self.cursor.full_text())

    def action_copy_code(self) -> None:
        """Copy the last code of the entry or above it; pressed again, the code before that."""
        if not self._codes:
            self._codes = next(filter(None, (view.codes() for view in self._upwards())), [])
        if self._codes:
            self.app.copy_to_clipboard(self._codes.pop())

    @property
    def _task_keys(self) -> frozenset[str]:
        """What can be done with the task of the entry."""
        entry = self.cursor.entry if self.cursor is not None else None
        return frozenset(entry.task_keys if isinstance(entry, ToolCall) else ())

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str:
        view = self.cursor
        match action:
            case "activate" if view is None or not (view.expandable or view.links()):
                return "This entry has nothing to open and no link."
            case "follow" if view is None or not view.links():
                return "This entry has no link."
            case "frames" if view is None or not isinstance(view.entry, ToolCall):
                return "Only tool calls have protocol messages."
            case "task" if not self._task_keys.issuperset(map(str, parameters)):
                return "Only for calls that run as tasks."
            case "copy_code" if not any(view.may_hold_code for view in self._upwards()):
                return "No code block here or above."
            case _:
                return ""

    def action_label(self, action: str) -> str | None:
        """Name what Enter does with the entry, or where its link leads."""
        if (view := self.cursor) is None or action not in {"activate", "follow"}:
            return None
        if action == "activate" and view.expandable:
            return "close" if view.expanded else "open"
        links = view.links()
        return examine(links[0]).host or "link" if len(links) == 1 else f"{len(links)} links"

    def toggle(self, view: EntryView) -> None:
        """Open or close an entry without moving its first line."""
        self.release_anchor()
        view.toggle()
        self.cursor = view
        self.refresh_bindings()
        self.call_after_refresh(self._follow_if_at_end)

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on an entry, and open or close it."""
        view = event.widget
        if isinstance(view, EntryView) and view.selectable:
            self.cursor = view
            # an open one is closed by its first row alone
            if view.expandable and (not view.expanded or event.y == view.gutter.top):
                self.toggle(view)

    def on_focus(self) -> None:
        if self.cursor is None or not self._is_in_view(self.cursor):
            self._put_cursor_in_view()

    def watch_cursor(self, before: EntryView | None, now: EntryView | None) -> None:
        if before is not None:
            before.remove_class("-cursor")
        if now is not None:
            now.add_class("-cursor")
        self._codes = []
        if self.has_focus:
            self.refresh_bindings()

    def _remove(self, views: Sequence[EntryView]) -> None:
        super()._remove(views)
        if self.cursor in views:
            self.cursor = None

    def _neighbour(self, view: EntryView, step: int) -> EntryView | None:
        """Return the next entry that the cursor can stand on, loading more at the edges."""
        while True:
            index = self._views.index(view) + step
            if (index < 0 and self.load_earlier()) or (
                index >= len(self._views) and self.load_later()
            ):
                index = self._views.index(view) + step
            if not 0 <= index < len(self._views):
                return None
            view = self._views[index]
            if view.selectable:
                return view

    def _upwards(self) -> Sequence[ModelEntry]:
        """Return the answers under the cursor and above it that are mounted, upwards."""
        if self.cursor not in self._views:
            return ()
        above = self._views[self._views.index(self.cursor) :: -1]
        return [view for view in above if isinstance(view, ModelEntry)]

    def _cursor_index(self) -> int:
        """Return the place of the cursor in the conversation, its end if there is none."""
        if self.cursor not in self._views:
            return self._total
        return self._first + self._views.index(self.cursor)

    def _show_found(self, index: int | None) -> None:
        """Go to an entry that was searched for; it is open only as long as it has to be."""
        before, self._found = self._found, None
        if before is not None and before.expanded:
            before.toggle()
        if index is None:
            return
        view = self.cursor = self.reveal(index)
        if view.expandable and not view.expanded and view.marked_row is None:
            view.toggle()
            self._found = view

    def _put_cursor_in_view(self) -> None:
        seen = [view for view in self._views if view.selectable and self._is_in_view(view)]
        self.cursor = seen[-1] if seen else None

    def _is_in_view(self, view: EntryView) -> bool:
        top, bottom = self.scroll_offset.y, self.scroll_offset.y + self.size.height
        place = view.virtual_region
        return view in self._views and place.y < bottom and place.bottom > top
