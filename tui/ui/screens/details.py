"""A page over the main screen with all there is to know about one thing."""

from time import monotonic

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content

from tui.model.catalog import ToolView
from tui.model.consent import GrantView, ToolStanding
from tui.model.servers import ServerId
from tui.store.commands import Commands
from tui.store.selectors import server as find_server
from tui.store.state import AppState
from tui.ui.bridge import StoreBridge
from tui.ui.screens.dialog import Dialog
from tui.ui.widgets.describe import describe_server, describe_tool
from tui.ui.widgets.plain import PlainText, one_line


class DetailsScreen(Dialog):
    """Shows content that may be long.

    Args:
        title: What it is about.
        content: What there is to read.
    """

    def __init__(self, title: str, content: Content | None = None) -> None:
        super().__init__()
        self._subject = title
        self._content = content or Content()

    def compose(self) -> ComposeResult:
        """Compose a frame with a text that scrolls."""
        with VerticalScroll(classes="dialog") as frame:
            frame.border_title = Content(one_line(self._subject))
            frame.border_subtitle = Content.styled("esc close", "$foreground 60%")
            yield PlainText(self._content)

    def update(self, content: Content) -> None:
        """Show other content."""
        self.query_one(PlainText).update(content)


class ServerDetailsScreen(DetailsScreen):
    """Shows a server as it stands, and follows it."""

    def __init__(self, bridge: StoreBridge, server: ServerId) -> None:
        super().__init__(server)
        self._bridge = bridge
        self._server = server

    def on_mount(self) -> None:
        """Follow the server."""
        self._bridge.watch(self, self._describe, self.update)

    def _describe(self, state: AppState) -> Content:
        view = find_server(state, self._server)
        if view is None:
            return Content("This server is no longer in the settings.")
        return describe_server(view, monotonic())


class ToolDetailsScreen(DetailsScreen):
    """Shows a tool with its whole schema and how it stands, and follows both.

    Args:
        bridge: Where they come from.
        commands: Asked how the tool stands, and again whenever a rule changes.
        server: The tool's server.
        tool: The tool's name on its server.
    """

    def __init__(
        self, bridge: StoreBridge, commands: Commands, server: ServerId, tool: str
    ) -> None:
        super().__init__(f"{server} · {tool}")
        self._bridge = bridge
        self._commands = commands
        self._server = server
        self._tool = tool

    def on_mount(self) -> None:
        """Follow the tool, and ask how it stands."""
        self._bridge.watch(self, self._view, self._show)
        self._bridge.watch(self, lambda state: state.grants, self._ask)

    def _ask(self, _: tuple[GrantView, ...]) -> None:
        self._commands.explain_tool(self._server, self._tool)

    def _view(self, state: AppState) -> tuple[ToolView | None, ToolStanding | None]:
        view = find_server(state, self._server)
        tools = view.catalog.tools if view is not None else ()
        return next((tool for tool in tools if tool.name == self._tool), None), state.standing

    def _show(self, view: tuple[ToolView | None, ToolStanding | None]) -> None:
        tool, standing = view
        if tool is None:
            self.update(Content("The server no longer has this tool."))
        else:
            self.update(describe_tool(self._server, tool, schema=True, standing=standing))
