"""The tools pane: the tools of all servers."""

from collections.abc import Iterable
from typing import ClassVar

from textual.binding import BindingType
from textual.content import Content

from tui.model.catalog import Catalog, ToolView
from tui.model.consent import GrantView, ToolStanding
from tui.model.servers import ServerId
from tui.store.commands import Commands
from tui.ui import keymap
from tui.ui.bridge import StoreBridge
from tui.ui.panes import ShowTool
from tui.ui.panes.browser import BrowserPane
from tui.ui.widgets.lists.filter_list import MAX_SEARCHED, ListEntry
from tui.ui.widgets.lists.row_list import Row
from tui.ui.widgets.text.describe import describe_tool

OwnedTool = tuple[ServerId, ToolView]


class ToolsPane(BrowserPane[OwnedTool]):
    """Browse tools: description, parameters, the server's claims, and what happens on a call."""

    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(keymap.Place.TOOLS)
    NOUN = "tool"
    EMPTY = "The tools of your servers appear here, once one is ready; `F2` shows the servers."

    def __init__(self, bridge: StoreBridge, commands: Commands) -> None:
        super().__init__(bridge, commands)
        self._with_schema = False
        self._asked: OwnedTool | None = None

    def on_mount(self) -> None:
        super().on_mount()
        self._bridge.watch(self, lambda state: state.standing, self._on_standing)
        self._bridge.watch(self, lambda state: state.grants, self._on_grants)

    def on_descendant_focus(self) -> None:
        self._explain()

    def list_entries(self, server: ServerId, catalog: Catalog) -> Iterable[ListEntry[OwnedTool]]:
        for tool in catalog.tools:
            on_demand = "on demand" if tool.id in catalog.excess else ""
            state = "not offered" if tool.problem else on_demand
            yield ListEntry(
                item=(server, tool),
                row=Row(
                    server,
                    tool.name,
                    tail="changed" if tool.changed else state,
                    faint=bool(state) or tool.changed,
                    note=tool.description[:MAX_SEARCHED],
                ),
                label=f"{server}:{tool.name} {tool.title}".lower(),
                text=tool.description[:MAX_SEARCHED].lower(),
                group=server,
            )

    def describe(self, item: OwnedTool) -> Content:
        return describe_tool(*item, schema=self._with_schema, standing=self._bridge.state.standing)

    def show_details(self) -> None:
        super().show_details()
        self._explain()
        self.refresh_bindings()

    def choose(self, item: OwnedTool) -> None:
        server, tool = item
        self.post_message(ShowTool(server, tool.name))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the review for a changed tool, the schema for any other."""
        item: OwnedTool | None = self.entries.current if self.is_mounted else None
        changed = item is not None and item[1].changed
        match action:
            case "review":
                return changed
            case "schema" if changed:
                return False
            case _:
                return super().check_action(action, parameters)

    def action_review(self) -> None:
        """Ask again about the changes of this tool's server."""
        item: OwnedTool | None = self.entries.current
        if item is not None and item[1].changed:
            self._commands.engine.access.review.review(item[0])

    def action_schema(self) -> None:
        self._with_schema = not self._with_schema
        self.show_details()

    def _explain(self) -> None:
        """Ask what happens on a call of this tool, once, and only while the pane has focus."""
        item: OwnedTool | None = self.entries.current
        if item is None or item == self._asked or not self.has_focus_within:
            return
        self._asked = item
        self._commands.engine.explain_tool(item[0], item[1].name)

    def _on_standing(self, standing: ToolStanding | None) -> None:
        item: OwnedTool | None = self.entries.current
        if standing is None or item is None:
            return
        if (standing.server, standing.tool) == (item[0], item[1].name):
            super().show_details()

    def _on_grants(self, _: tuple[GrantView, ...]) -> None:
        self._asked = None
        self._explain()
