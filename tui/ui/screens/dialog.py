"""What the dialogs that only show something have in common."""

from pathlib import Path
from typing import ClassVar, Final

from textual.binding import BindingType
from textual.screen import ModalScreen
from textual.types import CSSPathType

from tui.ui import keymap

DIALOG_STYLES: Final = Path(__file__).parent.parent / "styles" / "dialogs.tcss"
"""Read when the first dialog opens, so that the first frame does not wait for it."""


class Dialog(ModalScreen[None]):
    """A page over the main screen that Esc closes."""

    CSS_PATH: ClassVar[CSSPathType | None] = DIALOG_STYLES
    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(only=("dialog.close",))

    def action_close(self) -> None:
        """Go back."""
        self.dismiss()
