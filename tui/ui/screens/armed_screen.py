"""What all questions have in common: when an answer counts, and how the question goes.

No answer has an action name: only a key pressed here, or a button pressed here, can give one,
and only once the question is armed.
"""

from abc import abstractmethod
from collections.abc import Callable
from time import monotonic
from typing import ClassVar, Generic, TypeVar

from textual import events, on
from textual.containers import Vertical
from textual.content import Content
from textual.getters import query_one
from textual.reactive import var
from textual.screen import ModalScreen
from textual.widgets import Button

from tui.model.requests import PendingRequest
from tui.store.commands import Commands
from tui.ui.screens.arming import ArmingGate, GateWatch, KeyKind
from tui.ui.screens.second_press import REPEAT_SECONDS, SecondPress

A = TypeVar("A")
R = TypeVar("R", bound=PendingRequest)


class ArmedScreen(ModalScreen[None], Generic[A]):
    """A modal that takes answers only while its gate is open.

    Args:
        clock: Gives seconds that never run backwards.
    """

    AUTO_FOCUS = ""
    DEFAULT_CSS = """
    ArmedScreen Toast { display: none; }  /* it would cover what is asked */
    """
    FREE_KEYS: ClassVar[frozenset[str]] = frozenset()
    """Keys that work before an answer counts."""

    armed: var[bool] = var(False, toggle_class="-armed")
    """Whether answers count now; shown by the look of the buttons and the hint."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._gate = ArmingGate(clock)
        self._watch = GateWatch(self, self._gate, self._look_at_gate)
        self._second: SecondPress[A] = SecondPress(clock)
        self._obsolete = False
        self._covered = False
        self._writing = False

    @property
    @abstractmethod
    def asks(self) -> bool:
        """Whether there is a question that no answer was given to."""

    @abstractmethod
    def answer_of_binding(self, binding_id: str) -> A | None:
        """Give the answer that a binding of this screen stands for, if any."""

    @abstractmethod
    def answer_of_button(self, button_id: str) -> A:
        """Give the answer that a button stands for."""

    @abstractmethod
    def kind_of(self, event: events.Key, answer: A | None, *, again: bool) -> KeyKind:
        """Tell what a key means to the question.

        Args:
            event: The key.
            answer: The answer it gives, if any.
            again: Whether it confirms the key before it.
        """

    @abstractmethod
    def needs_second_press(self, answer: A) -> bool:
        """Tell whether the key of an answer has to be pressed again."""

    @abstractmethod
    def choose(self, answer: A, *, confirmed: bool) -> None:
        """Take an answer that counts.

        Args:
            answer: The answer.
            confirmed: Whether nothing has to be pressed again for it.
        """

    @abstractmethod
    def show_hint(self) -> None:
        """Say in the last line what can be done now."""

    def close(self) -> None:
        """Go away; from under another dialog, as soon as that is closed."""
        self._obsolete = True
        self.disarm()
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
        was_covered, self._covered = self._covered, False
        if self._obsolete:
            self.dismiss()
        elif was_covered:
            self.arm_after_drawing()

    def on_key(self, event: events.Key) -> None:
        """Swallow keys until the question is armed; take an answer from then on."""
        answer = self._answer_of_key(event.key)
        again = self._second.take(answer)
        counts = self._gate.typed(self.kind_of(event, answer, again=again))
        self.key_came()
        self.check_gate()
        if event.key in self.FREE_KEYS or (counts and answer is None):
            return
        event.stop()
        event.prevent_default()
        if counts and answer is not None:
            self.choose(answer, confirmed=again or not self.needs_second_press(answer))

    def on_paste(self, event: events.Paste) -> None:
        """Drop text that is pasted here; it counts as typing."""
        event.stop()
        self._second.forget()
        self._gate.typed(KeyKind.TEXT)
        self.check_gate()

    @on(Button.Pressed)
    def _press(self, event: Button.Pressed) -> None:
        event.stop()
        if self._gate.armed:
            self.choose(self.answer_of_button(event.button.id or ""), confirmed=True)

    def key_came(self) -> None:
        """Take note of a key, before it counts; by itself nothing follows."""

    def arm_after_drawing(self) -> None:
        """Take no answer until the question has been drawn and the delay is over."""
        self.disarm()
        if not self._covered:
            self.call_after_refresh(self.begin)

    def begin(self) -> None:
        """Begin the delay now that the question has been drawn."""
        if self.asks and self.is_active:
            self._watch.begin(writing=self._writing)
            self._writing = False

    def disarm(self) -> None:
        """Take no answer until the delay begins anew, and wait for no second press."""
        self._second.forget()
        self._watch.end()

    def check_gate(self) -> None:
        """Look whether the gate is open; if not, look again when it may be."""
        self._watch.look()

    def gate_open(self) -> None:
        """Act on an open gate; called at each look. By itself nothing follows."""

    def watch_armed(self) -> None:
        """Say whether answers count."""
        self.show_hint()

    def await_second_press(self, answer: A) -> None:
        """Say what pressing the key again would do, for as long as that holds."""
        self._second.expect(answer)
        self.show_hint()
        self.set_timer(REPEAT_SECONDS, self.show_hint)

    def mapped_key(self, binding_id: str, default: str) -> str:
        """Write the key of an answer as it is mapped now."""
        keys = (
            self.app.get_key_display(active.binding)
            for active in self.active_bindings.values()
            if active.binding.id == binding_id
        )
        return next(keys, default)

    def _answer_of_key(self, key: str) -> A | None:
        active = self.active_bindings.get(key)
        if active is None or active.node is not self:
            return None
        return self.answer_of_binding(active.binding.id or "")

    def _look_at_gate(self, armed: bool) -> None:
        self.armed = armed
        if armed:
            self.gate_open()


class RequestScreen(ArmedScreen[A], Generic[A, R]):
    """A question of its own for one request.

    Args:
        request: What is asked.
        commands: Where the answer goes.
        clock: Gives seconds for the arming delay.
    """

    frame = query_one(".question-frame", Vertical)

    def __init__(
        self, request: R, commands: Commands, *, clock: Callable[[], float] = monotonic
    ) -> None:
        super().__init__(clock)
        self._request = request
        self._commands = commands
        self._is_answered = False
        self._waiting = 1

    @property
    def request(self) -> R:
        """What is asked."""
        return self._request

    @property
    def asks(self) -> bool:
        """Whether there is a question that no answer was given to."""
        return not self._is_answered and not self._obsolete

    def accepts(self, request: object) -> bool:
        """Tell whether this screen can show a request in place of its own."""
        return isinstance(request, type(self._request)) and request.id == self._request.id

    def show(self, request: R, waiting: int, *, writing: bool = False) -> None:
        """Take note of how the request stands now, and of how many wait.

        Args:
            request: The request of the same id.
            waiting: How many wait in all, this one included.
            writing: Whether the user was writing when it came.
        """
        self._waiting = waiting
        self._writing = self._writing or writing
        is_new, self._request = request != self._request, request
        if self.is_mounted:
            self.show_count()
            if is_new:
                self.changed()

    def changed(self) -> None:
        """Show what changed in the request; by itself nothing does."""

    def show_count(self) -> None:
        """Show how many questions wait."""
        self.frame.border_subtitle = waiting_words(self._waiting)


def waiting_words(waiting: int) -> Content:
    """Say how many questions wait, the one on the screen included."""
    return Content(f"1 of {waiting}" if waiting > 1 else "")
