"""The steps that say in words what would run unasked from now on, before that is kept."""

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
    conditions_words,
    exact_text,
    quoted,
)
from tui.model.input.arguments import read_arguments
from tui.model.requests import ConfirmationRequest
from tui.text import counted
from tui.ui.questions.answers import key_label
from tui.ui.questions.arming import ReadProgress
from tui.ui.questions.calls.steps import QuestionStep
from tui.ui.widgets.text.folded_text import FoldedText
from tui.ui.widgets.text.plain import PlainText

SCOPES: Final = tuple(GrantScope)
"""The scopes in the order in which their key goes through them."""

Options = Sequence[Sequence[Condition]]
"""What a rule may say of an argument: the kinds, and of each the narrowest first."""

_PIECE: Final = re.compile(r"\W*\w+\W?")


def next_scope(scope: GrantScope) -> GrantScope:
    """Return the one that its key leads to."""
    return SCOPES[(SCOPES.index(scope) + 1) % len(SCOPES)]


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
    folders = [str(one) for one in (PurePath(folder), *PurePath(folder).parents)[:-1]]
    kinds = (
        [Condition(name, ConditionKind.IS, exact_text(real or value))],
        [Condition(name, ConditionKind.FOLDER, one) for one in folders],
        [Condition(name, ConditionKind.STARTS, text[:end]) for end in ends],
        [Condition(name, ConditionKind.ANY)],
    )
    valid = ([one for one in kind if one.is_valid] for kind in kinds)
    return [kind for kind in valid if kind]


class RuleStep(QuestionStep):
    """Says which of a server's tools would run unasked since it claims that they only read.

    It gives "" to keep that rule once its end was in sight, or None to go back.

    Args:
        request: The call.
        scope: How long and where the rule is to hold.

    Attributes:
        scope: The same, as it is set now.
        conditions: What the rule wants of arguments.
    """

    HEADING: ClassVar[str] = "Always what is read-only"
    HINT: ClassVar[str] = ""
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "keep", "Keep the rule", id="rule.keep", priority=True),
        Binding("m", "scope", "Switch how long and where it holds", id="rule.scope"),
        Binding("pageup", "page(-1)", "Scroll up", id="rule.back-a-page"),
        Binding("pagedown", "page(1)", "Read on", id="rule.read-on"),
        Binding("home", "page(-1000000)", "Back to the start", id="rule.start"),
        Binding("end", "page(1000000)", "Read on to the end", id="rule.end"),
        Binding("escape", "back", "Back to the question", id="rule.back"),
    ]

    def __init__(self, request: ConfirmationRequest, scope: GrantScope) -> None:
        super().__init__(request)
        self.scope = scope
        self.conditions: tuple[Condition, ...] = ()
        self._reading = ReadProgress(self)

    def compose(self) -> ComposeResult:
        with Vertical(classes="step -rule") as frame:
            frame.border_title = Content(self.HEADING)
            yield PlainText(classes="step-facts")
            yield FoldedText(classes="-fits")
            yield PlainText(self.HINT, classes="step-status")
            with Horizontal(classes="step-buttons"):
                for key, words, name in (
                    ("^S", "Keep", "keep"),
                    ("m", "", "scope"),
                    ("Esc", "Back", "back"),
                ):
                    yield Button(
                        key_label(key, words), id=name, compact=True, action=f"screen.{name}"
                    )

    def on_mount(self) -> None:
        self.show_rule()

    def show_rule(self) -> None:
        """Say the rule as it is now."""
        self._reading.begin_anew()
        self.query_one(FoldedText).show(self.words())
        button = self.query_one("#scope", Button)
        button.label = key_label("m", f"{self.scope.value} ⇄")
        button.refresh(layout=True)

    def words(self) -> str:
        names = "\n".join(map(quoted, self.request.read_only))
        tools = counted(len(self.request.read_only), "tool")
        return (
            f"Always, {self.scope.value}: {tools} of this server, as defined now.\n\n"
            "The server says that they only read; gemdeck does not check that. You are asked "
            f"again about one that is new or changes.\n\n{names}"
        )

    def action_keep(self) -> None:
        """Keep the rule, unless there is more of it to read."""
        if words := self._reading.words(short=False):
            self.query_one(".step-status", PlainText).update(f"Read to the end first: {words}")
        else:
            self.dismiss("")

    def action_scope(self) -> None:
        self.scope = next_scope(self.scope)
        self.show_rule()

    def action_page(self, pages: int) -> None:
        view = self.query_one(FoldedText)
        view.scroll_relative(y=pages * view.size.height, animate=False, immediate=True)
        self._reading.look()

    def action_back(self) -> None:
        self.dismiss(None)


class ConditionsStep(RuleStep):
    """Says with which arguments a tool would run unasked, and lets that be chosen for each."""

    HEADING = "Always with these"
    HINT = "↑↓ argument · Space other kind · ← wider · → narrower"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "argument(-1)", "Argument before", id="rule.up"),
        Binding("down", "argument(1)", "Next argument", id="rule.down"),
        Binding("space", "kind", "Another kind of condition", id="rule.kind"),
        Binding("left", "reach(1)", "A wider one", id="rule.wider"),
        Binding("right", "reach(-1)", "A narrower one", id="rule.narrower"),
    ]

    def __init__(self, request: ConfirmationRequest, scope: GrantScope) -> None:
        super().__init__(request, scope)
        self._options = options_of(request)
        self._chosen = [(0, 0)] * len(self._options)
        self._at = 0

    def words(self) -> str:
        self.conditions = tuple(
            options[kind][reach]
            for options, (kind, reach) in zip(self._options, self._chosen, strict=True)
        )
        rows = (
            f"{'▸' if at == self._at else ' '} {one.words}"
            for at, one in enumerate(self.conditions)
        )
        rule = f"{quoted(self.request.tool)}, where {conditions_words(self.conditions)}"
        return "\n".join(rows) + f"\n\nAlways, {self.scope.value}: {rule}."

    def action_argument(self, by: int) -> None:
        self._at = (self._at + by) % len(self._options)
        self.show_rule()

    def action_kind(self) -> None:
        self._chosen[self._at] = (self._chosen[self._at][0] + 1) % len(self._options[self._at]), 0
        self.show_rule()

    def action_reach(self, by: int) -> None:
        kind, reach = self._chosen[self._at]
        last = len(self._options[self._at][kind]) - 1
        self._chosen[self._at] = kind, min(max(0, reach + by), last)
        self.show_rule()
