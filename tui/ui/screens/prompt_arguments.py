"""A small form for the arguments of a prompt, or the variables of a resource template."""

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Final, Protocol

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.widgets import Button, Input, OptionList
from textual.widgets.option_list import Option

from tui.model.catalog import PromptArgument
from tui.model.events import ArgumentCompleted
from tui.text import clip
from tui.ui import keymap
from tui.ui.bridge import StoreBridge
from tui.ui.screens.dialog import DIALOG_STYLES
from tui.ui.widgets.form_fields import TypedLine
from tui.ui.widgets.plain import PlainText, block, one_line

MAX_ARGUMENTS: Final = 50
"""Arguments that the form asks for."""

MAX_VALUE: Final = 10_000
"""Characters of one argument."""

MAX_SUGGESTIONS: Final = 20
"""Completions of the server that are offered at once."""

MAX_LABEL: Final = 100
"""Characters of a completion that are shown."""

COMPLETE_AFTER: Final = 0.15
"""Seconds without a key after which the server is asked to complete."""

HINT: Final = "↵ next field · ↑↓ choose a completion · ^S {} · Esc leaves it"


class Completer(Protocol):
    """Asks a server to complete an argument; the answer comes with the token."""

    def __call__(self, token: str, argument: str, value: str, context: Mapping[str, str]) -> None:
        """Ask for what can stand in `argument`, with the other arguments as context."""


class ArgumentRow(Vertical):
    """One argument: its name, the server's words, a line to type in, and completions below."""

    def __init__(self, argument: PromptArgument) -> None:
        super().__init__(classes="field")
        self.argument = argument
        self.line = TypedLine(max_length=MAX_VALUE, select_on_focus=False, compact=True)
        self.line.cursor_blink = False  # a blink is a repaint twice a second, for ever
        self.offered = OptionList(markup=False, compact=True, classes="offered")
        self.offered.can_focus = False
        self._values: tuple[str, ...] = ()

    def compose(self) -> ComposeResult:
        """Compose the parts, one below the other."""
        notes = "required" if self.argument.required else "optional"
        label = Content.assemble(
            (one_line(self.argument.name), "bold"), (f"  {notes}", "$foreground 60%")
        )
        yield PlainText(label, classes="field-label")
        if self.argument.description:
            yield PlainText(Content(block(self.argument.description)), classes="field-description")
        yield self.line
        yield self.offered
        yield PlainText(classes="field-problem")

    def on_mount(self) -> None:
        """Begin without completions and complaints."""
        self.offer(())
        self.complain("")

    @property
    def value(self) -> str:
        """What was typed."""
        return self.line.value

    def offer(self, values: Sequence[str]) -> None:
        """Show completions, none of them chosen."""
        self._values = tuple(value for value in values if value != self.value)[:MAX_SUGGESTIONS]
        self.offered.set_options(
            Option(Content(clip(one_line(value), MAX_LABEL))) for value in self._values
        )
        self.offered.display = bool(self._values)
        self.offered.highlighted = None

    def move(self, by: int) -> None:
        """Choose the completion below or above."""
        if self._values:
            place = self.offered.highlighted
            self.offered.highlighted = (
                (0 if by > 0 else len(self._values) - 1)
                if place is None
                else (place + by) % len(self._values)
            )

    def take(self, place: int | None = None) -> bool:
        """Put the chosen completion into the line; tell whether there was one."""
        place = self.offered.highlighted if place is None else place
        if place is None or not self._values:
            return False
        self.line.value = self._values[place]
        self.line.cursor_position = len(self.line.value)
        self.offer(())
        return True

    def complain(self, reason: str) -> None:
        """Show what is wrong, or nothing."""
        line = self.query_one(".field-problem", PlainText)
        line.update(Content(reason))
        line.display = bool(reason)


class ArgumentsScreen(ModalScreen[dict[str, str] | None]):
    """Asks for arguments; gives those that were filled in, or None where it was left.

    Args:
        bridge: Where completions come from.
        title: What they are for.
        about: What there is to know about it.
        arguments: What can be filled in.
        verb: What happens then, in one word.
        complete: Asks the server to complete; None where it does not.
    """

    AUTO_FOCUS = "Input, Button"
    CSS_PATH = DIALOG_STYLES
    BINDINGS: ClassVar[list[BindingType]] = [
        *keymap.bindings(only=("arguments.send", "arguments.close")),
        ("up", "move(-1)", "Completion above"),
        ("down", "move(1)", "Completion below"),
    ]

    def __init__(
        self,
        bridge: StoreBridge,
        title: str,
        about: Content,
        arguments: Sequence[PromptArgument],
        *,
        verb: str,
        complete: Completer | None = None,
    ) -> None:
        super().__init__()
        self._bridge = bridge
        self._title = title
        self._about = about
        self._rows = [ArgumentRow(argument) for argument in arguments[:MAX_ARGUMENTS]]
        self._verb = verb
        self._complete = complete
        self._timer: Timer | None = None
        self._asked: tuple[str, ArgumentRow] | None = None
        self._serial = 0

    def compose(self) -> ComposeResult:
        """Compose what it is about, the lines and the buttons."""
        with Vertical(classes="request arguments") as frame:
            frame.border_title = Content(one_line(self._title))
            with VerticalScroll(classes="request-body", can_focus=False):
                yield PlainText(self._about)
                yield from self._rows
            with Container(classes="request-buttons"):
                yield Button(Content(self._verb.title()), id="send", compact=True)
                yield Button(Content("Cancel"), id="cancel", compact=True)
            yield PlainText(Content(HINT.format(self._verb)), classes="request-hint")

    def on_mount(self) -> None:
        """Follow the completions that arrive."""
        self._fit()
        self._bridge.watch(self, lambda state: state.completion, self._on_completed)

    def on_resize(self) -> None:
        """Leave room for the buttons, and keep the line that is filled in in sight."""
        self._fit()
        if self.focused is not None:
            self.call_after_refresh(self.focused.scroll_visible, animate=False)

    def action_send(self) -> None:
        """Give the arguments, unless one that is required is missing."""
        missing = []
        for row in self._rows:
            is_missing = row.argument.required and not row.value
            row.complain("This is required." if is_missing else "")
            if is_missing:
                missing.append(row)
        if missing:
            missing[0].line.focus()
        else:
            self.dismiss(dict(self._filled_in(self._rows)))

    def action_close(self) -> None:
        """Send nothing."""
        self.dismiss(None)

    def action_move(self, by: int) -> None:
        """Choose another completion of the line with the focus."""
        row = self._row_of(self.focused)
        if row is not None:
            row.move(by)

    @on(Button.Pressed)
    def _press(self, event: Button.Pressed) -> None:
        event.stop()
        if event.button.id == "send":
            self.action_send()
        else:
            self.action_close()

    @on(Input.Submitted)
    def _on_submitted(self, event: Input.Submitted) -> None:
        """Take the chosen completion, else go on to the next line or the button."""
        event.stop()
        row = self._row_of(event.input)
        if row is not None and not row.take():
            row.offer(())
            self.focus_next()

    @on(OptionList.OptionSelected)
    def _on_clicked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        row = self._row_of(event.option_list)
        if row is not None:
            row.take(event.option_index)

    @on(Input.Changed)
    def _on_typed(self, event: Input.Changed) -> None:
        """Ask the server once nothing has been typed for a moment."""
        event.stop()
        row = self._row_of(event.input)
        if self._timer is not None:
            self._timer.stop()
        if row is not None and self._complete is not None and row.line.has_focus:
            self._timer = self.set_timer(COMPLETE_AFTER, lambda: self._ask(row))

    def _ask(self, row: ArgumentRow) -> None:
        if self._complete is None or not row.line.has_focus:
            return
        self._serial += 1
        token = f"{id(self)}-{self._serial}"
        self._asked = token, row
        others = self._filled_in(other for other in self._rows if other is not row)
        self._complete(token, row.argument.name, row.value, dict(others))

    def _on_completed(self, completed: ArgumentCompleted | None) -> None:
        if completed is None or self._asked is None or completed.token != self._asked[0]:
            return
        row = self._asked[1]
        if row.line.has_focus:
            row.offer(completed.values)

    def _filled_in(self, rows: Iterable[ArgumentRow]) -> Iterable[tuple[str, str]]:
        return ((row.argument.name, row.value) for row in rows if row.value)

    def _row_of(self, widget: object) -> ArgumentRow | None:
        return next((row for row in self._rows if widget in (row.line, row.offered)), None)

    def _fit(self) -> None:
        """Bound the body, so that the buttons are in sight."""
        self.query_one(".request-body").styles.max_height = max(3, self.app.size.height - 9)
