"""The steps that lie over a confirmation for a moment; the one that tells the model why."""

from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input

from tui.model.requests import ConfirmationRequest
from tui.text import sanitize_line
from tui.ui.questions.calls.call_view import call_line
from tui.ui.questions.question import QUESTION_STYLES
from tui.ui.widgets.text.plain import PlainText

WITHDRAWN: Final = "The question went away while you were writing; nothing was sent."
"""Said where a step goes with its question."""

MAX_REASON: Final = 500
"""Characters of a reason."""


class QuestionStep(ModalScreen[str | None]):
    """Gives a text back to its question, or nothing; it goes with its question.

    Args:
        request: The call.
    """

    CSS_PATH = QUESTION_STYLES

    def __init__(self, request: ConfirmationRequest) -> None:
        super().__init__()
        self._request = request
        self._withdrawn = False

    def withdraw(self) -> None:
        """Go away, since the question went; from under another dialog, as soon as that closes."""
        self._withdrawn = True
        self.on_screen_resume()

    def on_screen_resume(self) -> None:
        """Go away where that was asked while another dialog stood above."""
        if self._withdrawn and self.is_active:
            self.dismiss(None)

    def on_resize(self) -> None:
        """Fit the names into the width."""
        facts = self.query_one(".step-facts", PlainText)
        facts.update(call_line(self._request, facts.size.width))


class DenyReasonScreen(QuestionStep):
    """One line to write; Enter denies with it, and nothing in here can allow.

    Gives the reason, which may be empty, or None to go back to the question.
    """

    BINDING_GROUP_TITLE = "Deny with a reason"
    HELP = "Enter denies the call, and the model reads what you write. Esc goes back."
    AUTO_FOCUS = "Input"
    BINDINGS: ClassVar[list[BindingType]] = [("escape", "back", "Back to the question")]

    def compose(self) -> ComposeResult:
        """Compose the call, the line and the buttons."""
        with Vertical(classes="step -reason") as frame:
            frame.border_title = Content("Deny with a reason")
            yield PlainText(classes="step-facts")
            yield PlainText("The call does not run. The model reads what you write.")
            line = Input(placeholder="why, or what to do instead", max_length=MAX_REASON)
            line.cursor_blink = False  # a blink is a repaint twice a second, for ever
            yield line
            with Horizontal(classes="step-buttons"):
                for name, key, words in (("deny-now", "↵", "Deny"), ("back", "Esc", "Back")):
                    label = Content.assemble((key, "bold underline"), f" {words}")
                    yield Button(label, id=name, compact=True)

    def action_back(self) -> None:
        self.dismiss(None)

    @on(Input.Submitted)
    @on(Button.Pressed, "#deny-now")
    def _deny(self, event: Input.Submitted | Button.Pressed) -> None:
        event.stop()
        self.dismiss(sanitize_line(self.query_one(Input).value, MAX_REASON))

    @on(Button.Pressed, "#back")
    def _back(self, event: Button.Pressed) -> None:
        event.stop()
        self.dismiss(None)
