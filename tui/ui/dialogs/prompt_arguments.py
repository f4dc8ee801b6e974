"""The form for the arguments of a prompt or the variables of a resource template."""

from collections.abc import Sequence
from time import monotonic
from typing import ClassVar, Final

from textual import on
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from tui.model.events import ArgumentCompleted
from tui.model.requests import FieldKind, FormField
from tui.model.servers import ServerId
from tui.store.selectors import server as find_server
from tui.text import clip
from tui.ui import keymap
from tui.ui.bridge import Delay, StoreBridge
from tui.ui.dialogs.list_dialog import Dialog
from tui.ui.widgets.chat.completion import COMPLETE_AFTER
from tui.ui.widgets.forms.argument_form import ArgumentForm, FormBody
from tui.ui.widgets.forms.form_fields import TypedField
from tui.ui.widgets.text.plain import PlainText, one_line

MAX_ARGUMENTS: Final = 50
"""Arguments shown in the form."""

MAX_SUGGESTIONS: Final = 20
"""Completions shown at once."""


def argument_field(
    name: str, description: str, *, required: bool, value: str | None = None
) -> FormField:
    """Return the field of an argument, a text."""
    return FormField(name, FieldKind.TEXT, name, description, required, value)


class ArgumentRow(TypedField):
    """One argument: its name, its description, an input and the completions below."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("up", "move(-1)", "Previous completion"),
        ("down", "move(1)", "Next completion"),
    ]

    def __init__(self, field: FormField) -> None:
        super().__init__(field)
        self.offered = OptionList(markup=False, compact=True, classes="offered")
        self.offered.can_focus = False
        self._values: tuple[str, ...] = ()

    def compose(self) -> ComposeResult:
        *parts, problem = super().compose()
        yield from (*parts, self.offered, problem)

    def on_mount(self) -> None:
        self.offer(())

    def offer(self, values: Sequence[str]) -> None:
        """Show completions, none of them highlighted."""
        others = (value for value in values if value != self.control.value)
        self._values = tuple(others)[:MAX_SUGGESTIONS]
        labels = (clip(one_line(value), limit=100) for value in self._values)
        self.offered.set_options(Option(Content(label)) for label in labels)
        self.offered.display = bool(self._values)
        self.offered.highlighted = None

    def action_move(self, by: int) -> None:
        """Highlight the next or previous completion, else go to another field."""
        if not self._values:
            raise SkipAction
        (self.offered.action_cursor_down if by > 0 else self.offered.action_cursor_up)()

    def accept(self, index: int | None = None) -> bool:
        """Put a completion, by default the highlighted one, into the line.

        Returns:
            Whether there was one.
        """
        index = self.offered.highlighted if index is None else index
        if index is None or not self._values:
            return False
        self.control.value = self._values[index]
        self.control.cursor_position = len(self.control.value)
        self.offer(())
        return True

    def go_on(self) -> None:
        """Accept the highlighted completion, else go to the next line, or on from the last."""
        if self.accept():
            return
        self.offer(())
        if self is self.screen.query(ArgumentRow).last():
            self.app.call_later(self.screen.run_action, "send")
        else:
            super().go_on()

    @on(OptionList.OptionSelected)
    def _on_clicked(self, event: OptionList.OptionSelected) -> None:
        self.accept(event.option_index)


class ArgumentsScreen(Dialog):
    """Ask for arguments; the result is those that were filled in, or None if canceled.

    Args:
        bridge: Provides the completions, and asks the server for them.
        server: The server.
        target: What takes the arguments: a prompt's name or a URI template.
        title: The title of the frame, after the server.
        about: The description of the prompt or template.
        fields: What can be filled in, texts all of them.
    """

    KIND = "arguments"
    FRAME = FormBody
    BINDINGS = keymap.bindings("arguments.send")

    def __init__(
        self,
        bridge: StoreBridge,
        server: ServerId,
        target: str,
        *,
        title: str,
        about: Content,
        fields: Sequence[FormField],
    ) -> None:
        super().__init__(f"{server} · {title}")
        self._bridge = bridge
        self._server = server
        self._target = target
        self._about = about
        self.form = ArgumentForm(fields[:MAX_ARGUMENTS], ArgumentRow)
        view = find_server(bridge.state, server)
        self._completes = view is not None and view.info is not None and view.info.completions
        self._resting = Delay(self)
        self._token = ""

    def compose_body(self) -> ComposeResult:
        yield PlainText(self._about)
        yield self.form

    def on_mount(self) -> None:
        self._bridge.watch(self, lambda state: state.completion, self._on_completed)

    def action_send(self) -> None:
        """Return the arguments, unless a required one is missing."""
        if self.form.check():
            self.dismiss(self._filled_in())

    @on(Input.Changed)
    def _on_typed(self, event: Input.Changed) -> None:
        """Request completions after a pause in typing."""
        row = next(row for row in self.form.rows if row.control is event.input)
        self._resting.stop()
        if self._completes and row.control.has_focus:
            self._resting.begin(COMPLETE_AFTER, lambda: self._request(row))

    def _request(self, row: ArgumentRow) -> None:
        if not row.control.has_focus:
            return
        self._token = f"{id(row)}-{monotonic()}"
        name, others = row.field.key, self._filled_in()
        others.pop(name, None)
        self._bridge.commands.engine.features.complete(
            self._token, self._server, self._target, name, row.control.value, others
        )

    def _on_completed(self, completed: ArgumentCompleted | None) -> None:
        if completed is not None and completed.token == self._token:
            for row in self.form.rows:
                if row.control.has_focus and self._token.startswith(f"{id(row)}-"):
                    row.offer(completed.values)

    def _filled_in(self) -> dict[str, str]:
        return {key: str(value) for key, value in self.form.values().items() if value}
