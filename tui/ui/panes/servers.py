"""The servers pane: the status of each server, and the keys that manage it."""

from collections.abc import Sequence
from time import monotonic
from typing import TYPE_CHECKING, Final

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.events import MouseDown
from textual.getters import query_one
from textual.timer import Timer

from tui.model.chat import Severity
from tui.model.servers import ServerId, ServerView
from tui.store.state import AppState
from tui.ui import keymap
from tui.ui.bridge import StoreBridge
from tui.ui.widgets.key_bar import Hint, hint_lines, with_keys
from tui.ui.widgets.status import TIMED, recovery
from tui.ui.widgets.text.plain import PlainText, block

if TYPE_CHECKING:  # loaded after the first frame
    from tui.model.events import Notice
    from tui.ui.panes.servers_tree import ServersTree

READING: Final = "Reading the settings…"
"""Shown until the settings have been read."""

EMPTY: Final = """\
No servers yet.

`+`  add one: a command, an address, or from another client
`d`  start the demo
`e`  edit your settings

gemdeck rereads ~/.gemini/settings.json when you save it.
The palette (`^P`) has a sample with every setting."""
"""Shown if the settings name no server."""


def _view(state: AppState) -> "tuple[bool, tuple[ServerView, ...], Notice | None]":
    """Select whether the settings were read, the servers, and the last error."""
    errors = (notice for notice in reversed(state.notices) if notice.severity is Severity.ERROR)
    return state.configured, state.servers, next(errors, None)


class _Details(VerticalScroll):
    FOCUS_ON_CLICK = False  # a click on a key in it is meant for the tree


class ServersPane(Vertical):
    """The server tree, or a hint while it is empty.

    The first frame shows the hint; `fill` adds the tree.
    """

    BINDINGS = keymap.bindings(keymap.Place.SIDE)
    ALLOW_SELECT = False
    BORDER_TITLE = "Servers"

    rows: "ServersTree"
    scroller = query_one(".details", VerticalScroll)
    details = query_one(".summary", PlainText)
    keys = query_one(".keys", PlainText)

    def __init__(self, bridge: StoreBridge) -> None:
        super().__init__(id="servers", classes="-empty")
        self._bridge = bridge
        self._clock: Timer | None = None
        self._described: ServerId | None = None
        self._is_filled = False

    def compose(self) -> ComposeResult:
        yield PlainText(READING, classes="empty")

    async def fill(self) -> None:
        """Add the tree, which the first frame does not show, and follow the state."""
        from tui.ui.panes.servers_tree import ServersTree  # noqa: PLC0415 - after the first frame

        self.rows = ServersTree(self._bridge)
        summary = PlainText(classes="summary"), PlainText(classes="keys")
        await self.mount(self.rows, _Details(*summary, classes="details"))
        self._is_filled = True
        self._bridge.watch(self, _view, self._show)
        self._bridge.watch(self, lambda state: state.marks, lambda _: self.rows.draw())

    def show_keys(self, found: Sequence[Hint]) -> None:
        """Show the keys of the server under the cursor, or none."""
        if not self._is_filled:
            return
        self.keys.say(hint_lines(found, self.size.width - 2))

    def on_mouse_down(self, event: MouseDown) -> None:
        is_inside = self.content_region.contains(*event.screen_offset)  # the border is dragged
        if is_inside and self._is_filled and not self.has_focus_within:
            self.rows.focus()

    def on_resize(self) -> None:
        if self._is_filled:
            self._show_details()
        self.refresh_bindings()  # the keys are wrapped to its width

    def _show(self, view: "tuple[bool, tuple[ServerView, ...], Notice | None]") -> None:
        configured, servers, error = view
        wrong = f"{block(error.text)}\n\n" if error is not None and not servers else ""
        empty = Content.assemble(wrong, with_keys(EMPTY)) if configured else Content(READING)
        self.query_one(".empty", PlainText).update(empty)
        if not servers and self.rows.has_focus:
            self.call_after_refresh(self.rows.focus)  # hidden, it loses it, and with it its keys
        self.set_class(not servers, "-empty")
        self.rows.show(servers)
        self._show_details()
        self._follow_time(servers)

    def _show_details(self) -> None:
        from tui.ui.widgets.text.describe import summarize_server  # noqa: PLC0415 - late, too

        view = self.rows.current
        self.scroller.display = view is not None
        if view is not None:
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
        self.rows.draw()
        self._follow_time(self._bridge.state.servers)

    def on_row_list_moved(self) -> None:
        self._show_details()
        if self.rows.has_focus:
            self.refresh_bindings()
