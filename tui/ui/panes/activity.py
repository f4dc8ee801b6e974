"""The activity pane: the servers' logs and gemdeck's own notices, newest last."""

from collections.abc import Iterable
from heapq import merge
from operator import attrgetter
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.getters import query_one

from tui.model.events import LogLine, Notice
from tui.model.servers import ServerId
from tui.store.commands import Commands
from tui.ui import keymap
from tui.ui.bridge import StoreBridge
from tui.ui.notices import OWNER, as_line
from tui.ui.panes.side import SidePart
from tui.ui.widgets.lists.log_view import MAX_LINES, LogEntry, LogView
from tui.ui.widgets.text.plain import PlainText, one_line

Line = LogLine | Notice


def lines_after(lines: tuple[Line, ...], last: Line | None) -> tuple[Line, ...]:
    """Return the lines after `last`, found by identity, or all lines if it is gone."""
    for index in range(len(lines), 0, -1):
        if lines[index - 1] is last:
            return lines[index:]
    return lines


class ActivityPane(SidePart):
    """Follow the log of one server, of all, or of gemdeck itself."""

    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(keymap.Place.ACTIVITY)

    view = query_one(LogView)
    title_line = query_one(".scope", PlainText)

    def __init__(self, bridge: StoreBridge, commands: Commands) -> None:
        super().__init__()
        self._bridge = bridge
        self._commands = commands
        self._last: dict[str, Line] = {}
        self._owner: str | None = None

    def compose(self) -> ComposeResult:
        yield PlainText(classes="scope")
        yield LogView()
        yield PlainText("Nothing has happened yet.", classes="empty")

    def on_mount(self) -> None:
        self._bridge.watch(
            self, lambda state: (state.logs, state.notices), lambda _: self._catch_up()
        )
        self._bridge.watch(self, lambda state: state.log_levels, lambda _: self._show_scope())
        self._rebuild()

    def focus_main(self) -> None:
        self.view.focus()

    def narrow_to(self, server: ServerId) -> None:
        self._owner = server
        self._rebuild()

    def wake(self) -> None:
        self._catch_up()

    def action_turn(self, by: int) -> None:
        """Show the next log: all, gemdeck's own, then one server's after another."""
        scopes = [None, OWNER, *(view.id for view in self._bridge.state.servers)]
        at = scopes.index(self._owner) if self._owner in scopes else 0
        self._owner = scopes[(at + by) % len(scopes)]
        self._rebuild()
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        return action != "level" or self._leveled() is not None

    def action_level(self) -> None:
        server = self._leveled()
        if server is not None:
            from tui.ui.screens.log_level import LogLevelScreen  # noqa: PLC0415 - on first use

            self.app.push_screen(LogLevelScreen(self._bridge, self._commands, server))

    def _leveled(self) -> ServerId | None:
        """Return the server in scope if it supports log levels."""
        views = (view for view in self._bridge.state.servers if view.id == self._owner)
        return next((view.id for view in views if view.info and view.info.log_levels), None)

    def _sources(self) -> Iterable[tuple[str, tuple[Line, ...]]]:
        """Yield the logs in scope by owner."""
        if self._owner in (None, OWNER):
            yield OWNER, self._bridge.state.notices
        for server, lines in self._bridge.state.logs.items():
            if self._owner in (None, server):
                yield server, lines

    def _catch_up(self) -> None:
        """Append the lines that are new since the last time."""
        if not self.is_attached or not self.awake:
            return
        new: list[LogEntry] = []
        for owner, lines in self._sources():
            fresh = lines_after(lines, self._last.get(owner))
            if fresh:
                self._last[owner] = fresh[-1]
                new += (_entry(owner, line) for line in fresh)
        if new:
            new.sort(key=attrgetter("line.time"))
            self.view.append(new[-MAX_LINES:])
        self._show_scope()

    def _rebuild(self) -> None:
        """Show all lines in scope."""
        sources = list(self._sources())
        self._last = {owner: lines[-1] for owner, lines in sources if lines}
        in_order = merge(
            *([_entry(owner, line) for line in lines] for owner, lines in sources),
            key=attrgetter("line.time"),
        )
        self.view.replace(in_order)
        self._show_scope()

    def _show_scope(self) -> None:
        self.set_class(not self.view.entries, "-empty")
        scope = "all servers" if self._owner is None else one_line(self._owner)
        level = self._bridge.state.log_levels.get(ServerId(self._owner or ""), "")
        level_note = f"  log level {level}" if level else ""
        before, after = ("← ", "$foreground 60%"), (" →", "$foreground 60%")
        self.title_line.update(
            Content.assemble(before, scope, (level_note, "$foreground 60%"), after)
        )


def _entry(owner: str, line: Line) -> LogEntry:
    return LogEntry(owner, as_line(line) if isinstance(line, Notice) else line)
