"""Reports on a part of the state."""

from collections.abc import Callable

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content

from tui.store.state import AppState
from tui.ui.bridge import StoreBridge
from tui.ui.dialogs.list_dialog import Dialog
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
