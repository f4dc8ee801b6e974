"""A small app around the chat pane, with a real store and commands that only remember."""

from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

import tui.ui
from tests.fakes.commands import RecordingCommands
from tui.model import events as e
from tui.model.chat import EntryId, TurnId, UserMessage
from tui.store.state import AppState
from tui.store.store import Store
from tui.ui.bridge import StoreBridge
from tui.ui.panes.chat import ChatPane
from tui.ui.pending import PendingController
from tui.ui.themes import DARK, LIGHT
from tui.ui.widgets.history import HistoryStorage

STYLES = Path(tui.ui.__file__).parent / "styles" / "chat.tcss"


class ChatApp(App[None]):
    """The chat pane alone, and the modal for questions."""

    CSS_PATH = STYLES
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "quit", "quit", priority=True),
        Binding("f2", "leak", "leak"),
    ]

    def __init__(
        self,
        initial: AppState | None = None,
        *,
        history: HistoryStorage | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        super().__init__()
        self.store = Store(initial)
        self.commands = RecordingCommands()
        self.bridge = StoreBridge(self, self.store)
        self.pending = PendingController(self, self.bridge, self.commands, clock=clock)
        self.leaks = 0
        self.bells = 0
        self._history = history

    def compose(self) -> ComposeResult:
        yield Static("another pane", id="other")
        yield ChatPane(self.bridge, self.commands, history=self._history)

    def on_mount(self) -> None:
        self.register_theme(DARK)
        self.register_theme(LIGHT)
        self.theme = DARK.name
        self.query_one("#other").display = False
        self.bridge.start()
        self.pending.start()
        self.chat.focus_composer()

    def on_unmount(self) -> None:
        self.bridge.stop()

    @property
    def chat(self) -> ChatPane:
        return self.screen_stack[0].query_one(ChatPane)

    @property
    def opened(self) -> list[object]:
        """The addresses that were to be opened."""
        calls = self.commands.calls
        return [arguments[0] for name, arguments in calls if name == "open_link"]

    def action_leak(self) -> None:
        self.leaks += 1

    def bell(self) -> None:
        self.bells += 1

    def start_turn(self, text: str = "hello", turn: str = "t1") -> None:
        message = UserMessage(EntryId(f"{turn}-user"), text)
        self.store.dispatch(e.TurnStarted(TurnId(turn), message, monotonic()))
