"""The answers to the questions on folders and changed tools, and what keys mean to them."""

from dataclasses import dataclass
from typing import Final

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content

from tui.ui import keymap
from tui.ui.screens.arming import KeyKind

SCROLL_KEYS: Final = frozenset({"up", "down", "pageup", "pagedown", "home", "end"})
"""Keys that scroll; they work before an answer counts."""

FOCUS_KEYS: Final = frozenset({"left", "right", "tab", "shift+tab"})
"""Keys that move the focus."""


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


@dataclass(frozen=True, slots=True)
class DisclosureAnswer:
    """One of the answers there are.

    Attributes:
        name: The id of its button, and the end of the id of its binding.
        keys: Textual's names of its keys; the first one stands on the button.
        words: What it does, in help and hints.
        label: The words on the button.
        short: The same where columns are few.
        allows: Whether something may run or be offered with it.
        twice: Whether its key has to be pressed again.
    """

    name: str
    keys: str
    words: str
    label: str
    short: str = ""
    allows: bool = False
    twice: bool = False

    def binding(self, prefix: str) -> Binding:
        """Give the binding of its keys; it names no action, so that only a key here answers."""
        binding_id = f"{prefix}.{self.name}"
        return Binding(self.keys, "none", self.words, id=binding_id, tooltip=self.words)

    def button_label(self, *, short: bool) -> Content:
        """Give the label of its button, the key first."""
        words = self.short if short and self.short else self.label
        return Content.assemble((self.keys[0], "bold underline"), f" {words}")


def kind_of(event: events.Key, answer: DisclosureAnswer | None, *, again: bool) -> KeyKind:
    """Tell what a key means to the question.

    Args:
        event: The key.
        answer: The answer it gives, if any.
        again: Whether it confirms the key before it.
    """
    if answer is not None:
        return KeyKind.REPEAT if again else KeyKind.ANSWER
    if event.key in SCROLL_KEYS | FOCUS_KEYS:
        return KeyKind.MOVE
    if event.key == "enter":
        return KeyKind.ANSWER
    return KeyKind.TEXT if event.is_printable else KeyKind.OTHER
