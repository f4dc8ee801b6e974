"""Asks whether an address that a server names may be opened."""

from collections.abc import Sequence
from typing import Final

from tui.model.requests import Reply, ReplyAction, UrlRequest
from tui.text import counted
from tui.ui.questions.answers import Answer
from tui.ui.questions.question import Question
from tui.ui.questions.trust import warning_line
from tui.ui.widgets.text.labelled_text import LabelledLine

OPEN: Final = Answer("open", "o", "Open", "open it", Reply(ReplyAction.ACCEPT))
DECLINE: Final = Answer("decline", "d", "Decline", "decline", Reply(ReplyAction.DECLINE))
CANCEL: Final = Answer(
    "cancel", "escape", "Cancel", "cancel", Reply(ReplyAction.CANCEL), key_display="Esc"
)


class AddressQuestion(Question[UrlRequest]):
    """Shows where an address leads, whole. Opening it is the engine's work, once accepted."""

    BINDING_GROUP_TITLE = "Request of a server"
    HELP = "A server asks you to open an address. Nothing is opened or fetched until you say so."
    TITLE = "A server asks you to open an address"
    PREFIX = "address"
    ROWS = ((OPEN, DECLINE, CANCEL),)
    SAFE = DECLINE
    ARMED = (
        "↑↓ scroll · ← → Tab move · ↵ presses · gemdeck cannot see that page",
        "↑↓ scroll · ← → move · ↵ presses",
    )

    def lines(self) -> Sequence[LabelledLine]:
        """Name who asks and where it leads, before what the server says."""
        request = self._request
        lines = [
            LabelledLine("server", request.server, "bold"),
            LabelledLine("host", request.host or "none", "bold"),
        ]
        if request.shown_host != request.host:
            lines.append(LabelledLine("shown as", request.shown_host))
        if request.warning:
            lines.append(warning_line("! warning", request.warning))
        size = counted(len(request.url), "character")
        message = request.message or "The server does not say why."
        return [
            *lines,
            LabelledLine("address", f"complete: {size}", "$text-muted"),
            LabelledLine("", request.url),
            LabelledLine(),
            *(
                LabelledLine("" if number else "says", text, wraps=True)
                for number, text in enumerate(message.split("\n"))
            ),
        ]
