"""The answers to a question, as data, and the buttons that show them.

No answer has an action name, so that none can be given by the name of an action.
"""

from typing import Final

from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Button

from tui.model.consent import Choice
from tui.model.frozen import Frozen
from tui.model.requests import Reply, ReplyAction
from tui.model.trust import TrustAnswer

Value = TrustAnswer | Reply | Choice | None

ACCEPTED: Final = Reply(ReplyAction.ACCEPT)
DECLINED: Final = Reply(ReplyAction.DECLINE)


class Answer(Frozen):
    """One of the answers to a question, or a step towards one.

    Attributes:
        name: The id of its button, and the end of the id of its binding.
        keys: Textual's names of its keys; the first one stands on the button.
        label: The words on the button; without any there is none.
        words: What it does, in help and hints.
        value: What is sent, or what that is made of; None for a step that sends nothing yet.
        short: The words on the button where columns are few.
        twice: Whether its key has to be pressed again.
        scoped: Whether how far it reaches is chosen beside it.
        priority: Whether its keys come before those of fields.
    """

    name: str
    keys: str
    label: str
    words: str
    value: Value = None
    short: str = ""
    twice: bool = False
    scoped: bool = False
    priority: bool = False

    @property
    def allows(self) -> bool:
        return self.value is not None and self.value.allows

    def binding(self, prefix: str) -> Binding:
        """Give the binding of its keys; it names no action, so that only a key here answers."""
        return Binding(
            self.keys,
            "none",
            self.words,
            id=f"{prefix}.{self.name}",
            tooltip=self.words,
            priority=self.priority,
        )


CANCEL: Final = Answer("cancel", "escape", "Cancel", "cancel", Reply(ReplyAction.CANCEL))

Rows = tuple[tuple[Answer, ...], ...]
"""Rows of answers in the order of their buttons."""


class AnswerRows(Vertical):
    """The buttons of all answers; none moves when another one changes.

    Args:
        rows: The answers.

    Attributes:
        answers: Those that have a button.
    """

    def __init__(self, rows: Rows) -> None:
        self.answers = [one for row in rows for one in row if one.label]
        self._buttons = {one.name: Button(id=one.name, compact=True) for one in self.answers}
        self._rows = [
            Horizontal(*(self.button(one) for one in row if one.label), classes="row")
            for row in rows
        ]
        super().__init__(*self._rows, classes="rows")

    def show(self, answer: Answer, key: str, words: str, *, offered: bool, short: bool) -> None:
        """Show the button of an answer if it is offered, short where there are few columns."""
        button = self.button(answer)
        label = Content.assemble((key, "bold underline"), f" {words}")
        button.display = offered
        if button.label != label:
            button.label = label
            button.refresh(layout=True)
        # A style sheet takes no padding of 0, and a width of its own counts padding in.
        button.styles.line_pad = 0 if short else 1
        button.styles.width = label.cell_length if short else None

    def fold(self, *, folded: bool) -> None:
        """Show the first row alone, or all of them."""
        for row in self._rows[1:]:
            row.display = not folded

    def button(self, answer: Answer) -> Button:
        return self._buttons[answer.name]
