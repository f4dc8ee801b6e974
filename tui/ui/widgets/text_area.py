"""The base of what long texts are typed into."""

from textual.widgets import TextArea

from tui.ui import keymap


class DeckTextArea(TextArea, inherit_bindings=False):
    """A text area in which several lines can be undone, by another key than Ctrl+Z."""

    BINDINGS = keymap.bindings("composer.undo")

    def _recompute_cursor_offset(self) -> None:
        """Bear a cursor beyond the text: Textual moves it last, after it has laid out the rest."""
        cursor = self.clamp_visitable(self.cursor_location)
        self._cursor_offset = self.wrapped_document.location_to_offset(cursor)
