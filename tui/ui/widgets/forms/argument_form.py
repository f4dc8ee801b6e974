"""What is filled in: the form that every screen with fields shows, and JSON beside it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Generic, TypeVar

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.widgets import ContentSwitcher

from tui.model.input.arguments import ArgumentsError, canonical_json, read_arguments, reveal
from tui.model.requests import FieldKind, FormField, FormValue
from tui.text import sanitize
from tui.ui.widgets.forms.form_fields import MAX_LABEL_WIDTH, MAX_TYPED, FieldRow, make_row
from tui.ui.widgets.forms.json_area import MAX_EDITABLE, JsonArea
from tui.ui.widgets.text.plain import one_line

LABEL_GAP: Final = 3
"""Cells behind a label: its star, and air."""

INCOMPLETE: Final = "Not done yet: look at the marked fields."
NO_FORM: Final = "These arguments have no form; they are edited as JSON."
NO_FIT: Final = "The form cannot show these values; they stay JSON."
NEXT_FIELD: Final = "Enter goes on to the next field."
TOO_LONG: Final = f"No more than {MAX_EDITABLE:,} characters can be edited here."

FORM, TEXT, JSON = "edit-form", "edit-text", "edit-json"
"""The views of `ArgumentEditor`, which are also the ids of their widgets."""

Row = TypeVar("Row", bound=FieldRow)


class ArgumentForm(Vertical, Generic[Row]):
    """A row for each field; what it stands in scrolls.

    Args:
        fields: What can be filled in.
        make: Makes the row of a field.
        prefilled: Whether the defaults are a server's, which are marked and shown whole.
    """

    def __init__(
        self,
        fields: Sequence[FormField],
        make: Callable[[FormField], Row],
        *,
        prefilled: bool = False,
    ) -> None:
        super().__init__()
        self._make = make
        self._prefilled = prefilled
        self.rows = [*map(make, fields)]

    def compose(self) -> ComposeResult:
        """Compose the rows, whose labels are one column."""
        titles = [cell_len(row.field.title) + LABEL_GAP for row in self.rows]
        for row in self.rows:
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

    def check(self) -> bool:
        """Show what is wrong at each field, and go to the first of these.

        Returns:
            Whether nothing is.
        """
        wrong = [row for row in self.rows if row.check()]
        if wrong:
            wrong[0].control.focus()
            wrong[0].scroll_visible(animate=False)
        return not wrong

    def values(self) -> dict[str, FormValue]:
        """Give what was filled in; None for an empty field.

        Raises:
            ValueError: If a value has the wrong type.
        """
        return {row.field.key: row.value() for row in self.rows}


class ArgumentEditor(ContentSwitcher):
    """Arguments as a form, as their one long text, or as JSON; values that no field shows stay.

    Args:
        fields: What the form has.
        arguments: The arguments to begin with, as JSON.

    Raises:
        ArgumentsError: If they cannot be read.
    """

    def __init__(self, fields: Sequence[FormField], arguments: str) -> None:
        self._fields = fields
        self._begun_with = arguments
        self._values = read_arguments(arguments)
        self.text_name = long_text(self._values)
        """The argument that is edited as a text, where there is one."""
        filled = fill(fields, self._values)
        super().__init__(initial=FORM if filled else TEXT if self.text_name else JSON)
        self.form = ArgumentForm(filled or (), make_row)
        self.text = JsonArea(self._values.get(self.text_name, ""), id=TEXT, highlighted=False)
        self.json = JsonArea(arguments, id=JSON)

    def compose(self) -> ComposeResult:
        """Compose all views, of which one is shown."""
        yield VerticalScroll(self.form, id=FORM, can_focus=False)
        yield self.text
        yield self.json

    @property
    def is_changed(self) -> bool:
        try:
            return self._written() != self._begun_with
        except ValueError:
            return True

    @property
    def status(self) -> tuple[str, bool]:
        """How the arguments stand, and whether something is wrong with them."""
        if self.current == FORM:
            left = len(self._values.keys() - {field.key for field in self._fields})
            are = "is" if left == 1 else "are"
            more = f"{left} more {are} not in this form; ^T shows all."
            return more if left else NEXT_FIELD, False
        if self.current == TEXT:
            if len(self.text.text) > MAX_EDITABLE:
                return TOO_LONG, True
            name = one_line(reveal(self.text_name))
            return f"This is {name}; ^T shows all arguments as JSON.", False
        try:
            _read(self.json.text)
        except ValueError as error:
            return str(error), True
        return "Complete JSON.", False

    def finished(self) -> str:
        """Give the arguments as canonical JSON.

        Raises:
            ValueError: If they cannot be sent; the message says why.
        """
        self._check()
        return canonical_json(_read(self._written()))

    async def switch(self) -> str:
        """Show the same arguments the other way; what is unfinished stays where it is.

        Returns:
            Why there is no other way, or nothing.

        Raises:
            ValueError: If something is wrong with them; the message says what.
        """
        if self.current != JSON:
            self._check()
            text, self._values = self._written(), self._shown()
            if text != self.json.text:
                self.json.load_text(text)
            self.current = JSON
            return ""
        values = _read(self.json.text)
        if (filled := fill(self._fields, values)) is not None:
            await self.form.refill(filled)
            self.current = FORM
        elif name := long_text(values):
            self.text_name = name
            self.text.load_text(values[name])
            self.current = TEXT
        else:
            return NO_FIT if self._fields else NO_FORM
        self._values = values
        return ""

    def focus_first(self) -> None:
        """Give the keys to what is shown."""
        if self.current == FORM:
            self.form.rows[0].control.focus()
        else:
            (self.text if self.current == TEXT else self.json).focus()

    def _check(self) -> None:
        if self.current == FORM and not self.form.check():
            raise ValueError(INCOMPLETE)

    def _written(self) -> str:
        """Write what is shown as JSON, which stays as it was written where nothing changed."""
        values = self._shown()
        return self.json.text if values == self._values else canonical_json(values)

    def _shown(self) -> dict[str, Any]:
        if self.current == FORM:
            fields = [row.field for row in self.form.rows]
            return merge(self._values, fields, self.form.values())
        changed = {self.text_name: self.text.text} if self.current == TEXT else {}
        return {**self._values, **changed}


def _read(text: str) -> dict[str, Any]:
    if len(text) > MAX_EDITABLE:
        raise ValueError(TOO_LONG)
    try:
        return read_arguments(text)
    except ArgumentsError as error:
        raise ValueError(f"Not JSON yet: {error}") from None


def long_text(values: Mapping[str, Any]) -> str:
    """Return the name of the one argument that is a text of several lines, and hides nothing."""
    names = [name for name, value in values.items() if isinstance(value, str) and "\n" in value]
    return names[0] if len(names) == 1 and reveal(values[names[0]]) == values[names[0]] else ""


def fill(fields: Sequence[FormField], values: Mapping[str, Any]) -> tuple[FormField, ...] | None:
    """Set arguments as the defaults of a form's fields.

    Returns:
        The fields; None if there are none, or one cannot show its argument unchanged, such as a
        text of several lines.
    """
    filled = []
    for field in fields:
        value = values.get(field.key)
        if value is not None and not _shows(field, value):
            return None
        default = tuple(value) if isinstance(value, list) else value
        filled.append(replace(field, default=default))
    return tuple(filled) or None


def merge(
    base: Mapping[str, Any], fields: Sequence[FormField], entered: Mapping[str, FormValue]
) -> dict[str, Any]:
    """Apply the entered values to the original arguments.

    An emptied field removes its argument; an unedited one leaves it unchanged.
    """
    merged = dict(base)
    for field in fields:
        value = entered[field.key]
        if value == field.default:
            continue
        if value is None:
            merged.pop(field.key, None)
        else:
            merged[field.key] = list(value) if isinstance(value, tuple) else value
    return merged


def _shows(field: FormField, value: object) -> bool:
    """Whether a field can show a value unchanged."""
    choices = [option.value for option in field.options]
    match field.kind:
        case FieldKind.TEXT:
            return (
                isinstance(value, str)
                and len(value) <= MAX_TYPED
                and one_line(value) == value == sanitize(value)
            )
        case FieldKind.INTEGER:
            return isinstance(value, int) and not isinstance(value, bool)
        case FieldKind.NUMBER:
            return isinstance(value, int | float) and not isinstance(value, bool)
        case FieldKind.BOOLEAN:
            return isinstance(value, bool)
        case FieldKind.CHOICE:
            return isinstance(value, str) and value in choices
        case FieldKind.CHOICES:
            # The control returns the selected options in their order, each once.
            return isinstance(value, list) and value == [one for one in choices if one in value]
        case FieldKind.JSON:
            return False
