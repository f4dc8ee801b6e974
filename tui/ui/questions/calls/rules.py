"""The step that says a rule on arguments in words before it is kept."""

import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Button

from tui.model.consent import (
    MAX_CONDITION,
    MAX_CONDITIONS,
    Condition,
    ConditionKind,
    GrantScope,
    exact_text,
    quoted,
)
from tui.model.input.arguments import read_arguments
from tui.model.requests import ConfirmationRequest
from tui.ui.questions.answers import key_label
from tui.ui.questions.arming import ReadProgress
from tui.ui.questions.calls.steps import QuestionStep
from tui.ui.widgets.text.folded_text import FoldedText
from tui.ui.widgets.text.plain import PlainText

Options = Sequence[Condition]
"""What a rule may say of an argument, of each kind the narrowest first."""

_PIECE: Final = re.compile(r"\W*\w+\W?")


def options_of(request: ConfirmationRequest) -> list[Options]:
    """Return what a rule may say of each argument of a call; nothing that is too long to be shown.

    Raises:
        ValueError: If there is no rule for calls like this one.
    """
    arguments = read_arguments(request.arguments)
    paths = {name: rest for name, *rest in request.paths}
    found = [_options(name, value, *paths.get(name, ("", ""))) for name, value in arguments.items()]
    if not 0 < len(found) <= MAX_CONDITIONS or not all(found):
        raise ValueError("no rule is made of no arguments, of very many, or of very long names")
    return found


def _options(name: str, value: object, real: str, folder: str) -> Options:
    text = value[:MAX_CONDITION] if isinstance(value, str) else ""
    ends = sorted({len(text), *(piece.end() for piece in _PIECE.finditer(text))}, reverse=True)
    folders = (PurePath(folder), *PurePath(folder).parents)[:-1]
    found = (
        Condition(name, ConditionKind.IS, exact_text(real or value)),
        *(Condition(name, ConditionKind.FOLDER, str(one)) for one in folders),
        *(Condition(name, ConditionKind.STARTS, text[:end]) for end in ends),
        Condition(name, ConditionKind.ANY),
    )
    return [one for one in found if one.is_valid]


class RuleStep(QuestionStep):
    """Says with which arguments a tool would run unasked, and lets that be chosen for each.

    It gives "" to keep the rule once its end was in sight, or None to go back.

    Args:
        request: The call.
        scope: How long and where the rule is to hold.

    Raises:
        ValueError: If there is no rule for calls like this one.
    """

    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "keep", "Keep the rule", id="rule.keep", priority=True),
        Binding("up", "argument(-1)", "Argument before", id="rule.up"),
        Binding("down", "argument(1)", "Next argument", id="rule.down"),
        Binding("right", "change(1)", "Say another thing of it", id="rule.next"),
        Binding("left", "change(-1)", "Say what was said before", id="rule.before"),
        Binding("pageup", "page(-1)", "Scroll up", id="rule.back-a-page"),
        Binding("pagedown", "page(1)", "Read on", id="rule.read-on"),
        Binding("home", "page(-1000000)", "Back to the start", id="rule.start"),
        Binding("end", "page(1000000)", "Read on to the end", id="rule.end"),
        Binding("escape", "back", "Back to the question", id="rule.back"),
    ]

    def __init__(self, request: ConfirmationRequest, scope: GrantScope) -> None:
        super().__init__(request)
        self._scope = scope
        self._options = options_of(request)
        self._chosen = [0] * len(self._options)
        self._at = 0
        self._reading = ReadProgress(self)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """What the rule wants of the arguments, as it is now."""
        return tuple(one[at] for one, at in zip(self._options, self._chosen, strict=True))

    def compose(self) -> ComposeResult:
        with Vertical(classes="step -rule") as frame:
            frame.border_title = Content("Always with these")
            yield PlainText(classes="step-facts")
            yield FoldedText(classes="-fits")
            yield PlainText("↑↓ argument · →← what it must be", classes="step-status")
            with Horizontal(classes="step-buttons"):
                for key, words, name in (("^S", "Keep", "keep"), ("Esc", "Back", "back")):
                    label = key_label(key, words)
                    yield Button(label, id=name, compact=True, action=f"screen.{name}")

    def on_mount(self) -> None:
        self.show_rule()

    def show_rule(self) -> None:
        """Say the rule as it is now."""
        self._reading.begin_anew()
        self.query_one(FoldedText).show(self.words())

    def words(self) -> str:
        rows = (
            f"{'▸' if at == self._at else ' '} {one.words}"
            for at, one in enumerate(self.conditions)
        )
        heading = f"Always, {self._scope.value}: {quoted(self.request.tool)}, where"
        return "\n".join((heading, *rows))

    def action_keep(self) -> None:
        """Keep the rule, unless there is more of it to read."""
        if words := self._reading.words():
            self.query_one(".step-status", PlainText).update(f"Read to the end first: {words}")
        else:
            self.dismiss("")

    def action_page(self, pages: int) -> None:
        view = self.query_one(FoldedText)
        view.scroll_relative(y=pages * view.size.height, animate=False, immediate=True)
        self._reading.look()

    def action_back(self) -> None:
        self.dismiss(None)

    def action_argument(self, by: int) -> None:
        self._at = (self._at + by) % len(self._options)
        self.show_rule()

    def action_change(self, by: int) -> None:
        """Say the next thing of the argument, or the one before; after the last comes the first."""
        self._chosen[self._at] = (self._chosen[self._at] + by) % len(self._options[self._at])
        self.show_rule()
