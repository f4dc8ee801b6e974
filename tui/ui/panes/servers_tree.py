"""The server tree with its keys, which manage the server under the cursor, or that of a page.

Rows change in place, so that cursor, folding and scroll position stay.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import ClassVar, Final

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual.binding import BindingType
from textual.message import Message
from textual.message_pump import MessagePump
from textual.widgets import Tree
from textual.widgets.tree import TreeNode

from tui.model.frozen import Frozen
from tui.model.servers import USABLE, Origin, ServerId, ServerStatus, ServerView, Transport
from tui.store.commands import EQUALS, Commands, command_line
from tui.ui import keymap
from tui.ui.panes import EditServer, PaneName, ShowPane
from tui.ui.widgets.key_bar import SaysWhy
from tui.ui.widgets.status import LOOKS, STARTABLE, STOPPABLE, TIMED, Tone, status_or_count
from tui.ui.widgets.text.plain import count, fit, ink, one_line, plain_label

MIN_NAME: Final = 4
"""Cells of a server's name that are shown however narrow the tree is."""

_NEED_SERVER: Final = frozenset(
    {
        "restart",
        "restart_all",
        "start_stop",
        "sign_in",
        "sign_out",
        "log",
        "toggle_enabled",
        "remove",
    }
)
"""Actions that need a server."""

_FIRST: Final = {
    ServerStatus.UNTRUSTED: ": review this folder first.",
    ServerStatus.DISABLED: ": enable it first.",
    ServerStatus.INVALID: ": mend its entry in the settings first.",
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
    """One row, and the pane with what it counts; `view` is for the rows of servers."""

    kind: PaneName
    server: ServerId
    number: str = ""
    view: ServerView | None = None


def catalog_rows(view: ServerView) -> tuple[TreeRow, ...]:
    """Return the rows below a server."""
    catalog = view.catalog
    numbers = (
        (PaneName.TOOLS, len(catalog.tools)),
        (PaneName.PROMPTS, len(catalog.prompts)),
        (PaneName.RESOURCES, len(catalog.resources) + len(catalog.templates)),
    )
    if view.status is ServerStatus.READY or any(number for _, number in numbers):
        off = {PaneName.TOOLS: catalog.off_words}
        return tuple(TreeRow(k, view.id, count(n) + off.get(k, "")) for k, n in numbers)
    return ()


class ServerActions(SaysWhy, MessagePump):
    """Manages one server by keys.

    Attributes:
        commands: Carry out what the keys say.
    """

    commands: Commands

    @property
    @abstractmethod
    def current(self) -> ServerView | None:
        """The server, or None if there is none."""

    def ask(self, message: Message) -> None:
        """Ask the main screen for something."""
        self.post_message(message)

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str:  # noqa: ARG002
        view = self.current
        if view is None:
            return "There is no server yet." if action in _NEED_SERVER else ""
        name, status = one_line(view.id), view.status
        match action:
            case "sign_in" | "sign_out" if view.transport is Transport.STDIO:
                return f"{name} runs as a command: it needs no sign-in."
            case "sign_out" if status not in USABLE:
                return f"{name} is not signed in."
            case "start_stop" if status is ServerStatus.UNTRUSTED:
                return ""
            case "sign_in" | "start_stop" | "restart" if status not in STOPPABLE | STARTABLE:
                return f"{name} is {status.value}{_FIRST.get(status, '.')}"
            case "toggle_enabled" if status in (ServerStatus.INVALID, ServerStatus.UNTRUSTED):
                return f"{name} is {status.value}{_FIRST[status]}"
            case "website" if view.info is None or not view.info.website:
                return f"{name} names no website."
            case "demo_servers":
                return "The demo's server is for a deck without any."
            case _:
                return ""

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
            self.commands.engine.servers.restart(self.current.id)

    def action_sign_in(self) -> None:
        if self.current is not None:
            self.commands.engine.sign_ins.begin(self.current.id)

    def action_sign_out(self) -> None:
        if self.current is not None:
            self.commands.engine.sign_ins.end(self.current.id)

    def action_start_stop(self) -> None:
        """Stop the server if it runs, else start it; review it first if it is untrusted."""
        view = self.current
        if view is None:
            return
        if view.status in STOPPABLE:
            self.commands.engine.servers.stop(view.id)
        elif view.status in STARTABLE:
            self.commands.engine.servers.start(view.id)
        elif view.status is ServerStatus.UNTRUSTED:
            self.action_review_folder()

    def action_review_folder(self) -> None:
        self.commands.engine.review_folder()

    def action_toggle_enabled(self) -> None:
        view = self.current
        if view is not None:
            self.commands.engine.servers.set_enabled(
                view.id, enabled=view.status is ServerStatus.DISABLED
            )

    async def action_edit(self) -> None:
        if self.current is not None:
            self.ask(EditServer(self.current.id))

    def action_remove(self) -> None:
        if self.current is not None:
            self.ask(EditServer(self.current.id, removes=True))

    def action_log(self) -> None:
        if self.current is not None:
            self.ask(ShowPane(PaneName.ACTIVITY, self.current.id))


class ServersTree(ServerActions, Tree[TreeRow], inherit_bindings=False):
    """Draw the servers and the rows below them, and manage the server under the cursor."""

    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(keymap.Place.SERVERS)
    ICON_NODE = ICON_NODE_EXPANDED = ""
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"server-tree--{tone}" for tone in Tone}

    class Moved(Message):
        """The cursor is on another server, or its server changed."""

    def __init__(self, commands: Commands) -> None:
        super().__init__(plain_label("servers"))
        self.commands = commands
        self.show_root = self.show_guides = False
        self.guide_depth = 2
        self.auto_expand = False
        self._rows_by_server: dict[ServerId, TreeNode[TreeRow]] = {}
        self._troubled: set[ServerId] = set()

    @property
    def current(self) -> ServerView | None:
        """The server of the row under the cursor."""
        row = self.cursor_node.data if self.cursor_node is not None else None
        if row is None or row.server not in self._rows_by_server:
            return None
        data = self._rows_by_server[row.server].data
        return data.view if data is not None else None

    def show(self, servers: Sequence[ServerView]) -> None:
        """Draw these servers, updating existing rows in place."""
        if tuple(self._rows_by_server) != tuple(view.id for view in servers):
            self._rebuild(servers)
        for view in servers:
            self._update(self._rows_by_server[view.id], view)
        self._point_at_trouble(servers)
        self.post_message(self.Moved())

    def tick(self) -> None:
        """Show what a second has changed in rows that tell the time."""
        for node in self._rows_by_server.values():
            view = node.data.view if node.data is not None else None
            if view is not None and (view.status in TIMED or view.restarted):
                node.refresh()

    def _rebuild(self, servers: Sequence[ServerView]) -> None:
        """Rebuild the tree for another list of servers; the cursor stays on its server."""
        kept = self.current
        unfolded = {server for server, node in self._rows_by_server.items() if node.is_expanded}
        self.clear()
        self._rows_by_server = {
            view.id: self.root.add(
                plain_label(view.id),
                TreeRow(PaneName.SERVERS, view.id, view=view),
                expand=view.id in unfolded,
            )
            for view in servers
        }
        self.root.expand()
        if servers:
            wanted = (
                kept.id if kept is not None and kept.id in self._rows_by_server else servers[0].id
            )
            self.call_after_refresh(self.move_cursor, self._rows_by_server[wanted])

    def _update(self, node: TreeNode[TreeRow], view: ServerView) -> None:
        before = node.data.view if node.data is not None else None
        node.data = TreeRow(PaneName.SERVERS, view.id, view=view)
        if before is not view:
            node.refresh()
        self._update_children(node, view)

    def _point_at_trouble(self, servers: Sequence[ServerView]) -> None:
        """Move the cursor to a server that starts to fail, unless the user is at the tree."""
        before, self._troubled = self._troubled, {view.id for view in servers if view.is_troubled}
        new = [view.id for view in servers if view.id in self._troubled - before]
        is_at_trouble = self.current is not None and self.current.is_troubled
        if new and not self.has_focus and not is_at_trouble:
            self.call_after_refresh(self.move_cursor, self._rows_by_server[new[0]])

    def _update_children(self, node: TreeNode[TreeRow], view: ServerView) -> None:
        rows = catalog_rows(view)
        node.allow_expand = bool(rows)
        children = tuple(node.children)
        for child, row in zip(children, rows, strict=False):
            if child.data != row:
                child.data = row
                child.refresh()
        for row in rows[len(children) :]:
            node.add_leaf(plain_label(row.kind.value), row)
        for child in children[len(rows) :]:
            if child is self.cursor_node:
                self.move_cursor(node)
            child.remove()

    def get_label_width(self, node: TreeNode[TreeRow]) -> int:  # noqa: ARG002
        return 1

    def render_label(self, node: TreeNode[TreeRow], base_style: Style, style: Style) -> Text:
        row = node.data
        if row is None:
            return Text("")
        if row.view is not None:
            return self._server_label(row.view, base_style, style)
        return self._child_label(row, base_style, style)

    def _server_label(self, view: ServerView, base_style: Style, style: Style) -> Text:
        """Draw the name and, on the right, the number of tools or the status."""
        glyph, tone = LOOKS[view.status]
        width = self.scrollable_content_region.width - cell_len(f"{glyph}  ")
        word = status_or_count(view, monotonic())
        name = fit(one_line(view.id), max(MIN_NAME, width - len(word)))
        fold = Style(meta={"toggle": True})
        mark = Style.null() if style.reverse else self._tone(tone)
        word_tone = Tone.OFF if tone is Tone.GOOD else tone
        word_mark = Style.null() if style.reverse else self._tone(word_tone)
        return Text.assemble(
            (f"{glyph} ", base_style + mark + style + mark + fold),
            (name, base_style + style + fold),
            (f" {word}", base_style + style + word_mark),
        )

    def _child_label(self, row: TreeRow, base_style: Style, style: Style) -> Text:
        width = max(4, self.scrollable_content_region.width - self.guide_depth)
        guide = "└ " if row.kind is PaneName.RESOURCES else "├ "
        return Text.assemble(
            (guide, base_style + style + self._tone(Tone.OFF)),
            (fit(row.kind.value, width - 2 - len(row.number)) + row.number, base_style + style),
        )

    def _tone(self, tone: Tone) -> Style:
        return ink(self, f"server-tree--{tone}")

    def action_toggle_fold(self) -> None:
        node = self._server_node()
        if node is not None and node.is_expanded:
            self.action_fold()
        elif node is not None:
            node.expand()

    def action_fold(self) -> None:
        node = self._server_node()
        if node is not None:
            self.move_cursor(node)
            node.collapse()

    def action_unfold(self) -> None:
        node = self._server_node()
        if node is not None:
            node.expand()

    def _server_node(self) -> TreeNode[TreeRow] | None:
        view = self.current
        return None if view is None else self._rows_by_server[view.id]

    def on_resize(self) -> None:
        """Keep the cursor in sight when the room below the tree takes more lines."""
        self.scroll_to_line(self.cursor_line, animate=False)

    def on_tree_node_highlighted(self, event: Tree.NodeHighlighted[TreeRow]) -> None:
        event.stop()
        self.post_message(self.Moved())

    def action_restart_all(self) -> None:
        self.commands.engine.servers.restart_all()

    def action_demo_servers(self) -> None:
        self.commands.engine.start_demo_servers()

    async def action_edit(self) -> None:
        """Edit the server, or the settings if there is none."""
        if self.current is None:
            await self.run_action("app.open('settings')")
        await super().action_edit()
