"""The dialog that sets a server's log level."""

from typing import Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from tui.model.servers import ServerId
from tui.store.commands import Commands
from tui.ui.bridge import StoreBridge
from tui.ui.screens.dialog import Dialog
from tui.ui.widgets.key_bar import key_hints
from tui.ui.widgets.text.plain import one_line

LEVELS: Final = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
)
"""The levels of RFC 5424 as MCP spells them, most verbose first."""


class LogLevelScreen(Dialog):
    """Let the user choose a log level.

    Args:
        bridge: Provides the level that was chosen before.
        commands: Sends the level to the server.
        server: The server.
    """

    def __init__(self, bridge: StoreBridge, commands: Commands, server: ServerId) -> None:
        super().__init__()
        self._commands = commands
        self._server = server
        self._level = bridge.state.log_levels.get(server, "")

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog choice") as frame:
            frame.border_title = Content(f"Log level of {one_line(self._server)}")
            frame.border_subtitle = key_hints(("↵", "choose"), ("Esc", "close"))
            yield OptionList(
                *(Option(Content(self._label(level))) for level in LEVELS),
                markup=False,
                compact=True,
            )

    def on_mount(self) -> None:
        choices = self.query_one(OptionList)
        choices.highlighted = LEVELS.index(self._level) if self._level in LEVELS else 1
        choices.focus()

    @on(OptionList.OptionSelected)
    def _choose(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._commands.set_log_level(self._server, LEVELS[event.option_index])
        self.dismiss()

    def _label(self, level: str) -> str:
        return f"{level}  (current)" if level == self._level else level
