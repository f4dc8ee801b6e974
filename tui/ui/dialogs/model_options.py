"""The form of `/options`: how the model answers in this conversation."""

from dataclasses import replace
from typing import Any

from textual.app import ComposeResult

from tui.model.models import OWN_OPTIONS, ModelOptions
from tui.model.requests import FieldKind, FormField
from tui.ui import keymap
from tui.ui.bridge import StoreBridge
from tui.ui.dialogs.list_dialog import Dialog
from tui.ui.widgets.forms.argument_form import ArgumentForm, FormBody
from tui.ui.widgets.forms.form_fields import make_row


class OptionsScreen(Dialog):
    """Set the options of the model that answers; an empty one is left to the service.

    Args:
        bridge: Has the options, checks others, and sets them.
    """

    KIND = "arguments"
    FRAME = FormBody
    BINDINGS = keymap.bindings("arguments.send", "options.reset")

    def __init__(self, bridge: StoreBridge) -> None:
        super().__init__("Options", bridge.state.model.name)
        self._bridge = bridge
        self.form = ArgumentForm(_fields(bridge.state.options), make_row)

    def compose_body(self) -> ComposeResult:
        yield self.form

    def action_label(self, action: str) -> str | None:
        return "save" if action == "send" else None

    def action_send(self) -> None:
        """Set the options, unless the model cannot answer like this."""
        if not self.form.check():
            return
        given: dict[str, Any] = self.form.values()
        given["thinking"] = given["thinking"] and given["thinking"].lower()
        options = replace(self._bridge.state.options, **given)
        models = self._bridge.commands.running.models
        if problem := models.problem(options):
            self.form.rows[0].complain(problem)
            self.form.rows[0].control.focus()
        else:
            models.set_options(options)
            self.dismiss()

    async def action_reset(self) -> None:
        """Empty all fields, which counts once they are saved."""
        await self.form.refill(_fields(OWN_OPTIONS))
        self.form.rows[0].control.focus()


def _fields(options: ModelOptions) -> list[FormField]:
    """Give the fields: the thinking, which only the model can check, first."""
    rows = (
        ("thinking", FieldKind.TEXT, "low, high or a budget in tokens", None, None),
        ("temperature", FieldKind.NUMBER, "0 to 2", 0, 2),
        ("max_output", FieldKind.INTEGER, "most tokens of an answer", 1, None),
    )
    return [
        FormField(
            key,
            kind,
            key.removeprefix("max_").capitalize(),
            words,
            default=getattr(options, key),
            format="option",
            minimum=least,
            maximum=most,
        )
        for key, kind, words, least, most in rows
    ]
