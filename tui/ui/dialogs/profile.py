"""The form of a profile: a name for the marked servers and tools."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError
from textual.app import ComposeResult
from textual.content import Content

from tui.engine.files.paths import shown_path
from tui.engine.settings.edits import EditError
from tui.model.models import Marks
from tui.model.requests import FieldKind, FormField
from tui.model.settings import EVERYTHING, PROFILE_NAME, Profile
from tui.ui import keymap
from tui.ui.bridge import StoreBridge
from tui.ui.dialogs.list_dialog import Dialog
from tui.ui.widgets.forms.argument_form import ArgumentForm, FormBody
from tui.ui.widgets.forms.form_fields import make_row
from tui.ui.widgets.text.describe import field
from tui.ui.widgets.text.plain import PlainText

BAD_NAME: Final = "Use at most 40 letters, digits, spaces, dots and hyphens; begin with a letter."


class ProfileScreen(Dialog):
    """Save a profile in the user's settings, or remove it.

    Args:
        bridge: Has the marks and the profiles, and writes the settings.
        name: The profile that is changed; empty for a new one.
    """

    KIND = "arguments"
    FRAME = FormBody
    BINDINGS = keymap.bindings("arguments.send", "profile.remove")

    def __init__(self, bridge: StoreBridge, name: str = "") -> None:
        super().__init__(f"Profile {name}" if name else "Save a profile")
        self._bridge, self._changed = bridge, name
        self._marks = bridge.state.marks
        found = bridge.state.profiles.get(name, EVERYTHING)
        self._entry = found.model_dump(mode="json", by_alias=True, exclude_unset=True)
        if self._marks:
            self._entry = {**_entry_of(self._marks), "description": found.description}
        about = found.description or None
        fields = [
            FormField("name", FieldKind.TEXT, "Name", required=True, default=name or None),
            FormField("description", FieldKind.TEXT, "Description", default=about),
        ]
        self.form = ArgumentForm(fields, make_row)

    def compose_body(self) -> ComposeResult:
        yield PlainText(Content("\n").join(_lines(self._entry)))
        yield self.form

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer to remove a profile that is there."""
        return (
            bool(self._changed) if action == "remove" else super().check_action(action, parameters)
        )

    def action_label(self, action: str) -> str | None:
        return "save" if action == "send" else None

    async def action_send(self) -> None:
        """Save the profile; at the second press if it replaces another."""
        if not self.form.check():
            return
        values = self.form.values()
        name = str(values["name"]).strip()
        entry = {**self._entry, "description": values["description"] or ""}
        try:
            Profile.model_validate(entry)
        except ValidationError:
            self.say("The name of a server or tool is too long for a profile.")
            return
        if re.fullmatch(PROFILE_NAME, name) is None:
            self.form.rows[0].complain(BAD_NAME)
        elif name not in self._bridge.state.profiles or self.is_again(
            "arguments.send", name, f"replace {name}"
        ):
            await self._write(entry, name, f"Saved. To use it: /profile {name}")

    async def action_remove(self) -> None:
        """Remove the profile at the second press."""
        if self.is_again("profile.remove", "", f"remove {self._changed}"):
            await self._write(None, self._changed, f"Removed {self._changed}.")

    async def _write(self, entry: object, name: str, said: str) -> None:
        commands = self._bridge.commands
        try:
            path = await commands.running.set_own(entry, "profiles", name)
        except EditError as error:
            self.notify(str(error), title="Settings", severity="error", markup=False)
            return
        if entry is not None:
            commands.mark(self._bridge.state.marks - self._marks)
        self.app.notify(f"{said} ({shown_path(path, Path.home())})", markup=False)
        self.dismiss()


def _entry_of(marks: Marks) -> dict[str, Any]:
    """Write what is marked as a profile."""
    entry: dict[str, Any] = {"servers": sorted({server for server, _ in marks})}
    if any(tool for _, tool in marks):
        entry["tools"] = [{"server": name, "tool": tool or "*"} for name, tool in sorted(marks)]
    return entry


def _lines(entry: Mapping[str, Any]) -> Iterator[Content]:
    """Say what a profile has."""
    yield field("servers", ", ".join(entry.get("servers", ["all"])))
    tools = (f"{one.get('server', '*')}.{one.get('tool', '*')}" for one in entry.get("tools", ()))
    yield field("tools", ", ".join(tools) or "all")
