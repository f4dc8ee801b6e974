"""The Textual app: the main screen, key map, theme, and how it ends."""

import asyncio
import os
import re
import termios
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, ClassVar, Final

from rich.console import RenderableType
from rich.segment import Segment
from rich.text import Text
from textual import events, on
from textual.actions import parse as parse_action
from textual.app import App
from textual.binding import Binding, Keymap
from textual.color import Color
from textual.css.query import NoMatches
from textual.driver import Driver
from textual.errors import NoWidget
from textual.filter import LineFilter, Monochrome, NoColor
from textual.notifications import SeverityLevel
from textual.screen import Screen
from textual.widget import MountError
from textual.widgets import Input, TextArea

from tui.store.commands import Commands
from tui.store.state import AppState
from tui.store.store import Store
from tui.text import clip, counted
from tui.ui import keymap, themes
from tui.ui.bridge import Delay, StoreBridge
from tui.ui.keymap import with_shared
from tui.ui.main import MainScreen, TypeAhead
from tui.ui.messages import Opens
from tui.ui.notices import toast_words
from tui.ui.panes.row import PaneRow
from tui.ui.questions.arming import REPEAT_SECONDS, Keyboard, SecondPress
from tui.ui.themes import STYLES, UiPreferences
from tui.ui.widgets.chat.composer import HistoryStorage
from tui.ui.widgets.header import NAME
from tui.ui.widgets.key_bar import why_not

if TYPE_CHECKING:
    from tui.ui.pending import PendingController
    from tui.ui.terminal.background import BackgroundReported

QUIT_KEY: Final = "ctrl+q"

LATER_STYLES: Final = tuple(STYLES / name for name in ("panes.tcss", "conversation.tcss"))
"""The style sheets of what the first frame does not show."""

_NO_COLOR: Final = NoColor()

_KEY_NAME: Final = re.compile(r"(?<=\^)[a-z]$|(?<![A-Za-z])[a-z][a-z0-9]+")
_PAGE_KEYS: Final = {"pgup": "PgUp", "pgdn": "PgDn"}

_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f]")


class ControlCharacterFilter(LineFilter):
    """Replace C0, DEL and C1 characters in what widgets draw.

    Text from outside is sanitized where it enters; this is the second line of defense, and
    covers what the user pastes. Control segments are the driver's own and pass.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:  # noqa: ARG002
        """Return the segments with each control character replaced by U+FFFD."""
        if not any(_CONTROL.search(segment.text) for segment in segments):
            return segments
        return [
            segment
            if segment.control is not None
            else Segment(_CONTROL.sub("\ufffd", segment.text), segment.style)
            for segment in segments
        ]


class GemdeckApp(App[int], inherit_bindings=False):
    """The deck.

    Args:
        store: Provides the snapshots.
        commands: Calls the engine.
        preferences: The look to start with, and how to save another.
        on_first_paint: Called once, after the first frame; slow work starts there.
        crash_dir: Where crash reports go; if None, none is written.
        history: Keeps sent messages between runs; if None, they are not kept.
        end_held: Ends the process, from any thread, while the event loop is held; it takes what
            gives the terminal back.

    Attributes:
        quit_keys: The keys that quit.
        is_leaving: Whether it ends.
        is_lent: Whether another program has the terminal.
        follows_terminal: Whether the theme is dark or light as the terminal is.
    """

    TITLE = NAME
    ENABLE_COMMAND_PALETTE = False
    BINDINGS = keymap.bindings(keymap.Place.EVERYWHERE)
    CSS_PATH: ClassVar[list[str | PurePath]] = [
        STYLES / name for name in ("deck.tcss", "chat.tcss")
    ]

    def __init__(
        self,
        store: Store,
        commands: Commands,
        *,
        preferences: UiPreferences,
        on_first_paint: Callable[[], None] = lambda: None,
        crash_dir: Path | None = None,
        history: HistoryStorage | None = None,
        end_held: Callable[[Callable[[], None]], None] = lambda _: None,
    ) -> None:
        super().__init__()
        self.commands = commands
        self.end_held = end_held
        self.quit_keys = [QUIT_KEY]
        self.is_leaving = self.is_lent = False
        self.bridge = StoreBridge(self, store, commands)
        self.keyboard = Keyboard()
        self._quitting: SecondPress[str] = SecondPress()
        self._preferences = preferences
        self._on_first_paint = on_first_paint
        self._crash_dir = crash_dir
        self._history = history
        self._control_filter = ControlCharacterFilter()
        self._own_keys: dict[str, str] = {}
        self._type_ahead = TypeAhead(self)
        self._copying = asyncio.Lock()
        self._has_painted = False
        self._settling = Delay(self)
        self._failed = False
        self._pending: PendingController | None = None
        for theme in themes.OWN:
            self.register_theme(theme)
        self.follows_terminal = preferences.theme not in self.available_themes
        self._start_with_theme(themes.DEFAULT if self.follows_terminal else preferences.theme)

    def _start_with_theme(self, theme: str) -> None:
        """Set the theme before any style is parsed.

        Assigning it makes Textual parse all styles twice before the first frame. A light theme,
        or one of the terminal's own colors, is assigned all the same: what Textual does with
        terminal colors by default only fits dark themes.
        """
        chosen = self.available_themes[theme]
        if chosen.ansi or not chosen.dark:
            self.theme = theme
            return
        self.set_reactive(GemdeckApp.theme, theme)
        self.add_class(f"-theme-{theme}", "-dark-mode", update=False)
        self.stylesheet.set_variables(self.get_css_variables())

    def use_theme(self, theme: str) -> None:
        """Change the theme, or let it follow the terminal from now on."""
        driver: Any = self._driver
        self.follows_terminal = theme == themes.AUTO
        if not self.follows_terminal:
            self.theme = theme
        elif hasattr(driver, "follow_background"):  # ours, which is none without a terminal
            driver.follow_background()

    def on_background_reported(self, reported: "BackgroundReported") -> None:
        """Follow the terminal, unless the user has chosen a theme meanwhile."""
        if self.follows_terminal:
            self.theme = (themes.DARK if reported.is_dark else themes.LIGHT).name

    def get_driver_class(self) -> type[Driver]:
        """Replace Textual's driver for terminals with ours; in tests there is none."""
        driver = super().get_driver_class()
        if driver.__name__ != "LinuxDriver":
            return driver
        from tui.ui.driver import DeckDriver  # noqa: PLC0415 - not for what has no terminal

        return DeckDriver

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        """Write only what differs from what the terminal shows."""
        changes = getattr(self._driver, "changes", lambda update: update)
        super()._display(screen, changes(renderable))

    @property
    def state(self) -> AppState:
        return self.bridge.state

    @property
    def deck(self) -> MainScreen:
        """The main screen, whatever dialogs are open over it."""
        screen = self.screen_stack[0]
        assert isinstance(screen, MainScreen)  # noqa: S101 - get_default_screen makes it so
        return screen

    def get_default_screen(self) -> Screen[Any]:
        panes = PaneRow(self.bridge, self._history, self.keyboard, self._preferences)
        return MainScreen(self.bridge, panes, self._type_ahead, self._own_keys)

    def on_resize(self) -> None:
        """Redraw everything once the size no longer changes.

        After several changes Textual draws only what differs at the end, and nothing if the size
        is what it was. The terminal has lost more.
        """
        if self._has_painted:
            self._settling.begin(wait=0.1, callback=self._redraw)

    def _redraw(self) -> None:
        if self.screen_stack:  # empty while the app closes
            self.screen.refresh()

    def on_mount(self) -> None:
        self.bridge.start()
        self.call_after_refresh(self._painted)

    def on_unmount(self) -> None:
        self.bridge.stop()

    async def _painted(self) -> None:
        """Go on with what the first frame did not wait for."""
        self._on_first_paint()
        self.stylesheet.read_all(LATER_STYLES)
        self.stylesheet.parse()
        try:
            await self.deck.panes.fill()
        except (MountError, NoMatches):  # an app that ends mounts nothing any more
            if self.is_leaving:
                return
            raise
        self.bridge.watch(self.deck, lambda state: state.keys, self.set_keymap)
        self._has_painted = True
        self._type_ahead.begin()
        from tui.ui.attention import Attention  # noqa: PLC0415 - after the first frame
        from tui.ui.pending import PendingController  # noqa: PLC0415 - ditto

        Attention(self, self.bridge, self.keyboard.clock)
        self._pending = PendingController(self, self.bridge, self.keyboard)
        self._pending.start()

    def set_keymap(self, keymap: Keymap) -> None:
        """Set the user's keys by binding id; all others keep their defaults."""
        self._own_keys.clear()
        self._own_keys.update(keymap)
        self.quit_keys = keymap.get("app.quit", QUIT_KEY).split(",")
        super().set_keymap(with_shared(keymap))

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Add ours; without colors, the terminal's own are left out instead of turned gray."""
        filters = super().get_line_filters()
        if self.no_color and self.native_ansi_color:
            filters = [_NO_COLOR if isinstance(one, Monochrome) else one for one in filters]
        return [*filters, self._control_filter]

    def get_key_display(self, binding: Binding) -> str:
        """Return a key as shown on the screen: ``F1``, ``^P``, ``PgUp``, ``Shift+↵``."""
        display = super().get_key_display(binding).replace("⏎", "↵")
        return _KEY_NAME.sub(lambda name: _PAGE_KEYS.get(name[0], name[0].title()), display)

    async def on_event(self, event: events.Event) -> None:
        """Let the questions know of each key, whatever takes it; keep those that come early."""
        if isinstance(event, events.InputEvent | events.Paste) and not self.screen_stack:
            return  # what is typed while the app ends: Textual fails on it
        if isinstance(event, events.MouseDown | events.MouseMove) and self._is_gone(event):
            return  # on which Textual fails, too
        if not self._type_ahead.keeps(event):
            active = None
            self.keyboard.hear(event, self)
            if isinstance(event, events.Key) and not event.is_forwarded:
                self.deck.keys.say("")
                if getattr(self.screen, "take_key", lambda _: False)(event.key):
                    return  # to bind it, whatever it does elsewhere
                active = self.screen.active_bindings.get(event.key)
            if active is not None and active.binding.id in keymap.FINDS:  # for what is typed next
                find = partial(self.run_action, active.binding.action, active.node)
                self._type_ahead.hold_for(find)
            else:
                await super().on_event(event)

    def _is_gone(self, event: events.MouseEvent) -> bool:
        """Tell whether a button is pressed on what is still drawn, but no longer there."""
        with suppress(NoWidget):
            return event.button != 0 and not self.screen.get_widget_at(*event.offset)[0].is_attached
        return False

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Let no cursor blink: that would be a repaint twice a second, for ever."""
        if isinstance(event.widget, Input | TextArea):
            event.widget.cursor_blink = False

    def on_key(self, event: events.Key) -> None:
        """Say in the foot why a key does nothing; it comes here if no widget took it."""
        if self.screen is self.deck and event.key not in self.screen.active_bindings:
            self.deck.keys.say(why_not(self, event.key, self._own_keys))

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,  # noqa: ARG002 - nothing is markup here
    ) -> None:
        """Show a toast: one short paragraph without markup, whoever wrote it."""
        words = toast_words(f"{title}: {message}" if title else message)
        super().notify(words, severity=severity, timeout=timeout, markup=False)

    def copy_to_clipboard(self, text: str) -> None:
        """Copy a text, and say where it has arrived, or who knows how else to get it."""
        self._clipboard = text
        is_secret = isinstance(self.focused, Input) and self.focused.password
        self.run_worker(self._bring(text, "" if is_secret else text))

    async def _bring(self, text: str, shown: str) -> None:
        from tui.engine.background import in_daemon_thread  # noqa: PLC0415 - on first use
        from tui.ui.terminal.clipboard import bring, terminal_takes  # noqa: PLC0415 - ditto

        places: list[str] = []
        takes: bool | None = True
        if not self.is_headless:
            async with self._copying:  # the last copy is the one that stays
                places = await in_daemon_thread(partial(bring, text, os.environ))
            takes = terminal_takes(len(text), os.environ)
        if not places and takes is not False:
            super().copy_to_clipboard(text)
        if places or takes:
            first, *others = shown.strip("\n").split("\n")
            amount = f"{counted(len(others) + 1, 'line')} " if others else ""
            where = " and ".join(places) or "the clipboard"
            words = f"Copied {amount}to {where}: {clip(first.strip(), limit=40)}"
        else:
            start = "This terminal cannot copy" if takes is False else "Sent to the terminal"
            words = f"{start}. Help: F1, Copying."
        toast = partial(self.notify, timeout=4, markup=False)
        getattr(self.screen, "say", toast)(words)  # no toast is drawn over a question

    @contextmanager
    def suspend(self) -> Iterator[None]:
        """Lend the terminal; what is typed meanwhile is not for us, whoever reads it."""
        self.is_lent = True
        try:
            with super().suspend():
                yield
                with suppress(termios.error):
                    termios.tcflush(0, termios.TCIFLUSH)
        finally:
            self.is_lent = False

    def action_press(self, key: str) -> None:
        """Press a key that was clicked.

        Later: a key that a screen or widget sends goes no further up than itself.
        """
        self.call_later(self.simulate_key, key)

    def action_open_question(self) -> None:
        """Open the waiting question."""
        if self._pending is not None:
            self._pending.open_now()

    async def action_step_aside(self, action: str) -> None:
        """Put the question away, and do on the main screen what its key does there."""
        if self._pending is not None:
            self._pending.put_away()
        if len(self.screen_stack) == 1 and not await self.run_action(action, self.deck):
            self.deck.keys.say(self.deck.why_not(*parse_action(action)[1:]))

    async def action_open(self, name: str) -> None:
        """Open what has a name."""
        if name == "palette" and self._pending is not None:
            self._pending.put_away()
        self._type_ahead.hold_for(partial(self._open_named, name))

    async def _open_named(self, name: str) -> None:
        from tui.ui.opening import open_named  # noqa: PLC0415 - with all dialogs, on first use

        await open_named(self.deck, name)

    @on(Opens)
    async def _open(self, asked: Opens) -> None:
        from tui.ui.opening import open_asked  # noqa: PLC0415 - with all dialogs, on first use

        asked.stop()
        await open_asked(self.deck, asked)

    def exit(
        self, result: int | None = None, return_code: int = 0, message: RenderableType | None = None
    ) -> None:
        """Quit, by whatever way; what was typed just now is saved."""
        if self.screen_stack:  # empty while the app closes
            self.deck.chat.keep_draft()
        self.is_leaving = True
        super().exit(result, return_code, message)

    async def action_quit(self) -> None:
        self.exit(0)

    def action_interrupt(self) -> None:
        """Stop the turn, else clear the message, else quit at the second press."""
        if len(self.screen_stack) == 1 and self.deck.chat.interrupt():
            self._quitting.forget()
        else:
            self.action_quit_at_second("^C")

    def action_quit_at_second(self, key: str) -> None:
        """Quit if it is the second press of a key, else say what a second one does."""
        if self._quitting.is_again(key):
            self.exit(0)
        else:
            turns = sum(one.turn is not None for one in self.state.conversations.values())
            running = f" {counted(turns, 'turn')} would be stopped." if turns else ""
            words = f"Press {key} again to quit.{running}"
            self.notify(words, timeout=REPEAT_SECONDS, markup=False)

    def _fatal_error(self) -> None:
        """End with a report in a file and one line on the terminal.

        Textual would print the stack with the values of local variables, such as keys and
        conversations, into the terminal's scrollback.
        """
        self.fail()

    def panic(self, *renderables: RenderableType) -> None:
        """End the same way if Textual would draw an error, which may quote its data.

        Textual's threads only pass a drawn traceback; the type of the error is kept.
        """
        self.fail(next(filter(None, map(_drawn_error, renderables)), None))

    def fail(self, error: BaseException | None = None) -> None:
        """End because of an internal error, with a report and one line on the terminal."""
        from tui.ui.crash import summarize, write_report  # noqa: PLC0415 - hardly ever needed

        if self._failed:
            return
        self._failed = True
        self._return_code = 1
        error = self._exception or error or RuntimeError("unknown")
        report = write_report(error, self._crash_dir) if self._crash_dir is not None else None
        super().panic(Text(summarize(error, report)))


def _drawn_error(renderable: RenderableType) -> BaseException | None:
    """Return the error that was to be drawn; for a drawn traceback, one with the same name."""
    if isinstance(renderable, BaseException):
        return renderable
    stacks = getattr(getattr(renderable, "trace", None), "stacks", None)
    return type(str(stacks[0].exc_type), (RuntimeError,), {})() if stacks else None
