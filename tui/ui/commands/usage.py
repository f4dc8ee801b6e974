"""What the parts of the commands share."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from textual.content import Content

from tui.store.commands import Commands
from tui.store.state import AppState
from tui.ui.bridge import StoreBridge

if TYPE_CHECKING:
    from tui.ui.main import MainScreen


T = TypeVar("T")


class UsageError(Exception):
    """A command cannot be carried out as it was typed; `advice` says what to type."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice


class CommandGroup:
    """Commands that belong together.

    Args:
        deck: The main screen.
        bridge: Provides the state.
        commands: Executes what the engine does.
    """

    def __init__(self, deck: "MainScreen", bridge: StoreBridge, commands: Commands) -> None:
        self._deck = deck
        self._bridge = bridge
        self._commands = commands

    def show(
        self, title: str, select: Callable[[AppState], T], describe: Callable[[T], Content]
    ) -> None:
        """Show a part of the state in a dialog."""
        from tui.ui.dialogs.details import ReportScreen  # noqa: PLC0415 - on first use

        self._deck.app.push_screen(ReportScreen(title, self._bridge, select, describe))

    def say(self, words: str) -> None:
        """Say what was done where the screen does not show it by itself."""
        self._deck.notify(words, markup=False)
