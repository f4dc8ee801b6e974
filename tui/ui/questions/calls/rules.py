"""The step that says a rule on arguments in words before it is kept."""

import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

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
from tui.ui.questions.calls.steps import QuestionStep
from tui.ui.questions.question import ReadProgress
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
        raise ValueError(f"a rule needs 1 to {MAX_CONDITIONS} arguments with short names")
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

    KIND = "step -rule"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "keep", "create rule", id="rule.keep", priority=True),
        Binding("up", "argument(-1)", id="rule.up", show=False, priority=True),
        Binding("down", "argument(1)", id="rule.down", show=False, priority=True),
        Binding("right", "change(1)", id="rule.next", show=False, priority=True),
        Binding("left", "change(-1)", id="rule.before", show=False, priority=True),
    ]

    def __init__(self, request: ConfirmationRequest, scope: GrantScope) -> None:
        super().__init__("Rule on arguments", request)
        self._scope = scope
        self._options = options_of(request)
        self._chosen = [0] * len(self._options)
        self._at = 0
        self._reading = ReadProgress(self)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """What the rule wants of the arguments, as it is now."""
        return tuple(one[at] for one, at in zip(self._options, self._chosen, strict=True))

    def compose_body(self) -> ComposeResult:
        yield PlainText(classes="step-facts")
        yield FoldedText(classes="-fits")
        yield PlainText("↑↓ argument · ←→ condition", classes="step-status")

    def on_mount(self) -> None:
        self.watch(self.query_one(FoldedText), "scroll_y", self._reading.look, init=False)
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
        heading = f"Always allow {quoted(self.request.tool)}, {self._scope.value}, where"
        return "\n".join((heading, *rows))

    def action_keep(self) -> None:
        """Keep the rule, unless there is more of it to read; one without a condition is always."""
        is_wide = all(one.kind is ConditionKind.ANY for one in self.conditions)
        again = f"always allow any arguments, {self._scope.value}"
        if words := self._reading.words():
            self.say(f"Read to the end first: {words}")
        elif not is_wide or self.is_again("rule.keep", self.conditions, again):
            self.dismiss("")

    def action_argument(self, by: int) -> None:
        self._at = (self._at + by) % len(self._options)
        self.show_rule()

    def action_change(self, by: int) -> None:
        """Say the next thing of the argument, or the one before; after the last comes the first."""
        self._chosen[self._at] = (self._chosen[self._at] + by) % len(self._options[self._at])
        self.show_rule()
