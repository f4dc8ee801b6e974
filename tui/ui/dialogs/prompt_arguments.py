"""Forms in dialogs: arguments of a prompt or a template, options of the model, a profile."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import Any, ClassVar, Final

from textual import on
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from tui.model.events import ArgumentCompleted
from tui.model.models import Marks
from tui.model.requests import FieldKind, FormField
from tui.model.servers import ServerId
from tui.model.settings_rules import PROFILE_NAME
from tui.store.selectors import server as find_server
from tui.text import clip
from tui.ui import keymap
from tui.ui.bridge import Delay, StoreBridge
from tui.ui.dialogs.list_dialog import Dialog
from tui.ui.widgets.chat.completion import COMPLETE_AFTER
from tui.ui.widgets.forms.argument_form import ArgumentForm, FormBody
from tui.ui.widgets.forms.form_fields import TypedField, make_row
from tui.ui.widgets.text.describe import field
from tui.ui.widgets.text.plain import PlainText, one_line

MAX_ARGUMENTS: Final = 50
"""Arguments shown in the form."""

MAX_SUGGESTIONS: Final = 20
"""Completions shown at once."""


BAD_NAME: Final = "Use at most 40 letters, digits, spaces, dots and hyphens; begin with a letter."


_own = partial(FormField, format="own")

_OPTIONS: Final = (
    _own("thinking", FieldKind.TEXT, "Thinking", "low, high or a budget"),
    _own("temperature", FieldKind.NUMBER, "Temperature", "0 to 2", minimum=0, maximum=2),
    _own("max_output", FieldKind.INTEGER, "Output", "maximum tokens", minimum=1),
)
"""The options of a model."""


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


class FormDialog(Dialog):
    """A form below what is said of it.

    Attributes:
        about: What is said of it.
        form: The form.
    """

    KIND = "arguments"
    FRAME = FormBody

    about: Content
    form: ArgumentForm[Any]

    def compose_body(self) -> ComposeResult:
        yield PlainText(self.about)
        yield self.form


class ArgumentsScreen(FormDialog):
    """Ask for arguments; the result is those that were filled in, or None if canceled.

    Args:
        bridge: Provides the completions, and asks the server for them.
        server: The server.
        target: What takes the arguments: a prompt's name or a URI template.
        title: The title of the frame, after the server.
        about: The description of the prompt or template.
        fields: What can be filled in, texts all of them.
    """

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
        self.about = about
        self.form = ArgumentForm(fields[:MAX_ARGUMENTS], ArgumentRow)
        view = find_server(bridge.state, server)
        self._completes = view is not None and view.info is not None and view.info.completions
        self._resting = Delay(self)
        self._token = ""

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


class OptionsScreen(FormDialog):
    """Set how the model answers in this conversation; an empty option is left to the service."""

    BINDINGS = keymap.bindings("own.save")

    def __init__(self, bridge: StoreBridge) -> None:
        super().__init__("Options", bridge.state.model.name)
        self._bridge = bridge
        self.about = Content.styled("How the model answers in this conversation.", "$text-muted")
        options = [replace(one, default=getattr(bridge.state.options, one.key)) for one in _OPTIONS]
        self.form = ArgumentForm(options, make_row)

    def action_save(self) -> None:
        """Set the options, unless the model cannot answer like this."""
        if not self.form.check():
            return
        given: dict[str, Any] = self.form.values()
        given["thinking"] = given["thinking"] and given["thinking"].lower()
        options = replace(self._bridge.state.options, **given)
        if problem := self._bridge.commands.running.models.set_options(options):
            self.form.rows[0].complain(problem)  # the others were checked
        else:
            self.dismiss()


class ProfileScreen(FormDialog):
    """Save what is marked as a profile, or change or remove one.

    Args:
        bridge: Has the marks and the profiles, and writes the settings.
        name: The profile that is changed; empty for a new one.
    """

    BINDINGS = keymap.bindings("own.save", "own.remove")

    def __init__(self, bridge: StoreBridge, name: str = "") -> None:
        super().__init__(f"Profile {name}" if name else "Save a profile", "/profile NAME uses it")
        self._bridge, self._marks, self._profile = bridge, bridge.state.marks, name
        found = bridge.state.profiles.get(name)
        kept = found.model_dump(mode="json", by_alias=True, exclude_unset=True) if found else {}
        about, self._entry = kept.pop("description", None), _entry_of(self._marks) or kept
        tools = (".".join(one.values()) for one in self._entry.get("tools", ()))
        servers = field("servers", ", ".join(self._entry.get("servers", ())) or "all")
        self.about = Content("\n").join((servers, field("tools", ", ".join(tools) or "all")))
        fields = [
            FormField("name", FieldKind.TEXT, "Name", required=True, default=name or None),
            FormField("description", FieldKind.TEXT, "Description", default=about),
        ]
        self.form = ArgumentForm(fields, make_row)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer to remove a profile that is there."""
        is_offered = action != "remove" or bool(self._profile)
        return is_offered and super().check_action(action, parameters)

    async def action_save(self) -> None:
        """Save the profile; at the second press if it replaces one."""
        if not self.form.check():
            return
        given = {key: str(value).strip() for key, value in self.form.values().items() if value}
        if re.fullmatch(PROFILE_NAME, name := given.pop("name")) is None:
            self.form.rows[0].complain(BAD_NAME)
        elif name not in self._bridge.state.profiles or self.is_again(
            "own.save", name, f"replace {name}"
        ):
            await self._write(name, {**given, **self._entry})

    async def action_remove(self) -> None:
        """Remove the profile at the second press."""
        if self.is_again("own.remove", "", f"remove {self._profile}"):
            await self._write(self._profile, None)

    async def _write(self, name: str, entry: object) -> None:
        commands = self._bridge.commands
        if await commands.running.set_own(entry, "profiles", name):
            if entry is not None:
                commands.mark(self._bridge.state.marks - self._marks)
            self.dismiss()


def _entry_of(marks: Marks) -> dict[str, Any]:
    """Write what is marked as a profile, if anything is."""
    servers = sorted({server for server, _ in marks})
    entry: dict[str, Any] = {"servers": servers} if servers else {}
    if any(tool for _, tool in marks):
        entry["tools"] = [{"server": name, "tool": tool or "*"} for name, tool in sorted(marks)]
    return entry
