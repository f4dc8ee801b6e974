"""A form that a server asks to fill in."""

from collections.abc import Iterable, Sequence
from typing import ClassVar, Final

from textual import on
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input, Select, SelectionList

from tui.model.requests import FormRequest, Reply, ReplyAction
from tui.ui.screens.server_question import QuestionScreen, server_words
from tui.ui.widgets.form_fields import FieldRow, make_row

INCOMPLETE: Final = "Not sent yet: look at the fields marked below or above."
"""Stands over the answers while a field does not hold what it has to."""


class FormScreen(QuestionScreen[FormRequest]):
    """Shows the form, checks what can be checked here, and sends it when told to."""

    TITLE_LINE = "A server asks for input"
    HELP = "A server asks you to fill in a form. Nothing is sent until you accept."
    ARMED_HINT = "Tab moves · ↵ next field · Enter opens a choice, Space ticks"
    BUTTONS = (
        (ReplyAction.ACCEPT, "^S", "Accept"),
        (ReplyAction.DECLINE, "^D", "Decline"),
        (ReplyAction.CANCEL, "Esc", "Cancel"),
    )
    KEYS = {  # noqa: RUF012 - as the base
        "form.accept": ReplyAction.ACCEPT,
        "form.decline": ReplyAction.DECLINE,
        "form.cancel": ReplyAction.CANCEL,
    }
    SAFE = ReplyAction.DECLINE
    # The answers name no action; priority lets them come before the keys of the fields.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "none", "accept", id="form.accept", priority=True),
        Binding("ctrl+d", "none", "decline", id="form.decline", priority=True),
        Binding("escape", "none", "cancel", id="form.cancel"),
    ]

    _rows: Sequence[FieldRow] = ()

    def facts(self) -> Iterable[tuple[str, str]]:
        """Name who asks."""
        yield "server", self._request.server

    def compose_body(self) -> Iterable[Widget]:
        """Compose the message and the fields."""
        yield server_words(self._request.message or "The server does not say what it is for.")
        self._rows = [make_row(field) for field in self._request.fields]
        yield from self._rows

    def known_problem(self) -> str:
        """Say what the engine found wrong with the last answer."""
        return self._request.problem

    def accepts(self, request: object) -> bool:
        """Take the same form again; one with other fields is another form."""
        return (
            isinstance(request, FormRequest)
            and super().accepts(request)
            and request.fields == self._request.fields
        )

    def changed(self) -> None:
        """Show why the answer was not taken, and let it be given again."""
        if not self.is_mounted:
            return
        self.complain(self._request.problem)
        row = self._row_in_question()
        if row is not None:
            row.complain(self._request.problem.partition(": ")[2])
            row.control.focus()
        self.arm_again()

    def first_focus(self) -> Widget | None:
        """Begin in the first field; with none, on the safe answer."""
        return self._rows[0].control if self._rows else super().first_focus()

    def reply(self, action: ReplyAction) -> Reply | None:
        """Give what was filled in, or point at what is wrong.

        An accepted form can be accepted again after a pause: what the engine finds wrong with it
        may be the same as the time before, of which no change of the state would tell.
        """
        if action is not ReplyAction.ACCEPT:
            return Reply(action)
        wrong = [row for row in self._rows if row.check()]
        if wrong:
            self.complain(INCOMPLETE)
            wrong[0].control.focus()
            return None
        self.call_later(self.arm_again)
        return Reply(action, content={row.field.key: row.value() for row in self._rows})

    @on(Input.Changed)
    @on(Select.Changed)
    @on(SelectionList.SelectedChanged)
    def _look_again(
        self, event: Input.Changed | Select.Changed | SelectionList.SelectedChanged[int]
    ) -> None:
        """Take a complaint back once what it was about is mended."""
        event.stop()
        rows = [row for row in self._rows if row.has_class("-wrong")]
        if any(row.control is event.control and not row.check() for row in rows) and len(rows) == 1:
            self.complain("")

    @on(Input.Submitted)
    def _next_field(self, event: Input.Submitted) -> None:
        """Enter goes on to the next field; it never accepts the form."""
        event.stop()
        self.focus_next()

    def _row_in_question(self) -> FieldRow | None:
        problem = self._request.problem
        named = (row for row in self._rows if problem.startswith(f"{row.field.title}: "))
        return next(named, None)
