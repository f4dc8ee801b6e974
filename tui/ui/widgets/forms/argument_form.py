"""A form for the arguments of a call; values not shown or not edited are kept."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from textual.app import ComposeResult
from textual.containers import VerticalScroll

from tui.model.requests import FieldKind, FormField, FormValue
from tui.text import sanitize
from tui.ui.widgets.forms.form_fields import MAX_TYPED, FieldRow, check_rows, make_row
from tui.ui.widgets.text.plain import one_line


class ArgumentForm(VerticalScroll, can_focus=False):
    """A row for each argument.

    Args:
        fields: What can be filled in.
        values: The current arguments.
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
        yield from self._rows

    @property
    def first(self) -> FieldRow | None:
        return self._rows[0] if self._rows else None

    @property
    def left_out(self) -> int:
        return len(self._base.keys() - {field.key for field in self._fields})

    async def refill(self, values: Mapping[str, Any]) -> None:
        """Show other values, for which `fill` must succeed."""
        self._base = dict(values)
        self._rows = self._make_rows()
        await self.recompose()

    def check(self) -> bool:
        return check_rows(self._rows)

    def values(self) -> dict[str, Any]:
        """Return the arguments as edited.

        Raises:
            ValueError: If a value has the wrong type; call `check` first.
        """
        entered = {row.field.key: row.value() for row in self._rows}
        return merge(self._base, [row.field for row in self._rows], entered)

    def _make_rows(self) -> list[FieldRow]:
        filled = fill(self._fields, self._base)
        return [make_row(field) for field in filled or ()]


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
            # The control returns the selected options in their order, each once.
            order = [option.value for option in field.options]
            return isinstance(value, list) and value == [one for one in order if one in value]


def _fits_line(text: str) -> bool:
    """Whether an input shows a text in full."""
    return len(text) <= MAX_TYPED and one_line(text) == text and sanitize(text) == text
