"""The answers to "may this tool run?", their keys, and the rows of buttons that show them.

No answer has an action name, so that none can be given by the name of an action.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Button

from tui.model.consent import Choice, GrantScope
from tui.ui.screens.draft import Draft
from tui.ui.widgets.plain import PlainText

NOT_LASTING: Final = "not offered: nothing identifies this server later on"
"""Stands in place of the answers that last where there are none."""

NOT_LASTING_SHORT: Final = "not for this server"
"""The same where columns are few."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One of the answers there are, or a step towards one.

    Attributes:
        name: The id of its button, and the end of the id of its binding.
        keys: Textual's names of its keys; the first one stands on the button.
        choice: What is decided; None for a step that decides nothing yet.
        words: What it does, in help and hints.
        label: The words on the button.
        short: The same where columns are few.
        brief: What it does, in hints where columns are few; nothing where no hint says it.
        lasting: Whether it also holds for calls to come, so that its key is needed twice.
        granted: Whether it makes a grant, whose scope is chosen beside it.
        stops: Whether the turn ends with it.
    """

    name: str
    keys: str
    choice: Choice | None
    words: str
    label: str
    short: str
    brief: str = ""
    lasting: bool = False
    granted: bool = False
    stops: bool = False

    @property
    def allows(self) -> bool:
        """Whether the tool may run."""
        return self.choice is not None and self.choice.allows

    @property
    def binding_id(self) -> str:
        """The stable name of its keys."""
        return f"confirmation.{self.name}"

    @property
    def binding(self) -> Binding:
        """The binding of its keys; it names no action, so that only a key pressed here answers."""
        return Binding(self.keys, "none", self.words, id=self.binding_id, tooltip=self.words)

    def button_label(self, words: str) -> Content:
        """Give the label of its button, the key first."""
        return Content.assemble((self.keys[0], "bold underline"), f" {words}")

    def question(self, key: str, scope: GrantScope, *, short: bool) -> str:
        """Ask for its key once more, and say what that does and for how long it holds."""
        ends = f", {SHORT_SCOPES[scope] if short else scope.value}" if self.granted else ""
        return (
            f"{key} again: {self.brief}{ends}"
            if short
            else f"Press {key} again: {self.words}{ends}"
        )


ONCE: Final = Answer("once", "o", Choice.ONCE, "allow this call", "Once", "Once")
EDIT: Final = Answer("edit", "e", None, "edit the arguments first", "Edit", "Edit")
DENY: Final = Answer("deny", "d,escape", Choice.DENY, "deny this call", "Deny", "Deny")
WITH_WORD: Final = Answer(
    "deny-with-word",
    "w",
    None,
    "deny this call, with a word to the model",
    "Deny with a word",
    "Word",
)
UNDO: Final = Answer(
    "undo-edit",
    "u",
    None,
    "show the model's arguments in place of yours, or yours again",
    "Model's",
    "Undo",
)
ALWAYS_TOOL: Final = Answer(
    "always-tool",
    "t",
    Choice.ALWAYS_TOOL,
    "always this tool",
    "This tool",
    "Tool",
    brief="always tool",
    lasting=True,
    granted=True,
)
ALWAYS_SERVER: Final = Answer(
    "always-server",
    "s",
    Choice.ALWAYS_SERVER,
    "always this server",
    "This server",
    "Server",
    brief="always server",
    lasting=True,
    granted=True,
)
SCOPE: Final = Answer(
    "scope", "m", None, "switch how long and where always holds", "", "", granted=True
)
ALLOW_REST: Final = Answer(
    "allow-rest",
    "a",
    Choice.REST_OF_TURN,
    "allow all further calls of this turn",
    "Allow the rest",
    "Allow rest",
    brief="allow rest of turn",
    lasting=True,
)
DENY_REST: Final = Answer(
    "deny-rest",
    "n",
    Choice.DENY_REST_OF_TURN,
    "deny this and all further calls of this turn",
    "Deny the rest",
    "Deny rest",
)
STOP: Final = Answer(
    "stop",
    "x",
    Choice.DENY,
    "deny this and all further calls, and stop the turn",
    "Stop the turn",
    "Stop",
    stops=True,
)

ROWS: Final = (
    ("this call", (ONCE, EDIT, DENY, WITH_WORD, UNDO)),
    ("always", (ALWAYS_TOOL, ALWAYS_SERVER, SCOPE)),
    ("this turn", (ALLOW_REST, DENY_REST, STOP)),
)
"""All answers, in the order of their buttons, each row behind a label of gemdeck's."""

ANSWERS: Final = tuple(answer for _, row in ROWS for answer in row)
"""All answers, in the order of their buttons."""

BY_BINDING: Final = {answer.binding_id: answer for answer in ANSWERS}
"""The answers by the id of their binding."""

BY_BUTTON: Final = {answer.name: answer for answer in ANSWERS}
"""The answers by the id of their button."""

SHORT_SCOPES: Final = {
    GrantScope.SESSION: "session",
    GrantScope.FOLDER: "folder",
    GrantScope.EVERYWHERE: "everywhere",
}
"""The scopes where columns are few."""


class AnswerRows(Vertical):
    """The buttons of all answers, in three rows; none moves when another one changes."""

    def __init__(self) -> None:
        super().__init__(id="confirmation-buttons")
        self._short = False
        self._draft = Draft()

    def compose(self) -> ComposeResult:
        """Compose a row for each kind of answer."""
        for label, answers in ROWS:
            with Horizontal(classes="answers"):
                yield PlainText(label, classes="answers-label")
                for answer in answers:
                    yield Button(self._caption(answer), id=answer.name, compact=True)
                if ALWAYS_TOOL in answers:
                    yield PlainText(NOT_LASTING, classes="not-lasting")

    def show(self, draft: Draft, *, may_last: bool) -> None:
        """Show which answers there are now.

        Args:
            draft: What the user has set.
            may_last: Whether the answers that hold for later calls are offered.
        """
        self._draft = draft
        self._relabel()
        for answer in ANSWERS:
            if answer.granted:
                self._button(answer).display = may_last
        self.query_one(".not-lasting").display = not may_last
        self._button(UNDO).display = draft.edit is not None

    def fit(self, *, short: bool) -> None:
        """Use the words that fit."""
        self._short = short
        self.set_class(short, "-short")
        words = NOT_LASTING_SHORT if short else NOT_LASTING
        self.query_one(".not-lasting", PlainText).update(words)
        self._relabel()

    def _relabel(self) -> None:
        for answer in ANSWERS:
            button, label = self._button(answer), self._caption(answer)
            if button.label != label:
                button.label = label
                button.refresh(layout=True)
            # A style sheet takes no padding of 0, and a width of its own counts padding in.
            button.styles.line_pad = 0 if self._short else 1
            button.styles.width = label.cell_length if self._short else None

    def _caption(self, answer: Answer) -> Content:
        if answer is SCOPE:
            scope = self._draft.scope
            words = SHORT_SCOPES[scope] if self._short else scope.value
            return answer.button_label(words)
        if answer is UNDO and not self._draft.shows_edit:
            return answer.button_label("Yours")
        return answer.button_label(answer.short if self._short else answer.label)

    def _button(self, answer: Answer) -> Button:
        return self.query_one(f"#{answer.name}", Button)


def bindings(answers: Iterable[Answer] = ANSWERS) -> list[Binding]:
    """Give the bindings of answers; the screen finds the answers by their ids."""
    return [answer.binding for answer in answers]
