"""What the questions on folders and on changed tools have in common.

Each shows all that it is about, complete, and takes an answer that allows only once the end of
it has been in sight. The frame, its title and its labels are gemdeck's own. As in the
confirmation, no answer has an action name: only a key pressed here, or a button pressed here,
can give one, and only once the question is armed.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import ClassVar, Final, Generic, TypeVar

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Container, Vertical
from textual.content import Content
from textual.getters import query_one
from textual.widgets import Button

from tui.model.trust import ToolChangeRequest, TrustRequest
from tui.store.commands import Commands
from tui.ui.screens.arming import ArmedScreen, KeyKind
from tui.ui.screens.disclosure_answers import SCROLL_KEYS, DisclosureAnswer, kind_of
from tui.ui.screens.question import Position, end_hint
from tui.ui.widgets.labelled_text import LabelledLine, LabelledText
from tui.ui.widgets.plain import PlainText

R = TypeVar("R", bound=TrustRequest | ToolChangeRequest)

CONSENT_STYLES: Final = Path(__file__).parent.parent / "styles" / "consent.tcss"
"""Read when the first of these screens opens."""

REPEAT_SECONDS: Final = 3.0
"""Seconds within which the key of a wide answer has to be pressed again."""

TALL: Final = 18
"""Rows from which the dialog has air."""

NARROW: Final = 72
"""Columns below which the buttons stand in two rows, and the hint has fewer words."""

OTHER_ROWS: Final = 9
"""Rows on a tall screen that are not the text: frame, heading, air, answers, hint."""

SHORT_OTHER_ROWS: Final = 5
"""The same on a short screen."""

_UNARMED_HINTS: Final = (
    "One moment: keys count once you have stopped typing.",
    "One moment: stop typing first.",
)
_ARMED_HINTS: Final = (
    "↑↓ PageUp PageDown scroll · ← → Tab move · ↵ presses",
    "↑↓ scroll · ← → move · ↵ presses",
)


class DisclosureScreen(ArmedScreen, Generic[R]):
    """A modal that shows what would be allowed, and asks.

    Args:
        request: What is asked.
        commands: Where the answer goes.
        clock: Gives seconds for the arming delay.
    """

    PREFIX: ClassVar[str]
    """The beginning of the binding ids of the answers."""

    ANSWERS: ClassVar[tuple[DisclosureAnswer, ...]]
    """All answers in the order of their buttons; the first changes nothing and has the focus."""

    AUTO_FOCUS = ""
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (NARROW, "-wide")]  # noqa: RUF012 - as the base
    VERTICAL_BREAKPOINTS = [(0, "-short"), (TALL, "-tall")]  # noqa: RUF012
    CSS_PATH = CONSENT_STYLES

    frame = query_one(".disclosure", Vertical)
    heading = query_one(".disclosure-heading", PlainText)
    text = query_one(LabelledText)
    hint = query_one(".disclosure-hint", PlainText)

    def __init__(
        self, request: R, commands: Commands, *, clock: Callable[[], float] = monotonic
    ) -> None:
        super().__init__(clock)
        self._request = request
        self._commands = commands
        self._clock = clock
        self._is_answered = False
        self._obsolete = False
        self._covered = False
        self._waiting = 1
        self._writing = False
        self._end_seen = False
        self._repeat: tuple[DisclosureAnswer, float] | None = None

    @property
    def request(self) -> R:
        """What is asked."""
        return self._request

    @abstractmethod
    def title_of(self, request: R) -> str:
        """Say what is asked, in gemdeck's own words."""

    @abstractmethod
    def lines_of(self, request: R) -> Sequence[LabelledLine]:
        """Lay out all there is to know before an answer."""

    @abstractmethod
    def offers(self, answer: DisclosureAnswer) -> bool:
        """Tell whether the request can be answered so."""

    @abstractmethod
    def give(self, answer: DisclosureAnswer) -> None:
        """Hand the answer over."""

    def compose(self) -> ComposeResult:
        """Lay out the text, the answers and the hint."""
        with Vertical(classes="disclosure"):
            yield PlainText(classes="disclosure-heading")
            yield LabelledText()
            with Container(classes="disclosure-buttons"):
                for answer in self.ANSWERS:
                    yield Button(answer.button_label(short=False), id=answer.name, compact=True)
            yield PlainText(_UNARMED_HINTS[0], classes="disclosure-hint")

    def on_mount(self) -> None:
        """Show the question."""
        self.watch(self.text, "scroll_y", self._look, init=False)
        self._draw()

    def on_resize(self) -> None:
        """Give the text the rows that nothing else needs."""
        self._fit()
        self.call_after_refresh(self._look)

    def accepts(self, request: object) -> bool:
        """Tell whether this screen can show a request in place of its own."""
        return isinstance(request, type(self._request)) and request.id == self._request.id

    def show(self, request: R, waiting: int, *, writing: bool = False) -> None:
        """Take note of how the request stands now, and of how many wait.

        What changed while it was on the screen is a new question: it is shown from its beginning.

        Args:
            request: The request of the same id.
            waiting: How many wait in all, this one included.
            writing: Whether the user was writing when it came.
        """
        self._waiting = waiting
        self._writing = self._writing or writing
        is_new, self._request = request != self._request, request
        if not self.is_mounted:
            return
        if is_new:
            self._draw()
        else:
            self._show_count()

    def close(self) -> None:
        """Go away; from under another dialog, as soon as that is closed."""
        self._obsolete = self._is_answered = True
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
        elif self._covered:
            self.call_after_refresh(self._start_arming)
        self._covered = False

    def on_key(self, event: events.Key) -> None:
        """Swallow keys until the question is armed; take an answer from then on."""
        answer = self._answer_of(event.key)
        repeat, self._repeat = self._repeat, None
        again = (
            repeat is not None
            and repeat[0] is answer
            and self._clock() - repeat[1] <= REPEAT_SECONDS
        )
        counts = self._gate.typed(kind_of(event, answer, again=again))
        self.check_gate()
        if event.key in SCROLL_KEYS or (counts and answer is None):
            return
        event.stop()
        event.prevent_default()
        if counts and answer is not None:
            self._choose(answer, confirmed=again or not answer.twice)

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
            pressed = next(one for one in self.ANSWERS if one.name == event.button.id)
            self._choose(pressed, confirmed=True)

    def action_scroll(self, rows: int) -> None:
        """Scroll the text."""
        self.text.scroll_relative(y=rows, animate=False, immediate=True)

    def action_page(self, pages: int) -> None:
        """Scroll the text by pages."""
        self.action_scroll(pages * self.text.size.height)

    def action_edge(self, direction: int) -> None:
        """Scroll to the start or the end of the text."""
        if direction < 0:
            self.text.scroll_home(animate=False, immediate=True)
        else:
            self.text.scroll_end(animate=False, immediate=True)

    def watch_armed(self) -> None:
        """Say whether answers count."""
        self._show_hint()

    def _answer_of(self, key: str) -> DisclosureAnswer | None:
        active = self.active_bindings.get(key)
        if active is None or active.node is not self:
            return None
        found = (one for one in self.ANSWERS if active.binding.id == f"{self.PREFIX}.{one.name}")
        answer = next(found, None)
        return answer if answer is not None and self.offers(answer) else None

    def _choose(self, answer: DisclosureAnswer, *, confirmed: bool) -> None:
        """Take an answer, unless something has to come before it, which the hint then says."""
        if self._is_answered or not self.offers(answer):
            return
        if answer.allows and not self._end_seen:
            self._show_hint()
        elif not confirmed:
            self._repeat = (answer, self._clock())
            self._show_hint()
            self.set_timer(REPEAT_SECONDS, self._show_hint)
        else:
            self._is_answered = True
            self.disarm()
            self.give(answer)

    def _draw(self) -> None:
        self.disarm()
        self._is_answered = self._end_seen = False
        self.frame.border_title = Content(self.title_of(self._request))
        self._fit()
        self.text.show_lines(self.lines_of(self._request))
        for answer in self.ANSWERS:
            self.query_one(f"#{answer.name}", Button).display = self.offers(answer)
        self._show_count()
        self.query_one(f"#{self.ANSWERS[0].name}", Button).focus()
        self.call_after_refresh(self._start_arming)

    def _fit(self) -> None:
        """Bound the text, so that every answer is in sight whatever its length."""
        width, height = self.app.size
        is_narrow = width < NARROW
        others = (OTHER_ROWS if height >= TALL else SHORT_OTHER_ROWS) + is_narrow
        self.text.styles.max_height = max(1, height - others)
        for answer in self.ANSWERS:
            label = answer.button_label(short=is_narrow)
            self.query_one(f"#{answer.name}", Button).label = label

    @property
    def _position(self) -> Position:
        first, rows = self.text.scroll_offset.y, self.text.row_count
        return Position(first + 1, rows, fits=rows <= self.text.size.height)

    def _look(self) -> None:
        """Take note of what of the text is in sight."""
        if self._obsolete or self._gate.waits_for_drawing:
            return
        position, height = self._position, self.text.size.height
        self._end_seen = self._end_seen or position.first - 1 + height >= position.rows
        size = f"{position.rows:,} lines"
        where = size if position.fits else f"line {position.first:,} of {position.rows:,}"
        self.heading.update(f"{where}, nothing left out")
        self._show_hint()

    def _show_hint(self) -> None:
        if self.is_mounted:
            self.hint.update(Content(self._hint()))

    def _hint(self) -> str:
        short = self.app.size.width < NARROW
        if not self.armed:
            return _UNARMED_HINTS[short]
        if self._repeat is not None and self._clock() - self._repeat[1] < REPEAT_SECONDS:
            answer = self._repeat[0]
            return f"Press {self._key_of(answer)} again: {answer.words}"
        if self._end_seen or not any(map(self.offers, filter(_allows, self.ANSWERS))):
            return _ARMED_HINTS[short]
        return end_hint(self._position, short=short)

    def _key_of(self, answer: DisclosureAnswer) -> str:
        """Write the key of an answer as it is mapped now."""
        keys = (
            self.app.get_key_display(active.binding)
            for active in self.active_bindings.values()
            if active.binding.id == f"{self.PREFIX}.{answer.name}"
        )
        return next(keys, answer.keys[0])

    def _show_count(self) -> None:
        self.frame.border_subtitle = Content(f"1 of {self._waiting}" if self._waiting > 1 else "")

    def _start_arming(self) -> None:
        """Begin the delay now that the question has been drawn."""
        if self._is_answered:
            return
        self.start_arming(writing=self._writing)
        self._writing = False
        self._look()

    def disarm(self) -> None:
        """Take no answer, and forget one that waits for its second press."""
        super().disarm()
        self._repeat = None


def _allows(answer: DisclosureAnswer) -> bool:
    return answer.allows
