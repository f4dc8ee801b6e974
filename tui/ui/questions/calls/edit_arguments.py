"""Edits the arguments of a call: a form, the one long text, or JSON. Nothing is sent from here."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.getters import query_one
from textual.widgets import Button, ContentSwitcher, Input

from tui.model.input.arguments import ArgumentsError, canonical_json, read_arguments, reveal
from tui.model.requests import ConfirmationRequest
from tui.ui import keymap
from tui.ui.questions.arming import Arming, Keyboard, SecondPress
from tui.ui.questions.calls.deny_reason import QuestionStep
from tui.ui.widgets.forms.argument_form import ArgumentForm, fill
from tui.ui.widgets.forms.json_area import MAX_EDITABLE, JsonArea
from tui.ui.widgets.frame import WORDY
from tui.ui.widgets.text.folded_text import FoldedText
from tui.ui.widgets.text.plain import PlainText, one_line

TALL: Final = 24
"""Rows from which the editor has air."""

INCOMPLETE: Final = "Not done yet: look at the marked fields."
NO_FORM: Final = "These arguments have no form; they are edited as JSON."
NO_FIT: Final = "The form cannot show these values; they stay JSON."
NEXT_FIELD: Final = "Enter goes on to the next field."
DROP: Final = "Press Esc again to drop what you changed."
TOO_LONG: Final = f"No more than {MAX_EDITABLE:,} characters can be edited here."

_LABELS: Final = {
    "done": ("^S", "Back to the question", "Back"),
    "leave": ("Esc", "Drop the changes", "Drop"),
}


class EditArgumentsScreen(QuestionStep):
    """Gives the arguments as edited, as canonical JSON, or None where they stay as they were.

    Args:
        request: The call; its `problem` stands above what is edited.
        arguments: The JSON to begin with.
        keyboard: What was typed before.
        held: Whether it comes by itself, so that keys count only after a pause.

    Raises:
        ArgumentsError: If the JSON to begin with cannot be read.
    """

    BINDING_GROUP_TITLE = "Arguments"
    HELP = "Change the arguments of the call. Nothing is sent before you allow it."
    AUTO_FOCUS = ""
    VERTICAL_BREAKPOINTS = [(0, "-short"), (TALL, "-tall")]  # noqa: RUF012 - as the base
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "ctrl+s", "done", "Go back with the arguments as edited", id="edit.done", priority=True
        ),
        Binding(
            "ctrl+t", "switch", "Switch between the form and JSON", id="edit.switch", priority=True
        ),
        Binding("escape", "leave", "Go back without the changes", id="edit.leave"),
        *keymap.bindings(only=("app.help",)),
    ]

    area = query_one("#edit-json", JsonArea)
    text = query_one("#edit-text", JsonArea)
    form = query_one(ArgumentForm)
    switcher = query_one(ContentSwitcher)

    def __init__(
        self,
        request: ConfirmationRequest,
        arguments: str,
        keyboard: Keyboard,
        *,
        held: bool = False,
    ) -> None:
        super().__init__(request)
        self._begun_with = arguments
        self._values = read_arguments(arguments)
        self._text_name = long_text(self._values)
        self._arming = Arming(self, keyboard, self._look_at_arming, lambda _: None)
        self._held = held
        self._second: SecondPress[str] = SecondPress(keyboard.clock)

    def compose(self) -> ComposeResult:
        """Compose the call, what was wrong, both ways to edit, and the buttons."""
        begins_as = "edit-text" if self._text_name else "edit-json"
        if fill(self._request.fields, self._values):
            begins_as = "edit-form"
        with Vertical(classes="step -editor") as frame:
            frame.border_title = Content("Edit the arguments")
            yield PlainText(classes="step-facts")
            problem = FoldedText(self._request.problem, wrap=True, classes="step-problem")
            problem.display = bool(self._request.problem)
            yield problem
            with ContentSwitcher(initial=begins_as):
                yield ArgumentForm(self._request.fields, self._values, id="edit-form")
                yield JsonArea(
                    self._values.get(self._text_name, ""), id="edit-text", highlighted=False
                )
                yield JsonArea(self._begun_with, id="edit-json")
            yield PlainText(classes="step-status")
            with Horizontal(classes="step-buttons"):
                for name in ("done", "switch", "leave"):
                    yield Button(id=name, compact=True, action=f"screen.{name}")

    def on_mount(self) -> None:
        """Begin at once, or after a pause where the editor came by itself."""
        self._show_state()
        if self._held:
            self.call_after_refresh(self._arming.begin)
        else:
            self.call_after_refresh(self._focus_first)

    def on_resize(self) -> None:
        self._show_buttons()

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

    def action_done(self) -> None:
        """Go back with the arguments as they stand, where they can be read."""
        text = None if self._held else self._finished()
        if text is not None:
            self.dismiss(text)

    async def action_switch(self) -> None:
        """Show the same arguments the other way; what is unfinished stays where it is."""
        if self._held:
            return
        if self._shows_form or self._shows_text:
            view = "edit-json" if self._write_as_json() else ""
        else:
            view = await self._fill_other()
        if view:
            self.switcher.current = view
            self._show_state()
            self._show_buttons()
            self._focus_first()

    def action_leave(self) -> None:
        """Go back without the changes; where there are any, once it is asked for twice."""
        if self._second.take(DROP) or not self._is_changed():
            self.dismiss(None)
        else:
            self._second.expect(DROP)
            self._say(DROP)

    @on(Input.Changed)
    @on(JsonArea.SelectionChanged)
    def _on_went_on(self) -> None:
        self._second.forget()

    @on(JsonArea.Changed)
    def _on_typed(self, event: JsonArea.Changed) -> None:
        event.stop()
        self._second.forget()
        self._show_state()

    @on(JsonArea.TooLong)
    def _on_too_long(self, event: JsonArea.TooLong) -> None:
        event.stop()
        self._say(TOO_LONG, wrong=True)

    @property
    def _shows_form(self) -> bool:
        return self.switcher.current == "edit-form"

    @property
    def _shows_text(self) -> bool:
        return self.switcher.current == "edit-text"

    def _finished(self) -> str | None:
        """Give the arguments as canonical JSON, or point at what is wrong and give None."""
        if not self._write_as_json():
            return None
        try:
            return canonical_json(self._read())
        except ValueError as error:
            self._say(str(error), wrong=True)
            return None

    def _read(self) -> dict[str, Any]:
        """Read the JSON.

        Raises:
            ValueError: If it is none, or too long.
        """
        text = self.area.text
        if len(text) > MAX_EDITABLE:
            raise ValueError(TOO_LONG)
        return read_arguments(text)

    def _shown(self) -> dict[str, Any]:
        """Give the arguments with what the form or the text holds.

        Raises:
            ValueError: If a field has the wrong type.
        """
        if self._shows_form:
            return self.form.values()
        changed = {self._text_name: self.text.text} if self._shows_text else {}
        return {**self._values, **changed}

    def _write_as_json(self) -> bool:
        """Put what is shown into the JSON, which stays as it was written where nothing changed.

        Returns:
            Whether it could be; if not, the form shows why.
        """
        if self._shows_form and not self.form.check():
            self._say(INCOMPLETE, wrong=True)
            return False
        values = self._shown()
        if values != self._values:
            self._values = values
            self.area.load_text(canonical_json(values))
        return True

    async def _fill_other(self) -> str:
        """Put the JSON into the form or its long text into the editor; return which, if any."""
        try:
            values = self._read()
        except ValueError as error:
            self._say(str(error), wrong=True)
            return ""
        if fill(self._request.fields, values) is not None:
            self._values = values
            await self.form.refill(values)
            return "edit-form"
        if name := long_text(values):
            self._values, self._text_name = values, name
            self.text.load_text(values[name])
            return "edit-text"
        self._say(NO_FIT if self._request.fields else NO_FORM)
        return ""

    def _is_changed(self) -> bool:
        if self._held:
            return False
        try:
            return self._shown() != self._values or self.area.text != self._begun_with
        except ValueError:
            return True

    def _show_state(self) -> None:
        """Say how the arguments stand."""
        if self._shows_form:
            left = self.form.left_out
            self._say(f"{left} more are not in this form; ^T shows all." if left else NEXT_FIELD)
            return
        if self._shows_text:
            too_long = len(self.text.text) > MAX_EDITABLE
            words = f"This is {one_line(reveal(self._text_name))}; ^T shows all arguments as JSON."
            self._say(TOO_LONG if too_long else words, wrong=too_long)
            return
        try:
            self._read()
        except ArgumentsError as error:
            self._say(f"Not JSON yet: {error}", wrong=True)
        except ValueError as error:
            self._say(str(error), wrong=True)
        else:
            self._say("Complete JSON.")

    def _say(self, words: str, *, wrong: bool = False) -> None:
        line = self.query_one(".step-status", PlainText)
        line.update(Content(words))
        line.set_class(wrong, "-wrong")

    def _show_buttons(self) -> None:
        short = self.app.size.width < WORDY
        for name, (key, words, few) in _LABELS.items():
            self._label(name, key, few if short else words)
        is_json = not (self._shows_form or self._shows_text)
        other = ("text" if self._text_name else "form") if is_json else "JSON"
        self._label("switch", "^T", other.title() if short and is_json else other)
        self.query_one("#switch", Button).display = bool(self._request.fields or self._text_name)

    def _label(self, name: str, key: str, words: str) -> None:
        label = Content.assemble((key, "bold underline"), f" {words}")
        self.query_one(f"#{name}", Button).label = label

    def _focus_first(self) -> None:
        if self._shows_form and self.form.first is not None:
            self.form.first.control.focus()
        elif self._shows_text:
            self.text.focus()
        else:
            self.area.focus()

    def _look_at_arming(self) -> None:
        if self._arming.armed and self._held:
            self._held = False
            self._focus_first()


def long_text(values: Mapping[str, Any]) -> str:
    """Return the name of the one argument that is a text of several lines, and hides nothing."""
    names = [name for name, value in values.items() if isinstance(value, str) and "\n" in value]
    return names[0] if len(names) == 1 and reveal(values[names[0]]) == values[names[0]] else ""
