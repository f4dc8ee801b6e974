"""The activity pane: the servers' logs and gemdeck's own notices, newest last."""

from collections.abc import Iterable, Mapping
from heapq import merge
from operator import attrgetter
from typing import Final

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.getters import query_one

from tui.model.chat import EntryId, Severity, TaskProgress, ToolCall
from tui.model.events import LogLine, Notice
from tui.model.servers import ServerId
from tui.ui import keymap
from tui.ui.bridge import StoreBridge
from tui.ui.dialogs.choices import log_levels
from tui.ui.panes.side_part import SidePart
from tui.ui.widgets.key_bar import SaysWhy, with_keys
from tui.ui.widgets.lists.filter_list import FilterLine, FilterList, ListEntry
from tui.ui.widgets.lists.log_view import MAX_LINES, LogEntry, LogView
from tui.ui.widgets.lists.row_list import Row
from tui.ui.widgets.text.plain import PlainText, duration, one_line

Line = LogLine | Notice

OWNER: Final = "gemdeck"
"""The heading of gemdeck's own notices."""

SEVERITIES: Final = tuple(Severity)
"""The least severity that is shown, in the order of the key that changes it."""

_SEVERITY_WORDS: Final = dict(zip(Severity, ("all levels", "warnings", "errors"), strict=True))

EMPTY: Final = "Server logs and gemdeck's notices appear here; `F2` shows the servers."
NOTHING_FOUND: Final = "No line matches: `Esc` clears the search, `w` shows all levels."


def lines_after(lines: tuple[Line, ...], last: Line | None) -> tuple[Line, ...]:
    """Return the lines after `last`, found by identity, or all lines if it is gone."""
    for index in range(len(lines), 0, -1):
        if lines[index - 1] is last:
            return lines[index:]
    return lines


class ActivityPane(SaysWhy, SidePart):
    """Follow the log of one server, of all, or of gemdeck itself, from a severity up.

    Below it stand the calls of the conversation that run as tasks.
    """

    BINDINGS = keymap.bindings(keymap.Place.ACTIVITY)

    view = query_one(LogView)
    title_line = query_one(".scope", PlainText)
    line = query_one(FilterLine)
    tasks = query_one(FilterList)

    def __init__(self, bridge: StoreBridge) -> None:
        super().__init__(bridge)
        self._last: dict[str, Line] = {}
        self._owner: str | None = None
        self._least = Severity.INFO
        self._is_paused = False

    def compose(self) -> ComposeResult:
        yield PlainText(classes="scope")
        yield FilterLine("/ search")
        yield LogView()
        yield PlainText(with_keys(EMPTY), classes="empty")
        yield FilterList[EntryId]("task")

    def on_mount(self) -> None:
        self._bridge.watch(self, lambda s: (s.logs, s.notices), lambda _: self.wake())
        self._bridge.watch(self, lambda state: state.log_levels, lambda _: self._show_scope())
        self._bridge.watch(self, lambda state: state.conversation.tasks, self._show_tasks)
        self._rebuild()

    @on(FilterLine.Submitted)
    def focus_main(self) -> None:
        self.view.focus()

    def narrow_to(self, to: str) -> None:
        self._owner = to
        self._rebuild()

    def action_turn(self, by: int) -> None:
        """Show the next log: all, gemdeck's own, then one server's after another."""
        scopes = [None, OWNER, *(view.id for view in self._bridge.state.servers)]
        at = scopes.index(self._owner) if self._owner in scopes else 0
        self._owner = scopes[(at + by) % len(scopes)]
        self._rebuild()

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str:  # noqa: ARG002
        match action:
            case "level" if self._leveled() is None:
                return f"No log level can be set for {self._scope}."
            case "search" if self.line.has_focus:
                return "The search is already open."
            case "clear_search" if not self.line.has_focus and not self.line.value:
                return "No search is active."
            case "copy" if not self.view.entries:
                return "There is no line to copy."
            case "tasks" if self.tasks.current is None:
                return "No call in this conversation runs as a task."
            case "cancel_task" if not self.tasks.has_focus_within:
                return "Select a task in the list below first."
            case _:
                return ""

    def action_label(self, action: str) -> str | None:
        """Return the label of a key that does one thing after another."""
        return {
            "pause": "resume" if self._is_paused else "pause",
            "severity": _SEVERITY_WORDS[self._next_severity()],
        }.get(action)

    def action_search(self) -> None:
        self.screen.set_focus(self.line)  # at once: what is typed next is meant for it

    def action_clear_search(self) -> None:
        self.line.value = ""
        self.view.focus()

    def action_copy(self) -> None:
        """Copy the last line in view, such as a command that was told."""
        if (entry := self.view.last_in_view) is not None:
            self.app.copy_to_clipboard(one_line(entry.line.text))

    def action_tasks(self) -> None:
        """Go to the tasks, or back to the lines."""
        (self.view if self.tasks.has_focus_within else self.tasks.rows).focus()

    async def action_cancel_task(self) -> None:
        if (call := self.tasks.current) is not None:
            await self.run_action(f"screen.use_task('cancel', {call!r})")

    def _show_tasks(self, tasks: Mapping[EntryId, ToolCall]) -> None:
        if self.tasks.has_focus_within and self.tasks.current not in tasks:
            self.screen.set_focus(self.view)  # a second key would be for another task
        self.tasks.set_entries([*map(_task_entry, tasks.values())])
        self.refresh_bindings()

    def action_severity(self) -> None:
        """Show only lines of the next severity up, after errors all of them."""
        self._least = self._next_severity()
        self._rebuild()

    def _next_severity(self) -> Severity:
        return SEVERITIES[(SEVERITIES.index(self._least) + 1) % len(SEVERITIES)]

    def action_pause(self) -> None:
        """Hold new lines back, or show those that were held back."""
        self._is_paused = not self._is_paused
        self.wake()
        self._show_scope()
        self.refresh_bindings()

    def _is_wanted(self, entry: LogEntry) -> bool:
        if SEVERITIES.index(entry.line.severity) < SEVERITIES.index(self._least):
            return False
        text = f"{entry.owner} {entry.line.level} {entry.line.text}".lower()
        return all(word in text for word in self.line.value.lower().split())

    def action_level(self) -> None:
        if (server := self._leveled()) is not None:
            self.app.push_screen(log_levels(self._bridge, server))

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

    def wake(self) -> None:
        """Append the lines that are new since the last time."""
        if self._is_paused or not self.is_attached or not self.awake:
            return
        new: list[LogEntry] = []
        for owner, lines in self._sources():
            if fresh := lines_after(lines, self._last.get(owner)):
                self._last[owner] = fresh[-1]
                new += filter(self._is_wanted, (_entry(owner, line) for line in fresh))
        if new:
            new.sort(key=attrgetter("line.time"))
            self.view.append(new[-MAX_LINES:])
        self._show_scope()

    @on(FilterLine.Changed)
    def _rebuild(self) -> None:
        """Show all lines in scope."""
        sources = list(self._sources())
        self._last = {owner: lines[-1] for owner, lines in sources if lines}
        in_order = merge(
            *([_entry(owner, line) for line in lines] for owner, lines in sources),
            key=attrgetter("line.time"),
        )
        self.view.names_owners = self._owner is None
        self.view.replace(filter(self._is_wanted, in_order))
        self._show_scope()
        self.refresh_bindings()

    @property
    def _scope(self) -> str:
        return "all servers" if self._owner is None else one_line(self._owner)

    def _show_scope(self) -> None:
        self.set_class(not self.view.entries, "-empty")
        is_narrowed = bool(self.line.value) or self._least is not Severity.INFO
        words = with_keys(NOTHING_FOUND if is_narrowed else EMPTY)
        self.query_one(".empty", PlainText).update(words)
        level = self._bridge.state.log_levels.get(ServerId(self._owner or ""), "")
        notes = (
            f"log level {level}" if level else "",
            "" if self._least is Severity.INFO else _SEVERITY_WORDS[self._least],
            "paused" if self._is_paused else "",
        )
        note = "".join(f"  {words}" for words in notes if words)
        keys = (("← ", "$accent"), self._scope, (note, "$text-muted"), (" →", "$accent"))
        self.title_line.update(Content.assemble(*keys))


def _entry(owner: str, line: Line) -> LogEntry:
    if isinstance(line, Notice):
        text = " ".join(filter(None, (line.text, line.advice)))
        line = LogLine(line.time, OWNER, line.severity, one_line(text))
    return LogEntry(owner, line)


def _task_entry(call: ToolCall) -> ListEntry[EntryId]:
    task = call.progress if isinstance(call.progress, TaskProgress) else TaskProgress(0.0)
    stands = f"{task.status.words}  {duration(task.progress)}"
    row = Row("", f"{call.tool} · {call.server}", stands, note=task.message)
    return ListEntry(call.id, row, call.id)
