"""The page of a server: what it is, how it does, and what can be done with it."""

from collections.abc import Iterator, Sequence
from statistics import median
from time import monotonic
from typing import Final

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.getters import query_one
from textual.message import Message
from textual.widgets import Sparkline

from tui.model.events import OWN_SOURCE, LogLine
from tui.model.servers import ServerId, ServerStatus, ServerUsage, ServerView
from tui.store.commands import command_line
from tui.store.selectors import server as find_server
from tui.store.state import AppState
from tui.ui import keymap
from tui.ui.bridge import StoreBridge
from tui.ui.dialogs.choices import pick
from tui.ui.dialogs.list_dialog import Dialog
from tui.ui.messages import EditServer, PaneName, RunTool, ShowPane
from tui.ui.panes.servers_tree import EQUAL, ServerActions
from tui.ui.questions.address import LinkScreen
from tui.ui.widgets.key_bar import Hint, hints
from tui.ui.widgets.status import LOOKS, status_word
from tui.ui.widgets.text.describe import (
    field,
    muted,
    section,
    server_facts,
    server_problem,
    server_texts,
)
from tui.ui.widgets.text.plain import PlainText, block, duration, one_line

MAX_CHANGES: Final = 20
"""Names that are shown of what an offer gained, lost or changed."""

MAX_WORDS: Final = 5
"""Last lines of a server's log that are shown."""

GONE: Final = Content("This server is no longer in the settings.")


class ServerPage(ServerActions, Dialog):
    """Show all about a server, and keep it up to date; its keys are those of the servers pane.

    Args:
        bridge: Provides the state, measures the server, and carries out what the keys say.
        server: The server.
    """

    KIND = "large"
    FRAME = VerticalScroll
    BINDINGS = keymap.bindings(
        *(f"servers.{name}" for name in ("restart", "start-stop", "sign-in", "sign-out")),
        *(f"servers.{name}" for name in ("log", "enable", "review", "edit", "remove", "allow")),
        *("deck.tools", "deck.prompts", "deck.resources", "marks.mark", "marks.save"),
        *("server.run", "server.website", "server.copy"),
    )

    facts = query_one(".facts", PlainText)
    latency = query_one(Sparkline)
    rest = query_one(".rest", PlainText)

    def __init__(self, bridge: StoreBridge, server: ServerId) -> None:
        super().__init__(server)
        self._bridge = bridge
        self._server = server
        self._equal: list[str] = []

    def compose_body(self) -> ComposeResult:
        yield PlainText(classes="facts")
        yield Sparkline()
        yield PlainText(classes="rest")

    def on_mount(self) -> None:
        self._bridge.watch(self, self._select, lambda _: self._show())
        self._bridge.watch(self, lambda state: state.marks, lambda _: self.refresh_bindings())
        self.set_interval(1, self._show)  # what is measured
        if (view := self.current) is not None and view.status is ServerStatus.ASLEEP:
            self._bridge.commands.engine.servers.start(self._server)

    def _select(self, state: AppState) -> tuple[ServerView | None, str, Sequence[LogLine]]:
        """Select the server, its instructions as they were sent, and its own last words."""
        sent, log = state.instructions.get(self._server, ""), state.logs.get(self._server, ())
        words = [line for line in log if line.source != OWN_SOURCE][-MAX_WORDS:]
        return find_server(state, self._server), sent, words

    @property
    def current(self) -> ServerView | None:
        return find_server(self._bridge.state, self._server)

    def _show(self) -> None:
        view, sent, words = self._select(self._bridge.state)
        usage = self._bridge.commands.engine.servers.usage(self._server) or ServerUsage()
        shown = hints(self.app, self.active_bindings, (self,))
        self.latency.data, self.latency.styles.width = usage.seconds, len(usage.seconds)
        self.latency.display = view is not None and len(usage.seconds) > 1
        facts, rest = [GONE], list[Content]()
        if view is not None:
            status, *about = server_facts(view, monotonic())
            failure = view.failure or view.last_failure  # stays in sight while it is tried again
            facts = [*(server_problem(failure) if failure is not None else ()), status]
            if view.refused is not None:
                facts.insert(0, Content.styled(block(view.refused.words), "$text-warning"))
            stands = f"  {LOOKS[view.status][0]} {status_word(view, monotonic())}"
            self.frame.border_title = Content.assemble(*self._heading, (stands, "not bold"))
            facts += _measured(view, usage)
            part = self._bridge.commands.engine.models.context_part(self._server, counts=True)
            if part is not None and (part.tokens or view.is_known):
                facts.append(field("context", part.words))
            keys, texts = [*self._keys(view, shown)], server_texts(view, sent)
            rest = [*about, *_changes(usage)]
            rest += keys + texts if failure is None else texts + keys
            if words and failure is None:  # else they are told with why it failed
                rest += [Content(), section("Latest log lines")]
                rest += [muted(one_line(line.text)) for line in words]
        self.facts.update(Content("\n").join(facts))
        self.rest.update(Content("\n").join(rest))

    def _keys(self, view: ServerView, shown: Sequence[Hint]) -> Iterator[Content]:
        """Write the keys that have an effect now, each with the command that does the same."""
        self._equal = [command_line("mcp show", view.id)]
        yield Content()
        yield section("Keys and their commands")
        for hint in shown:
            if hint.id in EQUAL and (command := one_line(EQUAL[hint.id](view))):
                self._equal.append(command)
                gap = " " * max(1, 13 - hint.width)
                yield Content.assemble(hint.content, (gap, "$text-muted"), command)

    def ask(self, message: Message) -> None:
        """Ask the main screen, which lies below; what it shows takes the place of the page."""
        if isinstance(message, EditServer):
            self.app.screen_stack[0].post_message(message)
        else:
            self.leave_for(message)

    def action_go(self, pane: str) -> None:
        """Show what it offers in the pane of that."""
        self.ask(ShowPane(PaneName(pane), self._server))

    def action_run(self) -> None:
        """Let one of its tools be chosen, and show the form of that."""
        view = self.current
        tools = view.catalog.tools if view is not None else ()
        runs = [(one.name, RunTool(self._server, one.name)) for one in tools]
        self.app.push_screen(pick("Run a tool", "tool", runs, self.ask))

    def action_website(self) -> None:
        """Show the whole address of its website, from where it can be opened."""
        if (view := self.current) is not None and view.info is not None:
            self.app.push_screen(LinkScreen(view.info.website, self._bridge.commands))

    def action_copy(self) -> None:
        """Copy the page, or one of its commands."""
        page = "\n".join(str(part.content) for part in (self.facts, self.rest))
        texts = [("the page", page), *((one, one) for one in dict.fromkeys(self._equal))]
        self.app.push_screen(pick("Copy", "text", texts, self.app.copy_to_clipboard))


def _measured(view: ServerView, usage: ServerUsage) -> Iterator[Content]:
    """Say how a server does: since when, with what memory, and how quickly it answers."""
    if view.status is ServerStatus.READY and view.since:
        yield field("up", duration(monotonic() - view.since))
    if view.status is ServerStatus.ASLEEP:
        yield field("asleep", f"for {duration(monotonic() - view.since)}")
    if usage.starts > 1 and view.is_known:
        yield field("restarts", f"{usage.starts - 1:,}")
    if usage.pid:
        others = f" and {usage.processes - 1:,} more" if usage.processes > 1 else ""
        memory = f" · {usage.memory / 1e6:,.1f} MB" if usage.memory else ""
        yield field("process", f"{usage.pid}{others}{memory}")
    if usage.connected:
        lists = duration(usage.listed)
        yield field("connected in", f"{duration(usage.connected)} · lists loaded in {lists}")
    failed = f" · {usage.failed:,} failed" if usage.failed else ""
    if usage.calls or view.is_known:
        yield field("calls", f"{usage.calls:,}{failed}")
    if usage.seconds:
        middle, last = duration(median(usage.seconds)), duration(usage.seconds[-1])
        yield field("latency", f"median {middle} · last {last}")


def _changes(usage: ServerUsage) -> Iterator[Content]:
    """Name what its offer gained, lost and changed."""
    if usage.change:
        yield from (Content(), section("Changes"))
    for word, names in usage.change.items():
        more = f", {len(names) - MAX_CHANGES:,} more" if len(names) > MAX_CHANGES else ""
        yield field(f"{word} {len(names):,}", ", ".join(names[:MAX_CHANGES]) + more)
