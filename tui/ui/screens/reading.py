"""Questions about a text that has to be read to its end before an answer that allows."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Final, TypeVar

from textual import events
from textual.binding import Binding, BindingType
from textual.errors import NoWidget

from tui.ui import keymap
from tui.ui.screens.armed_screen import ArmedScreen
from tui.ui.screens.arming import KeyKind
from tui.ui.widgets.folded_text import FoldedText

A = TypeVar("A")

SCROLL_KEYS: Final = frozenset({"up", "down", "pageup", "pagedown", "home", "end"})
"""Keys that scroll; they work before an answer counts."""

FOCUS_KEYS: Final = frozenset({"left", "right", "tab", "shift+tab"})
"""Keys that move the focus."""

WORDY: Final = 72
"""Columns from which the buttons and the last line have all their words."""

SCROLLING: Final[list[BindingType]] = [
    *keymap.bindings(only=("app.help",)),
    Binding("up", "scroll(-1)", "Scroll up", show=False),
    Binding("down", "scroll(1)", "Scroll down", show=False),
    Binding("pageup", "page(-1)", "Page up", show=False),
    Binding("pagedown", "page(1)", "Page down", show=False),
    Binding("home", "edge(-1)", "To the start", show=False),
    Binding("end", "edge(1)", "To the end", show=False),
    Binding("left", "app.focus_previous", "Button before", show=False),
    Binding("right", "app.focus_next", "Button after", show=False),
]
"""The keys of each of these screens beside its answers."""

_UNARMED_HINTS: Final = (
    "One moment: keys count once you have stopped typing.",
    "One moment: stop typing first.",
)


class ReadingScreen(ArmedScreen[A]):
    """A question with a text that keys scroll, whatever has the focus."""

    FREE_KEYS: ClassVar[frozenset[str]] = SCROLL_KEYS

    @property
    @abstractmethod
    def scrolled(self) -> FoldedText:
        """The text that the keys scroll now."""

    def kind_of(self, event: events.Key, answer: A | None, *, again: bool) -> KeyKind:
        """Tell what a key means: an answer, a look around, or writing meant for elsewhere."""
        if answer is not None:
            return KeyKind.REPEAT if again else KeyKind.ANSWER
        if event.key in SCROLL_KEYS | FOCUS_KEYS:
            return KeyKind.MOVE
        if event.key == "enter":
            return KeyKind.ANSWER
        return KeyKind.TEXT if event.is_printable else KeyKind.OTHER

    def action_scroll(self, rows: int) -> None:
        """Scroll the text."""
        self.scrolled.scroll_relative(y=rows, animate=False, immediate=True)

    def action_page(self, pages: int) -> None:
        """Scroll the text by pages."""
        self.action_scroll(pages * self.scrolled.size.height)

    def action_edge(self, direction: int) -> None:
        """Scroll to the start or the end of the text."""
        if direction < 0:
            self.scrolled.scroll_home(animate=False, immediate=True)
        else:
            self.scrolled.scroll_end(animate=False, immediate=True)

    @property
    def unarmed_hint(self) -> str:
        """What the last line says while no answer counts."""
        return _UNARMED_HINTS[self.app.size.width < WORDY]


@dataclass(frozen=True, slots=True)
class Position:
    """What of a text is in sight: the first row there, how many there are, how many fit."""

    first: int
    rows: int
    height: int

    @property
    def fits(self) -> bool:
        """Whether all of it is in sight."""
        return self.rows <= self.height

    @property
    def shows_end(self) -> bool:
        """Whether its last row is in sight."""
        return bool(self.rows and self.height) and self.first - 1 + self.height >= self.rows

    @property
    def where(self) -> str:
        """Say where in the text the view stands."""
        return f"line {self.first:,} of {self.rows:,}"

    def end_hint(self, *, short: bool) -> str:
        """Ask for a look at the end of the text."""
        if short:
            return f"Scroll to the end first: End {self.first:,}/{self.rows:,}"
        return f"Scroll to the end first: End · {self.where}"


def position_of(text: FoldedText, room: int) -> Position:
    """Tell what of a text is in sight.

    Args:
        text: The text.
        room: The most rows it will have once it is laid out anew.
    """
    try:
        place = text.screen.find_widget(text)
    except NoWidget:
        return Position(1, text.row_count, 0)
    visible = place.visible_region
    drawn = visible.bottom - place.region.y if visible else 0
    return Position(text.scroll_offset.y + 1, text.row_count, min(drawn, text.size.height, room))
