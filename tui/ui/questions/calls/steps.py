"""The steps that lie over a question about calls for a moment. Nothing is sent from here."""

from abc import abstractmethod
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Input

from tui.model.input.arguments import canonical_json, read_arguments
from tui.model.requests import ConfirmationRequest
from tui.store.commands import Commands
from tui.text import sanitize_line
from tui.ui import keymap
from tui.ui.dialogs.list_dialog import DIALOG_STYLES, Dialog
from tui.ui.questions.calls.call_view import call_line
from tui.ui.themes import STYLES
from tui.ui.widgets.forms.argument_form import TOO_LONG, ArgumentEditor
from tui.ui.widgets.forms.form_fields import FieldRow
from tui.ui.widgets.forms.json_area import JsonArea
from tui.ui.widgets.text.plain import PlainText, one_line

TALL: Final = 24
"""Rows from which a step has air."""

WITHDRAWN: Final = "The question was withdrawn while you were typing; nothing was sent."
"""Said where a step goes with its question."""

MAX_REASON: Final = 500
"""Characters of a reason."""


class Step(Dialog):
    """A dialog in the looks of a question."""

    CSS_PATH: ClassVar = [*DIALOG_STYLES, STYLES / "questions.tcss"]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (TALL, "-tall")]  # noqa: RUF012 - as the base

    def action_label(self, action: str) -> str | None:
        return "back" if action == "close" else None


class QuestionStep(Step):
    """Gives a text back to its question, or nothing; it goes with its question.

    Args:
        title: What it is for.
        request: The call.
    """

    BINDINGS = keymap.over_questions()

    def __init__(self, title: str, request: ConfirmationRequest) -> None:
        super().__init__(title)
        self.request = request
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
        facts.update(call_line(self.request, facts.size.width))


class DenyReasonScreen(QuestionStep):
    """One line to write; Enter denies with it, and nothing in here can allow.

    Gives the reason, which may be empty, or None to go back to the question.
    """

    KIND = "step -reason"
    AUTO_FOCUS = "Input"
    enter = "deny"

    def compose_body(self) -> ComposeResult:
        """Compose the call and the line."""
        yield PlainText(classes="step-facts")
        yield PlainText("The call will not run. The model gets your note.")
        yield Input(placeholder="why, or what to do instead", max_length=MAX_REASON)

    @on(Input.Submitted)
    def _deny(self, event: Input.Submitted) -> None:
        self.dismiss(sanitize_line(event.value, MAX_REASON))


class EditingScreen(Step):
    """Arguments that are edited: what they are for above them, and below how they stand."""

    KIND = "step -editor"
    AUTO_FOCUS = ""

    editor: ArgumentEditor

    def compose_body(self) -> ComposeResult:
        yield from self.compose_about()
        yield self.editor
        yield PlainText(classes="step-status")

    @abstractmethod
    def compose_about(self) -> ComposeResult:
        """Compose what stands above the arguments."""

    @abstractmethod
    def finish(self, arguments: str) -> None:
        """Do what the arguments were edited for."""

    def action_label(self, action: str) -> str | None:
        return self.editor.other if action == "switch" else super().action_label(action)

    def action_done(self) -> None:
        """Take the arguments as they stand, where they can be sent."""
        try:
            self.finish(self.editor.finished())
        except ValueError as error:
            self.tell(str(error), wrong=True)

    async def action_switch(self) -> None:
        """Show the same arguments the other way."""
        try:
            refusal = await self.editor.switch()
        except ValueError as error:
            self.tell(str(error), wrong=True)
            return
        if refusal:
            self.tell(refusal)
            return
        self.show_status()
        self.editor.focus_first()

    @on(FieldRow.Mended)
    @on(JsonArea.Changed)
    def show_status(self) -> None:
        """Say how the arguments stand."""
        words, wrong = self.editor.status
        self.tell(words, wrong=wrong)

    @on(JsonArea.TooLong)
    def _on_too_long(self) -> None:
        self.tell(TOO_LONG, wrong=True)

    def tell(self, words: str, *, wrong: bool = False) -> None:
        line = self.query_one(".step-status", PlainText)
        line.update(Content(words))
        line.set_class(wrong, "-wrong")


class EditArgumentsScreen(EditingScreen, QuestionStep):
    """Gives the arguments as edited, as canonical JSON, or None where they stay as they were.

    Args:
        commands: Makes the form.
        request: The call; its `problem` stands below what is edited at first.
        arguments: The JSON to begin with.

    Raises:
        JsonError: If the JSON to begin with cannot be read.
    """

    BINDINGS = keymap.bindings("call.run", "call.switch")

    def __init__(self, commands: Commands, request: ConfirmationRequest, arguments: str) -> None:
        super().__init__("Edit the arguments", request)
        self.editor = ArgumentEditor(commands, request.server, request.tool, arguments)

    def compose_about(self) -> ComposeResult:
        yield PlainText(classes="step-facts")

    def on_mount(self) -> None:
        self.show_status()
        if self.request.problem:
            self.tell(f"Not sent yet: {one_line(self.request.problem)}", wrong=True)
        self.call_after_refresh(self.editor.focus_first)

    def action_label(self, action: str) -> str | None:
        return "done" if action == "done" else super().action_label(action)

    def finish(self, arguments: str) -> None:
        self.dismiss(canonical_json(read_arguments(arguments)))

    def action_close(self) -> None:
        """Go back without the changes; where there are any, once it is asked for twice."""
        drop = "dialog.close", self.editor.draft(), "discard your changes."
        if not self.editor.is_changed or self.is_again(*drop):
            self.dismiss()
