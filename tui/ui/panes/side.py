"""The side pane on the right: tools, prompts, resources and activity behind four tabs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from textual.containers import Vertical
from textual.content import Content
from textual.style import Style

from tui.ui import keymap
from tui.ui.bridge import StoreBridge
from tui.ui.messages import PaneName
from tui.ui.widgets.key_bar import FRAME

if TYPE_CHECKING:  # loaded after the first frame
    from tui.ui.panes.side_part import SidePart

TABS: Final = (PaneName.TOOLS, PaneName.PROMPTS, PaneName.RESOURCES, PaneName.ACTIVITY)
"""The tabs, from left to right."""

TAB_GAPS: Final = (2, 1)
"""Cells between two tabs: usually, and if space is short."""

SHORT: Final = {PaneName.RESOURCES: "Res…", PaneName.ACTIVITY: "Act…"}
"""What is left of the long names of tabs where there is no room for them."""

VIEWS: Final = {PaneName.ACTIVITY: "log", PaneName.PROTOCOL: "protocol"}
"""What the tab of the activity shows, with the words in its lower border."""

Tabs = Sequence[tuple[PaneName, str]]
"""The tabs and what is written on them."""


def tabs_title(active: PaneName, width: int) -> Content:
    """Return the tabs for the border of a pane of a width.

    If their names do not fit, some are shortened, then only the active tab is left.
    """
    named = [(name, name.value.title()) for name in TABS]
    short = [(name, SHORT.get(name, text)) for name, text in named]
    mixed = [one if one[0] is active else other for one, other in zip(named, short, strict=True)]
    titles = (_joined(active, tabs, gap) for tabs in (named, mixed, short) for gap in TAB_GAPS)
    alone = _joined(active, [one for one in named if one[0] is active], 0)
    return next((one for one in titles if one.cell_length <= width - FRAME), alone)


def _joined(active: PaneName, tabs: Tabs, gap: int) -> Content:
    """Write tabs, the active one bold and underlined; a click shows one."""
    return Content(" " * gap).join(
        Content.styled(text, "bold underline" if name is active else "$text-muted").stylize(
            Style.from_meta({"@click": f"show('{name}')"})
        )
        for name, text in tabs
    )


class SidePane(Vertical):
    """Show one part at a time; each is made on first use."""

    ALLOW_SELECT = False
    BINDINGS = keymap.bindings(keymap.Place.SIDE)

    def __init__(self, bridge: StoreBridge) -> None:
        super().__init__(id="side")
        self._bridge = bridge
        self.active = PaneName.TOOLS
        self._parts: dict[PaneName, SidePart] = {}
        self.activity = PaneName.ACTIVITY
        """What the tab of the activity showed last."""
        self.is_wide = False
        """Whether the protocol has the full width."""

    @property
    def wants_all(self) -> bool:
        """Whether no other pane is to stand beside it."""
        return self.is_wide and self.active is PaneName.PROTOCOL

    def on_resize(self) -> None:
        self._show_tabs()

    def _show_tabs(self) -> None:
        tab = PaneName.ACTIVITY if self.active in VIEWS else self.active
        self.border_title = tabs_title(tab, self.outer_size.width)
        views = _joined(self.active, [*VIEWS.items()], TAB_GAPS[0])
        self.border_subtitle = views if self.active in VIEWS else None

    async def fill(self) -> "SidePart | None":
        """Show the active part alone, making it first if needed.

        Called after the first frame, which is drawn without a part to come sooner.

        Returns:
            The part, or None if the app ended or another part was requested meanwhile.
        """
        name = self.active
        if (part := self._parts.get(name)) is None:
            if not self.is_attached:
                return None
            part = self._parts[name] = self._make(name)
            part.display = False  # else it is drawn below the one before, in half of the rows
            await self.mount(part)
        if name is not self.active:
            return None
        for other in self._parts.values():
            other.display = other is part
        part.wake()
        return part

    def wake(self) -> None:
        """Let the active part catch up after the pane was hidden."""
        if (part := self._parts.get(self.active)) is not None and part.is_mounted:
            part.wake()

    async def show(self, name: PaneName, to: str | None = None) -> None:
        """Show and focus a part, narrowed to a server if one is given."""
        self.active = name
        self.activity = name if name in VIEWS else self.activity
        self._show_tabs()
        if (part := await self.fill()) is None:
            return
        if to is not None:
            part.narrow_to(to)
        part.focus_main()

    def _make(self, name: PaneName) -> "SidePart":
        from tui.ui.panes import activity, browser, protocol  # noqa: PLC0415 - after the first frame

        parts: dict[PaneName, type[SidePart]] = {
            PaneName.TOOLS: browser.ToolsPane,
            PaneName.PROMPTS: browser.PromptsPane,
            PaneName.RESOURCES: browser.ResourcesPane,
            PaneName.ACTIVITY: activity.ActivityPane,
            PaneName.PROTOCOL: protocol.ProtocolPane,
        }
        return parts[name](self._bridge)

    async def action_show(self, name: str) -> None:
        await self.show(PaneName(name))
