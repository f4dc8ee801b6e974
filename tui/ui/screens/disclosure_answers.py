"""The answers to the questions on folders and changed tools."""

from dataclasses import dataclass

from textual.binding import Binding
from textual.content import Content


@dataclass(frozen=True, slots=True)
class DisclosureAnswer:
    """One of the answers there are.

    Attributes:
        name: The id of its button, and the end of the id of its binding.
        keys: Textual's names of its keys; the first one stands on the button.
        words: What it does, in help and hints.
        label: The words on the button.
        short: The same where columns are few.
        brief: What it does, in hints where columns are few; nothing where no hint says it.
        allows: Whether something may run or be offered with it.
        twice: Whether its key has to be pressed again.
    """

    name: str
    keys: str
    words: str
    label: str
    short: str = ""
    brief: str = ""
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

    def question(self, key: str, *, short: bool) -> str:
        """Ask for its key once more, and say what that does."""
        return f"{key} again: {self.brief}" if short else f"Press {key} again: {self.words}"
