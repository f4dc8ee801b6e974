"""The viewer: the whole of a text that the transcript shows only in part."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from tui.text import clip, counted
from tui.ui.screens.dialog import DIALOG_STYLES
from tui.ui.widgets.folded_text import FoldedText

MAX_TITLE = 100
"""Characters of the title."""


class ViewerScreen(ModalScreen[None]):
    """Shows a text, plain and complete."""

    BINDING_GROUP_TITLE = "Viewer"
    CSS_PATH = DIALOG_STYLES
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,v", "close", "close", id="viewer.close", key_display="esc"),
        Binding("c", "copy", "copy all", id="viewer.copy"),
    ]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title = title
        self._text = text

    def compose(self) -> ComposeResult:
        """Lay out the text and a line of keys."""
        lines = self._text.count("\n") + 1
        with Vertical(id="viewer") as dialog:
            dialog.border_title = Content(clip(self._title, MAX_TITLE))
            dialog.border_subtitle = Content(
                f"{counted(lines, 'line')} · {counted(len(self._text), 'character')}"
            )
            yield FoldedText(self._text, wrap=True, id="viewer-text")
            yield Static("↑↓ PageUp PageDown move   c copies all   Esc closes", id="viewer-keys")

    def on_mount(self) -> None:
        """Let the keys scroll the text."""
        self.query_one(FoldedText).focus()

    def action_close(self) -> None:
        """Go back to the conversation."""
        self.dismiss()

    def action_copy(self) -> None:
        """Copy the whole text."""
        self.app.copy_to_clipboard(self._text)
        self.notify("Copied.", timeout=2)
