"""The steps that lie over a question about calls for a moment. Nothing is sent from here."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input

from tui.model.requests import ConfirmationRequest
from tui.store.commands import Commands
from tui.text import sanitize_line
from tui.ui import keymap
from tui.ui.questions.answers import key_label
from tui.ui.questions.arming import Arming, Keyboard, SecondPress
from tui.ui.questions.calls.call_view import call_line
from tui.ui.questions.question import QUESTION_STYLES
from tui.ui.widgets.forms.argument_form import TOO_LONG, ArgumentEditor
from tui.ui.widgets.forms.form_fields import FieldRow
from tui.ui.widgets.forms.json_area import JsonArea
from tui.ui.widgets.frame import WORDY
from tui.ui.widgets.text.folded_text import FoldedText
from tui.ui.widgets.text.plain import PlainText, one_line

TALL: Final = 24
"""Rows from which a step has air."""

DROP: Final = "Press Esc again to drop what you changed."

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
    VERTICAL_BREAKPOINTS = [(0, "-short"), (TALL, "-tall")]  # noqa: RUF012 - as the base
    BINDINGS: ClassVar[list[BindingType]] = keymap.over_questions()

    def __init__(self, request: ConfirmationRequest) -> None:
        super().__init__()
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
                yield Button(key_label("↵", "Deny"), id="deny-now", compact=True)
                yield Button(key_label("Esc", "Back"), compact=True, action="screen.back")

    def action_back(self) -> None:
        self.dismiss(None)

    @on(Input.Submitted)
    @on(Button.Pressed, "#deny-now")
    def _deny(self, event: Input.Submitted | Button.Pressed) -> None:
        event.stop()
        self.dismiss(sanitize_line(self.query_one(Input).value, MAX_REASON))


class EditingScreen(ModalScreen[str | None]):
    """Arguments that are edited: what they are for above them, and below how they stand, and keys.

    Attributes:
        heading: The title of the frame.
        WAYS: The buttons: the action of each, its key, its words, and fewer of them.
    """

    heading: str = "Edit the arguments"
    WAYS: ClassVar[Sequence[tuple[str, str, str, str]]] = (
        ("done", "^S", "Back to the question", "Back"),
        ("switch", "^T", "", ""),
        ("leave", "Esc", "Drop the changes", "Drop"),
    )
    AUTO_FOCUS = ""
    CSS_PATH = QUESTION_STYLES
    VERTICAL_BREAKPOINTS = [(0, "-short"), (TALL, "-tall")]  # noqa: RUF012 - as the base

    editor: ArgumentEditor

    def compose(self) -> ComposeResult:
        with Vertical(classes="step -editor") as frame:
            frame.border_title = Content(one_line(self.heading))
            yield from self.compose_about()
            yield self.editor
            yield PlainText(classes="step-status")
            with Horizontal(classes="step-buttons"):
                for name, key, *_, few in self.WAYS:
                    label = key_label(key, few)
                    yield Button(label, id=name, compact=True, action=f"screen.{name}")

    @abstractmethod
    def compose_about(self) -> ComposeResult:
        """Compose what stands above the arguments."""

    def on_resize(self) -> None:
        self.show_buttons()

    @abstractmethod
    def finish(self, arguments: str) -> None:
        """Do what the arguments were edited for."""

    def action_done(self) -> None:
        """Take the arguments as they stand, where they can be sent."""
        try:
            self.finish(self.editor.finished())
        except ValueError as error:
            self.say(str(error), wrong=True)

    async def action_switch(self) -> None:
        """Show the same arguments the other way."""
        try:
            refusal = await self.editor.switch()
        except ValueError as error:
            self.say(str(error), wrong=True)
            return
        if refusal:
            self.say(refusal)
            return
        self.show_status()
        self.show_buttons()
        self.editor.focus_first()

    @on(FieldRow.Mended)
    @on(JsonArea.Changed)
    def show_status(self) -> None:
        """Say how the arguments stand."""
        words, wrong = self.editor.status
        self.say(words, wrong=wrong)

    @on(JsonArea.TooLong)
    def _on_too_long(self) -> None:
        self.say(TOO_LONG, wrong=True)

    def say(self, words: str, *, wrong: bool = False) -> None:
        line = self.query_one(".step-status", PlainText)
        line.update(Content(words))
        line.set_class(wrong, "-wrong")

    def show_buttons(self) -> None:
        is_short = self.app.size.width < WORDY
        for name, key, words, few in self.WAYS:
            button = self.query_one(f"#{name}", Button)
            button.label = key_label(key, (few if is_short else words) or self.editor.other)
            button.display = name != "switch" or bool(self.editor.other)


class EditArgumentsScreen(EditingScreen, QuestionStep):
    """Gives the arguments as edited, as canonical JSON, or None where they stay as they were.

    Args:
        commands: Makes the form.
        request: The call; its `problem` stands above what is edited.
        arguments: The JSON to begin with.
        keyboard: What was typed before.
        held: Whether it comes by itself, so that keys count only after a pause.

    Raises:
        JsonError: If the JSON to begin with cannot be read.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "ctrl+s", "done", "Go back with the arguments as edited", id="edit.done", priority=True
        ),
        Binding(
            "ctrl+t", "switch", "Switch between the form and JSON", id="edit.switch", priority=True
        ),
        Binding("escape", "leave", "Go back without the changes", id="edit.leave"),
        *keymap.bindings(only=keymap.HELP),
    ]

    def __init__(
        self,
        commands: Commands,
        request: ConfirmationRequest,
        arguments: str,
        keyboard: Keyboard,
        *,
        held: bool = False,
    ) -> None:
        super().__init__(request)
        self.editor = ArgumentEditor(commands, request.server, request.tool, arguments)
        self._arming = Arming(self, keyboard, self._look_at_arming, lambda _: None)
        self._held = held
        self._second: SecondPress[str] = SecondPress(keyboard.clock)

    def compose_about(self) -> ComposeResult:
        """Compose the call, and what was wrong."""
        yield PlainText(classes="step-facts")
        problem = FoldedText(self.request.problem, classes="step-problem")
        problem.display = bool(self.request.problem)
        yield problem

    def on_mount(self) -> None:
        """Begin at once, or after a pause where the editor came by itself."""
        self.show_status()
        self.call_after_refresh(self._arming.begin if self._held else self.editor.focus_first)

    def on_key(self, event: events.Key) -> None:
        """Drop keys that were meant for what was there before."""
        if event.key != "escape":
            self._second.forget()
        if self._held:
            if not self._arming.goes_into_draft(event):
                self._arming.text(event)
            event.stop()
            event.prevent_default()

    def on_paste(self, event: events.Paste) -> None:
        event.stop()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Keep what was meant for what was there before from doing something."""
        return not (self._held and action in {"done", "switch"})

    def finish(self, arguments: str) -> None:
        self.dismiss(arguments)

    def action_leave(self) -> None:
        """Go back without the changes; where there are any, once it is asked for twice."""
        if self._held or self._second.take(DROP) or not self.editor.is_changed:
            self.dismiss(None)
        else:
            self._second.expect(DROP)
            self.say(DROP)

    @on(Input.Changed)
    @on(JsonArea.SelectionChanged)
    @on(FieldRow.Mended)
    @on(JsonArea.Changed)
    def _on_went_on(self) -> None:
        self._second.forget()

    def _look_at_arming(self) -> None:
        if self._arming.armed and self._held:
            self._held = False
            self.editor.focus_first()
