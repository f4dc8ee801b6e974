"""The messages that wait for the end of the running turn, above the composer."""

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from tui.ui import keymap
from tui.ui.widgets.text.plain import one_line

MAX_SHOWN = 200
"""Characters drawn of one message."""


class QueuedMessages(OptionList):
    """One row for each message that waits; hidden while there is none."""

    ALLOW_SELECT: ClassVar[bool] = False
    BINDING_GROUP_TITLE = "Queued messages"
    HELP = "They are sent one by one, each once the turn before it has ended."
    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(keymap.Place.QUEUE)

    class Taken(Message):
        """A message is wanted back, or no more."""

        def __init__(self, text: str, *, give_back: bool) -> None:
            super().__init__()
            self.text = text
            self.give_back = give_back

    class Closed(Message):
        """The user goes back to the composer."""

    def __init__(self) -> None:
        super().__init__(markup=False, compact=True)
        self._texts: Sequence[str] = ()
        self.display = False

    def show(self, texts: Sequence[str]) -> None:
        """Show these messages, the next one first."""
        at, self._texts = self.highlighted, texts
        had_focus = self.has_focus
        self.set_options(Option(_row(text)) for text in texts)
        self.highlighted = min(at if at is not None else len(texts), len(texts) - 1)
        self.display = bool(texts)
        if had_focus and not texts:
            self.post_message(self.Closed())

    def on_focus(self) -> None:
        self.highlighted = len(self._texts) - 1

    def action_take_back(self) -> None:
        self._take(give_back=True)

    def action_drop(self) -> None:
        self._take(give_back=False)

    def action_close(self) -> None:
        self.post_message(self.Closed())

    def _take(self, *, give_back: bool) -> None:
        if self.highlighted is not None:
            self.post_message(self.Taken(self._texts[self.highlighted], give_back=give_back))


def _row(text: str) -> Content:
    return Content(f"  · {one_line(text[:MAX_SHOWN])}")
