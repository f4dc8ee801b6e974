"""Asks whether the model may be offered tools that a server changed."""

from collections.abc import Sequence
from typing import ClassVar, Final

from textual.binding import BindingType

from tui.model.trust import ToolChangeRequest
from tui.ui.screens.disclosure import DisclosureScreen
from tui.ui.screens.disclosure_answers import DisclosureAnswer
from tui.ui.screens.reading import SCROLLING
from tui.ui.screens.trust import difference_lines
from tui.ui.widgets.labelled_text import LabelledLine

KEEP_AWAY: Final = DisclosureAnswer(
    "keep-away", "n,d,escape", "keep them away from the model", "Keep them away", "Keep away"
)
ACCEPT: Final = DisclosureAnswer(
    "accept", "a", "let the model have them as they are now", "Accept", allows=True
)


class ToolChangeScreen(DisclosureScreen[ToolChangeRequest]):
    """Lists each changed tool with its difference. What the server wrote stays on the right."""

    BINDING_GROUP_TITLE = "Changed tools"
    HELP = "A server changed tools that you knew. The model does not have them until you accept."
    PREFIX = "changes"
    COMPLETE = "with every change"
    ANSWERS = (KEEP_AWAY, ACCEPT)
    BINDINGS: ClassVar[list[BindingType]] = [
        *(answer.binding("changes") for answer in ANSWERS),
        *SCROLLING,
    ]

    def title_of(self, request: ToolChangeRequest) -> str:
        """Say how many tools changed."""
        number = len(request.changes)
        return "A server changed a tool" if number == 1 else f"A server changed {number:,} tools"

    def lines_of(self, request: ToolChangeRequest) -> Sequence[LabelledLine]:
        """Lay out the request."""
        return change_lines(request)

    def offers(self, answer: DisclosureAnswer) -> bool:  # noqa: ARG002 - as the base
        """Offer both answers."""
        return True

    def give(self, answer: DisclosureAnswer) -> None:
        """Hand the answer over."""
        self._commands.answer_tool_change(self._request.id, accept=answer.allows)


def change_lines(request: ToolChangeRequest) -> list[LabelledLine]:
    """Lay out changed tools, each with what came and what went."""
    words = (
        "What you allowed of them before no longer holds. The model does not have them until you "
        "accept."
    )
    lines = [
        LabelledLine("server", request.server, "bold"),
        LabelledLine("", words, "$foreground 60%", wraps=True),
    ]
    for change in request.changes:
        lines += [LabelledLine(), LabelledLine("tool", change.tool, "bold")]
        lines += difference_lines(change.difference)
    return lines
