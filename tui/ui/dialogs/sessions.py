"""The sessions screen: the saved conversations of the folder, with the end of each."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from textual import on
from textual.content import Content
from textual.widgets import Input

from tui.model.chat import ModelText, ToolCall, UserMessage
from tui.model.sessions import (
    SessionId,
    SessionMatch,
    SessionPreviewed,
    SessionsSearched,
    SessionView,
)
from tui.ui import keymap
from tui.ui.bridge import Delay, StoreBridge
from tui.ui.dialogs.list_dialog import ListDialog
from tui.ui.widgets.lists.filter_list import FilterList, ListEntry
from tui.ui.widgets.lists.row_list import Row
from tui.ui.widgets.text.plain import count, moment, one_line

EMPTY: Final = """\
No saved sessions in this folder yet.

Sessions are saved as you chat, unless gemdeck runs with
--private or with "gemdeck": "sessions": {"save": false}."""

MAX_LINE: Final = 300
"""Characters of an entry in the preview."""

PREVIEWED: Final = 6
"""Entries in the preview."""


class SessionsScreen(ListDialog[SessionView]):
    """List the sessions of the folder, and open, rename, delete and export them.

    Args:
        bridge: Provides the sessions, and carries out what is asked of them.
        query: What narrows the list at first.
        open_beside: Opens one in a tab of its own.
    """

    BINDINGS = keymap.bindings(keymap.Place.SESSIONS)
    AUTO_FOCUS = "RowList"
    KIND = "large sessions"

    def __init__(
        self, bridge: StoreBridge, query: str, *, open_beside: Callable[[SessionId], None]
    ) -> None:
        super().__init__(
            "Sessions in this folder",
            FilterList("session", EMPTY),
            lambda view: bridge.commands.engine.sessions.resume(view.id),
        )
        self._bridge = bridge
        self._first_query = query
        self._open_beside = open_beside
        self._resting, self._typing = Delay(self), Delay(self)
        self._matches: dict[SessionId, SessionMatch] = {}
        self._renamed: SessionView | None = None
        self.title_line = Input(placeholder="new title", max_length=200, compact=True)

    def on_mount(self) -> None:
        self.title_line.display = False
        self.frame.mount(self.title_line)
        self._bridge.watch(self, lambda state: (state.sessions, state.searched), self._show)
        self._bridge.watch(self, lambda state: state.preview, lambda _: self._show_preview())
        self._bridge.commands.list_sessions()
        self.watch(self.listed.line, "value", self._search, init=False)
        self.listed.set_filter(self._first_query)

    def on_unmount(self) -> None:
        """End a search, which may take long."""
        self._bridge.commands.engine.sessions.search("")

    def action_close(self) -> None:
        """Leave the line for the title, else close."""
        if self.title_line.display:
            self._end_rename()
        else:
            self.dismiss()

    def action_choose_beside(self) -> None:
        """Go on with the session in a new tab, or in the one that it is open in."""
        if (view := self.listed.current) is not None:
            self._open_beside(view.id)
            self.dismiss()

    def action_rename(self) -> None:
        """Ask for another title of the session under the cursor, wherever that goes meanwhile."""
        if (view := self.listed.current) is not None:
            self._renamed = view
            self.title_line.display = True
            self.title_line.value = view.name
            self.title_line.focus()

    def action_export(self) -> None:
        """Write the session to a Markdown file in the opened folder."""
        if (view := self.listed.current) is not None:
            self._bridge.commands.engine.sessions.export(view.id, "")

    def action_delete(self) -> None:
        """Delete the session under the cursor on the second press, unless it is open here."""
        view = self.listed.current
        if view and self._bridge.commands.engine.conversations.with_session(view.id):
            self.say("This session is open in a tab. Close it, or type /clear there.")
        elif view and self.is_again("sessions.delete", view.id, f"delete: {view.name}"):
            self._bridge.commands.engine.sessions.delete(view.id)

    @on(Input.Submitted)
    def _on_title(self, event: Input.Submitted) -> None:
        if self._renamed is not None:
            self._bridge.commands.engine.sessions.rename(self._renamed.id, event.value.strip())
        self._end_rename()

    def _end_rename(self) -> None:
        self._renamed = None
        self.title_line.display = False
        self.listed.rows.focus()

    def moved(self, item: SessionView | None) -> None:
        """Read the end of a session once the cursor rests on it."""
        self._resting.stop()
        self.tell(None if item is None else Content())
        self._show_preview()
        if item is not None:
            read = partial(self._bridge.commands.engine.sessions.preview, item.id)
            self._resting.begin(wait=0.15, callback=read)

    def _search(self, words: str) -> None:
        """Search the text of the sessions, too, once the user pauses; nothing ends a search."""
        search = partial(self._bridge.commands.engine.sessions.search, words)
        self._typing.begin(wait=0.3, callback=search)

    def _show(self, known: tuple[Sequence[SessionView], SessionsSearched | None]) -> None:
        sessions, searched = known
        self._matches = {one.view.id: one for one in searched.matches} if searched else {}
        words = searched.words if searched else ""
        found = (words if one.id in self._matches else "" for one in sessions)
        self.listed.set_entries([*map(_entry, sessions, found)])
        self._show_preview()

    def _show_preview(self) -> None:
        view, preview = self.listed.current, self._bridge.state.preview
        if preview is not None and view is not None and preview.session == view.id:
            match = self._matches.get(view.id) if self.listed.line.value.strip() else None
            found = [Content.styled(one_line(match.line), "$text-accent")] if match else []
            self.tell(Content("\n").join([*found, _previewed(preview)]))


def _entry(view: SessionView, found: str = "") -> ListEntry[SessionView]:
    changed = moment(view.changed, "%m-%d %H:%M", "")
    tokens = f"{count(view.tokens)} tokens" if view.tokens else ""
    tail = " · ".join(filter(None, ["copy" if view.parent else "", tokens]))
    return ListEntry(
        item=view,
        row=Row(changed, one_line(view.name), tail, note=view.model),
        label=f"{view.title} {view.first}".lower(),
        text=f"{view.id} {view.model} {changed} {found}".lower(),
    )


def _previewed(preview: SessionPreviewed) -> Content:
    if preview.failure:
        return Content.styled(one_line(preview.failure), "$text-error")
    lines: list[str] = []
    for entry in preview.entries:
        match entry:
            case UserMessage() | ModelText():
                lines.append(entry.text)
            case ToolCall():
                lines.append(f"{entry.server} · {entry.tool}")
    shown = [*filter(None, lines)][-PREVIEWED:]
    return Content("\n").join(Content(one_line(line[:MAX_LINE])) for line in shown)
