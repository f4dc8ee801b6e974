"""What a server asks the user to fill in."""

from collections.abc import Iterable, Sequence
from typing import Final

from textual import on
from textual.getters import query_one
from textual.widget import Widget
from textual.widgets import Select

from tui.model.requests import FormRequest, Reply, ReplyAction
from tui.ui.questions.answers import ACCEPTED, CANCEL, DECLINED, Answer
from tui.ui.questions.question import NAME, Names, Question
from tui.ui.widgets.forms.argument_form import ArgumentForm, FormBody
from tui.ui.widgets.forms.form_fields import FieldRow, WholeText, make_row
from tui.ui.widgets.text.labelled_text import LabelledLine
from tui.ui.widgets.text.plain import PlainText, one_line

MAX_TITLE: Final = 20
"""Characters of a server's name that the frame has room for at any width."""

INCOMPLETE: Final = "Not sent: fix the marked fields."
"""Stands over the answers while a field does not hold what it has to."""

ACCEPT: Final = Answer("accept", "ctrl+s", "Send", "send", ACCEPTED, priority=True)
DECLINE: Final = Answer("decline", "ctrl+d", "Decline", "decline", DECLINED, priority=True)


class FormQuestion(Question[FormRequest]):
    """Shows the form, checks what can be checked here, and sends it when told to."""

    TITLE = "A server asks for input"
    PREFIX = "form"
    ROWS = ((ACCEPT, DECLINE, CANCEL),)
    SAFE = DECLINE
    ARMED = "Tab next · ↵ next field or open list · Space toggle"

    body = query_one(FormBody)
    problem = query_one(".problem", PlainText)

    def title_words(self) -> str:
        return f"{self.request.server} asks for input" if self._is_named else self.TITLE

    def lines(self) -> Sequence[LabelledLine]:
        """Name the server, unless the frame does."""
        self.query_one(Names).display = not self._is_named
        return [LabelledLine("server", self.request.server, "bold")]

    @property
    def _is_named(self) -> bool:
        """Whether the server's name looks like nothing else in the frame, and fits there."""
        name = self.request.server
        return bool(NAME.fullmatch(name)) and len(name) <= MAX_TITLE

    def compose_text(self) -> Iterable[Widget]:
        """Compose who asks, the message with the fields, and the line for what is wrong."""
        message = self.request.message or "No purpose given."
        self.form = ArgumentForm(self.request.fields, make_row, prefilled=True)
        yield Names()
        yield FormBody(WholeText(message, classes="server-words"), self.form, classes="body -fits")
        yield PlainText(classes="problem")

    def on_mount(self) -> None:
        self._point_out()

    def on_resize(self) -> None:
        self.call_after_refresh(self.body.on_resize)

    def accepts(self, request: object) -> bool:
        """Take the same form again; one with other fields is another form."""
        return (
            isinstance(request, FormRequest)
            and super().accepts(request)
            and request.fields == self.request.fields
        )

    def changed(self) -> None:
        """Show why the answer was not taken, and let it be given again."""
        if row := self._point_out():
            row.complain(self.request.problem)
            row.control.focus()
        self.ask_again()

    def _point_out(self) -> FieldRow | None:
        """Say why the answer was not taken, and return the field that this is about."""
        wrong, problem = self.request.wrong, self.request.problem
        row = next((one for one in self.form.rows if one.field.key == wrong), None)
        self.problem.say(one_line(f"{row.field.title}: {problem}" if row else problem))
        return row

    def first_focus(self) -> Widget | None:
        """Begin in the first field where it is in sight, else on the safe answer."""
        control = self.form.rows[0].control if self.form.rows else None
        in_sight = control is not None and self.body.region.contains_region(control.region)
        return control if in_sight else super().first_focus()

    def choose(self, answer: Answer) -> None:
        """Send what was filled in, or point at what is wrong.

        An accepted form can be accepted again after a pause: what the engine finds wrong with it
        may be the same as the time before, of which no change of the state would tell.
        """
        if not answer.allows:
            super().choose(answer)
        elif self.form.check():
            self.call_later(self.ask_again)
            self.send(Reply(ReplyAction.ACCEPT, content=self.form.values()))
        else:
            self.problem.say(INCOMPLETE)

    @on(FieldRow.Mended)
    def _on_mended(self) -> None:
        self.problem.say("")

    @on(Select.Changed)
    def _on_choice(self, event: Select.Changed) -> None:
        self.call_after_refresh(self._read_choice, event.control)

    def _read_choice(self, select: Select[int]) -> None:
        """Let a choice of several rows be read: the list that it was made in may have cut it."""
        if select.size.height > 1:
            self.reading.begin_anew()
            self._look()
