"""Takes a word to the model along with a denial."""

from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Button, Input

from tui.model.requests import ConfirmationRequest
from tui.text import sanitize_line
from tui.ui.screens.question import call_line
from tui.ui.screens.step import StepScreen
from tui.ui.widgets.plain import PlainText

MAX_NOTE: Final = 500
"""Characters of a word to the model."""


class DenyWordScreen(StepScreen):
    """One line to write; Enter denies with it, and nothing in here can allow.

    Gives the word, which may be empty, or None to go back to the question.

    Args:
        request: The call.
    """

    BINDING_GROUP_TITLE = "Deny with a word"
    HELP = "Enter denies the call, and the model reads what you write. Esc goes back."
    AUTO_FOCUS = "Input"
    BINDINGS: ClassVar[list[BindingType]] = [("escape", "back", "Back to the question")]

    def __init__(self, request: ConfirmationRequest) -> None:
        super().__init__()
        self._request = request

    def compose(self) -> ComposeResult:
        """Compose the call, the line and the buttons."""
        with Vertical(classes="step -word") as frame:
            frame.border_title = Content("Deny with a word")
            yield PlainText(classes="step-facts")
            yield PlainText("The call does not run. The model reads what you write.")
            line = Input(placeholder="why, or what to do instead", max_length=MAX_NOTE)
            line.cursor_blink = False  # a blink is a repaint twice a second, for ever
            yield line
            with Horizontal(classes="step-buttons"):
                deny = Content.assemble(("↵", "bold underline"), " Deny")
                yield Button(deny, id="deny-now", compact=True)
                back = Content.assemble(("Esc", "bold underline"), " Back")
                yield Button(back, id="back", compact=True)

    def on_resize(self) -> None:
        """Fit the names into the width."""
        facts = self.query_one(".step-facts", PlainText)
        facts.update(call_line(self._request, facts.size.width))

    def action_back(self) -> None:
        """Decide nothing."""
        self.dismiss(None)

    @on(Input.Submitted)
    def _submit(self, event: Input.Submitted) -> None:
        event.stop()
        self._deny()

    @on(Button.Pressed)
    def _press(self, event: Button.Pressed) -> None:
        event.stop()
        if event.button.id == "deny-now":
            self._deny()
        else:
            self.dismiss(None)

    def _deny(self) -> None:
        self.dismiss(sanitize_line(self.query_one(Input).value, MAX_NOTE))
