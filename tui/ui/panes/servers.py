"""The pane of the servers: how each stands, and the keys that repair it."""

from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.getters import query_one
from textual.timer import Timer
from textual.widgets import Tree

from tui.model.servers import ServerStatus, ServerView
from tui.store.commands import Commands
from tui.store.state import AppState
from tui.ui import keymap
from tui.ui.bridge import StoreBridge
from tui.ui.messages import PaneName, ShowPane, ShowServer
from tui.ui.widgets.plain import PlainText
from tui.ui.widgets.server_tree import RowKind, ServerTree, TreeRow
from tui.ui.widgets.status import STARTABLE, STOPPABLE

_S = ServerStatus

READING: Final = "Reading the settings…"
"""Shown until the settings have been read."""

EMPTY: Final = """\
No servers yet.

Add them under "mcpServers" in

  ~/.gemini/settings.json

and start gemdeck again. The file settings.sample.json shows every key."""
"""Shown when the settings name no server."""

_CATALOG_PANES: Final = {
    RowKind.TOOLS: PaneName.TOOLS,
    RowKind.PROMPTS: PaneName.PROMPTS,
    RowKind.RESOURCES: PaneName.RESOURCES,
}


def servers_view(state: AppState) -> tuple[bool, tuple[ServerView, ...]]:
    """Take from the state what the pane shows: whether settings were read, and the servers."""
    return state.configured, state.servers


class ServersTree(ServerTree):
    """The tree with its keys: each asks the engine for something."""

    def __init__(self, commands: Commands) -> None:
        super().__init__()
        self._commands = commands

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Offer only what the server under the cursor allows in its status."""
        status = self.current.status if self.current is not None else None
        match action:
            case "sign_in":
                return status is _S.NEEDS_SIGN_IN
            case "start_stop":
                return status in STOPPABLE or status in STARTABLE or status is _S.UNTRUSTED
            case "restart":
                return status in STOPPABLE or status in STARTABLE
            case "toggle_enabled":
                return status is not None and status is not _S.INVALID
            case "log" | "restart_all":
                return status is not None
            case _:
                return True

    def action_label(self, action: str) -> str | None:
        """Name the keys that do one thing or its opposite."""
        status = self.current.status if self.current is not None else None
        match action:
            case "start_stop" if status is _S.UNTRUSTED:
                return "review"
            case "start_stop":
                return "start" if status in STARTABLE else "stop"
            case "toggle_enabled":
                return "enable" if status is _S.DISABLED else "disable"
            case _:
                return None

    def action_restart(self) -> None:
        """Restart the server under the cursor."""
        if self.current is not None:
            self._commands.restart_server(self.current.id)

    def action_restart_all(self) -> None:
        """Restart every server."""
        self._commands.restart_all_servers()

    def action_start_stop(self) -> None:
        """Stop the server where it runs, else start it; an untrusted one is reviewed first."""
        view = self.current
        if view is None:
            return
        if view.status in STOPPABLE:
            self._commands.stop_server(view.id)
        elif view.status in STARTABLE:
            self._commands.start_server(view.id)
        elif view.status is _S.UNTRUSTED:
            self.action_review_folder()

    def action_review_folder(self) -> None:
        """Ask anew about what the folder, or an edited settings file, would run."""
        self._commands.review_folder()

    def action_toggle_enabled(self) -> None:
        """Disable the server, or let it run again."""
        view = self.current
        if view is not None and view.status is not _S.INVALID:
            self._commands.set_server_enabled(view.id, enabled=view.status is _S.DISABLED)

    def action_sign_in(self) -> None:
        """Say that signing in is not there yet."""
        self.notify(
            "Signing in from here comes with a later version.", title="Sign in", markup=False
        )

    def action_log(self) -> None:
        """Show the log of the server under the cursor."""
        if self.current is not None:
            self.post_message(ShowPane(PaneName.ACTIVITY, self.current.id))


class ServersPane(Vertical):
    """The tree, or what to do while there is nothing in it."""

    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(keymap.Place.SIDE)
    BINDING_GROUP_TITLE = "Servers"
    BORDER_TITLE = "Servers"

    rows = query_one(ServersTree)

    def __init__(self, bridge: StoreBridge, commands: Commands) -> None:
        super().__init__(id="servers")
        self._bridge = bridge
        self._commands = commands
        self._countdown: Timer | None = None

    def compose(self) -> ComposeResult:
        """Compose the tree and the words that stand in for it."""
        yield ServersTree(self._commands)
        yield PlainText(READING, classes="empty")

    def on_mount(self) -> None:
        """Follow the servers."""
        self._bridge.watch(self, servers_view, self._show)

    def focus_main(self) -> None:
        """Give the tree the focus."""
        self.rows.focus()

    def _show(self, view: tuple[bool, tuple[ServerView, ...]]) -> None:
        configured, servers = view
        self.query_one(PlainText).update(EMPTY if configured else READING)
        self.set_class(not servers, "-empty")
        self.rows.show(servers)
        self._follow_retries(any(server.status is _S.RETRYING for server in servers))

    def _follow_retries(self, retrying: bool) -> None:
        """Tick once a second, but only while a server counts down."""
        if retrying and self._countdown is None:
            self._countdown = self.set_interval(1, self.rows.tick)
        elif not retrying and self._countdown is not None:
            self._countdown.stop()
            self._countdown = None

    @on(ServersTree.Moved)
    def _on_moved(self, event: ServersTree.Moved) -> None:
        event.stop()
        if self.rows.has_focus:
            self.refresh_bindings()

    @on(Tree.NodeSelected)
    def _on_selected(self, event: Tree.NodeSelected[TreeRow]) -> None:
        event.stop()
        row = event.node.data
        if row is None:
            return
        pane = _CATALOG_PANES.get(row.kind)
        if pane is not None:
            self.post_message(ShowPane(pane, row.server))
        else:
            self.post_message(ShowServer(row.server))
