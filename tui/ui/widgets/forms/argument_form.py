"""What is filled in: the form that every screen with fields shows, and JSON beside it."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, Generic, TypeVar

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import ContentSwitcher, Input, Select

from tui.model.bounded_json import JsonError
from tui.model.input.arguments import canonical_json, read_arguments, reveal
from tui.model.requests import FieldKind, FormField, FormValue
from tui.model.runs import ToolForm
from tui.model.servers import ServerId
from tui.store.commands import Commands
from tui.ui import keymap
from tui.ui.widgets.forms.form_fields import (
    INDENT,
    MAX_LABEL_WIDTH,
    FieldRow,
    ValueChanged,
    make_row,
)
from tui.ui.widgets.forms.json_area import MAX_EDITABLE, JsonArea
from tui.ui.widgets.text.plain import PlainText, one_line

LABEL_GAP: Final = 3
"""Cells behind a label: its star, and air."""

BESIDE: Final = 160
"""Columns of the terminal from which JSON stands beside a form."""

INCOMPLETE: Final = "Fix the marked fields."
TOO_LONG: Final = f"At most {MAX_EDITABLE:,} characters can be edited here."

NOTHING: Final = "{}"
"""No arguments: what is typed begins between the braces."""

FORM, TEXT, JSON = "edit-form", "edit-text", "edit-json"
"""The views of `ArgumentEditor`, which are also the ids of their widgets."""

Row = TypeVar("Row", bound=FieldRow)


class FormBody(VerticalScroll, can_focus=False):
    """What a form stands in: what has the focus stays in sight, with what is wrong about it."""

    def on_resize(self) -> None:
        if (focused := self.screen.focused) is not None and self in focused.ancestors:
            for one in (*self.query(".field.-wrong:focus-within"), focused):
                self.call_after_refresh(one.scroll_visible, animate=False)


class ArgumentForm(Vertical, Generic[Row]):
    """A row for each field; what it stands in scrolls.

    Args:
        fields: What can be filled in.
        make: Makes the row of a field.
        prefilled: Whether the defaults are a server's, which are marked and shown whole.
        wide: Whether the controls have the whole width, with the descriptions below them.
    """

    BINDINGS = keymap.bindings("call.next", "call.previous")

    def __init__(
        self,
        fields: Sequence[FormField],
        make: Callable[[FormField], Row],
        *,
        prefilled: bool = False,
        wide: bool = False,
    ) -> None:
        super().__init__()
        self._make = make
        self._prefilled, self._wide = prefilled, wide
        self.rows = [*map(make, fields)]

    def compose(self) -> ComposeResult:
        """Compose the rows, whose labels are one column, below the names of what they are in."""
        names = [(INDENT * len(one.field.around), one.field.title) for one in self.rows]
        titles = [indent + cell_len(title) + LABEL_GAP for indent, title in names]
        above: tuple[str, ...] = ()
        for row in self.rows:
            row.is_wide, around = self._wide, row.field.around
            for level, name in enumerate(around):
                if around[: level + 1] != above[: level + 1]:
                    indent = " " * INDENT * level
                    yield PlainText(Content.styled(indent + one_line(name), "bold $text-muted"))
            above = *around, row.field.title
            row.is_prefilled = self._prefilled and row.field.default not in {None, ""}
            row.label_width = min(MAX_LABEL_WIDTH, max(titles, default=0))
            yield row
        self.set_class(not any(row.beside for row in self.rows), "-alone")

    @on(FieldRow.Mended)
    def _look_for_others(self, event: FieldRow.Mended) -> None:
        """Tell only when nothing is wrong any more."""
        if any(row.has_class("-wrong") for row in self.rows):
            event.stop()

    async def refill(self, fields: Sequence[FormField]) -> None:
        """Begin anew with these fields."""
        self.rows = [*map(self._make, fields)]
        await self.recompose()

    def check(self, *, whole: bool = True) -> bool:
        """Show what is wrong at each field, and go to the first of these.

        Args:
            whole: Whether an empty field that is required is wrong.

        Returns:
            Whether nothing is.
        """
        if wrong := [row for row in self.rows if row.check(whole=whole)]:
            wrong[0].control.focus()
            wrong[0].scroll_visible(animate=False)
        return not wrong

    def readable(self) -> dict[str, FormValue]:
        """Give what was filled in but for what has the wrong type."""
        return {row.field.key: row.value() for row in self.rows if not row.check(whole=False)}

    def values(self) -> dict[str, FormValue]:
        """Give what was filled in; None for an empty field.

        Raises:
            ValueError: If a value has the wrong type.
        """
        return {row.field.key: row.value() for row in self.rows}


class ArgumentEditor(ContentSwitcher):
    """Arguments as a form, as their one long text, or as JSON; values that no field shows stay.

    Args:
        commands: Makes the form, and reads it into arguments again.
        server: The server of the tool.
        tool: The tool's name as shown.
        arguments: The arguments to begin with, as JSON; None for those of the form.
        beside: Whether JSON stands beside the form, in step with it, where there is room.

    Raises:
        JsonError: If they cannot be read.
    """

    def __init__(
        self,
        commands: Commands,
        server: ServerId,
        tool: str,
        arguments: str | None,
        *,
        beside: bool = False,
    ) -> None:
        self._commands, self._tool = commands, (server, tool)
        self._goes_beside = beside
        self._choices: dict[str, str] = {}
        self._made = made = self._form(arguments)
        """The form that is shown, and the arguments that it was made of."""
        self._begun_with = made.arguments
        values = read_arguments(made.arguments)
        self.text_name = _long_text(made, values)
        """The argument that is edited as a text, where there is one."""
        super().__init__(initial=TEXT if self.text_name else FORM if made.fields else JSON)
        self.form = ArgumentForm(made.fields, make_row, wide=True)
        self.text = JsonArea(values.get(self.text_name, ""), id=TEXT)
        self.json = JsonArea(made.arguments, id=JSON)

    def compose(self) -> ComposeResult:
        """Compose all views, of which one is shown, or two."""
        yield VerticalScroll(self.form, id=FORM, can_focus=False)
        yield self.text
        yield self.json

    @property
    def is_changed(self) -> bool:
        try:
            return self.written() != self._begun_with
        except ValueError:
            return True

    @property
    def other(self) -> str:
        """The other way to show them, or to be told why there is none; empty if nobody asks."""
        if self.current == JSON:
            has_form = self._made.fields or self._made.problem
            return "Text" if self.text_name else "Form" if has_form else ""
        return "Form" if self.current == TEXT and self._made.fields else "JSON"

    @property
    def status(self) -> tuple[str, bool]:
        """How the arguments stand, and whether something is wrong with them."""
        if self.current == FORM:
            keys = [field.key[1:].partition("/")[0] for field in self._made.fields]
            shown = {key.removesuffix("?") for key in keys}
            left = len(read_arguments(self._made.arguments).keys() - shown)
            are = "is" if left == 1 else "are"
            more = f"{left} more {are} not in this form; ^T shows all."
            return more if left else "Enter: next field", False
        if self.current == TEXT:
            if len(self.text.text) > MAX_EDITABLE:
                return TOO_LONG, True
            return f"This is {one_line(reveal(self.text_name))}; ^T shows all arguments.", False
        try:
            _read(self.json.text)
        except ValueError as error:
            return str(error), True
        return "Valid JSON.", False

    def finished(self) -> str:
        """Give the arguments as JSON in the order in which they are shown.

        Raises:
            ValueError: If they cannot be sent; the message says why.
        """
        self._check(whole=True)
        return canonical_json(_read(self.written()), sorts=False)

    def written(self) -> str:
        """Write what is shown as JSON, which stays as it was written where nothing changed.

        Raises:
            ValueError: If a value of the form cannot be read.
        """
        if self.current == JSON:
            return self.json.text
        before = read_arguments(self._made.arguments)
        if self.current == TEXT:
            after = canonical_json({**before, self.text_name: self.text.text}, sorts=False)
        else:
            after = self._merged(self.form.values())
        is_same = canonical_json(read_arguments(after)) == canonical_json(before)
        return self._made.arguments if is_same else after

    def draft(self) -> str:
        """Write what is shown as JSON, but for what cannot be read."""
        return self._merged(self.form.readable()) if self.current == FORM else self.written()

    async def switch(self) -> str:
        """Show the same arguments the other way; what is wrong stays where it is.

        Returns:
            Why there is no other way, or nothing.

        Raises:
            ValueError: If something is wrong with them; the message says what.
        """
        if self.current != JSON:
            self._check(whole=False)
            self._show_json()
            if self.current == TEXT and self._made.fields:
                await self._refill(self._form(self.json.text))
                self.current = FORM
            else:
                self.current = JSON
            return ""
        values, made = _read(self.json.text), self._form(self.json.text)
        if name := _long_text(made, values):
            self._made, self.text_name = made, name
            self.text.load_text(values[name])
            self.current = TEXT
        elif made.fields:
            await self._refill(made)
            self.current = FORM
        else:
            return made.problem or "No form fits these arguments: edit them as JSON."
        return ""

    async def load(self, arguments: str) -> None:
        """Show other arguments (JSON), as a form if that can be.

        Raises:
            ValueError: If they cannot be read; they are shown all the same.
        """
        with self.json.prevent(JsonArea.Changed):  # else the form is made twice at the same time
            self.json.load_text(arguments)
        self.current, self._choices = JSON, {}
        await self.switch()

    def focus_first(self) -> None:
        """Give the keys to what is shown."""
        if self.current == FORM:
            self.form.rows[0].control.focus()
        else:
            (self.text if self.current == TEXT else self.json).focus()
            if self.json.text == NOTHING:
                self.json.cursor_location = (0, 1)

    def watch_current(self, old: str | None, new: str | None) -> None:
        super().watch_current(old, new)
        self.on_resize()

    def on_resize(self) -> None:
        """Put JSON beside the form where there is room."""
        has_form = bool(self._made.fields) and self.current != TEXT
        is_beside = self._goes_beside and self.app.size.width >= BESIDE and has_form
        self.set_class(is_beside, "-beside")
        for name in (FORM, JSON):
            self.get_child_by_id(name).display = is_beside or self.current == name

    def on_descendant_focus(self) -> None:
        """Follow the keys to the other side."""
        if self.has_class("-beside"):
            self.current = JSON if self.json.has_focus else FORM

    @on(Input.Changed)
    @on(Select.Changed)
    @on(ValueChanged)
    async def _follow_form(self) -> None:
        """Take the form into the JSON beside it; another alternative has other fields."""
        if self.current != FORM:
            return
        rows = {row.field.key: row for row in self.form.rows}
        chosen = {key: row.chosen for key, row in rows.items() if row.chosen is not None}
        if chosen and self.form.check(whole=False):
            arguments = self.written()  # what was chosen before says what goes
            self._choices |= chosen
            self.screen.set_focus(None)  # else what stands beside gets it as the field goes
            await self._refill(self._form(arguments))
            row = next(row for row in self.form.rows if row.field.key in chosen)
            row.resume(rows[row.field.key].control)
        if self.has_class("-beside"):
            with suppress(ValueError):  # its field says so
                self._show_json()

    @on(JsonArea.Changed)
    async def _follow_json(self) -> None:
        """Take the JSON into the form beside it."""
        if self.current == JSON and self.has_class("-beside"):
            with suppress(ValueError):  # it is not complete
                _read(self.json.text)
                await self._refill(self._form(self.json.text))

    def _form(self, arguments: str | None) -> ToolForm:
        """Make the form of arguments; it keeps how they were written."""
        made = self._commands.running.runs.form(*self._tool, arguments, self._choices)
        return made if arguments is None else replace(made, arguments=arguments)

    def _merged(self, entered: Mapping[str, FormValue]) -> str:
        runs = self._commands.running.runs
        return runs.merge(*self._tool, entered, self._made.arguments, self._choices)

    async def _refill(self, made: ToolForm) -> None:
        self._made = made
        await self.form.refill(made.fields)

    def _show_json(self) -> None:
        if (text := self.written()) != self.json.text:
            self.json.load_text(text)

    def _check(self, *, whole: bool) -> None:
        if self.current == FORM and not self.form.check(whole=whole):
            raise ValueError(INCOMPLETE)


def _read(text: str) -> dict[str, Any]:
    if len(text) > MAX_EDITABLE:
        raise ValueError(TOO_LONG)
    try:
        return read_arguments(text)
    except JsonError as error:
        raise ValueError(f"Not valid JSON yet: {error}") from None


def _long_text(form: ToolForm, values: Mapping[str, Any]) -> str:
    """Return the name of the one argument that is a text of several lines, and hides nothing.

    Where there is a form, it is one that the form shows as JSON.
    """
    names = [name for name, value in values.items() if isinstance(value, str) and "\n" in value]
    if len(names) != 1 or reveal(values[names[0]]) != values[names[0]]:
        return ""
    as_json = [field.key for field in form.fields if field.kind is FieldKind.JSON]
    return names[0] if not form.fields or f"/{names[0]}" in as_json else ""
