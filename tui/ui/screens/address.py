"""An address that a server asks to open."""

from collections.abc import Iterable
from typing import ClassVar, Final

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widget import Widget

from tui.model.requests import Reply, ReplyAction, UrlRequest
from tui.text import clip, counted
from tui.ui.screens.reading import position_of
from tui.ui.screens.server_question import (
    MAX_TEXT_ROWS,
    QuestionScreen,
    section_heading,
    server_words,
)
from tui.ui.widgets.folded_text import FoldedText
from tui.ui.widgets.plain import PlainText, one_line

MAX_WARNING: Final = 300
"""Characters of a warning."""

UNSEEN: Final = "Not opened yet: scroll to the end of the address first (Tab, End)."


class AddressScreen(QuestionScreen[UrlRequest]):
    """Shows where an address leads, whole. Opening it is the engine's work, once accepted."""

    TITLE_LINE = "A server asks you to open an address"
    HELP = "A server asks you to open an address. Nothing is opened or fetched until you say so."
    ARMED_HINT = "← → Tab move · ↵ presses · gemdeck does not see what you do there"
    BUTTONS = (
        (ReplyAction.ACCEPT, "o", "Open"),
        (ReplyAction.DECLINE, "d", "Decline"),
        (ReplyAction.CANCEL, "Esc", "Cancel"),
    )
    KEYS = {  # noqa: RUF012 - as the base
        "address.open": ReplyAction.ACCEPT,
        "address.decline": ReplyAction.DECLINE,
        "address.cancel": ReplyAction.CANCEL,
    }
    SAFE = ReplyAction.DECLINE
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "none", "open", id="address.open"),
        Binding("d", "none", "decline", id="address.decline"),
        Binding("escape", "none", "cancel", id="address.cancel"),
        Binding("left", "app.focus_previous", "Button before", show=False),
        Binding("right", "app.focus_next", "Button after", show=False),
    ]

    _end_seen = False

    def on_mount(self) -> None:
        """Follow what of the address is in sight."""
        for view in (self.body, self.query_one(".request-address")):
            self.watch(view, "scroll_y", self._look, init=False)

    def begin(self) -> None:
        """Begin the delay now that the question has been drawn."""
        super().begin()
        self._look()

    def facts(self) -> Iterable[tuple[str, str]]:
        """Name who asks and where it leads."""
        request = self._request
        yield "server", request.server
        yield "host", request.host or "none"
        if request.shown_host != request.host:
            yield "shown as", request.shown_host

    def compose_body(self) -> Iterable[Widget]:
        """Compose the warning, the message and the whole address."""
        request = self._request
        if request.warning:
            yield PlainText(
                Content(clip(one_line(request.warning), MAX_WARNING)), classes="request-warning"
            )
        yield server_words(request.message or "The server does not say why.")
        yield section_heading(f"address, complete: {counted(len(request.url), 'character')}")
        yield FoldedText(request.url, classes="request-address")

    def reply(self, action: ReplyAction) -> Reply | None:
        """Give the answer as it is; an address whose end was not in sight is not opened."""
        self._look()
        if action is ReplyAction.ACCEPT and not self._end_seen:
            self.complain(UNSEEN)
            return None
        return Reply(action)

    def _look(self) -> None:
        """Take note of what of the address is in sight."""
        if self._end_seen or self._gate.waits_for_drawing:
            return
        address = self.query_one(".request-address", FoldedText)
        self._end_seen = position_of(address, MAX_TEXT_ROWS).shows_end
        if self._end_seen:
            self.complain("")
