"""Asks whether a tool may run, and shows all that would be sent."""

from collections.abc import Callable, Iterable
from typing import Final

from textual.content import Content
from textual.getters import query_one
from textual.widget import Widget

from tui.model.consent import Choice, Decision, GrantScope
from tui.model.input.arguments import ArgumentsError
from tui.model.requests import ConfirmationRequest
from tui.store.commands import Commands
from tui.ui.questions.answers import Answer
from tui.ui.questions.arming import Keyboard
from tui.ui.questions.call_view import (
    CallFacts,
    coloured_arguments,
    heading,
    notes_content,
    server_words,
)
from tui.ui.questions.deny_reason import WITHDRAWN, DenyReasonScreen, Step
from tui.ui.questions.edit_arguments import EditArgumentsScreen
from tui.ui.questions.question import Question
from tui.ui.widgets.forms.json_area import MAX_EDITABLE
from tui.ui.widgets.frame import Heading
from tui.ui.widgets.text.folded_text import FoldedText
from tui.ui.widgets.text.plain import PlainText

REFUSAL_SECONDS: Final = 1.0
"""Seconds after which edited arguments that were refused before count as refused again: the same
complaint twice is no change of the state."""

NOT_LASTING: Final = (
    "not offered: nothing identifies this server later on",
    "not for this server",
)
"""Stands in place of the answers that last where there are none, in many words and in few."""

SCOPES: Final = tuple(GrantScope)
"""The scopes in the order in which their key goes through them."""

SHORT_SCOPES: Final = {
    GrantScope.SESSION: "session",
    GrantScope.FOLDER: "folder",
    GrantScope.EVERYWHERE: "everywhere",
}

ONCE: Final = Answer("once", "o", "Once", "allow this call", Choice.ONCE)
EDIT: Final = Answer("edit", "e", "Edit", "edit the arguments first")
DENY: Final = Answer("deny", "d,escape", "Deny", "deny this call", Choice.DENY)
WITH_REASON: Final = Answer(
    "deny-with-reason",
    "w",
    "Deny with a reason",
    "deny this call and tell the model why",
    short="Reason",
)
UNDO: Final = Answer(
    "undo-edit",
    "u",
    "Model's",
    "switch between the model's arguments and your edit",
    short="Undo",
)


def _always(kind: str, key: str, choice: Choice) -> Answer:
    return Answer(
        f"always-{kind}",
        key,
        f"This {kind}",
        f"always this {kind}",
        choice,
        short=kind.title(),
        brief=f"always {kind}",
        twice=True,
        scoped=True,
    )


ALWAYS_TOOL: Final = _always("tool", "t", Choice.ALWAYS_TOOL)
ALWAYS_SERVER: Final = _always("server", "s", Choice.ALWAYS_SERVER)
SCOPE: Final = Answer(
    "scope", "m", GrantScope.SESSION, "switch how long and where always holds", scoped=True
)
ALLOW_REST: Final = Answer(
    "allow-rest",
    "a",
    "Allow the rest",
    "allow this and all further calls of this turn",
    Choice.REST_OF_TURN,
    short="Allow rest",
    brief="allow rest of turn",
    twice=True,
)
DENY_REST: Final = Answer(
    "deny-rest",
    "n",
    "Deny the rest",
    "deny this and all further calls of this turn",
    Choice.DENY_REST_OF_TURN,
    short="Deny rest",
)
STOP: Final = Answer(
    "stop",
    "x",
    "Stop the turn",
    "deny this and all further calls, and stop the turn",
    Choice.DENY,
    short="Stop",
)


class ConfirmationQuestion(Question[ConfirmationRequest]):
    """Shows a call, complete, and goes through the steps towards an answer."""

    BINDING_GROUP_TITLE = "Confirmation"
    HELP = "A tool wants to run. Nothing runs until you allow it."
    PREFIX = "confirmation"
    ROWS = (
        ("this call", (ONCE, EDIT, DENY, WITH_REASON, UNDO)),
        ("always", (ALWAYS_TOOL, ALWAYS_SERVER, SCOPE)),
        ("this turn", (ALLOW_REST, DENY_REST, STOP)),
    )
    SAFE = DENY
    ARMED = (
        "↑↓ PageUp PageDown scroll the arguments · ← → Tab move · ↵ presses",
        "↑↓ scroll the arguments · ↵ presses",
    )

    facts = query_one(CallFacts)
    arguments = query_one("#confirmation-arguments", FoldedText)

    def __init__(
        self, request: ConfirmationRequest, commands: Commands, *, keyboard: Keyboard | None = None
    ) -> None:
        super().__init__(request, commands, keyboard=keyboard)
        self._scope = GrantScope.SESSION
        self._edit: str | None = None
        self._shows_edit = False
        self._offers_editor = False
        self._step: Step | None = None

    def title_words(self) -> str:
        return f"A tool wants to run{' · your edit' if self._shows_edit else ''}"

    def compose_text(self) -> Iterable[Widget]:
        """Lay out the parts, gemdeck's own notes apart from what the server says."""
        yield CallFacts(self._request)
        yield FoldedText(wrap=True, id="confirmation-notes", classes="-read")
        yield PlainText("Server's description", classes="heading")
        yield FoldedText(wrap=True, id="confirmation-description")
        yield Heading(self.heading_words)
        yield FoldedText(id="confirmation-arguments", classes="-fits")

    def show_text(self) -> None:
        """Show the call and the arguments that an answer would be about."""
        super().show_text()
        said = notes_content(self._request)
        self.facts.show(self._request)
        notes = self.query_one("#confirmation-notes", FoldedText)
        notes.show(said)
        notes.display = bool(said)
        self.query_one("#confirmation-description", FoldedText).show(server_words(self._request))
        self.arguments.show(coloured_arguments(self._shown_arguments))

    def show_answers(self) -> None:
        """Show what can be answered now, or why it cannot."""
        super().show_answers()
        may_last = self._request.may_last
        for answer in (ALWAYS_TOOL, ALWAYS_SERVER, SCOPE):
            self.rows.button(answer).display = may_last
        self.rows.button(UNDO).display = self._edit is not None
        self.rows.note(1, "" if may_last else NOT_LASTING[self.is_short])

    def heading_words(self) -> Content:
        return heading(self._shown_arguments, self.reading.position, edited=self._shows_edit)

    def caption(self, answer: Answer, *, short: bool) -> str:
        """Give the words on a button, which say what is set."""
        if answer is SCOPE:
            return SHORT_SCOPES[self._scope] if short else self._scope.value
        if answer is UNDO and not self._shows_edit:
            return "Yours"
        return super().caption(answer, short=short)

    def refusal(self, answer: Answer, *, short: bool) -> str:
        """Say why an answer cannot be given yet, or nothing."""
        if answer.scoped and not self._request.may_last:
            return f"Always: {NOT_LASTING[short]}."
        return super().refusal(answer, short=short)

    def again_words(self, answer: Answer, key: str, *, short: bool) -> str:
        """Ask for a key once more, and say for how long what it does holds."""
        words = super().again_words(answer, key, short=short)
        return f"{words}, {self.caption(SCOPE, short=short)}" if answer.scoped else words

    def choose(self, answer: Answer) -> None:
        """Take an answer, or the step that comes before one."""
        if isinstance(answer.value, Choice):
            self._decide(answer, answer.value)
        elif answer is SCOPE:
            following = (SCOPES.index(self._scope) + 1) % len(SCOPES)
            self._scope = SCOPES[following]
            self.show_answers()
        elif answer is EDIT:
            self._open_editor()
        elif answer is WITH_REASON:
            self._open_step(DenyReasonScreen(self._request), self._deny)
        elif self._edit is None:
            self.say("These are the model's arguments; you changed nothing.")
        else:
            self._shows_edit = not self._shows_edit
            self.changed()

    def show(self, request: ConfirmationRequest, waiting: str) -> None:
        """Take note of how the request stands; a refused edit is offered once more."""
        if request != self._request and request.problem and self._edit is not None:
            self._shows_edit = self._offers_editor = True
        super().show(request, waiting)

    def changed(self) -> None:
        """Ask anew about what is shown now."""
        if self._withdraw_step():
            self.say(WITHDRAWN)
        super().changed()

    def close(self) -> None:
        """Go away, and say so where the user was writing."""
        if self._withdraw_step():
            self.app.notify(WITHDRAWN, severity="warning", markup=False)
        super().close()

    def begin(self) -> None:
        """Begin the delay; a refused edit goes on where it was."""
        if self._offers_editor and self.asks and self.is_active:
            self._offers_editor = False
            self._open_editor(held=True)
        else:
            super().begin()

    @property
    def _shown_arguments(self) -> str:
        """The arguments on the screen, which are the ones an answer is about."""
        edited = self._edit if self._shows_edit else None
        return self._request.arguments if edited is None else edited

    def _decide(self, answer: Answer, choice: Choice, note: str = "") -> None:
        edited = self._edit if self._shows_edit and choice.allows else None
        scope = self._scope if answer.scoped else GrantScope.SESSION
        self.send(Decision(choice, note, scope, edited))
        if answer is STOP:
            self._commands.cancel_turn()
        if edited is not None and self._request.problem:
            request = self._request
            self.set_timer(REFUSAL_SECONDS, lambda: self._ask_again(request))

    def _deny(self, reason: str) -> None:
        self._decide(WITH_REASON, Choice.DENY, reason)

    def _ask_again(self, request: ConfirmationRequest) -> None:
        """Ask once more where an edit was refused with the same words as the one before."""
        if self._is_answered and self._request is request and not self._obsolete:
            self._shows_edit = self._offers_editor = True
            self.changed()

    def _open_editor(self, *, held: bool = False) -> None:
        text = self._shown_arguments
        if len(text) > MAX_EDITABLE:
            self.say(f"Too long to edit here: more than {MAX_EDITABLE:,} characters.")
            return
        try:
            editor = EditArgumentsScreen(self._request, text, self._keyboard, held=held)
        except ArgumentsError as error:
            self.say(f"Cannot be edited: {error}")
            return
        self._open_step(editor, self._take_edit)

    def _open_step(self, step: Step, take: Callable[[str], None]) -> None:
        """Lay a step over the question; `take` gets what it gives, unless that is nothing."""

        def ended(text: str | None) -> None:
            is_current, self._step = self._step is step, None
            if is_current and text is not None:
                take(text)

        self._arming.end()
        self._step = step
        self.app.push_screen(step, ended)

    def _withdraw_step(self) -> bool:
        """Take the step away; tell whether there was one."""
        step, self._step = self._step, None
        if step is not None:
            step.withdraw()
        return step is not None

    def _take_edit(self, text: str) -> None:
        """Show the arguments as edited; they are no edit where they are the model's again."""
        self._edit = text if text != self._request.arguments else None
        self._shows_edit = self._edit is not None
        self.changed()
