"""Asks whether a tool may run, and shows all that would be sent.

The frame, its title and its labels are gemdeck's own; what a server or the model wrote stands
indented behind a label. No answer has an action name: only a key pressed here, or a button
pressed here, can give one, and only once the question is armed.
"""

from collections.abc import Callable
from time import monotonic
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.content import Content
from textual.getters import query_one
from textual.widgets import Button, Static

from tui.model.consent import ConfirmationRequest, Decision, RequestId
from tui.store.commands import Commands
from tui.ui import keymap
from tui.ui.screens.arming import ArmedScreen, KeyKind
from tui.ui.screens.dialog import DIALOG_STYLES
from tui.ui.screens.question import (
    ANSWERS,
    Answer,
    CallFacts,
    Position,
    coloured_arguments,
    end_hint,
    heading,
)
from tui.ui.widgets.folded_text import FoldedText

REPEAT_SECONDS: Final = 3.0
"""Seconds within which the key of a lasting answer has to be pressed again."""

TALL: Final = 24
"""Rows from which the dialog has air and all its labels."""

SHORT: Final = 15
"""Rows from which it has any labels, and what the server says."""

OTHER_ROWS: Final = 16
"""Rows on a tall screen that are not arguments."""

SHORT_OTHER_ROWS: Final = 12
"""Rows on a short screen that are not arguments."""

TINY_OTHER_ROWS: Final = 6
"""Rows on the smallest screen that are not arguments."""

NARROW: Final = 80
"""Columns below which the buttons stand in three rows."""

WORDY: Final = 92
"""Columns from which the buttons have all their words."""

SLIM: Final = 72
"""Columns below which the last line has fewer words."""

MORE_BUTTON_ROWS: Final = 2
"""Rows that the buttons take besides the first where the screen is narrow."""

_SCROLL_KEYS: Final = frozenset({"up", "down", "pageup", "pagedown", "home", "end"})
_FOCUS_KEYS: Final = frozenset({"left", "right", "tab", "shift+tab"})

_BY_BINDING: Final = {answer.binding.id: answer for answer in ANSWERS}
_BY_BUTTON: Final = {answer.name: answer for answer in ANSWERS}

_UNARMED_HINTS: Final = (
    "One moment: keys count once you have stopped typing.",
    "One moment: stop typing first.",
)
_ARMED_HINTS: Final = (
    "↑↓ PageUp PageDown scroll the arguments · ← → Tab move · ↵ presses",
    "↑↓ scroll the arguments · ↵ presses",
)


class ConfirmationScreen(ArmedScreen):
    """One modal for all questions: it shows the first, and the next one in its place.

    Args:
        commands: Where the answer goes.
        clock: Gives seconds for the arming delay.
    """

    BINDING_GROUP_TITLE = "Confirmation"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (NARROW, "-wide")]  # noqa: RUF012 - as the base
    VERTICAL_BREAKPOINTS = [(0, "-tiny"), (SHORT, "-short"), (TALL, "-tall")]  # noqa: RUF012
    HELP = "A tool wants to run. Nothing runs until you allow it."
    CSS_PATH = DIALOG_STYLES
    BINDINGS: ClassVar[list[BindingType]] = [
        *(answer.binding for answer in ANSWERS),  # `on_key` finds them by their ids
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

    facts = query_one(CallFacts)
    arguments = query_one("#confirmation-arguments", FoldedText)
    description = query_one("#confirmation-description", FoldedText)
    hint = query_one("#confirmation-hint", Static)
    deny = query_one("#deny", Button)

    def __init__(self, commands: Commands, *, clock: Callable[[], float] = monotonic) -> None:
        super().__init__(clock)
        self._commands = commands
        self._clock = clock
        self._request: ConfirmationRequest | None = None
        self._answered: RequestId | None = None
        self._waiting = 0
        self._obsolete = False
        self._writing = False
        self._covered = False
        self._end_seen = False
        self._repeat: tuple[Answer, float] | None = None

    @property
    def request(self) -> ConfirmationRequest | None:
        """The question on the screen; None once it is answered."""
        return self._request

    def compose(self) -> ComposeResult:
        """Lay out the frame."""
        with Vertical(id="confirmation") as dialog:
            dialog.border_title = Content("A tool wants to run")
            yield CallFacts()
            yield Static("what the server says of it", markup=False, classes="heading")
            yield FoldedText(wrap=True, id="confirmation-description")
            yield Static("", markup=False, id="confirmation-heading", classes="heading")
            yield FoldedText(id="confirmation-arguments")
            with Container(id="confirmation-buttons"):
                for answer in ANSWERS:
                    yield Button(answer.button_label(short=False), id=answer.name, compact=True)
            yield Static("", markup=False, id="confirmation-hint")

    def on_mount(self) -> None:
        """Show what was asked before the screen was there."""
        self.watch(self.arguments, "scroll_y", self._look, init=False)
        if self._request is not None:
            self._draw(self._request)

    def show(self, request: ConfirmationRequest, waiting: int, *, writing: bool = False) -> None:
        """Ask a question, or count anew how many wait behind the one on the screen.

        Args:
            request: The question.
            waiting: How many wait in all, this one included.
            writing: Whether the user is writing as it appears.
        """
        self._writing = self._writing or writing
        self._waiting = waiting
        is_shown = self._request is not None and request.id == self._request.id
        if not is_shown and request.id != self._answered:
            self._request = request
            if self.is_mounted:
                self._draw(request)
        elif self.is_mounted:
            self._show_count()

    def close(self) -> None:
        """Go away; from under another dialog, as soon as that is closed."""
        self._obsolete = True
        self._request = None
        if self.is_active:
            self.dismiss()

    def on_screen_suspend(self) -> None:
        """Take no answer while another dialog stands above."""
        self._covered = True
        self.disarm()

    def on_screen_resume(self) -> None:
        """Go away where that was asked while another dialog stood above, else begin anew."""
        if self._obsolete:
            self.dismiss()
        elif self._covered and self._request is not None:
            self.call_after_refresh(self._start_arming)
        self._covered = False

    def on_resize(self) -> None:
        """Give the arguments the rows that nothing else needs."""
        self._fit()
        self.call_after_refresh(self._look)

    def on_key(self, event: events.Key) -> None:
        """Swallow keys until the question is armed; take an answer from then on."""
        active = self.active_bindings.get(event.key)
        answer = _BY_BINDING.get(active.binding.id) if active is not None else None
        repeat, self._repeat = self._repeat, None
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
            self._choose(_BY_BUTTON[event.button.id or "deny"], confirmed=True)

    def action_scroll(self, rows: int) -> None:
        """Scroll the arguments."""
        self.arguments.scroll_relative(y=rows, animate=False)

    def action_page(self, pages: int) -> None:
        """Scroll the arguments by pages."""
        self.arguments.scroll_relative(y=pages * self.arguments.size.height, animate=False)

    def action_edge(self, direction: int) -> None:
        """Scroll to the start or the end of the arguments."""
        if direction < 0:
            self.arguments.scroll_home(animate=False)
        else:
            self.arguments.scroll_end(animate=False)

    def watch_armed(self) -> None:
        """Say whether answers count."""
        self._show_hint()

    def _choose(self, answer: Answer, *, confirmed: bool) -> None:
        """Take an answer, unless something has to come before it, which the hint then says."""
        if answer.allows and not self._end_seen:
            self._show_hint()
        elif not confirmed:
            self._repeat = (answer, self._clock())
            self._show_hint()
            self.set_timer(REPEAT_SECONDS, self._show_hint)
        else:
            self._answer(answer)

    def _answer(self, answer: Answer) -> None:
        """Give the one answer; the modal goes or changes when the state says it is settled."""
        if self._request is None:
            return
        self._answered, self._request = self._request.id, None
        self.disarm()
        self._commands.decide(self._answered, Decision(answer.choice))
        if answer.stops:
            self._commands.cancel_turn()

    def _draw(self, request: ConfirmationRequest) -> None:
        self.disarm()
        self._end_seen = False
        self._fit()
        self.facts.show(request)
        self.description.show(request.description or "The server says nothing about this tool.")
        self.arguments.show(coloured_arguments(request.arguments))
        self._show_count()
        self.deny.focus()
        self.call_after_refresh(self._start_arming)

    def _fit(self) -> None:
        """Bound the arguments, so that every choice is in sight whatever their length."""
        width, height = self.app.size
        others = SHORT_OTHER_ROWS if height >= SHORT else TINY_OTHER_ROWS
        room = height - (OTHER_ROWS if height >= TALL else others)
        self.arguments.styles.max_height = max(1, room - MORE_BUTTON_ROWS * (width < NARROW))
        for answer in ANSWERS:
            label = answer.button_label(short=width < WORDY)
            self.query_one(f"#{answer.name}", Button).label = label

    @property
    def _position(self) -> Position:
        view = self.arguments
        first, rows, height = view.scroll_offset.y, view.row_count, view.size.height
        return Position(first + 1, rows, fits=rows <= height)

    def _look(self) -> None:
        """Take note of what of the arguments is in sight."""
        if self._request is None or self._gate.waits_for_drawing:
            return
        position, height = self._position, self.arguments.size.height
        self._end_seen = self._end_seen or position.first - 1 + height >= position.rows
        words = heading(self._request.arguments, position)
        self.query_one("#confirmation-heading", Static).update(words)
        self._show_hint()

    def _show_hint(self) -> None:
        if self.is_mounted:
            self.hint.update(Content(self._hint()))

    def _hint(self) -> str:
        short = self.app.size.width < SLIM
        if not self.armed:
            return _UNARMED_HINTS[short]
        if self._repeat is not None and self._clock() - self._repeat[1] < REPEAT_SECONDS:
            answer = self._repeat[0]
            return f"Press {self._key_of(answer)} again: {answer.words}"
        return _ARMED_HINTS[short] if self._end_seen else end_hint(self._position, short=short)

    def _key_of(self, answer: Answer) -> str:
        """Write the key of an answer as it is mapped now."""
        keys = (
            self.app.get_key_display(active.binding)
            for active in self.active_bindings.values()
            if active.binding.id == answer.binding.id
        )
        return next(keys, answer.keys[0])

    def _show_count(self) -> None:
        dialog = self.query_one("#confirmation", Vertical)
        dialog.border_subtitle = Content(f"1 of {self._waiting}" if self._waiting > 1 else "")

    def _start_arming(self) -> None:
        """Begin the delay now that the question has been drawn."""
        if self._request is None:
            return
        self.start_arming(writing=self._writing)
        self._writing = False
        self._look()

    def disarm(self) -> None:
        """Take no answer, and forget one that waits for its second press."""
        super().disarm()
        self._repeat = None


def _kind(event: events.Key, answer: Answer | None, *, again: bool) -> KeyKind:
    """Tell what a key means to the question."""
    if answer is not None:
        return KeyKind.REPEAT if again else KeyKind.ANSWER
    if event.key in _SCROLL_KEYS | _FOCUS_KEYS:
        return KeyKind.MOVE
    if event.key == "enter":
        return KeyKind.ANSWER
    return KeyKind.TEXT if event.is_printable else KeyKind.OTHER
