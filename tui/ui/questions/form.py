"""What a server asks the user to fill in, and what forms have in common with other requests."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

from textual import on
from textual.containers import VerticalScroll
from textual.content import Content
from textual.getters import query_one
from textual.widget import Widget
from textual.widgets import Select

from tui.model.requests import (
    FormRequest,
    Reply,
    ReplyAction,
    ResultReview,
    SamplingRequest,
    SamplingReview,
    SignInRequest,
)
from tui.text import clip
from tui.ui.questions.answers import Answer
from tui.ui.questions.question import NAME, Names, Question
from tui.ui.widgets.forms.argument_form import ArgumentForm
from tui.ui.widgets.forms.form_fields import FieldRow, WholeText, make_row
from tui.ui.widgets.text.labelled_text import LabelledLine
from tui.ui.widgets.text.plain import PlainText, one_line

R = TypeVar(
    "R", bound=FormRequest | SamplingRequest | SamplingReview | ResultReview | SignInRequest
)

MAX_TITLE: Final = 20
"""Characters of a server's name that the frame has room for at any width."""

MAX_NAME: Final = 100
"""Characters of a heading, and half of those of a problem."""

LABEL_WIDTH: Final = 10
"""Cells for gemdeck's own labels."""

INCOMPLETE: Final = "Not sent yet: look at the fields marked below or above."
"""Stands over the answers while a field does not hold what it has to."""

ACCEPT: Final = Answer("accept", "ctrl+s", "Send", "send", ReplyAction.ACCEPT, priority=True)
DECLINE: Final = Answer(
    "decline", "ctrl+d", "Decline", "decline", ReplyAction.DECLINE, priority=True
)
CANCEL: Final = Answer("cancel", "escape", "Cancel", "cancel", ReplyAction.CANCEL)


class _Body(VerticalScroll, can_focus=False):
    """Keeps a complaint in sight: it makes its field higher, and the room for all of them less."""

    def on_resize(self) -> None:
        for row in self.query(".field.-wrong:focus-within"):
            row.scroll_visible(animate=False)


def fact(label: str, words: str, style: str = "") -> Content:
    """Write a fact behind gemdeck's own label."""
    return Content.assemble((label.ljust(LABEL_WIDTH), "$text-muted"), (words, style))


class ServerQuestion(Question[R]):
    """A question with fields or texts that can be edited between its facts and its answers."""

    body = query_one(".body", VerticalScroll)

    def facts(self) -> Iterable[tuple[str, str]]:
        """Give what is to be known beside the server, as gemdeck's own label and a few words."""
        return ()

    def lines(self) -> Sequence[LabelledLine]:
        known = [LabelledLine(label, one_line(words)) for label, words in self.facts()]
        return [LabelledLine("server", one_line(self.request.server), "bold"), *known]

    @abstractmethod
    def compose_body(self) -> Iterable[Widget]:
        """Compose texts to read and fields to fill in, each as high as all that it holds."""

    def reply(self, action: ReplyAction) -> Reply | None:
        """Make the answer, or complain on the screen and give None."""
        return Reply(action)

    def compose_text(self) -> Iterable[Widget]:
        """Compose who asks, the body and the line for what is wrong."""
        yield Names()
        yield _Body(*self.compose_body(), classes="body -fits")
        problem = PlainText(classes="problem")
        problem.display = False
        yield problem

    def on_resize(self) -> None:
        self.call_after_refresh(self._keep_focus_in_sight)

    def choose(self, answer: Answer) -> None:
        """Send what was filled in, if it can be sent."""
        assert isinstance(answer.value, ReplyAction)  # noqa: S101 - so are all of these answers
        reply = self.reply(answer.value)
        if reply is not None:
            self.send(reply)

    def complain(self, text: str) -> None:
        """Show why an answer is not taken, or nothing."""
        line = self.query_one(".problem", PlainText)
        line.update(Content(clip(one_line(text), 2 * MAX_NAME)))
        line.display = bool(text)

    def _keep_focus_in_sight(self) -> None:
        focused = self.focused
        if focused is not None and self.body in focused.ancestors:
            focused.scroll_visible(animate=False)


class FormQuestion(ServerQuestion[FormRequest]):
    """Shows the form, checks what can be checked here, and sends it when told to."""

    TITLE = "A server asks for input"
    PREFIX = "form"
    ROWS = ((ACCEPT, DECLINE, CANCEL),)
    SAFE = DECLINE
    ARMED = ("Tab moves · ↵ next field, opens a choice · Space ticks",) * 2

    def title_words(self) -> str:
        return f"{self.request.server} asks you" if self._is_named else self.TITLE

    def lines(self) -> Sequence[LabelledLine]:
        """Name the server, unless the frame does."""
        self.query_one(Names).display = not self._is_named
        return super().lines()

    @property
    def _is_named(self) -> bool:
        """Whether the server's name looks like nothing else in the frame, and fits there."""
        name = self.request.server
        return bool(NAME.fullmatch(name)) and len(name) <= MAX_TITLE

    def unread_words(self) -> str:
        """Say how many fields are left to see."""
        end = self.body.region.bottom
        below = sum(row.region.bottom > end for row in self.form.rows)
        words = super().unread_words()
        return f"{below:,} more below" if words and below else words

    def compose_body(self) -> Iterable[Widget]:
        """Compose the message and the fields."""
        message = self.request.message or "The server does not say what it is for."
        yield WholeText(message, classes="server-words")
        self.form = ArgumentForm(self.request.fields, make_row, prefilled=True)
        yield self.form

    def on_mount(self) -> None:
        self._point_out()

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
        self.complain(f"{row.field.title}: {problem}" if row else problem)
        return row

    def first_focus(self) -> Widget | None:
        """Begin in the first field where it is in sight, else on the safe answer."""
        control = self.form.rows[0].control if self.form.rows else None
        in_sight = control is not None and self.body.region.contains_region(control.region)
        return control if in_sight else super().first_focus()

    def reply(self, action: ReplyAction) -> Reply | None:
        """Give what was filled in, or point at what is wrong.

        An accepted form can be accepted again after a pause: what the engine finds wrong with it
        may be the same as the time before, of which no change of the state would tell.
        """
        if not action.allows:
            return Reply(action)
        if not self.form.check():
            self.complain(INCOMPLETE)
            return None
        self.call_later(self.ask_again)
        return Reply(action, content=self.form.values())

    @on(FieldRow.Mended)
    def _on_mended(self) -> None:
        self.complain("")

    @on(Select.Changed)
    def _on_choice(self, event: Select.Changed) -> None:
        self.call_after_refresh(self._read_choice, event.control)

    def _read_choice(self, select: Select[int]) -> None:
        """Let a choice of several rows be read: the list that it was made in may have cut it."""
        if select.size.height > 1:
            self.reading.begin_anew()
            self._look()
