"""What servers write and what gemdeck noticed, newest at the end."""

from collections.abc import Iterable, Mapping
from heapq import merge
from operator import attrgetter
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.getters import query_one

from tui.model.events import LogLine
from tui.model.servers import ServerId
from tui.store.commands import Commands
from tui.store.state import AppState
from tui.ui import keymap
from tui.ui.bridge import StoreBridge
from tui.ui.notices import OWNER, NoticeBoard
from tui.ui.panes.part import SidePart
from tui.ui.widgets.log_view import MAX_LINES, LogEntry, LogView
from tui.ui.widgets.plain import PlainText, one_line

Logs = Mapping[ServerId, tuple[LogLine, ...]]


def logs(state: AppState) -> Logs:
    """Take the logs from the state."""
    return state.logs


def lines_after(lines: tuple[LogLine, ...], last: LogLine | None) -> tuple[LogLine, ...]:
    """Give the lines that follow `last`, which is found by identity; all where it is gone."""
    for index in range(len(lines), 0, -1):
        if lines[index - 1] is last:
            return lines[index:]
    return lines


class ActivityPane(SidePart):
    """Follows the logs of one server or of all."""

    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(keymap.Place.ACTIVITY)

    view = query_one(LogView)
    title_line = query_one(".scope", PlainText)

    def __init__(self, bridge: StoreBridge, board: NoticeBoard, commands: Commands) -> None:
        super().__init__()
        self._bridge = bridge
        self._commands = commands
        self._board = board
        self._logs: Logs = {}
        self._last: dict[str, LogLine] = {}
        self._owner: str | None = None

    def compose(self) -> ComposeResult:
        """Compose the line that names the scope, and the log."""
        yield PlainText(classes="scope")
        yield LogView()
        yield PlainText("Nothing has happened yet.", classes="empty")

    def on_mount(self) -> None:
        """Follow the logs and the notices."""
        self._board.follow(self._catch_up)
        self._bridge.watch(self, logs, self._on_logs)
        self._bridge.watch(self, lambda state: state.log_levels, lambda _: self._show_scope())
        self._rebuild()

    def focus_main(self) -> None:
        """Give the log the focus."""
        self.view.focus()

    def narrow_to(self, server: ServerId) -> None:
        """Show one server's log."""
        self._owner = server
        self._rebuild()

    def wake(self) -> None:
        """Show what was written while the pane was hidden."""
        self._catch_up()

    def action_turn(self, by: int) -> None:
        """Show the next log: all, gemdeck's own, then one server's after another."""
        scopes = [None, OWNER, *(view.id for view in self._bridge.state.servers)]
        at = scopes.index(self._owner) if self._owner in scopes else 0
        self._owner = scopes[(at + by) % len(scopes)]
        self._rebuild()
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Offer a choice of levels only for a server that can be told one."""
        return action != "level" or self._leveled() is not None

    def action_level(self) -> None:
        """Choose from which level on the server in scope logs."""
        server = self._leveled()
        if server is not None:
            from tui.ui.screens.log_level import LogLevelScreen  # noqa: PLC0415 - on first use

            level = self._bridge.state.log_levels.get(server, "")
            self.app.push_screen(LogLevelScreen(self._commands, server, level))

    def _leveled(self) -> ServerId | None:
        """Give the server in scope, where it can be told a level."""
        views = (view for view in self._bridge.state.servers if view.id == self._owner)
        return next((view.id for view in views if view.info and view.info.log_levels), None)

    def _on_logs(self, value: Logs) -> None:
        self._logs = value
        self._catch_up()

    def _sources(self) -> Iterable[tuple[str, tuple[LogLine, ...]]]:
        """Give the logs in scope by owner."""
        if self._owner in (None, OWNER):
            yield OWNER, self._board.lines
        for server, lines in self._logs.items():
            if self._owner in (None, server):
                yield server, lines

    def _catch_up(self) -> None:
        """Add what is new since the last time."""
        if not self.is_attached or not self.awake:
            return
        new: list[LogEntry] = []
        for owner, lines in self._sources():
            fresh = lines_after(lines, self._last.get(owner))
            if fresh:
                self._last[owner] = fresh[-1]
                new += (LogEntry(owner, line) for line in fresh)
        if new:
            new.sort(key=attrgetter("line.time"))
            self.view.append(new[-MAX_LINES:])
        self._show_scope()

    def _rebuild(self) -> None:
        """Show the scope anew."""
        sources = list(self._sources())
        self._last = {owner: lines[-1] for owner, lines in sources if lines}
        in_order = merge(
            *([LogEntry(owner, line) for line in lines] for owner, lines in sources),
            key=attrgetter("line.time"),
        )
        self.view.replace(in_order)
        self._show_scope()

    def _show_scope(self) -> None:
        self.set_class(not self.view.entries, "-empty")
        scope = "all servers" if self._owner is None else one_line(self._owner)
        level = self._bridge.state.log_levels.get(ServerId(self._owner or ""), "")
        told = f"  from {level}" if level else ""
        before, after = ("← ", "$foreground 60%"), (" →", "$foreground 60%")
        self.title_line.update(Content.assemble(before, scope, (told, "$foreground 60%"), after))
