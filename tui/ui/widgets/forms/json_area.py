"""A JSON editor in which every character is visible."""

from typing import ClassVar, Final

from textual import events
from textual.binding import BindingType
from textual.message import Message
from textual.widgets.text_area import Edit, EditResult

from tui.model.input.arguments import reveal
from tui.ui import keymap
from tui.ui.widgets.chat.composer import DeckTextArea

MAX_EDITABLE: Final = 20_000
"""Characters that can be edited; every key lays all lines out again."""


class JsonArea(DeckTextArea):
    """Edit JSON, or another text. Invisible characters become escapes when they are inserted.

    Args:
        text: The initial text, without invisible characters.
        id: The widget's id.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*keymap.of_text_area("f6", "f7")]

    class TooLong(Message):
        """A paste was refused because it is too long."""

    def __init__(self, text: str, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(text, id=id, show_line_numbers=True, highlight_cursor_line=False)

    def edit(self, edit: Edit) -> EditResult:
        edit.text = reveal(edit.text)
        return super().edit(edit)

    async def _on_key(self, event: events.Key) -> None:
        """Run the widget's own keys at once, in the order in which they were pressed."""
        if not event.is_printable:
            await keymap.run_own(self, event)

    async def _on_paste(self, event: events.Paste) -> None:
        """Insert a paste in full or not at all."""
        if self._has_room(event.text):
            await super()._on_paste(event)
        event.stop()
        event.prevent_default()

    def action_paste(self) -> None:
        """Insert the app's clipboard in full or not at all."""
        if self._has_room(self.app.clipboard):
            super().action_paste()

    def _has_room(self, text: str) -> bool:
        if len(self.text) + len(reveal(text[: MAX_EDITABLE + 1])) <= MAX_EDITABLE:
            return True
        self.post_message(self.TooLong())
        return False
