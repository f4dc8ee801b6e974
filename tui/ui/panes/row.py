"""The panes side by side: which are shown, how wide, and the borders between them."""

from asyncio import Lock
from collections.abc import Iterator, Mapping

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.getters import query_one
from textual.widget import Widget

from tui.model.chat import ConversationId
from tui.ui.bridge import StoreBridge
from tui.ui.layout import Layout, Side, WidthClass
from tui.ui.messages import PaneName
from tui.ui.panes.chat import ChatPane
from tui.ui.panes.servers import ServersPane
from tui.ui.panes.side import TABS, SidePane
from tui.ui.questions.arming import Keyboard
from tui.ui.themes import UiPreferences
from tui.ui.widgets.chat.composer import HistoryStorage, MessageHistory


class PaneRow(Horizontal):
    """Lay out the chat and its sides as the user chose, and let borders be dragged.

    Attributes:
        chat: The pane of the conversation on the screen; each other one has its own, hidden.
    """

    servers = query_one(ServersPane)
    side = query_one(SidePane)

    def __init__(
        self,
        bridge: StoreBridge,
        history: HistoryStorage | None,
        keyboard: Keyboard,
        preferences: UiPreferences,
    ) -> None:
        super().__init__(id="panes")
        self._bridge = bridge
        self._history = MessageHistory(history)
        self._keyboard = keyboard
        self._layout = preferences.layout
        self.preferences = preferences
        self._in_front: Widget | None = None
        self._following = Lock()
        self.chat = self._new_chat(bridge.state.current)
        self._width = 0
        self._drag: tuple[Side, int, int] | None = None

    def compose(self) -> ComposeResult:
        yield ServersPane(self._bridge)
        yield self.chat
        yield SidePane(self._bridge)

    def on_mount(self) -> None:
        self._bridge.watch(
            self,
            lambda state: (state.current, *state.conversations),
            lambda _: self.call_next(self.follow),
        )

    async def fill(self) -> None:
        """Add to the panes what the first frame does not show, to be drawn sooner."""
        async with self._following:
            await self.chat.fill()
        await self.servers.fill()
        await self.side.fill()

    async def follow(self) -> None:
        """Show the current conversation, in a new pane if it has none; closed ones go."""
        async with self._following:
            state = self._bridge.state
            panes = {one.conversation: one for one in self.children if isinstance(one, ChatPane)}
            if (wanted := panes.get(state.current)) is None:
                wanted = self._new_chat(state.current)
                wanted.display = False
                await self.mount(wanted, after=self.chat)
                await wanted.fill()
            if wanted is not self.chat:
                self._turn_to(wanted)
            gone = [pane for key, pane in panes.items() if key not in state.conversations]
            for pane in gone:
                pane.composer.clear_draft()  # Up brings back what was typed as it went
            await self.remove_children(gone)

    def _new_chat(self, conversation: ConversationId) -> ChatPane:
        return ChatPane(self._bridge, self._history.beside(), self._keyboard, conversation)

    def _turn_to(self, chat: ChatPane) -> None:
        with self.app.batch_update():
            before, self.chat = self.chat, chat
            before.leave()
            chat.enter()
            before.display = False
            self.bring(chat)

    def pane_with_focus(self) -> Widget | None:
        """Return the pane that has the focus."""
        panes = (self.servers, self.chat, self.side)
        return next((pane for pane in panes if pane.has_focus_within), None)

    @property
    def folded(self) -> tuple[PaneName, ...]:
        """The panes that are not in sight."""
        servers = () if self.servers.display else (PaneName.SERVERS,)
        return servers if self.side.display else (*servers, *TABS)

    def resize(self, width: int) -> None:
        """Lay the panes out for a terminal of a width; the pane in front stays in sight."""
        self._width = width
        side = self._side_of(self._in_front)
        if side is not None and side not in self._layout.shown(width):
            self._layout = self._layout.with_side(width, side, opened=True)
        self._arrange()

    def bring(self, pane: Widget) -> None:
        """Bring a pane to the front, and open its side."""
        self._in_front = pane
        if (side := self._side_of(pane)) is None:
            self._arrange()
        else:
            self._choose(self._layout.with_side(self._width, side, opened=True))

    def hide(self, pane: Widget) -> None:
        """Close the side of a pane, and bring the chat to the front."""
        self._in_front = self.chat
        if (side := self._side_of(pane)) is not None:
            self._choose(self._layout.with_side(self._width, side, opened=False))

    def toggle_alone(self) -> None:
        """Show the chat alone, or again with what stood beside it."""
        self._in_front = self.chat
        self._choose(self._layout.toggled(self._width))

    def move_border(self, columns: int) -> None:
        """Move the border of the focused pane right, or left if `columns` is negative.

        From the chat it is the border of the servers, if they are open.
        """
        shown = self._layout.shown(self._width)
        if (side := self._side_of(self.pane_with_focus())) is None:
            side = Side.SERVERS if Side.SERVERS in shown else Side.RIGHT
        now = self._columns()[side]
        if side in shown and now:
            by = columns if side is Side.SERVERS else -columns
            self._choose(self._layout.with_width(self._width, side, now + by))

    def release(self) -> None:
        """Stop dragging a border, and remember where it stands."""
        if self._drag is not None:
            self._drag = None
            self.release_mouse()
            self.preferences.save_layout(self._layout)

    def _side_of(self, pane: Widget | None) -> Side | None:
        if self._width < WidthClass.ONE_SIDE:
            return None
        if pane is self.servers:
            return Side.SERVERS
        return Side.RIGHT if pane is self.side else None

    def _choose(self, layout: Layout) -> None:
        if layout != self._layout:
            self._layout = layout
            if self._drag is None:
                self.preferences.save_layout(layout)
        self._arrange()

    def _columns(self) -> Mapping[Side, int]:
        return self._layout.columns(self._width)

    def _arrange(self) -> None:
        front = self._in_front or self.chat
        if self._width < WidthClass.ONE_SIDE or (front is self.side and self.side.wants_all):
            for pane in (self.servers, self.chat, self.side):
                pane.display = pane is front
                pane.styles.width = "1fr"
        else:
            now = self._columns()
            self.chat.display = True
            for pane, columns in ((self.servers, now[Side.SERVERS]), (self.side, now[Side.RIGHT])):
                pane.display = bool(columns)
                pane.styles.width = columns
        if self.side.display:
            self.side.wake()

    def _borders(self) -> Iterator[tuple[int, Side]]:
        """Yield the columns in which a border can be grasped."""
        if self.servers.display and self.chat.display:
            yield from ((self.chat.region.x - by, Side.SERVERS) for by in (0, 1))
        if self.side.display and self.chat.display:
            yield from ((self.side.region.x - by, Side.RIGHT) for by in (0, 1))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        side = dict(self._borders()).get(int(event.screen_x))
        if event.button == 1 and side is not None:
            event.stop()
            self._drag = side, int(event.screen_x), self._columns()[side]
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._drag is not None:
            side, start, columns = self._drag
            by = int(event.screen_x) - start
            wanted = columns + (by if side is Side.SERVERS else -by)
            self._choose(self._layout.with_width(self._width, side, wanted))

    def on_mouse_up(self, _: events.MouseUp) -> None:
        self.release()
