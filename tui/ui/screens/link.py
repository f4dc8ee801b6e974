"""Asks before a link of the model is opened, and shows where it leads, to the last character."""

from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.getters import query_one
from textual.screen import ModalScreen
from textual.widgets import Button, OptionList
from textual.widgets.option_list import Option

from tui.text import clip
from tui.ui.screens.dialog import DIALOG_STYLES
from tui.ui.screens.reading import position_of
from tui.ui.widgets.labelled_text import LabelledLine, LabelledText
from tui.ui.widgets.links import Link, examine, is_plain_http

MAX_LINKS: Final = 50
"""Links of one text that are offered."""

MAX_LABEL: Final = 200
"""Characters of an address in the list of links; below, the chosen one is shown whole."""

MAX_LISTED_ROWS: Final = 8
"""Rows of the list of links; it scrolls where they take more."""

OTHER_ROWS: Final = 6
"""Rows that are neither links nor the address: frame, air, buttons."""

UNSEEN: Final = "scroll to its end: Tab, End"
"""Stands at the frame for as long as the link cannot be opened because of that."""


class LinkScreen(ModalScreen[None]):
    """Shows the host and the full address of a link; opens it only when told to.

    It cannot be opened before the end of its address was in sight.

    Args:
        urls: The addresses to choose from.
        open_url: Opens one.
    """

    BINDING_GROUP_TITLE = "Link"
    CSS_PATH = DIALOG_STYLES
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "close", id="link.close", key_display="esc"),
        Binding("c", "copy", "copy", id="link.copy"),
    ]

    dialog = query_one("#link", Vertical)
    target = query_one(LabelledText)

    def __init__(self, urls: Sequence[str], open_url: Callable[[str], None]) -> None:
        super().__init__()
        self._links: list[Link] = [examine(url) for url in urls[:MAX_LINKS]]
        self._open_url = open_url
        self._link = self._links[0]
        self._room = 1
        self._seen = False

    def compose(self) -> ComposeResult:
        """Lay out the choice of links, the address and the buttons."""
        with Vertical(id="link") as dialog:
            dialog.border_title = Content("Open a link of the model?")
            if len(self._links) > 1:
                yield OptionList(
                    *(Option(Content(clip(link.url, MAX_LABEL))) for link in self._links),
                    markup=False,
                    compact=True,
                )
            yield LabelledText()
            with Horizontal(classes="buttons"):
                yield Button(Content("Open"), id="link-open", compact=True)
                yield Button(Content("Copy"), id="link-copy", compact=True)
                yield Button(Content("Close"), id="link-close", compact=True)

    def on_mount(self) -> None:
        """Show the first address; the safe button has focus."""
        self.watch(self.target, "scroll_y", self._look, init=False)
        self._show(self._links[0])
        if len(self._links) > 1:
            self.query_one(OptionList).focus()
        else:
            self.query_one("#link-close").focus()

    def on_resize(self) -> None:
        """Bound the address, so that the buttons are in sight whatever its length."""
        height, listed = self.app.size.height, 0
        if len(self._links) > 1:
            listed = min(MAX_LISTED_ROWS, max(1, height // 4))
            self.query_one(OptionList).styles.max_height = listed
        self._room = max(1, height - OTHER_ROWS - listed)
        self.target.styles.max_height = self._room
        self.call_after_refresh(self._look)

    def action_close(self) -> None:
        """Open nothing."""
        self.dismiss()

    def action_copy(self) -> None:
        """Copy the address."""
        self.app.copy_to_clipboard(self._link.url)
        self.notify("Copied.", timeout=2)

    @on(OptionList.OptionHighlighted)
    def _choose(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        self._show(self._links[event.option_index])

    @on(OptionList.OptionSelected)
    def _go_to_buttons(self) -> None:
        if self._link.refusal:
            self.query_one("#link-close").focus()
        else:
            self.query_one("#link-open" if self._seen else LabelledText).focus()

    @on(Button.Pressed)
    def _press(self, event: Button.Pressed) -> None:
        match event.button.id:
            case "link-open":
                self._open()
            case "link-copy":
                self.action_copy()
            case _:
                self.dismiss()

    def _open(self) -> None:
        if not self._seen:
            return
        if not self._link.refusal:
            self._open_url(self._link.url)
        self.dismiss()

    def _show(self, link: Link) -> None:
        self._link, self._seen = link, False
        lines = [
            LabelledLine("host", link.host or "none", "bold"),
            LabelledLine("address", link.url),
        ]
        if link.refusal:
            lines.append(LabelledLine("refused", link.refusal, "$text-error", wraps=True))
        elif is_plain_http(link):
            words = "The connection would not be encrypted."
            lines.append(LabelledLine("! warning", words, "$text-warning", wraps=True))
        self.target.show_lines(lines)
        self._show_state()
        self.call_after_refresh(self._look)

    def _look(self) -> None:
        """Take note of what of the address is in sight."""
        self._seen = self._seen or position_of(self.target, self._room).shows_end
        self._show_state()

    def _show_state(self) -> None:
        may_open = self._seen and not self._link.refusal
        self.query_one("#link-open", Button).disabled = not may_open
        self.dialog.border_subtitle = Content("" if self._seen else UNSEEN)
