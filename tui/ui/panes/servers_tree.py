"""The server tree with its keys, which manage the server under the cursor, or that of a page."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from time import monotonic
from typing import Final

from rich.cells import cell_len
from textual.message import Message

from tui.model.frozen import Frozen
from tui.model.servers import USABLE, Origin, ServerId, ServerStatus, ServerView, Transport
from tui.store.commands import EQUALS, command_line
from tui.ui import keymap
from tui.ui.bridge import StoreBridge
from tui.ui.messages import EditServer, PaneName, ShowPane, ShowServer
from tui.ui.panes.side_part import MARK, Marking, ProfileItem
from tui.ui.widgets.lists.row_list import Row, RowList
from tui.ui.widgets.status import LOOKS, STARTABLE, STOPPABLE, Tone, status_or_count
from tui.ui.widgets.text.plain import count, fit, one_line

MIN_NAME: Final = 4
"""Cells of a server's name that are shown however narrow the tree is."""

_NEED_SERVER: Final = (
    *("restart", "restart_all", "start_stop", "sign_in", "sign_out"),
    *("log", "toggle_enabled", "remove", "mark", "allow"),
)
"""Actions that need a server."""

_FIRST: Final = {
    ServerStatus.UNTRUSTED: ": review this folder first.",
    ServerStatus.DISABLED: ": enable it first.",
    ServerStatus.INVALID: ": fix its entry in the settings first.",
}
"""What must be done before a server can start."""

_SWITCH: Final[Mapping[ServerStatus, str]] = {
    ServerStatus.UNTRUSTED: command_line(*EQUALS["review_folder"]()),
    **dict.fromkeys(STARTABLE, "/mcp start {}"),
}
"""The command that starts a server in a status; from all others it is stopped."""

EQUAL: Final[Mapping[str, Callable[[ServerView], str]]] = {
    "servers.restart": lambda view: f"/mcp restart {view.id}",
    "servers.start-stop": lambda view: _SWITCH.get(view.status, "/mcp stop {}").format(view.id),
    "servers.sign-in": lambda view: command_line(*EQUALS["sign_ins.begin"](view.id)),
    "servers.log": lambda view: command_line("mcp logs", view.id),
    "servers.enable": lambda view: command_line(
        *EQUALS["servers.set_enabled"](view.id, enabled=view.status is ServerStatus.DISABLED)
    ),
    "servers.edit": lambda view: "gemdeck settings edit" if view.origin is Origin.USER else "",
    "deck.tools": lambda view: command_line("mcp tools", view.id),
    "deck.prompts": lambda view: command_line("mcp show", view.id),
    "deck.resources": lambda view: command_line("mcp show", view.id),
}
"""The command that does the same as a key for a server, or nothing, by the id of its binding. What
only a deck that runs can do is a command that is typed in its chat."""


class TreeRow(Frozen):
    """A row: a server, or below it what it offers for a pane, in numbers."""

    kind: PaneName
    view: ServerView
    number: str = ""
    is_marked: bool = False

    @property
    def place(self) -> tuple[ServerId, PaneName]:
        return self.view.id, self.kind

    @property
    def row(self) -> Row:
        """How it is drawn now."""
        if self.kind is PaneName.SERVERS:
            glyph, tone = LOOKS[self.view.status]
            word = status_or_count(self.view, monotonic())
            name = MARK * self.is_marked + one_line(self.view.id)
            return Row(f"{glyph} ", name, f" {word}", tone=tone)
        guide = "  └ " if self.kind is PaneName.RESOURCES else "  ├ "
        return Row(guide, self.kind.value, self.number)


def catalog_rows(view: ServerView) -> Iterator[TreeRow]:
    """Yield the rows below a server."""
    catalog = view.catalog
    numbers = (
        (PaneName.TOOLS, len(catalog.tools), catalog.off_words),
        (PaneName.PROMPTS, len(catalog.prompts), ""),
        (PaneName.RESOURCES, len(catalog.resources) + len(catalog.templates), ""),
    )
    if view.status is ServerStatus.READY or any(number for _, number, _ in numbers):
        for kind, number, off in numbers:
            yield TreeRow(kind, view, count(number) + off)


class ServerActions(Marking):
    """Manages one server by keys."""

    @property
    @abstractmethod
    def current(self) -> ServerView | None:
        """The server, or None if there is none."""

    @property
    def markable(self) -> ProfileItem | None:
        return None if self.current is None else (self.current.id, "")

    def ask(self, message: Message) -> None:
        """Ask the main screen for something."""
        self.post_message(message)

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str:
        if (view := self.current) is None:
            return "There is no server yet." if action in _NEED_SERVER else ""
        name, status = one_line(view.id), view.status
        match action:
            case "sign_in" | "sign_out" if view.transport is Transport.STDIO:
                return f"{name} runs as a command and needs no sign-in."
            case "sign_out" if status not in USABLE:
                return f"{name} is not signed in."
            case "start_stop" if status is ServerStatus.UNTRUSTED:
                return ""
            case "sign_in" | "start_stop" | "restart" if status not in STOPPABLE | STARTABLE:
                return f"{name} is {status.value}{_FIRST.get(status, '.')}"
            case "toggle_enabled" if status in (ServerStatus.INVALID, ServerStatus.UNTRUSTED):
                return f"{name} is {status.value}{_FIRST[status]}"
            case "allow" if view.refused is None or not view.refused.is_offered:
                return f"{name} reports no refused access that gemdeck could add."
            case "website" if view.info is None or not view.info.website:
                return f"{name} has no website."
            case "run" if not view.catalog.tools:
                return f"{name} has no tools now."
            case "demo_servers":
                return "The demo server is only offered while you have no servers."
            case _:
                return super().why_not(action, parameters)

    def action_label(self, action: str) -> str | None:
        """Return the label of a key that does one thing or its opposite."""
        status = self.current.status if self.current is not None else None
        match action:
            case "start_stop" if status is ServerStatus.UNTRUSTED:
                return "review"
            case "start_stop":
                return "start" if status in STARTABLE else "stop"
            case "toggle_enabled":
                return "enable" if status is ServerStatus.DISABLED else "disable"
            case _:
                return None

    def action_restart(self) -> None:
        if self.current is not None:
            self._bridge.commands.engine.servers.restart(self.current.id)

    def action_sign_in(self) -> None:
        if self.current is not None:
            self._bridge.commands.engine.sign_ins.begin(self.current.id)

    def action_sign_out(self) -> None:
        if self.current is not None:
            self._bridge.commands.engine.sign_ins.end(self.current.id)

    def action_start_stop(self) -> None:
        """Stop the server if it runs, else start it; review it first if it is untrusted."""
        if (view := self.current) is None:
            return
        if view.status in STOPPABLE:
            self._bridge.commands.engine.servers.stop(view.id)
        elif view.status in STARTABLE:
            self._bridge.commands.engine.servers.start(view.id)
        elif view.status is ServerStatus.UNTRUSTED:
            self.action_review_folder()

    def action_review_folder(self) -> None:
        self._bridge.commands.engine.review_folder()

    def action_toggle_enabled(self) -> None:
        if (view := self.current) is not None:
            is_off = view.status is ServerStatus.DISABLED
            self._bridge.commands.engine.servers.set_enabled(view.id, enabled=is_off)

    async def action_edit(self) -> None:
        if self.current is not None:
            self.ask(EditServer(self.current.id))

    def action_remove(self) -> None:
        if self.current is not None:
            self.ask(EditServer(self.current.id, removes=True))

    def action_allow(self) -> None:
        if self.current is not None:
            self.ask(EditServer(self.current.id, allows=self.current.refused))

    def action_log(self) -> None:
        if self.current is not None:
            self.ask(ShowPane(PaneName.ACTIVITY, self.current.id))


class ServersTree(ServerActions, RowList, inherit_bindings=False):
    """Draw the servers and the rows below them, and manage the server under the cursor."""

    BINDINGS = keymap.bindings(keymap.Place.SERVERS, keymap.Place.MARKS)

    def __init__(self, bridge: StoreBridge) -> None:
        super().__init__(clicks=1)
        self._bridge = bridge
        self._servers: Sequence[ServerView] = ()
        self._listed: Sequence[TreeRow] = ()
        self._unfolded: set[ServerId] = set()
        self._troubled: set[ServerId] = set()

    @property
    def current(self) -> ServerView | None:
        """The server of the row under the cursor."""
        return self._listed[self.cursor].view if self._listed else None

    def show(self, servers: Sequence[ServerView]) -> None:
        """Draw these servers; the cursor stays on its row.

        Unless the user is at the tree, it goes to a server that starts to fail.
        """
        before, self._troubled = self._troubled, {view.id for view in servers if view.is_troubled}
        new = [view.id for view in servers if view.id in self._troubled - before]
        self._servers = servers
        self.draw()
        is_at_trouble = self.current is not None and self.current.is_troubled
        if new and not self.has_focus and not is_at_trouble:
            self.draw(new[0])

    def draw(self, server: ServerId | None = None) -> None:
        """Draw all as it is now, and put the cursor on a server if one is given."""
        at = self._listed[self.cursor].place if self._listed else None
        marks = self._bridge.state.marks
        self._listed = [
            row
            for view in self._servers
            for row in (
                TreeRow(PaneName.SERVERS, view, is_marked=(view.id, "") in marks),
                *(catalog_rows(view) if view.id in self._unfolded else ()),
            )
        ]
        lines = {row.place: line for line, row in enumerate(self._listed)}
        if server is not None or at not in lines:  # its row is gone
            at = server or (at[0] if at is not None else ServerId("")), PaneName.SERVERS
        self.set_rows([row.row for row in self._listed], lines.get(at, 0))

    def _parts(self, row: Row, width: int) -> Iterator[tuple[str, str]]:
        """Lay a row out: a sign, the name and, on the right, the number or the status."""
        name = fit(row.label, max(MIN_NAME, width - cell_len(row.lead) - cell_len(row.tail)))
        yield row.lead, f"row-list--{row.tone or 'lead'}"
        yield name, "row-list--label"
        word = "tail" if row.tone == Tone.GOOD else row.tone or "label"
        yield row.tail, f"row-list--{word}"

    def action_move(self, by: int) -> None:
        self.cursor += by

    def action_toggle_fold(self) -> None:
        if self.current is not None:
            self.action_fold(self.current.id in self._unfolded)

    def action_fold(self, folds: bool) -> None:
        """Fold the server, or unfold it."""
        if (view := self.current) is not None:
            self._unfolded = self._unfolded - {view.id} if folds else self._unfolded | {view.id}
            self.draw(view.id if folds else None)

    def on_row_list_chosen(self) -> None:
        """Fold or unfold the server that was clicked, or show what a number counts."""
        if self._listed[self.cursor].kind is PaneName.SERVERS:
            self.action_toggle_fold()
        else:
            self.action_choose()

    def action_choose(self) -> None:
        """Show the page of the server, or the pane with what the row counts."""
        if not self._listed:
            return
        server, kind = self._listed[self.cursor].place
        self.ask(ShowServer(server) if kind is PaneName.SERVERS else ShowPane(kind, server))

    def action_restart_all(self) -> None:
        self._bridge.commands.engine.servers.restart_all()

    def action_demo_servers(self) -> None:
        self._bridge.commands.engine.start_demo_servers()

    async def action_edit(self) -> None:
        """Edit the server, or the settings if there is none."""
        if self.current is None:
            await self.run_action("app.open('settings')")
        await super().action_edit()
