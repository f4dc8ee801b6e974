"""Reports, and the details of a server or a tool."""

from collections.abc import Callable
from functools import partial
from time import monotonic

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content

from tui.model.servers import ServerId
from tui.store.commands import Commands
from tui.store.selectors import server as find_server
from tui.store.state import AppState
from tui.ui.bridge import StoreBridge
from tui.ui.dialogs.list_dialog import Dialog
from tui.ui.widgets.text.describe import describe_server, describe_tool
from tui.ui.widgets.text.plain import PlainText


class DetailsScreen(Dialog):
    """Show a part of the state as text and keep it up to date.

    Args:
        title: The title of the frame.
        bridge: Provides the state.
        describe: Writes it.
    """

    FRAME = VerticalScroll

    def __init__(
        self, title: str, bridge: StoreBridge, describe: Callable[[AppState], Content]
    ) -> None:
        super().__init__(title)
        self._bridge = bridge
        self._describe = describe

    def compose_body(self) -> ComposeResult:
        yield PlainText()

    def on_mount(self) -> None:
        self._bridge.watch(self, self._describe, self.query_one(PlainText).update)


class ServerDetailsScreen(DetailsScreen):
    """Show the details of a server and keep them up to date."""

    def __init__(self, bridge: StoreBridge, server: ServerId) -> None:
        def describe(state: AppState) -> Content:
            view = find_server(state, server)
            if view is None:
                return Content("This server is no longer in the settings.")
            return describe_server(view, monotonic(), state.instructions.get(server, ""))

        super().__init__(server, bridge, describe)


class ToolDetailsScreen(DetailsScreen):
    """Show the details of a tool, with its schema and what happens on a call.

    Args:
        bridge: Provides the state.
        commands: Explains what happens on a call; asked again whenever a rule changes.
        server: The tool's server.
        tool: The tool's name on its server.
    """

    def __init__(
        self, bridge: StoreBridge, commands: Commands, server: ServerId, tool: str
    ) -> None:
        def describe(state: AppState) -> Content:
            view = find_server(state, server)
            tools = view.catalog.tools if view is not None else ()
            found = next((one for one in tools if one.name == tool), None)
            if found is None:
                return Content("The server no longer has this tool.")
            return describe_tool(server, found, schema=True, standing=state.standing, framed=True)

        super().__init__(f"{server} · {tool}", bridge, describe)
        self._explain = partial(commands.engine.explain_tool, server, tool)

    def on_mount(self) -> None:
        self._bridge.watch(self, lambda state: state.grants, lambda _: self._explain())
