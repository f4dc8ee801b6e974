"""A server is added, changed or removed: filled in, started on trial, then written."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Final

from textual import events, on
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.getters import query_one
from textual.widget import Widget

from tui.engine.background import in_daemon_thread
from tui.engine.files.paths import shown_path, usable_state_dir
from tui.engine.keys.key_store import CredentialError
from tui.engine.keys.secret_store import SecretStore, without_literals
from tui.engine.server_setup.server_imports import OwnEdits, shown_entry
from tui.engine.settings.edits import EditError, servers_in
from tui.engine.settings.importers import Candidate, asked, understand, withheld
from tui.engine.settings.typed_entries import (
    NETWORK,
    SANDBOX,
    EntryError,
    EntryFields,
    check_entry,
    entry_difference,
)
from tui.model.requests import FieldKind, FieldOption, FormField
from tui.model.servers import ServerId, ServerStatus, ServerView
from tui.store.state import AppState
from tui.text import counted
from tui.ui import keymap
from tui.ui.bridge import StoreBridge
from tui.ui.dialogs.choices import offer_lines
from tui.ui.dialogs.list_dialog import Dialog
from tui.ui.messages import DataMessage, EditServer
from tui.ui.widgets.forms.argument_form import ArgumentForm, FormBody
from tui.ui.widgets.forms.form_fields import MAX_TYPED, TypedField, TypedLine, make_row
from tui.ui.widgets.status import status_word
from tui.ui.widgets.text.describe import failure_lines
from tui.ui.widgets.text.difference import SIGN_STYLES
from tui.ui.widgets.text.plain import PlainText, block, one_line

MAX_TOOLS: Final = 200
"""Tools of a server on trial that are shown."""

LITERAL: Final = "This entry contains a secret. Store it in the keyring (below)."

ASKED: Final = "This entry reads your variables or secrets. Allow those it may use."

ABOUT: Final[Mapping[str, str]] = {
    "start": "Start “when needed” makes the server lazy: it sleeps until something uses it.",
    "env": "Type the secret in Environment or Headers; choose yes at “Keyring for secrets”.",
}
"""What to do in the field that the form was opened for."""

MAX_GIVEN: Final = 20
"""Rows for what an entry asks for; what has none is left out."""

ASKS: Final = "Not started. Save it, then approve it when gemdeck asks."

_STARTS: Final = (
    FieldOption("", "default"),
    FieldOption("eager", "with gemdeck"),
    FieldOption("lazy", "when needed"),
)

_SANDBOXES: Final = (
    FieldOption("", "default"),
    FieldOption("off", "off"),
    FieldOption("on", "on, no network"),
    FieldOption(NETWORK, "on, with network"),
)

_SCOPES: Final = (
    FieldOption("user", "mine, everywhere"),
    FieldOption("folder", "mine, for this folder"),
    FieldOption("project", "this project"),
)


class Stage(StrEnum):
    """What is shown; the value is what Ctrl+S does there."""

    FORM = "next"
    SHOWN = "test"
    TRYING = ""
    READY = "save"
    FAILED = "save anyway"
    REMOVING = "remove"


class PasteLine(TypedLine):
    """Takes whatever says how to start or reach a server: at Enter, or pasted as a whole."""

    class Given(DataMessage):
        """This is to be understood."""

        text: str

    def on_paste(self, event: events.Paste) -> None:
        """Give a text of several lines as it is; what was typed already is added to."""
        if not self.value:
            event.stop()
            event.prevent_default()
            self.post_message(self.Given(event.text))

    async def action_submit(self) -> None:
        """Give what was typed; without any, go on to the form."""
        if self.value.strip():
            self.post_message(self.Given(self.value))
        else:
            await super().action_submit()


class PasteField(TypedField):
    """The first field."""

    LINE = PasteLine


class ServerScreen(Dialog):
    """Shows an entry as a form, then whole; starts it on trial at a key, and writes it at another.

    Args:
        bridge: Starts the server on trial, says what comes of it, and writes the settings.
        asked: The server of the user's settings, and what is changed; None for a new one.
        entry: Its entry.
        scope: Whose settings have it; see `OwnEdits.file_of`.
    """

    KIND = "server"
    AUTO_FOCUS = "Input"
    BINDINGS = keymap.bindings("arguments.send", "server.imports", "server.remove")

    notes = query_one(".notes", PlainText)
    page = query_one(".page", VerticalScroll)

    def __init__(
        self,
        bridge: StoreBridge,
        asked: EditServer | None = None,
        entry: Mapping[str, Any] | None = None,
        scope: str = "user",
    ) -> None:
        name = asked.server if asked is not None else ""
        super().__init__(name or "Add a server")
        self._bridge = bridge
        self._commands = bridge.commands
        self._server, self._is_new, self._asked = name, not name, asked or EditServer(ServerId(""))
        self._stage = Stage.FORM
        self._left: Widget | None = None
        self._entry: Mapping[str, Any] = entry or {}
        self._tried, self._secrets = self._entry, dict[str, str]()
        self._shown = EntryFields(self._entry)
        self._before: object = None
        self._scope = scope
        self._asks: Sequence[str] = ()
        self._left_out = set[str]()
        self._rest: Sequence[Candidate] = ()
        self.line = PasteField(FormField("line", FieldKind.TEXT, "Paste or type", format="server"))
        fields = _fields(self._shown, name, scope, ())
        # a server that is there keeps its name and its file
        self.form = ArgumentForm(fields[1:-1] if name else fields, make_row)

    def compose_body(self) -> ComposeResult:
        with FormBody():
            if self._is_new:
                yield ArgumentForm([self.line.field], lambda _: self.line)
            yield PlainText(classes="notes")
            yield self.form
        with VerticalScroll(classes="page"):
            yield PlainText()

    def on_mount(self) -> None:
        self._clock = self.set_interval(1, self._draw, pause=True)
        self._bridge.watch(self, lambda state: state.trial, self._follow)
        self._show(Stage.REMOVING if self._asked.removes else Stage.FORM)
        key, words = self._asked.field, ABOUT.get(self._asked.field, "")
        if (allows := self._asked.allows) is not None:
            words = f"{allows.words}\nAdded below. Nothing is saved yet."
            key = SANDBOX if allows.key == NETWORK else allows.key
        if key:
            self.notes.update(Content.styled(block(words), "$text-warning"))
            next(row for row in self.form.rows if row.field.key == key).control.focus()

    def on_unmount(self) -> None:
        self._commands.engine.trials.end()

    async def action_send(self) -> None:
        """Do the next thing."""
        try:
            match self._stage:
                case Stage.FORM:
                    await self._go_on()
                case Stage.SHOWN:
                    self.call_after_refresh(self._start)  # it counts once the page stands
                case Stage.READY | Stage.FAILED:
                    await self._save()
                case Stage.REMOVING:
                    path = await asyncio.to_thread(self._edits.remove, self._scope, self._server)
                    words = f"Removed {self._server} from {shown_path(path, Path.home())}."
                    self.app.notify(words, markup=False)
                    self.dismiss()
        except EntryError as error:
            self.say(str(error))
        except (EditError, CredentialError) as error:
            self.notify(str(error), title="Settings", severity="error", markup=False)

    def _start(self) -> None:
        """Start what was read to its end; until then, read on."""
        if self.page.scroll_y < self.page.max_scroll_y:
            self.page.scroll_page_down(animate=False)
        elif self._stage is Stage.SHOWN:
            self._commands.engine.trials.begin(self._server, self._tried, self._scope)
            self._show(Stage.TRYING)

    def action_close(self) -> None:
        """Go back to the form, else close; what was filled in is dropped at the second press."""
        if self._stage in {Stage.SHOWN, Stage.TRYING, Stage.READY, Stage.FAILED}:
            self._commands.engine.trials.end()
            self._show(Stage.FORM)
        elif (
            self._stage is not Stage.FORM
            or not self._is_changed()
            or self.is_again("dialog.close", "", "discard your input.")
        ):
            self.dismiss()

    def action_remove(self) -> None:
        """Show what is removed, which the next key does."""
        self._show(Stage.REMOVING)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer to remove a server that is there."""
        can_remove = self._stage is Stage.FORM and not self._is_new
        return can_remove if action == "remove" else super().check_action(action, parameters)

    def action_label(self, action: str) -> str | None:
        is_form = self._stage is Stage.FORM
        return {
            "send": self._stage.value,
            "close": "close" if is_form or self._stage is Stage.REMOVING else "back",
            "app.open('imports')": "other clients" if is_form and self._is_new else "",
        }.get(action)

    @property
    def _edits(self) -> OwnEdits:
        return self._commands.running.imports.edits

    @on(PasteLine.Given)
    async def _understand(self, event: PasteLine.Given) -> None:
        try:
            first, *self._rest = understand(event.text, self._commands.running.imports.machine)
        except EntryError as error:
            self.line.control.value = one_line(event.text)[:MAX_TYPED]
            self.line.complain(str(error))
            return
        self.line.control.value = ""
        self.line.complain("")
        await self._fill(first)
        self.form.rows[0].control.focus()

    async def _fill(self, one: Candidate) -> None:
        """Fill the form in, and say what else there is to know."""
        self._shown, self._scope, self._asks = EntryFields(one.entry), one.scope, asked(one.entry)
        await self.form.refill(_fields(self._shown, one.name, one.scope, self._asks))
        _, literal = without_literals(one.name, one.entry)
        notes = [*one.warnings, *[LITERAL] * bool(literal), *[ASKED] * bool(self._asks)]
        if self._rest:
            notes.append(f"Next: {', '.join(other.name for other in self._rest)}.")
        self.notes.update(Content.styled(block("\n".join(notes)), "$text-warning"))

    def _is_changed(self) -> bool:
        is_begun = self._is_new and bool(self._shown.target or self.line.control.value)
        return is_begun or any(row.value() != row.field.default for row in self.form.rows)

    async def _go_on(self) -> None:
        """Show the entry whole, or understand what was typed."""
        if self._is_new and self.line.control.value.strip():
            await self.line.control.action_submit()
            return
        if not self.form.check():
            return
        given = {key: str(value or "") for key, value in self.form.values().items()}
        self._server, self._scope = given.pop("name", self._server), given.pop("scope", self._scope)
        keeps = bool(given.pop("keyring", ""))
        kept = {name for name in self._asks if not given.pop(f"give {name}", "")}
        entry = self._shown.entry(**given)
        self._left_out = kept.intersection(asked(entry))
        self._tried = withheld(entry, self._left_out)
        moved = without_literals(self._server, self._tried)
        self._entry, self._secrets = moved if keeps else (self._tried, {})
        check_entry(self._server, self._scope, self._entry)
        there = await asyncio.to_thread(servers_in, self._edits.file_of(self._scope))
        self._before = there.get(self._server)
        self._show(Stage.SHOWN)

    async def _save(self) -> None:
        store = SecretStore(usable_state_dir(), lambda words: self.app.notify(words, markup=False))
        await in_daemon_thread(partial(store.set_all, self._secrets))
        what = self._scope, self._server, self._entry, self._before
        path, why = await asyncio.to_thread(self._edits.add, *what)
        self.app.notify(f"Saved {self._server} to {shown_path(path, Path.home())}.", markup=False)
        if why:
            self.app.notify(f"Not started: {why}", severity="warning", markup=False)
        if not self._rest:
            self.dismiss()
            return
        first, *self._rest = self._rest
        await self._fill(first)
        self._show(Stage.FORM)

    def _follow(self, trial: AppState | None) -> None:
        """Show what comes of the trial."""
        view = trial.servers[0] if trial is not None and trial.servers else None
        if self._stage is Stage.TRYING and view is not None and view.status in _OVER:
            self._show(Stage.READY if view.status is ServerStatus.READY else Stage.FAILED)
        elif self._stage is not Stage.FORM:
            self._draw()

    def _show(self, stage: Stage) -> None:
        if self._stage is Stage.FORM:
            self._left = self.focused
        self._stage = stage
        is_form = stage is Stage.FORM
        self.set_class(is_form, "-form")
        (self._clock.resume if stage is Stage.TRYING else self._clock.pause)()
        if is_form:
            row = self.line if self._is_new and not self._shown.target else self.form.rows[0]
            left = self._left
            (left if left is not None and left.is_attached else row.control).focus()
        else:
            self.page.focus()
            self._draw()
            self.page.scroll_home(animate=False)
        self.say("")

    def _draw(self) -> None:
        self.page.query_one(PlainText).update(Content("\n").join(self._lines()))

    def _lines(self) -> Iterator[Content]:
        """Say what came of the trial, what would start, and what that changes."""
        trial = self._bridge.state.trial
        if trial is not None and self._stage in {Stage.TRYING, Stage.READY, Stage.FAILED}:
            for view in trial.servers:
                yield from _outcome(view)
            for notice in trial.notices:
                yield Content.styled(f"! {one_line(notice.text)}", "$text-warning")
            yield Content()
        offer = shown_entry(self._server, self._entry, self._left_out)
        here = self._bridge.state.workspace
        yield from offer_lines(replace(offer, cwd=offer.cwd or here) if offer.command else offer)
        if self._before not in (None, self._entry):
            yield Content(f"\nChanges to {self._server}:")
            for line in entry_difference(self._before, self._entry):
                yield Content.styled(f"{line.sign} {line.text}", SIGN_STYLES.get(line.sign, ""))


_OVER: Final = frozenset(ServerStatus) - {ServerStatus.STARTING, ServerStatus.STOPPED}


def _fields(shown: EntryFields, name: str, scope: str, asks: Sequence[str]) -> list[FormField]:
    """Give the fields of an entry, the name first and the file last."""

    def row(key: str, title: str, given: str, *, required: bool = False) -> FormField:
        return FormField(key, FieldKind.TEXT, title, "", required, given or None, format=key)

    def switch(key: str, title: str) -> FormField:
        return FormField(key, FieldKind.BOOLEAN, title, "", True, False)

    options, box = shown.options, shown.sandbox
    return [
        row("name", "Name", name, required=True),
        row("target", "Command or address", shown.target, required=True),
        row("args", "Arguments", shown.args),
        row("env", "Environment", shown.env),
        row("headers", "Headers", shown.headers),
        *(switch(f"give {name}", f"Allow {one_line(name)}") for name in asks[:MAX_GIVEN]),
        switch("keyring", "Keyring for secrets"),
        FormField("start", FieldKind.CHOICE, "Start", "", True, options["start"], _STARTS),
        row("cwd", "Working directory", options["cwd"]),
        FormField(SANDBOX, FieldKind.CHOICE, "Sandbox", "", True, box[SANDBOX], _SANDBOXES),
        row("read", "Sandbox may read", box["read"]),
        row("write", "Sandbox may write", box["write"]),
        row("timeout", "Timeout in seconds", options["timeout"]),
        row("excludeTools", "Tools off", options["excludeTools"]),
        FormField("scope", FieldKind.CHOICE, "Scope", "", True, scope, _SCOPES),
    ]


def _outcome(view: ServerView) -> Iterator[Content]:
    """Say how a trial stands."""
    is_ready, tools = view.status is ServerStatus.READY, view.catalog.tools
    if view.status is ServerStatus.RETRYING:  # nobody tries it again
        view = replace(view, status=ServerStatus.FAILED)
    more = counted(len(tools), "tool") if is_ready else one_line(view.last_words)
    yield Content.assemble((status_word(view, monotonic()), "bold"), f"  {more}")
    if view.refused is not None:
        yield Content.styled(one_line(view.refused.words), "$text-warning")
    if (failure := view.failure) is not None:
        is_held = view.status is ServerStatus.UNTRUSTED
        yield from failure_lines(replace(failure, advice=ASKS) if is_held else failure)
    for tool in tools[: MAX_TOOLS * is_ready]:
        claims = {"destructive"}.intersection(tool.claims)
        if mind := tool.problem or ", ".join([*(mark.words for mark in tool.marks), *claims]):
            yield Content.styled(one_line(f"! {tool.name}  {mind}"), "$text-warning")
        else:
            words = tool.description.strip().partition("\n")[0]
            yield Content.assemble(f"  {one_line(tool.name)}  ", (one_line(words), "$text-muted"))
