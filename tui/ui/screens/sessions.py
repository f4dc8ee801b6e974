"""The sessions screen: the saved conversations of the folder, with the end of each."""

from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.getters import query_one
from textual.timer import Timer
from textual.widgets import Input

from tui.model.chat import ModelText, ToolCall, UserMessage
from tui.model.sessions import SessionId, SessionPreviewed, SessionView
from tui.store.commands import Commands
from tui.ui import keymap
from tui.ui.bridge import StoreBridge
from tui.ui.questions.arming import SecondPress
from tui.ui.screens.dialog import Dialog
from tui.ui.widgets.key_bar import HintLine, key_hints
from tui.ui.widgets.lists.filter_list import FilterList, ListEntry
from tui.ui.widgets.lists.row_list import Row
from tui.ui.widgets.text.describe import moment
from tui.ui.widgets.text.plain import PlainText, count, one_line

EMPTY: Final = """\
No saved conversations in this folder yet.

Each one is saved as it goes, unless gemdeck was started with
--private or "gemdeck": "sessions": {"save": false} says so."""

PREVIEW_AFTER: Final = 0.15
"""Seconds that the cursor rests on a session before its end is read."""

MAX_LINE: Final = 300
"""Characters of an entry in the preview."""

PREVIEWED: Final = 6
"""Entries in the preview."""

MAX_TITLE: Final = 200


class _SessionList(FilterList[SessionView]):
    """The sessions that match."""


class SessionsScreen(Dialog):
    """List the sessions of the folder, and open, rename, delete and export them.

    Args:
        bridge: Provides the sessions.
        commands: Carries out what is asked of them.
        query: What narrows the list at first.
        open_beside: Opens one in a tab of its own.
        clock: Time in seconds, for the key that must be pressed twice.
    """

    BINDING_GROUP_TITLE = "Sessions"
    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(keymap.Place.SESSIONS)

    sessions = query_one(_SessionList)
    preview = query_one(".session-preview", PlainText)
    title_line = query_one("#session-title", Input)
    hint = query_one(".sessions-hint", HintLine)

    def __init__(
        self,
        bridge: StoreBridge,
        commands: Commands,
        query: str = "",
        *,
        open_beside: Callable[[SessionId], None],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        super().__init__()
        self._bridge = bridge
        self._commands = commands
        self._first_query = query
        self._open_beside = open_beside
        self._second: SecondPress[str] = SecondPress(clock)
        self._resting: Timer | None = None
        self._renamed: SessionView | None = None

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog sessions") as frame:
            frame.border_title = Content("Sessions of this folder")
            yield _SessionList("session", EMPTY)
            yield PlainText(classes="session-preview")
            yield Input(
                placeholder="the new title", max_length=MAX_TITLE, id="session-title", compact=True
            )
            yield HintLine(classes="sessions-hint")

    def on_mount(self) -> None:
        self.title_line.display = False
        self._bridge.watch(self, lambda state: state.sessions, self._show)
        self._bridge.watch(self, lambda state: state.preview, self._show_preview)
        self._commands.list_sessions()
        if self._first_query:
            self.sessions.set_filter(self._first_query)
        self.sessions.focus_list()
        self.call_after_refresh(self._show_hint)

    def action_close(self) -> None:
        """Leave the line for the title, else close."""
        if self.title_line.display:
            self._end_rename()
        else:
            self.dismiss()

    def action_choose(self) -> None:
        """Go on with the session under the cursor."""
        if (view := self.sessions.current) is not None:
            self._commands.resume_session(view.id)
            self.dismiss()

    def action_choose_beside(self) -> None:
        """Go on with the session in a new tab, or in the one that it is open in."""
        if (view := self.sessions.current) is not None:
            self._open_beside(view.id)
            self.dismiss()

    def action_rename(self) -> None:
        """Ask for another title of the session under the cursor, wherever that goes meanwhile."""
        if (view := self.sessions.current) is not None:
            self._renamed = view
            self.title_line.display = True
            self.title_line.value = view.name
            self.title_line.focus()

    def action_export(self) -> None:
        """Write the session to a Markdown file in the opened folder."""
        if (view := self.sessions.current) is not None:
            self._commands.export_session(view.id, "")

    def action_delete(self) -> None:
        """Delete the session under the cursor on the second press."""
        view = self.sessions.current
        if view is None:
            return
        if self._second.take(view.id):
            self._commands.delete_session(view.id)
            self._show_hint()
        else:
            self._second.expect(view.id)
            key = keymap.key_of(self.app, self.active_bindings, "sessions.delete")
            words = f"Press {key} again to delete: {one_line(view.name)}"
            self.hint.update(Content.styled(words, "$text-warning"))

    @on(Input.Submitted, "#session-title")
    def _on_title(self, event: Input.Submitted) -> None:
        event.stop()
        if self._renamed is not None:
            self._commands.rename_session(self._renamed.id, event.value.strip())
        self._end_rename()

    def _end_rename(self) -> None:
        self._renamed = None
        self.title_line.display = False
        self.sessions.focus_list()

    @on(FilterList.Chosen)
    def _on_chosen(self, event: FilterList.Chosen) -> None:
        event.stop()
        self.action_choose()

    @on(FilterList.Moved)
    def _on_moved(self, event: FilterList.Moved) -> None:
        event.stop()
        if self._resting is not None:
            self._resting.stop()
        self.preview.update("")
        self._show_preview(self._bridge.state.preview)
        if (view := self.sessions.current) is not None:
            read = partial(self._commands.preview_session, view.id)
            self._resting = self.set_timer(PREVIEW_AFTER, read)

    def _show(self, sessions: Sequence[SessionView]) -> None:
        self.sessions.set_entries([*map(_entry, sessions)])

    def _show_preview(self, preview: SessionPreviewed | None) -> None:
        view = self.sessions.current
        if preview is not None and view is not None and preview.session == view.id:
            self.preview.update(_previewed(preview))

    def _show_hint(self) -> None:
        names = ("sessions.choose", "sessions.tab", "sessions.rename", "sessions.delete")
        ids = (*names, "dialog.close", "sessions.export", "list.filter")
        labels = ("open", "in a tab", "rename", "delete", "close", "export", "search")
        keys = (keymap.key_of(self.app, self.active_bindings, one) for one in ids)
        self.hint.update(key_hints(*zip(keys, labels, strict=True)))


def _entry(view: SessionView) -> ListEntry[SessionView]:
    changed = moment(view.changed, "%m-%d %H:%M", "")
    facts = filter(None, [view.model, "a copy" if view.parent else ""])
    tokens = f"{count(view.tokens)} tokens" if view.tokens else ""
    return ListEntry(
        item=view,
        row=Row(changed, one_line(view.name), tokens, note=" · ".join(facts)),
        label=f"{view.title} {view.first}".lower(),
        text=f"{view.id} {view.model} {changed}".lower(),
    )


def _previewed(preview: SessionPreviewed) -> Content:
    if preview.failure:
        return Content.styled(one_line(preview.failure), "$text-error")
    shown = [
        line
        for entry in preview.entries
        if (
            line := entry.text
            if isinstance(entry, UserMessage | ModelText)
            else f"{entry.server} · {entry.tool}"
            if isinstance(entry, ToolCall)
            else ""
        )
    ]
    lines = (one_line(line[:MAX_LINE]) for line in shown[-PREVIEWED:])
    return Content("\n").join(Content(line) for line in lines)
