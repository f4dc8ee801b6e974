"""The arguments of a call as a form. What the form does not show, or nobody touched, stays."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from textual.app import ComposeResult
from textual.containers import VerticalScroll

from tui.model.requests import FieldKind, FormField, FormValue
from tui.text import sanitize
from tui.ui.widgets.form_fields import MAX_TYPED, FieldRow, make_row
from tui.ui.widgets.plain import one_line


class ArgumentForm(VerticalScroll, can_focus=False):
    """A row for each argument.

    Args:
        fields: What can be filled in.
        values: What is filled in; nothing for arguments that the form cannot show.
        id: The widget's id.
    """

    def __init__(
        self,
        fields: Sequence[FormField],
        values: Mapping[str, Any],
        *,
        id: str | None = None,  # noqa: A002 - Textual's name
    ) -> None:
        super().__init__(id=id)
        self._fields = tuple(fields)
        self._base: dict[str, Any] = dict(values)
        self._rows = self._make_rows()

    def compose(self) -> ComposeResult:
        """Compose the rows."""
        yield from self._rows

    @property
    def first(self) -> FieldRow | None:
        """The first row."""
        return self._rows[0] if self._rows else None

    @property
    def left_out(self) -> int:
        """How many arguments there are for which the form has no field."""
        return len(self._base.keys() - {field.key for field in self._fields})

    async def refill(self, values: Mapping[str, Any]) -> None:
        """Show other values, which have to fit; see `fill`."""
        self._base = dict(values)
        self._rows = self._make_rows()
        await self.recompose()

    def check(self) -> FieldRow | None:
        """Give the first row whose value cannot be taken; each says what is wrong with its own."""
        wrong = [row for row in self._rows if row.check()]
        return wrong[0] if wrong else None

    def values(self) -> dict[str, Any]:
        """Give the arguments as they stand.

        Raises:
            ValueError: If a value is of the wrong type, which `check` finds.
        """
        entered = {row.field.key: row.value() for row in self._rows}
        return merge(self._base, [row.field for row in self._rows], entered)

    def _make_rows(self) -> list[FieldRow]:
        filled = fill(self._fields, self._base)
        return [make_row(field) for field in filled or ()]


def fill(fields: Sequence[FormField], values: Mapping[str, Any]) -> tuple[FormField, ...] | None:
    """Fill a form in with arguments.

    Returns:
        The fields with the arguments as their defaults; None where an argument is one that its
        field cannot show as it is, such as a text of several lines, or there are no fields.
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
    """Put what was entered into the arguments that the form was filled in with.

    A field that was emptied takes its argument out; one that was not touched leaves it as it is.
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
    """Tell whether a field shows a value as it is."""
    choices = {option.value for option in field.options}
    match field.kind:
        case FieldKind.TEXT:
            return isinstance(value, str) and _fits_line(value)
        case FieldKind.INTEGER:
            return isinstance(value, int) and not isinstance(value, bool)
        case FieldKind.NUMBER:
            return isinstance(value, int | float) and not isinstance(value, bool)
        case FieldKind.BOOLEAN:
            return isinstance(value, bool)
        case FieldKind.CHOICE:
            return isinstance(value, str) and value in choices
        case FieldKind.CHOICES:
            # What is ticked comes back in the order of the options, each once.
            order = [option.value for option in field.options]
            return isinstance(value, list) and value == [one for one in order if one in value]


def _fits_line(text: str) -> bool:
    """Tell whether a line shows a text to the last character."""
    return len(text) <= MAX_TYPED and one_line(text) == text and sanitize(text) == text
