"""The tools of all servers."""

from collections.abc import Iterable
from typing import ClassVar

from textual.binding import BindingType
from textual.content import Content

from tui.model.catalog import Catalog, ToolView
from tui.model.servers import ServerId
from tui.ui import keymap
from tui.ui.messages import ShowDetails
from tui.ui.panes.browser import BrowserPane
from tui.ui.widgets.describe import describe_tool
from tui.ui.widgets.filter_list import MAX_SEARCHED, ListEntry
from tui.ui.widgets.row_list import Row

OwnedTool = tuple[ServerId, ToolView]


class ToolsPane(BrowserPane[OwnedTool]):
    """Browses tools: what they do, what they take, what their servers claim of them."""

    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(keymap.Place.TOOLS)
    NOUN = "tool"
    EMPTY = "No tools yet.\n\nThey appear as soon as a server is ready. F2 shows the servers."

    _with_schema = False

    def list_entries(self, server: ServerId, catalog: Catalog) -> Iterable[ListEntry[OwnedTool]]:
        """List the tools of a server."""
        for tool in catalog.tools:
            yield ListEntry(
                item=(server, tool),
                row=Row(
                    server,
                    tool.name,
                    tail="not offered" if tool.problem else "",
                    faint=bool(tool.problem),
                ),
                label=f"{server}:{tool.name} {tool.title}".lower(),
                text=tool.description[:MAX_SEARCHED].lower(),
            )

    def describe(self, item: OwnedTool) -> Content:
        """Describe a tool."""
        return describe_tool(*item, schema=self._with_schema)

    def choose(self, item: OwnedTool) -> None:
        """Show all about a tool."""
        server, tool = item
        content = describe_tool(server, tool, schema=True)
        self.post_message(ShowDetails(f"{server} · {tool.name}", content))

    def action_schema(self) -> None:
        """Show or hide the schema under the details."""
        self._with_schema = not self._with_schema
        self.show_details()
