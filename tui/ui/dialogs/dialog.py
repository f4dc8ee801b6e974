"""The base of dialogs, and the viewer of a long text."""

from pathlib import Path
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.types import CSSPathType

from tui.text import clip, counted
from tui.ui import keymap
from tui.ui.widgets.key_bar import key_hints
from tui.ui.widgets.text.folded_text import FoldedText

MAX_TITLE: Final = 100
"""Characters of the viewer's title."""

DIALOG_STYLES: Final = Path(__file__).parent.parent / "styles" / "dialogs.tcss"
"""Loaded with the first dialog, so that the first frame does not wait for it."""


class Dialog(ModalScreen[None]):
    """A modal screen that Esc closes."""

    CSS_PATH: ClassVar[CSSPathType | None] = DIALOG_STYLES
    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(only=("dialog.close", "app.help"))

    def action_close(self) -> None:
        self.dismiss()


class ViewerScreen(Dialog):
    """Show a long text in full."""

    BINDING_GROUP_TITLE = "Viewer"
    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(keymap.Place.VIEWER)

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title = title
        self._text = text

    def compose(self) -> ComposeResult:
        lines = self._text.count("\n") + 1
        with Vertical(id="viewer") as dialog:
            size = f"  {counted(lines, 'line')} · {counted(len(self._text), 'character')}"
            dialog.border_title = Content.assemble(
                clip(self._title, MAX_TITLE), (size, "not bold $text-muted")
            )
            dialog.border_subtitle = key_hints(
                ("↑↓ PgUp PgDn", "scroll"), ("c", "copy all"), ("Esc", "close")
            )
            yield FoldedText(self._text, wrap=True, id="viewer-text")

    def on_mount(self) -> None:
        self.query_one(FoldedText).focus()

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self._text)
        self.notify("Copied.", timeout=2)
