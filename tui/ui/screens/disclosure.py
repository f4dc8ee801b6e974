"""What the questions on folders and on changed tools have in common.

Each shows all that it is about, complete, and takes an answer that allows only once the end of
it has been in sight. The frame, its title and its labels are gemdeck's own.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import ClassVar, Final, Generic, TypeVar

from textual.app import ComposeResult
from textual.containers import Container, Vertical
from textual.content import Content
from textual.getters import query_one
from textual.widgets import Button

from tui.model.trust import ToolChangeRequest, TrustRequest
from tui.store.commands import Commands
from tui.text import counted
from tui.ui.screens.armed_screen import RequestScreen
from tui.ui.screens.disclosure_answers import DisclosureAnswer
from tui.ui.screens.reading import WORDY, Position, ReadingScreen, position_of
from tui.ui.widgets.labelled_text import LabelledLine, LabelledText
from tui.ui.widgets.plain import PlainText

R = TypeVar("R", bound=TrustRequest | ToolChangeRequest)

CONSENT_STYLES: Final = Path(__file__).parent.parent / "styles" / "consent.tcss"
"""Read when the first of these screens opens."""

TALL: Final = 18
"""Rows from which the dialog has air."""

OTHER_ROWS: Final = 9
"""Rows on a tall screen that are not the text: frame, heading, air, answers, hint."""

SHORT_OTHER_ROWS: Final = 5
"""The same on a short screen."""

_ARMED_HINTS: Final = (
    "↑↓ PageUp PageDown scroll · ← → Tab move · ↵ presses",
    "↑↓ scroll · ← → move · ↵ presses",
)


class DisclosureScreen(
    RequestScreen[DisclosureAnswer, R], ReadingScreen[DisclosureAnswer], Generic[R]
):
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

    COMPLETE: ClassVar[str] = "nothing left out"
    """What is said beside the number of lines."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WORDY, "-wide")]  # noqa: RUF012 - as the base
    VERTICAL_BREAKPOINTS = [(0, "-short"), (TALL, "-tall")]  # noqa: RUF012
    CSS_PATH = CONSENT_STYLES

    heading = query_one(".disclosure-heading", PlainText)
    text = query_one(LabelledText)
    hint = query_one(".disclosure-hint", PlainText)

    def __init__(
        self, request: R, commands: Commands, *, clock: Callable[[], float] = monotonic
    ) -> None:
        super().__init__(request, commands, clock=clock)
        self._end_seen = False
        self._room = 1

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
        with Vertical(classes="disclosure question-frame"):
            yield PlainText(classes="disclosure-heading")
            yield LabelledText()
            with Container(classes="disclosure-buttons"):
                for answer in self.ANSWERS:
                    yield Button(answer.button_label(short=False), id=answer.name, compact=True)
            yield PlainText(classes="disclosure-hint")

    def on_mount(self) -> None:
        """Show the question."""
        self.watch(self.text, "scroll_y", self._look, init=False)
        self._draw()

    def on_resize(self) -> None:
        """Give the text the rows that nothing else needs."""
        self._fit()
        self.call_after_refresh(self._look)

    def changed(self) -> None:
        """Ask anew: what changed while it was on the screen is shown from its beginning."""
        self._draw()

    @property
    def scrolled(self) -> LabelledText:
        """The text that the keys scroll."""
        return self.text

    def answer_of_binding(self, binding_id: str) -> DisclosureAnswer | None:
        """Give the answer that a binding stands for, where it is offered."""
        found = (one for one in self.ANSWERS if binding_id == self._binding_id(one))
        answer = next(found, None)
        return answer if answer is not None and self.offers(answer) else None

    def answer_of_button(self, button_id: str) -> DisclosureAnswer:
        """Give the answer that a button stands for."""
        return next(one for one in self.ANSWERS if one.name == button_id)

    def needs_second_press(self, answer: DisclosureAnswer) -> bool:
        """Want the key of a wide answer twice."""
        return answer.twice

    def choose(self, answer: DisclosureAnswer, *, confirmed: bool) -> None:
        """Take an answer, unless something has to come before it, which the hint then says."""
        if not self.asks or not self.offers(answer):
            return
        if answer.allows and not self._end_seen:
            self.show_hint()
        elif not confirmed:
            self.await_second_press(answer)
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
        self.show_count()
        self.query_one(f"#{self.ANSWERS[0].name}", Button).focus()
        self.arm_after_drawing()

    def _fit(self) -> None:
        """Bound the text, so that every answer is in sight whatever its length."""
        width, height = self.app.size
        is_narrow = width < WORDY
        others = (OTHER_ROWS if height >= TALL else SHORT_OTHER_ROWS) + is_narrow
        self._room = max(1, height - others)
        self.text.styles.max_height = self._room
        for answer in self.ANSWERS:
            label = answer.button_label(short=is_narrow)
            self.query_one(f"#{answer.name}", Button).label = label

    @property
    def _position(self) -> Position:
        return position_of(self.text, self._room)

    def _look(self) -> None:
        """Take note of what of the text is in sight."""
        if self._obsolete or self._gate.waits_for_drawing:
            return
        position = self._position
        self._end_seen = self._end_seen or position.shows_end
        where = counted(position.rows, "line") if position.fits else position.where
        self.heading.update(f"{where}, {self.COMPLETE}")
        self.show_hint()

    def show_hint(self) -> None:
        """Say in the last line what can be done now."""
        if self.is_mounted:
            self.hint.update(Content(self._hint()))

    def _hint(self) -> str:
        short = self.app.size.width < WORDY
        if not self.armed:
            return self.unarmed_hint
        answer = self._second.awaited
        if answer is not None:
            key = self.mapped_key(self._binding_id(answer), answer.keys[0])
            return answer.question(key, short=short)
        may_allow = any(answer.allows and self.offers(answer) for answer in self.ANSWERS)
        if self._end_seen or not may_allow:
            return _ARMED_HINTS[short]
        return self._position.end_hint(short=short)

    def _binding_id(self, answer: DisclosureAnswer) -> str:
        return f"{self.PREFIX}.{answer.name}"

    def begin(self) -> None:
        """Begin the delay now that the question has been drawn."""
        super().begin()
        self._look()
