"""A choice of the level from which on a server logs."""

from typing import Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from tui.model.servers import ServerId
from tui.store.commands import Commands
from tui.ui.screens.dialog import Dialog
from tui.ui.widgets.plain import one_line

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
"""The levels of RFC 5424 as MCP spells them, from the most to the fewest lines."""


class LogLevelScreen(Dialog):
    """Lists the levels; Enter tells the server.

    Args:
        commands: What was chosen goes there.
        server: Who logs.
        level: The level it was told before, or nothing.
    """

    def __init__(self, commands: Commands, server: ServerId, level: str) -> None:
        super().__init__()
        self._commands = commands
        self._server = server
        self._level = level

    def compose(self) -> ComposeResult:
        """Compose the list."""
        with Vertical(classes="dialog log-level") as frame:
            frame.border_title = Content(f"From which level does {one_line(self._server)} log?")
            frame.border_subtitle = Content.styled("↵ choose  esc close", "$foreground 60%")
            yield OptionList(
                *(Option(Content(self._words(level))) for level in LEVELS),
                markup=False,
                compact=True,
            )

    def on_mount(self) -> None:
        """Begin on the level there is."""
        choices = self.query_one(OptionList)
        choices.highlighted = LEVELS.index(self._level) if self._level in LEVELS else 1
        choices.focus()

    @on(OptionList.OptionSelected)
    def _choose(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._commands.set_log_level(self._server, LEVELS[event.option_index])
        self.dismiss()

    def _words(self, level: str) -> str:
        return f"{level}  (now)" if level == self._level else level
