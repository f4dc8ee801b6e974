"""Asks before a link of the model is opened, and shows where it leads."""

from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, OptionList, Static
from textual.widgets.option_list import Option

from tui.text import clip
from tui.ui.screens.dialog import DIALOG_STYLES
from tui.ui.widgets.links import Link, examine, is_plain_http

MAX_LINKS: Final = 50
"""Links of one text that are offered."""

MAX_SHOWN_URL: Final = 1_000
"""Characters of an address that the dialog shows."""


class LinkScreen(ModalScreen[None]):
    """Shows the host and the full address of a link; opens it only when told to.

    Args:
        urls: The addresses to choose from.
        open_url: Opens one; tells whether there was a way to.
    """

    BINDING_GROUP_TITLE = "Link"
    CSS_PATH = DIALOG_STYLES
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "close", id="link.close", key_display="esc"),
        Binding("c", "copy", "copy", id="link.copy"),
    ]

    def __init__(self, urls: Sequence[str], open_url: Callable[[str], bool]) -> None:
        super().__init__()
        self._links: list[Link] = [examine(url) for url in urls[:MAX_LINKS]]
        self._open_url = open_url
        self._link = self._links[0]

    def compose(self) -> ComposeResult:
        """Lay out the choice of links, the address and the buttons."""
        with Vertical(id="link") as dialog:
            dialog.border_title = Content("Open a link of the model?")
            if len(self._links) > 1:
                yield OptionList(
                    *(Option(Content(clip(link.url, 200))) for link in self._links),
                    markup=False,
                    compact=True,
                )
            yield Static("", markup=False, id="link-target")
            with Horizontal(classes="buttons"):
                yield Button(Content("Open"), id="link-open", compact=True)
                yield Button(Content("Copy"), id="link-copy", compact=True)
                yield Button(Content("Close"), id="link-close", compact=True)

    def on_mount(self) -> None:
        """Show the first address; the safe button has focus."""
        self._show(self._links[0])
        if len(self._links) > 1:
            self.query_one(OptionList).focus()
        else:
            self.query_one("#link-close").focus()

    def action_close(self) -> None:
        """Open nothing."""
        self.dismiss()

    def action_copy(self) -> None:
        """Copy the address."""
        self.app.copy_to_clipboard(self._link.url)
        self.notify("Copied.", timeout=2)

    @on(OptionList.OptionHighlighted)
    def _choose(self, event: OptionList.OptionHighlighted) -> None:
        self._show(self._links[event.option_index])

    @on(OptionList.OptionSelected)
    def _go_to_buttons(self) -> None:
        self.query_one("#link-open" if not self._link.refusal else "#link-close").focus()

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
        if not self._link.refusal and not self._open_url(self._link.url):
            self.notify("There is no program here to open links with.", severity="warning")
        self.dismiss()

    def _show(self, link: Link) -> None:
        self._link = link
        lines = [
            Content.assemble(("host     ", "$foreground-muted"), (link.host or "none", "bold")),
            Content.assemble(("address  ", "$foreground-muted"), clip(link.url, MAX_SHOWN_URL)),
        ]
        if link.refusal:
            lines.append(Content.styled(link.refusal, "$text-error"))
        elif is_plain_http(link):
            lines.append(Content.styled("The connection would not be encrypted.", "$text-warning"))
        self.query_one("#link-target", Static).update(Content("\n").join(lines))
        self.query_one("#link-open", Button).disabled = bool(link.refusal)
