"""Runs the app, or the chat with its questions alone, without a terminal and with hands on it.

The commands only remember what was asked; `Clock` is moved by hand, so nobody waits for an arming
delay.
"""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar, Generic, TypeVar

import anyio
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Button, Static

import tui.ui
from tests.fakes.commands import RecordingCommands
from tests.support.waiting import INTERVAL, PATIENCE
from tests.ui.consent.samples import asked
from tui.model import events as e
from tui.model.chat import EntryId, TurnId, UserMessage
from tui.model.consent import Decision, RequestId
from tui.model.requests import PendingRequest, Reply
from tui.store.state import AppState
from tui.store.store import Store
from tui.ui.app import GemdeckApp
from tui.ui.bridge import MIN_INTERVAL, StoreBridge
from tui.ui.panes.chat import ChatPane
from tui.ui.panes.tools import ToolsPane
from tui.ui.pending import PendingController
from tui.ui.questions.arming import ARMING_SECONDS, PAUSE_SECONDS, Keyboard
from tui.ui.questions.confirmation import ConfirmationQuestion
from tui.ui.questions.edit_arguments import EditArgumentsScreen
from tui.ui.questions.question import Question
from tui.ui.themes import DARK, LIGHT, UiPreferences
from tui.ui.widgets.chat.history import HistoryStorage
from tui.ui.widgets.forms.json_area import JsonArea
from tui.ui.widgets.text.labelled_text import LabelledText

Q = TypeVar("Q", bound=Question[Any])
S = TypeVar("S", bound=Screen[Any])
W = TypeVar("W", bound=Widget)

WIDE = (120, 36)
NARROW = (80, 24)

STYLES = Path(tui.ui.__file__).parent / "styles" / "chat.tcss"


class Clock:
    """A clock that a test moves by hand."""

    def __init__(self) -> None:
        self.now = monotonic()

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


async def until(pilot: Pilot[Any], condition: Callable[[], object]) -> None:
    """Wait for what has to come."""
    with anyio.fail_after(PATIENCE):
        await pilot.pause()
        while not condition():
            await pilot.pause(INTERVAL)


async def click(pilot: Pilot[Any], selector: str) -> None:
    """Click as a terminal does; a click of the pilot's passes the app by."""
    region = pilot.app.screen.query_one(selector).region
    x, y = region.x + region.width // 2, region.y + region.height // 2
    for kind in (events.MouseDown, events.MouseUp):
        pilot.app.post_message(kind(None, x, y, 0, 0, 1, False, False, False))
        await pilot.pause()


def holds(app: App[Any]) -> bool:
    """Tell whether an answer on the screen waits for what follows it."""
    return isinstance(app.screen, Question) and app.screen._arming.held is not None


def screen_lines(app: App[Any]) -> list[str]:
    """Give the screen as text."""
    return [strip.text for strip in app.screen._compositor.render_strips()]


class ChatApp(App[None]):
    """The chat pane alone, and the modal for questions."""

    CSS_PATH = STYLES
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "quit", "quit", priority=True),
        Binding("f2", "leak", "leak"),
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
        self.bridge = StoreBridge(self, self.store)
        # By a clock that is moved by hand, a key is typed when its turn comes.
        self.keyboard = Keyboard() if clock is monotonic else Keyboard(clock, lambda _: clock())
        self.pending = PendingController(self, self.bridge, self.commands, self.keyboard)
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
        return [arguments[0] for name, arguments in calls if name == "open_link"]

    async def on_event(self, event: events.Event) -> None:
        self.keyboard.hear(event, self)
        await super().on_event(event)

    def action_open_question(self) -> None:
        self.pending.open_now()

    def action_leak(self) -> None:
        self.leaks += 1

    def bell(self) -> None:
        self.bells += 1

    def start_turn(self, text: str = "hello", turn: str = "t1") -> None:
        message = UserMessage(EntryId(f"{turn}-user"), text)
        self.store.dispatch(e.TurnStarted(TurnId(turn), message, monotonic()))


@dataclass
class Hands(Generic[Q]):
    """An app with a question on its screen, and the hands on it."""

    app: ChatApp
    pilot: Pilot[None]
    clock: Clock

    KIND: ClassVar[type[Any]]
    """The screen that asks."""

    @property
    def modal(self) -> Q:
        screen: Q = self._top(self.KIND)
        return screen

    def one(self, kind: type[W], selector: str = "") -> W:
        return self.modal.query_one(selector, kind) if selector else self.modal.query_one(kind)

    async def ask(self, request: PendingRequest) -> None:
        """Raise a request and wait until it has been drawn."""
        self.app.store.dispatch(e.RequestRaised(request))
        await self.until(lambda: isinstance(self.app.screen, self.KIND))
        await self.until(lambda: getattr(self.modal, "request", None) == request)
        await self.until(lambda: self.modal._arming.is_begun)

    async def settle(self, request: str = "r0") -> None:
        """Let a request be settled elsewhere, and wait for the next thing on the screen."""
        self.app.store.dispatch(e.RequestSettled(RequestId(request)))
        await self.pilot.pause(0.1)

    async def arm(self) -> None:
        """Let the clock go on until the question takes answers."""
        await self.until(lambda: self.modal._arming.is_begun)
        self.clock.advance(PAUSE_SECONDS + 0.01)
        await self.until(lambda: self.modal.armed)
        await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        """Press keys, each as slowly as an answer wants it; `pilot.press` presses them at once."""
        for key in keys:
            await self.pilot.press(key)
            await self.pilot.pause()
            self.clock.advance(ARMING_SECONDS + 0.1)
            await self.until(lambda: not holds(self.app))

    async def until(self, condition: Callable[[], object]) -> None:
        await until(self.pilot, condition)

    @property
    def calls(self) -> list[tuple[str, tuple[object, ...]]]:
        return self.app.commands.calls

    @property
    def answers(self) -> list[object]:
        """The answers that were given, in order."""
        return [arguments[1] for name, arguments in self.calls if name == "answer"]

    @property
    def decisions(self) -> list[Decision]:
        return [answer for answer in self.answers if isinstance(answer, Decision)]

    @property
    def replies(self) -> list[Reply]:
        return [answer for answer in self.answers if isinstance(answer, Reply)]

    @property
    def text(self) -> str:
        """The screen as text."""
        return "\n".join(screen_lines(self.app))

    @property
    def problem(self) -> str:
        return str(self.one(Static, ".problem").render())

    @property
    def focused(self) -> str | None:
        """The id of the button with the focus."""
        focused = self.modal.focused
        return focused.id if isinstance(focused, Button) else None

    def _top(self, kind: type[S]) -> S:
        screen = self.app.screen
        assert isinstance(screen, kind)
        return screen


class Asking(Hands[Question[Any]]):
    """A server's question."""

    KIND = Question

    @property
    def body(self) -> VerticalScroll:
        return self.one(VerticalScroll, ".body")


class Confirming(Hands[ConfirmationQuestion]):
    """The question whether a tool may run."""

    KIND = ConfirmationQuestion

    @property
    def editor(self) -> EditArgumentsScreen:
        return self._top(EditArgumentsScreen)

    @property
    def hint(self) -> str:
        return str(self.modal.hint.render())

    async def edit(self) -> None:
        """Arm the question and open the editor."""
        await self.arm()
        await self.pilot.press("e")
        await self.until(lambda: isinstance(self.app.screen, EditArgumentsScreen))
        await self.until(lambda: self.app.focused is not None)

    async def edit_as_json(self, text: str | None = None) -> JsonArea:
        """Open the editor as JSON, and put a text in."""
        await self.edit()
        if self.editor._shows_form:
            await self.pilot.press("ctrl+t")
            await self.until(lambda: isinstance(self.app.focused, JsonArea))
        area = self.editor.area
        if text is not None:
            area.select_all()
            self.app.post_message(events.Paste(text))
            await self.pilot.pause()
        return area

    async def finish(self) -> None:
        """Go back to the question and arm it."""
        await self.pilot.press("ctrl+s")
        await self.until(lambda: isinstance(self.app.screen, ConfirmationQuestion))
        await self.arm()

    def sent(self) -> object:
        """The one decision's arguments, as an object."""
        (decision,) = self.decisions
        assert decision.arguments is not None
        return json.loads(decision.arguments)


class Disclosing(Hands[Question[Any]]):
    """A question on a folder, on new servers or on changed tools."""

    KIND = Question

    @property
    def view(self) -> LabelledText:
        return self.modal.query_one(LabelledText)

    @property
    def everything(self) -> str:
        """All rows of the text, in sight or not."""
        view = self.view
        return "\n".join(view._row(row).plain for row in range(view.row_count))


@asynccontextmanager
async def chat_app(size: tuple[int, int]) -> AsyncIterator[tuple[ChatApp, Pilot[None], Clock]]:
    """Run the chat alone, on a clock that a test moves."""
    clock = Clock()
    app = ChatApp(clock=clock)
    async with app.run_test(size=size) as pilot:
        yield app, pilot, clock


@asynccontextmanager
async def asking(request: PendingRequest, size: tuple[int, int] = NARROW) -> AsyncIterator[Asking]:
    """Run an app in which a server's question has been raised and drawn."""
    async with chat_app(size) as parts:
        hands = Asking(*parts)
        await hands.ask(request)
        yield hands


@asynccontextmanager
async def confirming(
    request: PendingRequest | None = None, size: tuple[int, int] = NARROW
) -> AsyncIterator[Confirming]:
    """Run an app in which a tool's question has been raised and drawn."""
    async with chat_app(size) as parts:
        hands = Confirming(*parts)
        await hands.ask(request or asked())
        yield hands


@asynccontextmanager
async def disclosing(
    request: PendingRequest, size: tuple[int, int] = NARROW
) -> AsyncIterator[Disclosing]:
    """Run an app in which a question on folders or changed tools has been raised and drawn."""
    async with chat_app(size) as parts:
        hands = Disclosing(*parts)
        await hands.ask(request)
        yield hands


@dataclass
class Running:
    """The whole app, and the hands on it."""

    app: GemdeckApp
    pilot: Pilot[int]
    store: Store
    commands: RecordingCommands

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def settle(self) -> None:
        """Wait until what was dispatched is on the screen."""
        await self.pilot.pause(MIN_INTERVAL)
        await self.pilot.pause()

    async def until(self, condition: Callable[[], object]) -> None:
        await until(self.pilot, condition)

    def one(self, kind: type[W]) -> W:
        """Find a widget of the main screen."""
        return self.app.deck.query_one(kind)

    def on_top(self, kind: type[Screen[Any]]) -> bool:
        return isinstance(self.app.screen, kind)

    @property
    def focus(self) -> Widget | None:
        return self.app.screen.focused

    @property
    def lines(self) -> list[str]:
        """The screen as text."""
        return screen_lines(self.app)

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


@asynccontextmanager
async def running(
    store: Store,
    size: tuple[int, int] = WIDE,
    *,
    preferences: UiPreferences | None = None,
    on_first_paint: Callable[[], None] | None = None,
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
    async with app.run_test(size=size, notifications=True) as pilot:
        deck = Running(app, pilot, store, commands)
        await deck.until(lambda: bool(deck.app.deck.query(ToolsPane)))
        await deck.settle()
        yield deck


async def run_and_fail(store: Store, crash_dir: Path, action: Callable[[], None]) -> None:
    """Let an action raise inside an app and wait for the app's end; raises the same."""
    async with running(store, crash_dir=crash_dir) as deck:
        deck.app.deck.call_next(action)
        await deck.until(lambda: deck.app.return_code is not None)
        assert deck.app.return_code == 1
