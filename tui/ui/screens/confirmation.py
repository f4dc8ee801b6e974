"""Asks whether a tool may run, and shows all that would be sent.

The frame, its title, its labels and its notes are gemdeck's own; what a server or the model wrote
stands indented behind a label. No answer has an action name: only a key pressed here, or a button
pressed here, can give one, and only once the question is armed.
"""

from collections.abc import Callable
from time import monotonic
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.getters import query_one
from textual.widgets import Button

from tui.model.arguments import ArgumentsError
from tui.model.consent import Choice, Decision, GrantScope
from tui.model.requests import ConfirmationRequest
from tui.store.commands import Commands
from tui.ui import keymap
from tui.ui.screens import answers as a
from tui.ui.screens import confirmation_rows as rows
from tui.ui.screens.answers import Answer
from tui.ui.screens.arming import ArmedScreen, KeyKind
from tui.ui.screens.confirmation_view import ArgumentsText, ConfirmationView
from tui.ui.screens.draft import Draft
from tui.ui.screens.question import CONFIRMATION_STYLES
from tui.ui.screens.step import StepHolder
from tui.ui.widgets.folded_text import FoldedText
from tui.ui.widgets.json_area import MAX_EDITABLE

REPEAT_SECONDS: Final = 3.0
"""Seconds within which the key of a lasting answer has to be pressed again."""

REFUSAL_SECONDS: Final = 1.0
"""Seconds after which edited arguments that were refused before count as refused again: the same
complaint twice is no change of the state."""

_SCROLL_KEYS: Final = frozenset({"up", "down", "pageup", "pagedown", "home", "end"})
_FOCUS_KEYS: Final = frozenset({"left", "right", "tab", "shift+tab"})


class ConfirmationScreen(ArmedScreen):
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
        *a.bindings(),  # `on_key` finds them by their ids
        *keymap.bindings(only=("app.help",)),
        Binding("up", "scroll(-1)", "Scroll up", show=False),
        Binding("down", "scroll(1)", "Scroll down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home", "edge(-1)", "To the start", show=False),
        Binding("end", "edge(1)", "To the end", show=False),
        Binding("left", "app.focus_previous", "Button before", show=False),
        Binding("right", "app.focus_next", "Button after", show=False),
    ]

    view = query_one(ConfirmationView)
    arguments = query_one(ArgumentsText)
    deny = query_one("#deny", Button)

    def __init__(self, commands: Commands, *, clock: Callable[[], float] = monotonic) -> None:
        super().__init__(clock)
        self._commands = commands
        self._clock = clock
        self._request: ConfirmationRequest | None = None
        self._asked: ConfirmationRequest | None = None
        self._draft = Draft()
        self._steps = StepHolder(self)
        self._waiting = 0
        self._obsolete = False
        self._writing = False
        self._covered = False
        self._offers_editor = False
        self._repeat: tuple[Answer, float] | None = None
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
        self._obsolete = True
        self._request = None
        self._steps.withdraw()
        if self.is_active:
            self.dismiss()

    def on_screen_suspend(self) -> None:
        """Take no answer while another dialog stands above."""
        self._covered = True
        self.disarm()

    def on_screen_resume(self) -> None:
        """Go away where that was asked while another dialog stood above, else begin anew."""
        if not self.is_active:
            return
        if self._obsolete:
            self.dismiss()
        elif self._covered and self._request is not None:
            self.call_after_refresh(self._start_arming)
        self._covered = False

    def on_resize(self) -> None:
        """Give the arguments the rows that nothing else needs."""
        self.view.fit(self.app.size)
        self.call_after_refresh(self._look)

    def on_key(self, event: events.Key) -> None:
        """Swallow keys until the question is armed; take an answer from then on."""
        active = self.active_bindings.get(event.key)
        answer = a.BY_BINDING.get(active.binding.id) if active is not None else None
        repeat, self._repeat, self._said = self._repeat, None, ""
        again = (
            repeat is not None
            and repeat[0] is answer
            and self._clock() - repeat[1] <= REPEAT_SECONDS
        )
        counts = self._gate.typed(_kind(event, answer, again=again))
        self.check_gate()
        if event.key in _SCROLL_KEYS or (counts and answer is None):
            return
        event.stop()
        event.prevent_default()
        if counts and answer is not None:
            self._choose(answer, confirmed=again or not answer.lasting)

    def on_paste(self, event: events.Paste) -> None:
        """Drop pasted text; it counts as typing."""
        event.stop()
        self._repeat = None
        self._gate.typed(KeyKind.TEXT)
        self.check_gate()

    @on(Button.Pressed)
    def _press(self, event: Button.Pressed) -> None:
        event.stop()
        if self._gate.armed:
            self._choose(a.BY_BUTTON[event.button.id or a.DENY.name], confirmed=True)

    def action_scroll(self, rows: int) -> None:
        """Scroll the arguments."""
        self._scrolled.scroll_relative(y=rows, animate=False)

    def action_page(self, pages: int) -> None:
        """Scroll the arguments by pages."""
        view = self._scrolled
        view.scroll_relative(y=pages * view.size.height, animate=False)

    def action_edge(self, direction: int) -> None:
        """Scroll to the start or the end of the arguments."""
        if direction < 0:
            self._scrolled.scroll_home(animate=False)
        else:
            self._scrolled.scroll_end(animate=False)

    def watch_armed(self) -> None:
        """Say whether answers count."""
        self._show_hint()

    @property
    def _scrolled(self) -> FoldedText:
        """The text that has the focus; the arguments where none has."""
        return self.focused if isinstance(self.focused, FoldedText) else self.arguments

    def _choose(self, answer: Answer, *, confirmed: bool) -> None:
        """Take an answer, unless something has to come before it, which the hint then says."""
        request = self._request
        if request is None:
            return
        if answer.granted and not request.may_last:
            reason = a.NOT_LASTING_SHORT if self.view.is_short else a.NOT_LASTING
            self._say(f"Always: {reason}.")
        elif answer.allows and not self.view.end_seen:
            self._show_hint()
        elif not confirmed:
            self._expect_again(answer)
        elif answer.choice is not None:
            self._answer(request, answer, answer.choice)
        else:
            self._take_step(request, answer)

    def _expect_again(self, answer: Answer) -> None:
        self._repeat = (answer, self._clock())
        self._show_hint()
        self.set_timer(REPEAT_SECONDS, self._show_hint)

    def _take_step(self, request: ConfirmationRequest, answer: Answer) -> None:
        """Do what decides nothing yet."""
        if answer is a.SCOPE:
            self._draft = self._draft.with_next_scope()
            self._repeat = (answer, self._clock())  # so that its key may follow itself at once
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
            self.call_after_refresh(self._start_arming)

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
        self._steps.withdraw()
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
        if not self._covered:
            self.call_after_refresh(self._start_arming)

    @on(ArgumentsText.Resized)
    def _on_arguments_resized(self, event: ArgumentsText.Resized) -> None:
        event.stop()
        self._look()

    def _look(self) -> None:
        """Take note of what of the arguments is in sight."""
        if self._request is None or self._gate.waits_for_drawing:
            return
        self.view.look()
        self._show_hint()

    def _say(self, words: str) -> None:
        """Put a word into the last line, until the next key."""
        self._said = words
        self._show_hint()

    def _show_hint(self) -> None:
        if self.is_mounted:
            self.view.say(self._hint())

    def _hint(self) -> str:
        if not self.armed:
            return self.view.unarmed_hint
        if self._said:
            return self._said
        if self._repeat is not None and self._clock() - self._repeat[1] < REPEAT_SECONDS:
            answer = self._repeat[0]
            if answer.lasting:
                key = a.mapped_key(self, answer)
                return answer.question(key, self._draft.scope, short=self.view.is_short)
        return self.view.armed_hint

    def _start_arming(self) -> None:
        """Begin the delay now that the question has been drawn."""
        request = self._request
        if request is None or not self.is_active:
            return
        if self._offers_editor:
            self._offers_editor = False
            self._open_editor(request, held=True)
            return
        self.start_arming(writing=self._writing)
        self._writing = False
        self._look()

    def disarm(self) -> None:
        """Take no answer, and forget one that waits for its second press."""
        self._repeat = None
        super().disarm()


def _kind(event: events.Key, answer: Answer | None, *, again: bool) -> KeyKind:
    """Tell what a key means to the question."""
    if answer is not None:
        return KeyKind.REPEAT if again else KeyKind.ANSWER
    if event.key in _SCROLL_KEYS | _FOCUS_KEYS:
        return KeyKind.MOVE
    if event.key == "enter":
        return KeyKind.ANSWER
    return KeyKind.TEXT if event.is_printable else KeyKind.OTHER
