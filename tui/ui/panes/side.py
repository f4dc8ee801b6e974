"""The pane at the right: tools, prompts, resources and activity behind four tabs."""

from typing import ClassVar, Final

from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Click

from tui.model.servers import ServerId
from tui.store.commands import Commands
from tui.ui import keymap
from tui.ui.bridge import StoreBridge
from tui.ui.messages import PaneName
from tui.ui.notices import NoticeBoard
from tui.ui.panes.part import SidePart

TABS: Final = (PaneName.TOOLS, PaneName.PROMPTS, PaneName.RESOURCES, PaneName.ACTIVITY)
"""The tabs, from left to right."""

TAB_GAPS: Final = (2, 1)
"""Cells between two tabs: the wide gap, and the one where space is short."""

FRAME: Final = 6
"""Cells of the border's top that corners, lines and spaces take from the tabs."""


def tab_gap(width: int) -> int:
    """Choose the gap between tabs in a pane of a width; the last resort is the smallest."""
    names = sum(len(name.value) for name in TABS)
    return next(
        (gap for gap in TAB_GAPS if names + gap * (len(TABS) - 1) <= width - FRAME), TAB_GAPS[-1]
    )


def tabs_title(active: PaneName, gap: int) -> Content:
    """Write the tabs for the border; the active one is bold and underlined."""
    return Content(" " * gap).join(
        Content.styled(
            name.value.title(), "bold underline" if name is active else "$foreground 60%"
        )
        for name in TABS
    )


def tab_at(x: int, gap: int) -> PaneName | None:
    """Tell which tab stands at a column, counted from the first letter of the first tab."""
    start = 0
    for name in TABS:
        if start <= x < start + len(name.value):
            return name
        start += len(name.value) + gap
    return None


class SidePane(Vertical):
    """Shows one of its parts; each is made when it is first asked for."""

    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(keymap.Place.SIDE)

    def __init__(self, bridge: StoreBridge, board: NoticeBoard, commands: Commands) -> None:
        super().__init__(id="side")
        self._bridge = bridge
        self._commands = commands
        self._board = board
        self._active = PaneName.TOOLS
        self._parts: dict[PaneName, SidePart] = {}

    def on_resize(self) -> None:
        """Fit the tabs to the width."""
        self._show_tabs()

    def _show_tabs(self) -> None:
        self.border_title = tabs_title(self._active, tab_gap(self.outer_size.width))

    @property
    def active(self) -> PaneName:
        """The part that is shown."""
        return self._active

    async def fill(self) -> SidePart | None:
        """Make the active part where it is not there yet, and show it alone.

        The first frame is drawn without it, so that it comes sooner.

        Returns:
            The part, or None where the app ends, or another part was asked for, before it was
            made.
        """
        name = self._active
        part = self._parts.get(name)
        if part is None:
            if not self.is_attached:
                return None
            part = self._parts[name] = self._make(name)
            await self.mount(part)
        if name is not self._active:
            part.display = False
            return None
        for other in self._parts.values():
            other.display = other is part
        part.wake()
        return part

    def wake(self) -> None:
        """Let the active part catch up, after the pane itself was hidden."""
        part = self._parts.get(self._active)
        if part is not None and part.is_mounted:
            part.wake()

    async def show(self, name: PaneName, server: ServerId | None = None) -> None:
        """Show a part and give it the focus.

        Args:
            name: Which part.
            server: The server to narrow it to, if any.
        """
        self._active = name
        self._show_tabs()
        part = await self.fill()
        if part is None:
            return
        if server is not None:
            part.narrow_to(server)
        part.focus_main()

    def _make(self, name: PaneName) -> SidePart:
        match name:
            case PaneName.PROMPTS:
                from tui.ui.panes.prompts import PromptsPane  # noqa: PLC0415 - on first use

                return PromptsPane(self._bridge, self._commands)
            case PaneName.RESOURCES:
                from tui.ui.panes.resources import ResourcesPane  # noqa: PLC0415 - on first use

                return ResourcesPane(self._bridge, self._commands)
            case PaneName.ACTIVITY:
                from tui.ui.panes.activity import ActivityPane  # noqa: PLC0415 - on first use

                return ActivityPane(self._bridge, self._board, self._commands)
            case _:
                from tui.ui.panes.tools import ToolsPane  # noqa: PLC0415 - after the first frame

                return ToolsPane(self._bridge, self._commands)

    async def on_click(self, event: Click) -> None:
        """Show the tab that was clicked in the border."""
        if event.y == 0 and event.widget is self:
            name = tab_at(event.x - FRAME // 2, tab_gap(self.outer_size.width))
            if name is not None:
                await self.show(name)
