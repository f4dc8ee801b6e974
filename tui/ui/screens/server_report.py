"""The servers as `/mcp` lists them."""

from time import monotonic

from textual.content import Content

from tui.model.servers import ServerView
from tui.store.state import AppState
from tui.ui.bridge import StoreBridge
from tui.ui.commands.reports import describe_servers
from tui.ui.screens.details import DetailsScreen


class ServerReportScreen(DetailsScreen):
    """Show how servers are set up and stand, and keep it up to date.

    Args:
        bridge: Provides the state.
        wanted: A part of their names; empty for all.
        descriptions: Whether to say what their tools do.
        schemas: Whether to add the schemas of these.
    """

    def __init__(
        self, bridge: StoreBridge, wanted: str, *, descriptions: bool, schemas: bool
    ) -> None:
        super().__init__("Servers")
        self._bridge = bridge
        self._wanted = wanted.casefold()
        self._descriptions = descriptions
        self._schemas = schemas

    def on_mount(self) -> None:
        self._bridge.watch(self, self._those, self._show)

    def _those(self, state: AppState) -> tuple[ServerView, ...]:
        return tuple(view for view in state.servers if self._wanted in view.id.casefold())

    def _show(self, views: tuple[ServerView, ...]) -> None:
        content = describe_servers(
            views, monotonic(), descriptions=self._descriptions, schemas=self._schemas
        )
        self.update(content if views else Content("There are no servers."))
