"""Reports, and the details of a server."""

from collections.abc import Callable
from time import monotonic

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content

from tui.model.servers import ServerId
from tui.store.selectors import server as find_server
from tui.store.state import AppState
from tui.ui.bridge import StoreBridge
from tui.ui.dialogs.list_dialog import Dialog
from tui.ui.widgets.text.describe import describe_server
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
