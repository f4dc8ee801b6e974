"""The servers pane: the status of each server, and the keys that manage it."""

from collections.abc import Sequence
from time import monotonic
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.events import MouseDown
from textual.getters import query_one
from textual.timer import Timer
from textual.widgets import Tree

from tui.model.chat import Severity
from tui.model.servers import ServerId, ServerStatus, ServerView, Transport
from tui.store.commands import Commands
from tui.store.state import AppState
from tui.ui import keymap
from tui.ui.bridge import StoreBridge
from tui.ui.panes import PaneName, ShowPane, ShowServer
from tui.ui.widgets.key_bar import Hint, hint_lines, with_keys
from tui.ui.widgets.lists.server_tree import TIMED, RowKind, ServerTree, TreeRow
from tui.ui.widgets.status import STARTABLE, STOPPABLE, recovery
from tui.ui.widgets.text.plain import PlainText, block

if TYPE_CHECKING:  # loaded after the first frame, with the engine
    from tui.model.events import Notice

_S = ServerStatus

READING: Final = "Reading the settings…"
"""Shown until the settings have been read."""

EMPTY: Final = """\
No servers yet.

`d`  start the demo
`e`  edit your settings

~/.gemini/settings.json is read again whenever you save it.
The palette (`^P`) shows a sample of every key."""
"""Shown if the settings name no server."""

_CATALOG_PANES: Final = {
    RowKind.TOOLS: PaneName.TOOLS,
    RowKind.PROMPTS: PaneName.PROMPTS,
    RowKind.RESOURCES: PaneName.RESOURCES,
}


class ServersTree(ServerTree):
    """The server tree with its keys wired to the commands."""

    def __init__(self, commands: Commands) -> None:
        super().__init__()
        self._commands = commands

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Enable only the keys that the status of the server under the cursor allows."""
        view = self.current
        status = view.status if view is not None else None
        match action:
            case "sign_in" | "sign_out" | "import_sign_in":
                is_remote = view is not None and view.transport is not Transport.STDIO
                return (
                    is_remote
                    and (status is _S.READY or action != "sign_out")
                    and (status in STOPPABLE or status in STARTABLE)
                )
            case "start_stop":
                return status in STOPPABLE or status in STARTABLE or status is _S.UNTRUSTED
            case "restart":
                return status in STOPPABLE or status in STARTABLE
            case "toggle_enabled":
                return status is not None and status is not _S.INVALID
            case "log" | "restart_all":
                return status is not None
            case "demo_servers":
                return status is None
            case _:
                return True

    def action_label(self, action: str) -> str | None:
        """Return the label of a key that does one thing or its opposite."""
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
        if self.current is not None:
            self._commands.restart_server(self.current.id)

    def action_sign_in(self) -> None:
        if self.current is not None:
            self._commands.sign_in(self.current.id)

    def action_import_sign_in(self) -> None:
        if self.current is not None:
            self._commands.import_sign_in(self.current.id)

    def action_sign_out(self) -> None:
        if self.current is not None:
            self._commands.sign_out(self.current.id)

    def action_restart_all(self) -> None:
        self._commands.restart_all_servers()

    def action_start_stop(self) -> None:
        """Stop the server if it runs, else start it; review it first if it is untrusted."""
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
        self._commands.review_folder()

    def action_toggle_enabled(self) -> None:
        view = self.current
        if view is not None and view.status is not _S.INVALID:
            self._commands.set_server_enabled(view.id, enabled=view.status is _S.DISABLED)

    def action_demo_servers(self) -> None:
        self._commands.start_demo_servers()

    def action_log(self) -> None:
        if self.current is not None:
            self.post_message(ShowPane(PaneName.ACTIVITY, self.current.id))


def _view(state: AppState) -> "tuple[bool, tuple[ServerView, ...], Notice | None]":
    """Select whether the settings were read, the servers, and the last error."""
    errors = (notice for notice in reversed(state.notices) if notice.severity is Severity.ERROR)
    return state.configured, state.servers, next(errors, None)


class _Details(VerticalScroll):
    FOCUS_ON_CLICK = False  # a click on a key in it is meant for the tree


class ServersPane(Vertical):
    """The server tree, or a hint while it is empty."""

    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(keymap.Place.SIDE)
    ALLOW_SELECT = False
    BINDING_GROUP_TITLE = "Servers"
    BORDER_TITLE = "Servers"

    rows = query_one(ServersTree)
    scroller = query_one(".details", VerticalScroll)
    details = query_one(".summary", PlainText)
    keys = query_one(".keys", PlainText)

    def __init__(self, bridge: StoreBridge, commands: Commands) -> None:
        super().__init__(id="servers")
        self._bridge = bridge
        self._commands = commands
        self._clock: Timer | None = None
        self._described: ServerId | None = None

    def compose(self) -> ComposeResult:
        yield ServersTree(self._commands)
        yield PlainText(READING, classes="empty")
        with _Details(classes="details"):
            yield PlainText(classes="summary")
            yield PlainText(classes="keys")

    def show_keys(self, found: Sequence[Hint]) -> None:
        """Show the keys of the server under the cursor, or none."""
        self.keys.display = bool(found)
        self.keys.update(hint_lines(found, self.size.width - 2))

    def on_mouse_down(self, event: MouseDown) -> None:
        is_inside = self.content_region.contains(*event.screen_offset)  # the border is dragged
        if is_inside and not self.has_focus_within:
            self.rows.focus()

    def on_resize(self) -> None:
        self.refresh_bindings()  # the keys are wrapped to its width

    def on_mount(self) -> None:
        self._bridge.watch(self, _view, self._show)

    def _show(self, view: "tuple[bool, tuple[ServerView, ...], Notice | None]") -> None:
        configured, servers, error = view
        wrong = f"{block(error.text)}\n\n" if error is not None and not servers else ""
        empty = Content.assemble(wrong, with_keys(EMPTY)) if configured else Content(READING)
        self.query_one(".empty", PlainText).update(empty)
        self.set_class(not servers, "-empty")
        self.rows.show(servers)
        self._show_details()
        self._follow_time(servers)

    def _show_details(self) -> None:
        view = self.rows.current
        self.scroller.display = view is not None
        if view is not None:
            from tui.ui.widgets.text.describe import summarize_server  # noqa: PLC0415 - after the first frame

            self.details.update(summarize_server(view, monotonic()))
            if view.id != self._described:
                self._described = view.id
                self.scroller.scroll_home(animate=False)

    def _follow_time(self, servers: tuple[ServerView, ...]) -> None:
        """Run the one-second timer only while a row tells the time."""
        now = monotonic()
        is_timed = any(view.status in TIMED or recovery(view, now) for view in servers)
        if is_timed and self._clock is None:
            self._clock = self.set_interval(1, self._tick)
        elif not is_timed and self._clock is not None:
            self._clock.stop()
            self._clock = None

    def _tick(self) -> None:
        self.rows.tick()
        self._show_details()
        self._follow_time(self._bridge.state.servers)

    @on(ServersTree.Moved)
    def _on_moved(self, event: ServersTree.Moved) -> None:
        event.stop()
        self._show_details()
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
