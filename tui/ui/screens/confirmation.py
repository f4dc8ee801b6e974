"""Asks whether a tool may run, and shows all that would be sent.

The frame, its title, its labels and its notes are gemdeck's own; what a server or the model wrote
stands indented behind a label.
"""

from collections.abc import Callable
from time import monotonic
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.getters import query_one
from textual.widgets import Button

from tui.model.arguments import ArgumentsError
from tui.model.consent import Choice, Decision, GrantScope
from tui.model.requests import ConfirmationRequest
from tui.store.commands import Commands
from tui.ui.screens import answers as a
from tui.ui.screens import confirmation_rows as rows
from tui.ui.screens.answers import Answer
from tui.ui.screens.confirmation_view import ArgumentsText, ConfirmationView
from tui.ui.screens.draft import Draft
from tui.ui.screens.question import CONFIRMATION_STYLES
from tui.ui.screens.reading import SCROLLING, ReadingScreen
from tui.ui.screens.step import WITHDRAWN, StepHolder
from tui.ui.widgets.folded_text import FoldedText
from tui.ui.widgets.json_area import MAX_EDITABLE

REFUSAL_SECONDS: Final = 1.0
"""Seconds after which edited arguments that were refused before count as refused again: the same
complaint twice is no change of the state."""


class ConfirmationScreen(ReadingScreen[Answer]):
    """One modal for all questions: it shows the first, and the next one in its place.

    Args:
        commands: Where the answer goes.
        clock: Gives seconds for the arming delay.
    """

    BINDING_GROUP_TITLE = "Confirmation"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (rows.NARROW, "-wide")]  # noqa: RUF012 - as the base
    VERTICAL_BREAKPOINTS = [  # noqa: RUF012 - as the base
        (0, "-tiny"),
        (rows.SHORT, "-short"),
        (rows.MIDDLING, "-middling"),
        (rows.TALL, "-tall"),
    ]
    HELP = "A tool wants to run. Nothing runs until you allow it."
    CSS_PATH = CONFIRMATION_STYLES
    BINDINGS: ClassVar[list[BindingType]] = [
        *a.bindings(),  # `answer_of_binding` finds them by their ids
        *SCROLLING,
    ]

    view = query_one(ConfirmationView)
    arguments = query_one(ArgumentsText)
    deny = query_one("#deny", Button)

    def __init__(self, commands: Commands, *, clock: Callable[[], float] = monotonic) -> None:
        super().__init__(clock)
        self._commands = commands
        self._request: ConfirmationRequest | None = None
        self._asked: ConfirmationRequest | None = None
        self._draft = Draft()
        self._steps = StepHolder(self)
        self._waiting = 0
        self._offers_editor = False
        self._said = ""

    @property
    def request(self) -> ConfirmationRequest | None:
        """The question on the screen; None once it is answered."""
        return self._request

    def compose(self) -> ComposeResult:
        """Compose the dialog."""
        yield ConfirmationView()

    def on_mount(self) -> None:
        """Show what was asked before the screen was there."""
        self.watch(self.arguments, "scroll_y", self._look, init=False)
        if self._request is not None:
            self._draw(self._request)

    def show(self, request: ConfirmationRequest, waiting: int, *, writing: bool = False) -> None:
        """Ask a question, or count anew how many wait behind the one on the screen.

        The same question asked again with a problem offers what the user wrote once more.

        Args:
            request: The question.
            waiting: How many wait in all, this one included.
            writing: Whether the user is writing as it appears.
        """
        self._writing = self._writing or writing
        self._waiting = waiting
        if request != self._asked:
            self._ask(request)
        elif self.is_mounted:
            self.view.show_count(waiting)

    def close(self) -> None:
        """Go away; from under another dialog, as soon as that is closed."""
        self._request = None
        if self._steps.withdraw():
            self.app.notify(WITHDRAWN, severity="warning", markup=False)
        super().close()

    def on_resize(self) -> None:
        """Give the arguments the rows that nothing else needs."""
        self.view.fit(self.app.size)
        self.call_after_refresh(self._look)

    @property
    def asks(self) -> bool:
        """Whether there is a question that no answer was given to."""
        return self._request is not None

    @property
    def scrolled(self) -> FoldedText:
        """The text that has the focus; the arguments where none has."""
        return self.focused if isinstance(self.focused, FoldedText) else self.arguments

    def answer_of_binding(self, binding_id: str) -> Answer | None:
        """Give the answer that a binding stands for, if any."""
        return a.BY_BINDING.get(binding_id)

    def answer_of_button(self, button_id: str) -> Answer:
        """Give the answer that a button stands for."""
        return a.BY_BUTTON[button_id]

    def needs_second_press(self, answer: Answer) -> bool:
        """Want the key of an answer twice where it holds for later calls."""
        return answer.lasting

    def key_came(self) -> None:
        """Take back what was said to the key before."""
        self._said = ""

    def choose(self, answer: Answer, *, confirmed: bool) -> None:
        """Take an answer, unless something has to come before it, which the hint then says."""
        request = self._request
        if request is None:
            return
        if answer.granted and not request.may_last:
            reason = a.NOT_LASTING_SHORT if self.view.is_short else a.NOT_LASTING
            self._say(f"Always: {reason}.")
        elif answer.allows and not self.view.end_seen:
            self.show_hint()
        elif not confirmed:
            self.await_second_press(answer)
        elif answer.choice is not None:
            self._answer(request, answer, answer.choice)
        else:
            self._take_step(request, answer)

    def _take_step(self, request: ConfirmationRequest, answer: Answer) -> None:
        """Do what decides nothing yet."""
        if answer is a.SCOPE:
            self._draft = self._draft.with_next_scope()
            self._second.expect(answer)  # so that its key may follow itself at once
            self.view.show_answers(self._draft)
        elif answer is a.EDIT:
            self._open_editor(request)
        elif answer is a.WITH_WORD:
            self._open_word(request)
        elif self._draft.edit is None:
            self._say("These are the model's arguments; you changed nothing.")
        else:
            self._draft = self._draft.turned()
            self.disarm()
            self.view.show_arguments(self._draft)
            self.arm_after_drawing()

    def _answer(
        self, request: ConfirmationRequest, answer: Answer, choice: Choice, note: str = ""
    ) -> None:
        """Give the one answer; the modal goes or changes when the state says it is settled."""
        self._request = None
        self.disarm()
        edited = self._draft.sent if choice.allows else None
        scope = self._draft.scope if answer.granted else GrantScope.SESSION
        self._commands.decide(request.id, Decision(choice, note, scope, edited))
        if answer.stops:
            self._commands.cancel_turn()
        if edited is not None and request.problem:
            self.set_timer(REFUSAL_SECONDS, lambda: self._ask_again(request))

    def _ask_again(self, request: ConfirmationRequest) -> None:
        """Ask once more where an edit was refused with the same words as the one before."""
        if self._request is None and self._asked is request and not self._obsolete:
            self._ask(request)

    def _open_editor(self, request: ConfirmationRequest, *, held: bool = False) -> None:
        from tui.ui.screens.edit_arguments import EditArgumentsScreen  # noqa: PLC0415 - first use

        text = self._draft.shown
        if len(text) > MAX_EDITABLE:
            self._say(f"Too long to edit here: more than {MAX_EDITABLE:,} characters.")
            return
        try:
            editor = EditArgumentsScreen(request, text, held=held, clock=self._clock)
        except ArgumentsError as error:
            self._say(f"Cannot be edited: {error}")
            return
        self.disarm()
        self._steps.open(editor, self._take_edit)

    def _open_word(self, request: ConfirmationRequest) -> None:
        from tui.ui.screens.deny_word import DenyWordScreen  # noqa: PLC0415 - on first use

        self.disarm()
        self._steps.open(
            DenyWordScreen(request),
            lambda note: self._answer(request, a.WITH_WORD, Choice.DENY, note),
        )

    def _take_edit(self, text: str) -> None:
        """Show the arguments as edited."""
        self._draft = self._draft.with_edit(text)
        self.view.show_arguments(self._draft)

    def _ask(self, request: ConfirmationRequest) -> None:
        """Put a question on the screen; the same one again keeps what the user wrote."""
        self._said = WITHDRAWN if self._steps.withdraw() else ""
        is_again = self._asked is not None and request.id == self._asked.id
        if not is_again:
            self._draft = Draft(request.arguments)
        elif request.problem and self._draft.edit is not None:
            self._draft = self._draft.asked_again()
            self._offers_editor = True
        self._request = self._asked = request
        if self.is_mounted:
            self._draw(request)

    def _draw(self, request: ConfirmationRequest) -> None:
        self.disarm()
        self.view.show(request, self.app.size)
        self.view.show_arguments(self._draft)
        self.view.show_count(self._waiting)
        self.deny.focus()
        self.arm_after_drawing()

    @on(ArgumentsText.Resized)
    def _on_arguments_resized(self, event: ArgumentsText.Resized) -> None:
        event.stop()
        self._look()

    def _look(self) -> None:
        """Take note of what of the arguments is in sight."""
        if self._request is None or self._gate.waits_for_drawing:
            return
        self.view.look()
        self.show_hint()

    def _say(self, words: str) -> None:
        """Put a word into the last line, until the next key."""
        self._said = words
        self.show_hint()

    def show_hint(self) -> None:
        """Say in the last line what can be done now."""
        if self.is_mounted:
            self.view.say(self._hint())

    def _hint(self) -> str:
        if not self.armed:
            return self.unarmed_hint
        if self._said:
            return self._said
        answer = self._second.awaited
        if answer is not None and answer.lasting:
            key = self.mapped_key(answer.binding_id, answer.keys[0])
            return answer.question(key, self._draft.scope, short=self.view.is_short)
        return self.view.armed_hint

    def begin(self) -> None:
        """Begin the delay now that the question has been drawn; an edit goes on where it was."""
        request = self._request
        if request is not None and self._offers_editor and self.is_active:
            self._offers_editor = False
            self._open_editor(request, held=True)
            return
        super().begin()
        self._look()
