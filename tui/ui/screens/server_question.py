"""What the modals for requests of servers have in common: the frame, the arming, the answers.

The frame, its title and its labels are gemdeck's own; what a server wrote stands behind a label.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from time import monotonic
from typing import ClassVar, Final, Generic, TypeVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical, VerticalScroll
from textual.content import Content
from textual.getters import query_one
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Button

from tui.model.requests import (
    FormRequest,
    Reply,
    ReplyAction,
    SamplingRequest,
    SamplingReview,
    UrlRequest,
)
from tui.store.commands import Commands
from tui.text import clip
from tui.ui import keymap
from tui.ui.screens.armed_screen import RequestScreen
from tui.ui.screens.arming import KeyKind
from tui.ui.screens.dialog import DIALOG_STYLES
from tui.ui.widgets.folded_text import FoldedText
from tui.ui.widgets.plain import PlainText, one_line

ServerRequest = FormRequest | UrlRequest | SamplingRequest | SamplingReview
"""What a server can ask for beside the confirmation of a tool."""

R = TypeVar("R", bound=ServerRequest)

MAX_FACT: Final = 100
"""Characters of a fact, such as a server's name, in a dialog."""

MAX_HOST: Final = 255
"""Characters of a host, whose end matters most; none that works is longer."""

MAX_UNSCROLLED: Final = 200
"""Characters of a server's words that surely need no scrolling."""

NARROW: Final = 60
"""Columns below which the dialog has no air at its sides and the answers have fewer words."""

TALL: Final = 24
"""Rows from which the dialog has air."""

OTHER_ROWS: Final = 11
"""Rows on a tall screen that are neither facts nor body: frame, air, problem, answers, hint."""

SHORT_OTHER_ROWS: Final = 6
"""The same on a short screen."""

MIN_BODY_ROWS: Final = 3
"""Rows of the body that are in sight on the smallest screen."""

MAX_TEXT_ROWS: Final = 10
"""Rows of a text in the body at once; it scrolls where it takes more."""

HOST_LABELS: Final = frozenset({"host", "shown as"})
"""Labels of facts that are hosts."""

LABEL_WIDTH: Final = 10
"""Cells for gemdeck's own labels."""

UNARMED_HINT: Final = "One moment: keys count once you have stopped typing."


class _Facts(PlainText):
    """The facts, which tell how many rows they took."""

    class Resized(Message):
        """The facts take another number of rows."""

    def on_resize(self) -> None:
        """Let the body have the rest."""
        self.post_message(self.Resized())


class QuestionScreen(RequestScreen[ReplyAction, R], Generic[R]):
    """A modal for one request of a server.

    Args:
        request: What is asked.
        commands: Where the answer goes.
        clock: Gives seconds for the arming delay.
    """

    TITLE_LINE: ClassVar[str]
    ARMED_HINT: ClassVar[str]
    BUTTONS: ClassVar[tuple[tuple[ReplyAction, str, str], ...]]
    """For each answer in order: what it means, its key as shown, its words."""

    SHORT_WORDS: ClassVar[Mapping[ReplyAction, str]] = {}
    """Fewer words for some of the answers, where the screen is narrow."""

    KEYS: ClassVar[Mapping[str, ReplyAction]]
    """Binding ids and what they answer."""

    SAFE: ClassVar[ReplyAction]
    """The answer whose button has the focus at first where nothing is to fill in."""

    BINDING_GROUP_TITLE = "Request of a server"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (NARROW, "-wide")]  # noqa: RUF012 - as the base
    VERTICAL_BREAKPOINTS = [(0, "-short"), (TALL + 1, "-tall")]  # noqa: RUF012 - as the base
    CSS_PATH = DIALOG_STYLES
    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings(only=("app.help",))

    body = query_one(".request-body", VerticalScroll)
    hint = query_one(".request-hint", PlainText)

    def __init__(
        self, request: R, commands: Commands, *, clock: Callable[[], float] = monotonic
    ) -> None:
        super().__init__(request, commands, clock=clock)

    @abstractmethod
    def facts(self) -> Iterable[tuple[str, str]]:
        """Name what the request is about: pairs of gemdeck's label and a text of one line."""

    @abstractmethod
    def compose_body(self) -> Iterable[Widget]:
        """Compose what can be scrolled: texts to read and fields to fill in."""

    @abstractmethod
    def reply(self, action: ReplyAction) -> Reply | None:
        """Make the answer, or complain on the screen and give None."""

    def compose(self) -> ComposeResult:
        """Lay out facts, body, answers and hint."""
        with Vertical(classes="request question-frame") as frame:
            frame.border_title = Content(self.TITLE_LINE)
            yield _Facts(_facts(self.facts()), classes="request-facts")
            with VerticalScroll(classes="request-body", can_focus=False):
                yield from self.compose_body()
            yield PlainText(classes="request-problem")
            with Container(classes="request-buttons"):
                for action, key, words in self.BUTTONS:
                    shown = self._words(action, words)
                    label = Content.assemble((key, "bold underline"), f" {shown}")
                    yield Button(label, id=button_id(action), compact=True)
            yield PlainText(UNARMED_HINT, classes="request-hint")

    def on_mount(self) -> None:
        """Begin to arm once all of it has been drawn."""
        self.show_count()
        self.complain(self.known_problem())
        self.arm_after_drawing()

    def on_resize(self) -> None:
        """Give the body the rows that nothing else needs."""
        self._fit()

    @on(_Facts.Resized)
    def _on_facts_resized(self, event: _Facts.Resized) -> None:
        event.stop()
        self._fit()

    def known_problem(self) -> str:
        """Say why an earlier answer was not taken; nothing at first."""
        return ""

    def answer_of_binding(self, binding_id: str) -> ReplyAction | None:
        """Give the answer that a binding stands for, if any."""
        return self.KEYS.get(binding_id)

    def answer_of_button(self, button_id: str) -> ReplyAction:
        """Give the answer that a button stands for."""
        return _ACTIONS[button_id]

    def needs_second_press(self, answer: ReplyAction) -> bool:
        """Want the key of an answer twice where it holds for later requests."""
        return answer is ReplyAction.ACCEPT_ALWAYS

    def kind_of(self, event: events.Key, answer: ReplyAction | None, *, again: bool) -> KeyKind:
        """Tell what a key means: text for a field, an answer, or writing meant for elsewhere."""
        if event.is_printable and answer is not None:
            return KeyKind.REPEAT if again else KeyKind.ANSWER
        if event.is_printable and isinstance(self.focused, Button | None):
            return KeyKind.TEXT
        return KeyKind.MOVE

    def key_came(self) -> None:
        """Say no longer what a second press would do."""
        self.show_hint()

    def show_hint(self) -> None:
        """Say in the last line what can be done now."""
        if not self.is_mounted:
            return
        awaited = self._second.awaited
        if not self.armed:
            self.hint.update(UNARMED_HINT)
        elif awaited is not None:
            keys = (name for name, action in self.KEYS.items() if action is awaited)
            key = self.mapped_key(next(keys), "")
            self.hint.update(Content(f"Press {key} again: {awaited.value}"))
        else:
            self.hint.update(self.ARMED_HINT)

    def first_focus(self) -> Widget | None:
        """Choose what gets the focus once keys count."""
        return self.query_one(f"#{button_id(self.SAFE)}", Button)

    def complain(self, text: str) -> None:
        """Show why an answer is not taken, or nothing."""
        line = self.query_one(".request-problem", PlainText)
        line.update(Content(clip(one_line(text), MAX_UNSCROLLED)))
        line.display = bool(text)

    def arm_again(self) -> None:
        """Let another answer be given, after a pause."""
        self._is_answered = False
        if self.is_mounted:
            self.arm_after_drawing()

    def choose(self, answer: ReplyAction, *, confirmed: bool) -> None:
        """Give the one answer; the modal goes when the state says that it is settled."""
        if not self.asks:
            return
        if not confirmed:
            self.await_second_press(answer)
            return
        reply = self.reply(answer)
        if reply is not None:
            self._is_answered = True
            self._commands.reply(self._request.id, reply)

    def _fit(self) -> None:
        """Bound the body, so that every answer is in sight whatever its length."""
        height = self.app.size.height
        other = OTHER_ROWS if height > TALL else SHORT_OTHER_ROWS
        room = height - other - self.query_one(".request-facts").size.height
        rows = max(MIN_BODY_ROWS, room)
        self.body.styles.max_height = rows
        for text in self.body.query(FoldedText).exclude(".server-words"):
            # No text is taller than the body: the keys that scroll it could not reach its end.
            text.styles.max_height = min(MAX_TEXT_ROWS, rows)
        for action, key, words in self.BUTTONS:
            button = self.query_one(f"#{button_id(action)}", Button)
            shown = self._words(action, words)
            button.label = Content.assemble((key, "bold underline"), f" {shown}")
            button.refresh(layout=True)
        self.call_after_refresh(self._keep_focus_in_sight)

    def _words(self, action: ReplyAction, words: str) -> str:
        """Choose the words of an answer for the width there is."""
        return self.SHORT_WORDS.get(action, words) if self.app.size.width < NARROW else words

    def _keep_focus_in_sight(self) -> None:
        """Scroll to the field that is being filled in, where another size hid it."""
        focused = self.focused
        if focused is not None and self.body in focused.ancestors:
            focused.scroll_visible(animate=False)

    def gate_open(self) -> None:
        """Give something the focus, once keys count."""
        if self.focused is None:
            widget = self.first_focus()
            if widget is not None:
                widget.focus()


def server_words(text: str) -> FoldedText:
    """Make a view of a server's words: whole, wrapped, scrolling by itself where it is long."""
    view = FoldedText(text, wrap=True, classes="server-words")
    view.can_focus = text.count("\n") > 1 or len(text) > MAX_UNSCROLLED
    return view


def section_heading(text: str) -> PlainText:
    """Make a heading of gemdeck's own, of one line."""
    return PlainText(Content(clip(one_line(text), MAX_FACT)), classes="heading")


def button_id(action: ReplyAction) -> str:
    """Give the id of the button of an answer."""
    return f"answer-{action.name.lower().replace('_', '-')}"


_ACTIONS: Final = {button_id(action): action for action in ReplyAction}


def _facts(pairs: Iterable[tuple[str, str]]) -> Content:
    return Content("\n").join(
        Content.assemble(
            (label.ljust(LABEL_WIDTH), "$foreground 60%"),
            (
                clip(one_line(text), MAX_HOST if label in HOST_LABELS else MAX_FACT),
                "bold" if label == "server" else "",
            ),
        )
        for label, text in pairs
    )
