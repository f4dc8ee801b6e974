"""Runs the app, or the chat with its questions alone, without a terminal.

The commands only remember what was asked; `Clock` is moved by hand, so nobody waits for an arming
delay.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath
from time import monotonic
from typing import Any, ClassVar, Final, TypeVar

import anyio
import pytest
from textual import events
from textual._context import visible_screen_stack
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.notifications import Notification
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static
from textual.widgets._toast import Toast

import tui.ui
from tests.fakes.commands import RecordingCommands
from tests.support.waiting import INTERVAL, PATIENCE
from tui.model import events as e
from tui.model.chat import EntryId, TurnId, UserMessage
from tui.store.state import AppState
from tui.store.store import Store
from tui.ui import app as whole_app
from tui.ui import main
from tui.ui.app import GemdeckApp
from tui.ui.attention import Attention
from tui.ui.bridge import StoreBridge
from tui.ui.dialogs import list_dialog
from tui.ui.panes.browser import ToolsPane
from tui.ui.panes.chat import ChatPane
from tui.ui.pending import PendingController
from tui.ui.questions import arming
from tui.ui.questions.arming import Keyboard
from tui.ui.questions.question import Question
from tui.ui.themes import DARK, LIGHT, UiPreferences
from tui.ui.widgets.chat.composer import Composer, HistoryStorage, MessageHistory

S = TypeVar("S", bound=Screen[Any])
W = TypeVar("W", bound=Widget)

SELDOM: Final = 0.1
"""Most seconds between two looks at the screen."""

WIDE = (120, 36)
NARROW = (80, 24)

FOLDER = Path(tui.ui.__file__).parent / "styles"
STYLES: Final[list[str | PurePath]] = [
    FOLDER / name for name in ("chat.tcss", "panes.tcss", "conversation.tcss")
]


class Clock:
    """A clock that a test moves by hand."""

    def __init__(self) -> None:
        self.now = monotonic()

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


async def until(pilot: Pilot[Any], condition: Callable[[], object]) -> None:
    """Wait for what has to come, ever more seldom: to read the screen takes as long as a look."""
    interval = INTERVAL
    with anyio.fail_after(PATIENCE):
        await pilot.pause()
        while not condition():
            await pilot.pause(interval)
            interval = min(interval * 1.5, SELDOM)


async def click(pilot: Pilot[Any], where: str | tuple[int, int]) -> None:
    """Click as a terminal does, on a widget or a cell; a click of the pilot's passes the app by."""
    if isinstance(where, str):
        region = pilot.app.screen.query_one(where).region
        where = region.x + region.width // 2, region.y + region.height // 2
    for kind in (events.MouseDown, events.MouseUp):
        pilot.app.post_message(kind(None, *where, 0, 0, 1, False, False, False))
        await pilot.pause()


def ticking() -> int:
    """Give the number of things that are done again and again; each is a task."""
    return sum(task.get_name().startswith("set_interval#") for task in asyncio.all_tasks())


def holds(app: App[Any]) -> bool:
    """Tell whether an answer on the screen waits for what follows it."""
    return isinstance(app.screen, Question) and app.screen._arming.held is not None


def screen_lines(app: App[Any]) -> list[str]:
    """Give the screen as text, with what shows through a dialog."""
    visible_screen_stack.set(app._background_screens)
    return [strip.text for strip in app.screen._compositor.render_strips()]


def toasts(app: App[Any]) -> list[str]:
    """Give the words of the toasts on the screen, the newest last."""
    return [str(toast.render()) for toast in app.screen.query(Toast)]


@contextmanager
def without_hurry(*, by_hand: bool = False) -> Iterator[None]:
    """Let toasts stand and second presses count for as long as a busy machine may take.

    Args:
        by_hand: Whether a test moves the clock by which presses count.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Notification, "time_left", property(lambda _: PATIENCE))
        for module in () if by_hand else (whole_app, main, list_dialog, arming):
            patch.setattr(module, "REPEAT_SECONDS", PATIENCE)
        yield


class ChatApp(App[None]):
    """The chat pane alone, and the modal for questions."""

    CSS_PATH = STYLES
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "quit", "quit", priority=True),
        Binding("f8", "open_question", "question", id="app.question", priority=True),
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
        self.bridge = StoreBridge(self, self.store, self.commands)
        # By a clock that is moved by hand, a key is typed when its turn comes.
        self.keyboard = Keyboard() if clock is monotonic else Keyboard(clock, lambda _: clock())
        self.pending = PendingController(self, self.bridge, self.keyboard)
        self.bells = 0
        self._history = history

    def compose(self) -> ComposeResult:
        yield Static("another pane", id="other")
        yield ChatPane(self.bridge, MessageHistory(self._history), self.keyboard)

    async def on_mount(self) -> None:
        await self.chat.fill()
        self.register_theme(DARK)
        self.register_theme(LIGHT)
        self.theme = DARK.name
        self.query_one("#other").display = False
        self.bridge.start()
        self.pending.start()
        Attention(self, self.bridge, self.keyboard.clock)
        self.chat.composer.focus()

    def on_unmount(self) -> None:
        self.bridge.stop()

    @property
    def chat(self) -> ChatPane:
        return self.screen_stack[0].query_one(ChatPane)

    @property
    def opened(self) -> list[object]:
        """The addresses that were to be opened."""
        calls = self.commands.calls
        return [arguments[0] for name, arguments in calls if name == "features.open_link"]

    async def on_event(self, event: events.Event) -> None:
        self.keyboard.hear(event, self)
        await super().on_event(event)

    def action_open_question(self) -> None:
        self.pending.open_now()

    def bell(self) -> None:
        self.bells += 1

    def start_turn(self, text: str = "hello", turn: str = "t1") -> None:
        message = UserMessage(EntryId(f"{turn}-user"), text)
        self.store.dispatch(e.TurnStarted(TurnId(turn), message, monotonic()))


async def afresh(app: ChatApp, pilot: Pilot[None]) -> None:
    """Begin anew in the same app: nothing was said, nothing is typed, nobody was asked."""
    for event in (e.ConversationCleared(), e.QueueChanged(()), e.ServersConfigured(())):
        app.store.dispatch(event)
    app.chat.composer.clear()
    app.chat.composer.focus()
    await until(pilot, lambda: not app.chat.transcript.views)
    app.chat.keep_draft()
    app.commands.calls.clear()


class OnScreen:
    """Waits for what comes to the screen of an app, and reads it."""

    pilot: Pilot[Any]

    async def until(self, condition: Callable[[], object]) -> None:
        await until(self.pilot, condition)

    def on_top(self, kind: type[Screen[Any]]) -> bool:
        return isinstance(self.pilot.app.screen, kind)

    async def come(self, kind: type[S]) -> S:
        """Wait until a screen is on top, and give it."""
        await self.until(lambda: self.on_top(kind))
        screen = self.pilot.app.screen
        assert isinstance(screen, kind)
        return screen

    @property
    def lines(self) -> list[str]:
        """The screen as text."""
        return screen_lines(self.pilot.app)

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


@dataclass
class Running(OnScreen):
    """The whole app, and the hands on it."""

    app: GemdeckApp
    pilot: Pilot[int]
    store: Store
    commands: RecordingCommands

    async def press(self, *keys: str) -> None:
        """Press keys, and wait until what came of them is on the screen."""
        await self.pilot.press(*keys)
        await self.settle()

    async def settle(self) -> None:
        """Wait until what was dispatched is on the screen."""
        await self.until(lambda: not self.app.bridge._delay.is_begun)
        await self.pilot.pause()

    def dispatch(self, event: e.Event) -> None:
        self.store.dispatch(event)

    async def happen(self, event: e.Event) -> None:
        """Dispatch an event, and wait until it is on the screen."""
        self.store.dispatch(event)
        await self.settle()

    async def click(self, where: type[Widget] | Widget | None, x: int, y: int) -> None:
        await self.pilot.click(where, offset=(x, y))
        await self.settle()

    async def resize(self, width: int, height: int) -> None:
        await self.pilot.resize_terminal(width, height)
        await self.settle()

    async def afresh(self) -> None:
        """Go back to an empty message, without dialogs, and forget what was asked."""
        while len(self.app.screen_stack) > 1:
            self.app.pop_screen()
        composer = self.one(Composer)
        composer.clear()
        composer.focus()
        await self.settle()
        self.app.deck.chat.keep_draft()
        self.commands.calls.clear()

    def one(self, kind: type[W]) -> W:
        """Find a widget of the main screen."""
        return self.app.deck.query_one(kind)

    @property
    def focus(self) -> Widget | None:
        return self.app.screen.focused

    async def typed(self, text: str) -> None:
        """Put a text into the composer and send it."""
        self.one(Composer).replace_all(text)
        await self.press("enter")

    def asked(self, name: str) -> list[tuple[object, ...]]:
        """Give the arguments of each call of a command."""
        return [arguments for called, arguments in self.commands.calls if called == name]

    @property
    def said(self) -> str:
        """The words of the newest toast."""
        return toasts(self.app)[-1]


@asynccontextmanager
async def chatting(
    initial: AppState | None = None,
    *,
    size: tuple[int, int] = (80, 24),
    notifications: bool = False,
    history: HistoryStorage | None = None,
    clock: Callable[[], float] = monotonic,
) -> AsyncIterator[tuple[ChatApp, Pilot[None]]]:
    """Run the chat pane alone."""
    app = ChatApp(initial, history=history, clock=clock)
    with without_hurry(by_hand=clock is not monotonic):
        async with app.run_test(size=size, notifications=notifications) as pilot:
            yield app, pilot


@asynccontextmanager
async def chat_app(size: tuple[int, int]) -> AsyncIterator[tuple[ChatApp, Pilot[None], Clock]]:
    """Run the chat alone, on a clock that a test moves."""
    clock = Clock()
    async with chatting(size=size, clock=clock) as (app, pilot):
        yield app, pilot, clock


@asynccontextmanager
async def running(
    store: Store,
    size: tuple[int, int] = WIDE,
    *,
    preferences: UiPreferences | None = None,
    on_first_paint: Callable[[], None] = lambda: None,
    crash_dir: Path | None = None,
) -> AsyncIterator[Running]:
    commands = RecordingCommands()
    app = GemdeckApp(
        store,
        commands,
        preferences=preferences or UiPreferences(),
        on_first_paint=on_first_paint,
        crash_dir=crash_dir,
    )
    with without_hurry():
        async with app.run_test(size=size, notifications=True) as pilot:
            deck = Running(app, pilot, store, commands)
            await deck.until(lambda: bool(deck.app.deck.query(ToolsPane)))
            await deck.settle()
            yield deck
