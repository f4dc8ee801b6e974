"""The dialog that chooses a theme; the one under the cursor is shown at once."""

from typing import Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.getters import app
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from tui.ui import themes
from tui.ui.app import GemdeckApp
from tui.ui.screens.dialog import Dialog
from tui.ui.widgets.key_bar import key_hints
from tui.ui.widgets.text.plain import fit

NAME_WIDTH: Final = 22
"""Cells of the column of names."""


class ThemeScreen(Dialog):
    """Offer gemdeck's themes, then Textual's; Esc brings back the one before."""

    app = app(GemdeckApp)

    def __init__(self) -> None:
        super().__init__()
        self._names = themes.in_order(self.app.available_themes)
        self._before = self.app.theme

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog choice") as frame:
            frame.border_title = "Theme"
            frame.border_subtitle = key_hints(("↵", "choose"), ("Esc", "back"))
            yield OptionList(*map(self._option, self._names), markup=False, compact=True)

    def on_mount(self) -> None:
        choices = self.query_one(OptionList)
        choices.highlighted = self._names.index(self._before)
        choices.focus()

    @on(OptionList.OptionHighlighted)
    def _preview(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        self.app.theme = self._names[event.option_index]

    @on(OptionList.OptionSelected)
    def _choose(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.app.choose_theme(self._names[event.option_index])
        self.dismiss()

    def action_close(self) -> None:
        self.app.theme = self._before
        self.dismiss()

    def _option(self, name: str) -> Option:
        theme = self.app.available_themes[name]
        kind = "16 colors" if theme.ansi else "dark" if theme.dark else "light"
        note = f"{kind} · current" if name == self._before else kind
        return Option(Content.assemble(fit(name, NAME_WIDTH), (note, "$text-muted")))
