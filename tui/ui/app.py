"""The Textual app: one main screen over a store, and the ways in and out of it."""

from collections.abc import Callable, Sequence
from pathlib import Path, PurePath
from typing import Any, ClassVar, Final

from rich.console import RenderableType
from rich.text import Text
from textual.app import App
from textual.binding import Binding, BindingType, Keymap
from textual.command import CommandPalette, Provider
from textual.driver import Driver
from textual.filter import LineFilter
from textual.screen import Screen
from textual.theme import Theme
from textual.timer import Timer

from tui.store.commands import Commands
from tui.store.state import AppState
from tui.store.store import StateSource
from tui.ui import keymap, themes
from tui.ui.bridge import StoreBridge
from tui.ui.output_filter import ControlCharacterFilter
from tui.ui.preferences import UiPreferences
from tui.ui.screens.main import MainScreen
from tui.ui.widgets.header import NAME
from tui.ui.widgets.history import HistoryStorage

SETTLE_SECONDS: Final = 0.1
"""Seconds without a change of size after which all is drawn anew."""

STYLES: Final = Path(__file__).parent / "styles"
"""Where the style sheets are; absolute, so that a subclass elsewhere finds them."""


def _deck_commands() -> type[Provider]:
    """Load the palette's entries when it is first opened."""
    from tui.ui.providers import DeckCommands  # noqa: PLC0415

    return DeckCommands


class GemdeckApp(App[int], inherit_bindings=False):
    """The deck.

    Args:
        store: Where snapshots come from.
        commands: The way to the engine.
        preferences: The look to start with, and how a change is remembered.
        on_first_paint: Called once, after the first frame was drawn. What is slow starts there.
        crash_dir: Where reports of internal errors go; without it none is written.
        history: Where sent messages are kept between runs; without it they are not.
    """

    TITLE = NAME
    ENABLE_COMMAND_PALETTE = True
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {_deck_commands}
    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(keymap.Place.EVERYWHERE)
    CSS_PATH: ClassVar[list[str | PurePath]] = [
        STYLES / name for name in ("deck.tcss", "panes.tcss", "chat.tcss")
    ]

    def __init__(
        self,
        store: StateSource,
        commands: Commands,
        *,
        preferences: UiPreferences,
        on_first_paint: Callable[[], None] | None = None,
        crash_dir: Path | None = None,
        history: HistoryStorage | None = None,
    ) -> None:
        super().__init__()
        self.commands = commands
        self.bridge = StoreBridge(self, store)
        self._preferences = preferences
        self._on_first_paint = on_first_paint
        self._crash_dir = crash_dir
        self._history = history
        self._control_filter = ControlCharacterFilter()
        self._own_keys: dict[str, str] = {}
        self._has_painted = False
        self._settling: Timer | None = None
        self._failed = False
        self.register_theme(themes.DARK)
        self.register_theme(themes.LIGHT)
        known = preferences.theme in self.available_themes
        self._begin_with(preferences.theme if known else themes.DEFAULT)

    def _begin_with(self, theme: str) -> None:
        """Choose the theme before any style was parsed.

        Where it is assigned, as it may be later, Textual parses all styles twice before the
        first frame. Its default for colours of the terminal fits dark themes alone.
        """
        if not self.available_themes[theme].dark:
            self.theme = theme
            return
        self.set_reactive(GemdeckApp.theme, theme)
        self.add_class(f"-theme-{theme}", "-dark-mode", update=False)
        self.stylesheet.set_variables(self.get_css_variables())

    def get_driver_class(self) -> type[Driver]:
        """Take the driver that survives its terminal, where Textual would take its own."""
        driver = super().get_driver_class()
        if driver.__name__ != "LinuxDriver":
            return driver
        from tui.ui.driver import DeckDriver  # noqa: PLC0415 - does not exist on Windows

        return DeckDriver

    @property
    def state(self) -> AppState:
        """The current snapshot."""
        return self.bridge.state

    @property
    def deck(self) -> MainScreen:
        """The main screen, whatever lies over it."""
        screen = self.screen_stack[0]
        assert isinstance(screen, MainScreen)  # noqa: S101 - get_default_screen makes it so
        return screen

    def get_default_screen(self) -> Screen[Any]:
        """Begin with the main screen."""
        return MainScreen(self.bridge, self.commands, self._history)

    def on_resize(self) -> None:
        """Draw all anew once the size rests.

        Of many changes in a row Textual draws only what it finds changed at the last one, and
        nothing where the size came back to what it was. The terminal has lost more.
        """
        if not self._has_painted:
            return
        if self._settling is not None:
            self._settling.stop()
        self._settling = self.set_timer(SETTLE_SECONDS, self._draw_anew)

    def _draw_anew(self) -> None:
        self._settling = None
        if self.screen_stack:  # which is empty once the app is closing
            self.screen.refresh()

    def on_mount(self) -> None:
        """Listen to the store; start what waits for the first frame."""
        self.bridge.start()
        self.theme_changed_signal.subscribe(self, self._remember_theme)
        self.call_after_refresh(self._painted)

    def on_unmount(self) -> None:
        """Listen no longer."""
        self.bridge.stop()

    def _painted(self) -> None:
        self._has_painted = True
        callback, self._on_first_paint = self._on_first_paint, None
        if callback is not None:
            callback()
        from tui.ui.pending import PendingController  # noqa: PLC0415 - after the first frame

        self._pending = PendingController(self, self.bridge, self.commands)
        self._pending.start()
        self.deck.side.call_next(self.deck.side.fill)

    def _remember_theme(self, theme: Theme) -> None:
        self._preferences.save(theme.name)

    def set_keymap(self, keymap: Keymap) -> None:
        """Use these keys for these binding ids, and the default keys for all others."""
        self._own_keys = dict(keymap)
        super().set_keymap(keymap)

    def update_keymap(self, keymap: Keymap) -> None:
        """Use these keys for these binding ids beside those that were set before."""
        self._own_keys |= keymap
        super().update_keymap(keymap)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Let nothing reach the terminal that it would act on."""
        return [*super().get_line_filters(), self._control_filter]

    def get_key_display(self, binding: Binding) -> str:
        """Write keys as they stand on a keyboard: ``F1``, ``^P``."""
        display = super().get_key_display(binding)
        is_named = len(display) > 1 and (display[0] == "^" or display[1:].isdigit())
        return display.upper() if is_named else display

    async def action_quit(self) -> None:
        """Quit at once."""
        self.exit(0)

    def action_command_palette(self) -> None:
        """Open the palette."""
        from tui.ui.providers import DeckPalette  # noqa: PLC0415 - on first use

        if not isinstance(self.screen, CommandPalette):
            self.push_screen(DeckPalette(id="--command-palette"))

    def action_help(self) -> None:
        """Show the keys, those of the focused pane first."""
        from tui.ui.screens.help import HelpScreen, lines_here  # noqa: PLC0415 - on first use

        here = lines_here(self, self.screen.active_bindings)
        self.push_screen(HelpScreen(here, self._own_keys))

    def _fatal_error(self) -> None:
        """End with a report in a file and one line on the terminal.

        Textual's own way prints the stack with the values of local variables, among them keys
        and conversations, into the scroll-back of the terminal.
        """
        self._fail()

    def panic(self, *renderables: RenderableType) -> None:
        """End the same way where an error would draw itself, which may quote what it holds.

        Threads of Textual hand over a drawn traceback only; the kind of their error is kept.
        """
        self._fail(next(filter(None, map(_drawn_error, renderables)), None))

    def _fail(self, error: BaseException | None = None) -> None:
        from tui.ui.crash import summarize, write_report  # noqa: PLC0415 - hardly ever needed

        if self._failed:
            return
        self._failed = True
        self._return_code = 1
        error = self._exception or error or RuntimeError("unknown")
        report = write_report(error, self._crash_dir) if self._crash_dir is not None else None
        super().panic(Text(summarize(error, report)))


def _drawn_error(renderable: RenderableType) -> BaseException | None:
    """Give the error that was to be drawn; of a drawn traceback, one of the same name."""
    if isinstance(renderable, BaseException):
        return renderable
    stacks = getattr(getattr(renderable, "trace", None), "stacks", None)
    return type(str(stacks[0].exc_type), (RuntimeError,), {})() if stacks else None
