"""Asks whether an address may be opened: one that a server names, or a link in the conversation."""

from collections.abc import Sequence
from typing import Any, Final

from tui.model.requests import UrlRequest
from tui.store.commands import Commands
from tui.ui.questions.answers import ACCEPTED, CANCEL, DECLINED, Answer
from tui.ui.questions.arming import Keyboard
from tui.ui.questions.question import Question
from tui.ui.widgets.text.labelled_text import LabelledLine, listed, warning_line
from tui.ui.widgets.text.links import Link, examine, is_plain_http

OPEN: Final = Answer("open", "o", "Open", "open it", ACCEPTED)
DECLINE: Final = Answer("decline", "d", "Decline", "decline", DECLINED)

COPY: Final = Answer("copy", "c", "Copy", "copy the address")
CLOSE: Final = Answer("close", "escape", "Close", "close")


class AddressQuestion(Question[UrlRequest]):
    """Shows where an address leads, whole. Opening it is the engine's work, once accepted."""

    TITLE = "A server wants you to open an address"
    PREFIX = "address"
    ROWS = ((OPEN, DECLINE, CANCEL),)
    SAFE = DECLINE
    ARMED = "↑↓ scroll · ←→ choose · ↵ confirm · gemdeck cannot see that page"

    def lines(self) -> Sequence[LabelledLine]:
        """Name who asks and where it leads, before what the server says."""
        request = self.request
        lines = (
            LabelledLine("server", request.server, "bold"),
            LabelledLine("host", request.host or "none", "bold"),
            LabelledLine("shown as", request.shown_host * (request.shown_host != request.host)),
            warning_line("! warning", request.warning),
            LabelledLine("address", request.url),
        )
        says = listed("message", (request.message or "No reason given.").split("\n"))
        return [*(line for line in lines if line.text), LabelledLine(), *says]


class LinkScreen(Question[Any]):
    """Shows the host and the full address of a link; opens it only when told to.

    Args:
        url: The address.
        commands: Opens it.
        keyboard: What was typed before.
    """

    TITLE = "Open this link?"
    PREFIX = "link"
    ROWS = ((OPEN, COPY, CLOSE),)
    SAFE = CLOSE

    request: Link

    def __init__(self, url: str, commands: Commands, *, keyboard: Keyboard | None = None) -> None:
        super().__init__(examine(url), commands, keyboard=keyboard)

    def lines(self) -> Sequence[LabelledLine]:
        """Lay out the link."""
        link = self.request
        is_open = not link.refusal and is_plain_http(link)
        lines = (
            LabelledLine("host", link.host or "none", "bold"),
            LabelledLine("address", link.url),
            LabelledLine("refused", link.refusal, "$text-error"),
            LabelledLine(
                "! warning", "The connection is not encrypted." * is_open, "$text-warning"
            ),
        )
        return [line for line in lines if line.text]

    def offers(self, answer: Answer) -> bool:
        return answer is not OPEN or not self.request.refusal

    def choose(self, answer: Answer) -> None:
        """Open it, copy it, or leave it."""
        if answer is COPY:
            self.app.copy_to_clipboard(self.request.url)
            return
        if answer is OPEN:
            self._commands.engine.features.open_link(self.request.url)
        self.dismiss()
