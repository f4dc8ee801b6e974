"""Asks whether an address that a server names may be opened."""

from collections.abc import Sequence
from typing import Final

from tui.model.requests import Reply, ReplyAction, UrlRequest
from tui.model.trust import ToolChangeAnswer, ToolChangeRequest
from tui.text import counted
from tui.ui.questions.answers import Answer
from tui.ui.questions.question import Question
from tui.ui.questions.trust import difference_lines, warning_line
from tui.ui.widgets.text.labelled_text import LabelledLine

KEEP_AWAY: Final = Answer(
    "keep-away",
    "n,d,escape",
    "Keep them away",
    "keep them away from the model",
    ToolChangeAnswer.KEEP_AWAY,
    short="Keep away",
)
ACCEPT: Final = Answer(
    "accept",
    "a",
    "Accept",
    "let the model use them as they are now",
    ToolChangeAnswer.ACCEPT,
)


class ToolChangeQuestion(Question[ToolChangeRequest]):
    """Lists each changed tool with its difference. What the server wrote stays on the right."""

    BINDING_GROUP_TITLE = "Changed tools"
    HELP = "A server changed tools that you knew. The model does not have them until you accept."
    PREFIX = "changes"
    COMPLETE = "with every change"
    ROWS = ((KEEP_AWAY, ACCEPT),)
    SAFE = KEEP_AWAY

    def title_words(self) -> str:
        """Say how many tools changed."""
        number = len(self._request.changes)
        return "A server changed a tool" if number == 1 else f"A server changed {number:,} tools"

    def lines(self) -> Sequence[LabelledLine]:
        """Lay out changed tools, each with what came and what went."""
        words = (
            "What you allowed before no longer holds for them. The model does not have them until "
            "you accept."
        )
        lines = [
            LabelledLine("server", self._request.server, "bold"),
            LabelledLine("", words, "$text-muted", wraps=True),
        ]
        for change in self._request.changes:
            lines += [LabelledLine(), LabelledLine("tool", change.tool, "bold")]
            lines += difference_lines(change.difference)
        return lines


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
