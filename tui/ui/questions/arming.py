"""When an answer counts: all rules on keys that were meant for something else.

A question takes answers once it has been on the screen for `ARMING_SECONDS` and nobody is typing.
What is typed as text holds answers back; keys that scroll or move the focus do not. An answer that
allows something is held for a moment and dropped if another key follows, since then it was part of
a word, a paste or a held key. A wide answer wants its key, or its click, twice. What neither allows
nor denies waits for nothing where its key is the first after a pause.

What counts is when a key was typed, not when its turn came: a busy event loop handles a word all
at once, and late. So nothing that is held is given right after the loop stood still.
"""

from collections.abc import Callable
from math import inf
from operator import attrgetter
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from textual import events
from textual.app import App
from textual.screen import Screen
from textual.widgets import Input, TextArea

from tui.model.frozen import Frozen
from tui.ui.bridge import Delay
from tui.ui.widgets.chat.composer import Composer

if TYPE_CHECKING:
    from tui.ui.questions.answers import Answer

SCROLL_KEYS: Final = {
    "up": (-1, 0),
    "down": (1, 0),
    "pageup": (0, -1),
    "pagedown": (0, 1),
    "home": (0, -1_000_000),
    "end": (0, 1_000_000),
}
"""Keys that scroll, each by rows and pages; they work before an answer counts."""

T = TypeVar("T")

ARMING_SECONDS: Final = 0.5
"""Seconds for which a question has been on the screen before it takes an answer, and within which
one answer after another is typing."""

PAUSE_SECONDS: Final = 1.0
"""Seconds without a key after which nobody is typing."""

HOLD_SECONDS: Final = 0.08
"""Seconds after an allowing answer within which another key shows that it was none. A letter may
begin a word, or be held down: it waits for `ARMING_SECONDS`, and the last line says so."""

CLICK_SECONDS: Final = 0.5
"""Seconds below which a click and the next one are a double click, not two answers."""

KEY_REPEAT_SECONDS: Final = 0.15
"""Seconds below which the same key again is a held key; terminals repeat every 30 to 95 ms."""

REPEAT_SECONDS: Final = 3.0
"""Seconds within which a key has to be pressed for the second time."""

LOOK_SECONDS: Final = 0.1
"""Longest wait until it is looked again whether answers count."""

UNARMED: Final = "Keys unlock when you stop typing"
WRITING: Final = "What you type goes into your message. Pause to answer."


class Keyboard:
    """What was typed lately, wherever it went.

    Args:
        clock: Gives seconds that never run backwards.
        typed_at: Gives the moment of an event by that clock; Textual stamps what the terminal
            sends as it is read, in a thread that does not wait for the event loop.
    """

    def __init__(
        self,
        clock: Callable[[], float] = monotonic,
        typed_at: Callable[[events.Event], float] = attrgetter("time"),
    ) -> None:
        self.clock = clock
        self.typed_at = typed_at
        self.text_at = -inf
        """When text was typed last."""
        self.letter_at = -inf
        """When something was typed last that is neither for a field nor for the message."""
        self.pointed_at = -inf
        """When a button of the mouse went down last."""
        self.rested = False
        """Whether no key had come for `PAUSE_SECONDS` before the last one."""
        self._key_at = self._draft_at = -inf
        self._composer: Composer | None = None

    @property
    def pause_left(self) -> float:
        """Seconds until no key has come for `PAUSE_SECONDS`; 0 once it is so."""
        return max(0.0, self._key_at + PAUSE_SECONDS - self.clock())

    @property
    def is_drafting(self) -> bool:
        return self._composer is not None and self.clock() < self._draft_at + PAUSE_SECONDS

    def hear(self, event: events.Event, app: App[Any]) -> None:
        """Take note of what was typed, before anything acts on it."""
        if isinstance(event, events.MouseDown):
            self.pointed_at = self.typed_at(event)
        if not isinstance(event, events.Key | events.Paste) or event.is_forwarded:
            return
        now = self.typed_at(event)
        self.rested, self._key_at = now >= self._key_at + PAUSE_SECONDS, now
        is_text = isinstance(event, events.Paste) or event.is_printable
        if isinstance(app.focused, Composer):
            self._composer = app.focused
            if isinstance(event, events.Key) and self._sends(event.key, app):
                self.text_at = self._draft_at = -inf  # a message that was sent is no typing
            elif is_text:
                self.text_at = self._draft_at = now
        elif is_text and isinstance(app.focused, Input | TextArea):
            self.text_at = now
        elif len(app.screen_stack) == 1:
            self._composer = None
        elif is_text:
            self.letter_at = now

    def continue_draft(self, event: events.Key | events.Paste) -> bool:
        """Give what is typed to the composer where the user is in the middle of a message."""
        takes = isinstance(event, events.Paste) or event.is_printable or event.key == "backspace"
        at = self.typed_at(event)
        if self._composer is None or not takes or at >= self._draft_at + PAUSE_SECONDS:
            return False
        self._draft_at = at
        self._composer.continue_draft(event)
        return True

    def leave_draft(self) -> None:
        """Give nothing more to the message; its conversation is no longer on the screen."""
        self._composer = None

    def _sends(self, key: str, app: App[Any]) -> bool:
        active = app.screen.active_bindings.get(key)
        return active is not None and active.binding.id == "composer.send"


class SecondPress(Generic[T]):
    """Remembers what was asked for once, for `REPEAT_SECONDS`.

    Args:
        clock: Gives seconds that never run backwards.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._first: tuple[T, float] | None = None

    @property
    def awaited(self) -> T | None:
        """What would be done if it were asked for again now; None where nothing is."""
        if self._first is None or self._clock() - self._first[1] >= REPEAT_SECONDS:
            return None
        return self._first[0]

    def forget(self) -> None:
        self._first = None

    def is_again(self, what: T) -> bool:
        """Tell whether this is the second press of the same; if not, it is the first."""
        is_second = self.awaited == what
        self._first = None if is_second else (what, self._clock())
        return is_second


class _Held(Frozen):
    """An answer that is given at a moment if nothing else was typed since its key."""

    answer: "Answer"
    at: float
    until: float


class Arming:
    """Decides when the answers of one question count.

    Args:
        screen: The question, whose timers are used.
        keyboard: What was typed before.
        changed: Called when answers begin or cease to count.
        give: Takes an answer that counts.
    """

    def __init__(
        self,
        screen: Screen[Any],
        keyboard: Keyboard,
        changed: Callable[[], None],
        give: "Callable[[Answer], None]",
    ) -> None:
        self._screen = screen
        self._keyboard = keyboard
        self._clock = keyboard.clock
        self._changed = changed
        self._give = give
        self._counts_at = inf
        self._last: tuple[str, float] = ("", -inf)
        self._clicked_at = -inf
        self._second: SecondPress[Answer] = SecondPress(self._clock)
        self._held: _Held | None = None
        self.early = ""
        """The key of an answer that came too early and has to be pressed again; until the next."""
        self._delay = Delay(screen)
        self._timer_due = inf

    @property
    def is_begun(self) -> bool:
        return self._counts_at < inf

    @property
    def armed(self) -> bool:
        return self._counts(self._clock())

    @property
    def held(self) -> "Answer | None":
        return self._held.answer if self._held is not None else None

    @property
    def awaited(self) -> "Answer | None":
        return self._second.awaited

    @property
    def hint(self) -> str:
        """Why no answer counts."""
        return WRITING if self._keyboard.is_drafting else UNARMED

    def begin(self) -> None:
        """Begin to wait: the question has just been drawn."""
        text_until = self._keyboard.text_at + PAUSE_SECONDS
        self._counts_at = max(self._clock() + ARMING_SECONDS, text_until)
        self._look()

    def end(self) -> None:
        """Take no answer: the question is covered, changed or answered."""
        self._counts_at = inf
        self._drop()
        self._delay.stop()
        self._changed()

    def text(self, event: events.Key | events.Paste) -> None:
        """Take note of what is no answer but text; it holds answers back, and goes nowhere."""
        self.early = ""
        at = self._keyboard.typed_at(event)
        self._last = (event.key if isinstance(event, events.Key) else "", at)
        if isinstance(event, events.Paste) or event.is_printable:
            self._keyboard.text_at = at
        self._drop_early(at)

    def goes_into_draft(self, event: events.Key | events.Paste) -> bool:
        """Let the user finish what was being written as the question came."""
        if not self._keyboard.continue_draft(event):
            return False
        self.early = ""
        self._postpone(self._keyboard.typed_at(event) + PAUSE_SECONDS)
        self._look()
        return True

    def forget(self) -> None:
        """Wait for no key again, since another one came; scrolling holds nothing back."""
        self.early = ""
        self._second.forget()

    def press(self, event: events.Key, answer: "Answer", *, refused: bool) -> None:
        """Take note of the key of an answer; give the answer now or later, or drop it.

        Args:
            event: The key.
            answer: Its answer.
            refused: Whether it can only be told why it is not taken yet.
        """
        at = self._keyboard.typed_at(event)
        allows = answer.allows and not refused
        self._held, self.early = None, ""
        is_typing = self._is_typing(event, at, allows=allows)
        is_step = answer.value is None and not answer.scoped
        is_at_once = is_step and self._keyboard.rested and self.is_begun
        if not is_at_once and (is_typing or not self._counts(at)):
            is_text = at < self._keyboard.text_at + PAUSE_SECONDS
            self.early = "" if refused or is_text else event.key
            self._drop_early(at)
        elif refused or not self._waits_for_second(answer):
            self._second.forget()
            if allows:
                seconds = ARMING_SECONDS if event.is_printable else HOLD_SECONDS
                self._held = _Held(answer, at, at + seconds)
                self._look()
            else:
                self._give(answer)

    def click(self, answer: "Answer", *, refused: bool) -> None:
        """Take note of a click on an answer: no typing, it is given at once or on the second."""
        at = self._keyboard.pointed_at
        is_double, self._clicked_at = at < self._clicked_at + CLICK_SECONDS, at
        if not self._counts(at) or (is_double and self.awaited is answer):
            return
        self._held = None
        if refused or not self._waits_for_second(answer):
            self._second.forget()
            self._give(answer)

    def _counts(self, at: float) -> bool:
        return at >= self._counts_at

    def _waits_for_second(self, answer: "Answer") -> bool:
        """Tell whether this was only the first of two presses."""
        if not answer.twice or self._second.is_again(answer):
            return False
        self._screen.set_timer(REPEAT_SECONDS, self._changed)
        return True

    def _is_typing(self, event: events.Key, at: float, *, allows: bool) -> bool:
        """Tell whether a key follows the one before it too fast to be an answer of its own."""
        if not event.is_printable and event.key != "enter":
            return False  # Esc and ^S are part of no text
        (last, last_at), self._last = self._last, (event.key, at)
        if event.key != last:
            return at - last_at < ARMING_SECONDS
        return allows and at - last_at < KEY_REPEAT_SECONDS

    def _drop_early(self, at: float) -> None:
        if at < self._keyboard.text_at + PAUSE_SECONDS:
            self._keyboard.text_at = at  # the keys of answers are letters of a word, too
            self._postpone(at + PAUSE_SECONDS)
        self._postpone(at + ARMING_SECONDS)
        self._drop()
        self._look()

    def _drop(self) -> None:
        self._second.forget()
        self._held = None

    def _postpone(self, until: float) -> None:
        if self.is_begun:
            self._counts_at = max(self._counts_at, until)

    def _look(self) -> None:
        """Tell whether answers count, and come back until they do and nothing is held."""
        self._delay.stop()
        held = self._held
        left = (held.until if held is not None else self._counts_at) - self._clock()
        if self.is_begun and (held is not None or left > 0):
            wait = min(left if held is None else max(left, HOLD_SECONDS), LOOK_SECONDS)
            self._timer_due = monotonic() + wait
            self._delay.begin(wait, self._look_again)
        self._changed()

    def _look_again(self) -> None:
        """Give what was held long enough, where no key may wait that was typed meanwhile."""
        held, is_late = self._held, monotonic() > self._timer_due + HOLD_SECONDS
        if held is not None and self._keyboard.letter_at > held.at:
            self._drop_early(self._keyboard.letter_at)
            return
        if held is not None and not is_late and self._clock() >= held.until:
            self._held = None
            if self.armed:
                self._give(held.answer)
        self._look()
