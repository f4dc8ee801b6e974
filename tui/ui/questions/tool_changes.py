"""Asks whether the model may be offered tools that a server changed."""

from collections.abc import Sequence
from typing import Final

from tui.model.trust import ToolChangeAnswer, ToolChangeRequest
from tui.ui.questions.answers import Answer
from tui.ui.questions.question import Question
from tui.ui.questions.trust import difference_lines
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
