"""A JSON editor in which every character is visible."""

import re
from typing import ClassVar, Final

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import TextArea
from textual.widgets.text_area import Edit, EditResult

from tui.model.input.arguments import reveal

MAX_EDITABLE: Final = 20_000
"""Characters that can be edited; every key lays all lines out again."""

MAX_HIGHLIGHTED_LINE: Final = 2_000
"""Characters of a line that is highlighted."""

_DECK_KEYS: Final = frozenset({"f6", "f7"})
"""Keys of `TextArea` that the deck binds itself."""

_TOKEN: Final = re.compile(
    r"""
    (?P<key>"(?:[^"\\]|\\.)*"(?=\s*:))
    | (?P<text>"(?:[^"\\]|\\.)*")
    | (?P<number>-?\d[\d.eE+-]*)
    | (?P<word>\b(?:true|false|null)\b)
    """,
    re.VERBOSE,
)


class JsonArea(TextArea, inherit_bindings=False):
    """Edit JSON, or another text. Invisible characters become escapes when they are inserted.

    Args:
        text: The initial text, without invisible characters.
        id: The widget's id.
        highlighted: Whether it is JSON.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "json-area--key",
        "json-area--text",
        "json-area--number",
        "json-area--word",
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        binding
        for binding in TextArea.BINDINGS
        if isinstance(binding, Binding) and binding.key not in _DECK_KEYS
    ]

    class TooLong(Message):
        """A paste was refused because it is too long."""

    def __init__(
        self,
        text: str,
        *,
        id: str | None = None,  # noqa: A002 - Textual's name
        highlighted: bool = True,
    ) -> None:
        self._is_highlighted = highlighted
        super().__init__(
            text,
            id=id,
            soft_wrap=True,
            show_line_numbers=True,
            highlight_cursor_line=False,
            tab_behavior="focus",
        )
        self.cursor_blink = False  # a blinking cursor repaints twice a second

    def edit(self, edit: Edit) -> EditResult:
        edit.text = reveal(edit.text)
        return super().edit(edit)

    def get_line(self, line_index: int) -> Text:
        """Return a line, highlighted."""
        line = super().get_line(line_index)
        if self._is_highlighted and len(line) <= MAX_HIGHLIGHTED_LINE:
            for token in _TOKEN.finditer(line.plain):
                style = self.get_component_rich_style(f"json-area--{token.lastgroup}", partial=True)
                line.stylize(style, *token.span())
        return line

    async def _on_key(self, event: events.Key) -> None:
        """Run the widget's own keys at once, in the order in which they were pressed.

        If the app ran them, they could overtake letters typed just before. For all other keys
        Textual calls the text area's own method next.
        """
        if event.is_printable:
            return
        active = self.screen.active_bindings.get(event.key)
        if active is not None and active.node is self:
            event.stop()
            event.prevent_default()
            await self.run_action(active.binding.action)

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
