"""The fields of a form that a server asks to fill in, each with its own word on what is wrong."""

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Final, Literal

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Select, SelectionList
from textual.widgets.selection_list import Selection

from tui.model.requests import FieldKind, FormField, FormValue
from tui.text import clip, counted
from tui.ui.widgets.plain import PlainText, block, one_line

MAX_TYPED: Final = 10_000
"""Characters that can be typed into a field."""

MAX_LABEL: Final = 200
"""Characters of a title, and of an option, that are shown."""

MAX_DESCRIPTION: Final = 1_000
"""Characters of a field's description that are shown."""

PRIVATE_WARNING: Final = (
    "This looks like a secret. Servers must not ask for one: leave it out unless you are sure."
)

_HINTS: Final[Mapping[str, str]] = {
    "email": "name@example.org",
    "uri": "https://example.org/",
    "date": "2026-01-31",
    "date-time": "2026-01-31T09:30:00Z",
    FieldKind.INTEGER: "a whole number",
    FieldKind.NUMBER: "a number",
}


class TypedLine(Input):
    """A line that keeps all of a paste of several lines, where Textual keeps the first."""

    def on_paste(self, event: events.Paste) -> None:
        """Put the whole text in, its lines joined by spaces."""
        event.stop()
        event.prevent_default()
        self.replace(" ".join(event.text.split()), *self.selection)


class FieldRow(Vertical):
    """A label, the server's words, a control and what is wrong with the value in it.

    Args:
        field: What is asked.
    """

    def __init__(self, field: FormField) -> None:
        super().__init__(classes="field")
        self.field = field
        self.control = self.make_control()

    @abstractmethod
    def make_control(self) -> Widget:
        """Make the control, filled with the default."""

    @abstractmethod
    def value(self) -> FormValue:
        """Give what is filled in; None where nothing is.

        Raises:
            ValueError: If it is of the wrong type; the text says what is wanted.
        """

    def compose(self) -> ComposeResult:
        """Compose the parts, one below the other."""
        field = self.field
        kind = field.format or field.kind.value
        notes = " · ".join((kind, "required")) if field.required else kind
        label = Content.assemble((_label(field.title), "bold"), (f"  {notes}", "$foreground 60%"))
        yield PlainText(label, classes="field-label")
        if field.description:
            yield PlainText(
                Content(block(clip(field.description, MAX_DESCRIPTION))),
                classes="field-description",
            )
        if field.asks_secret:
            yield PlainText(Content(PRIVATE_WARNING), classes="field-warning")
        yield self.control
        yield PlainText(classes="field-problem")

    def on_mount(self) -> None:
        """Begin without a complaint."""
        self.complain("")

    def check(self) -> str:
        """Say what is wrong with the value, show it beside the control, and give the reason."""
        try:
            reason = problem_of(self.field, self.value())
        except ValueError as error:
            reason = str(error)
        self.complain(reason)
        return reason

    def complain(self, reason: str) -> None:
        """Show a reason, or none."""
        line = self.query_one(".field-problem", PlainText)
        line.update(Content(_label(reason)))
        line.display = bool(reason)
        self.set_class(bool(reason), "-wrong")


class TypedField(FieldRow):
    """A text, an address, a date or a number, typed into one line."""

    def make_control(self) -> Input:
        """Make a line that takes only what the kind allows."""
        field = self.field
        control = TypedLine(
            self._begun_with(),
            placeholder=_HINTS.get(field.format or field.kind, ""),
            type=_input_type(field.kind),
            max_length=MAX_TYPED,
            validate_on=(),
            select_on_focus=False,
            compact=True,
        )
        control.cursor_blink = False  # a blink is a repaint twice a second, for ever
        return control

    def value(self) -> FormValue:
        """Give the text or the number; a default that was not touched as it came."""
        control = self.query_one(Input)
        if control.value == self._begun_with():
            return self.field.default
        match self.field.kind:
            case FieldKind.INTEGER:
                return _whole(control.value)
            case FieldKind.NUMBER:
                return _number(control.value)
            case _:
                return control.value or None

    def _begun_with(self) -> str:
        default = self.field.default
        return "" if default is None else one_line(str(default))[:MAX_TYPED]


class ChoiceField(FieldRow):
    """One of several options, or yes or no."""

    def make_control(self) -> Select[int]:
        """Make a list that folds down; options are known by their place."""
        options = self.field.options
        labels = [_label(option.label) for option in options] if options else ["Yes", "No"]
        begun = self._place_of(self.field.default)
        return Select(
            _numbered(labels),
            prompt="choose…",
            value=Select.NULL if begun is None else begun,
            type_to_search=False,
            compact=True,
        )

    def value(self) -> FormValue:
        """Give the chosen option's value, or whether Yes was chosen."""
        place = self.query_one(Select).value
        if not isinstance(place, int):
            return None
        return self.field.options[place].value if self.field.options else place == 0

    def _place_of(self, value: FormValue) -> int | None:
        if isinstance(value, bool):
            return 0 if value else 1
        places = (i for i, option in enumerate(self.field.options) if option.value == value)
        return next(places, None)


class ChoicesField(FieldRow):
    """Some of several options."""

    def make_control(self) -> SelectionList[int]:
        """Make a list whose options are ticked."""
        default = self.field.default
        begun = default if isinstance(default, tuple) else ()
        return SelectionList(
            *(
                Selection(Content(_label(option.label)), place, option.value in begun)
                for place, option in enumerate(self.field.options)
            ),
            compact=True,
        )

    def value(self) -> FormValue:
        """Give the ticked options' values in the server's order."""
        chosen = sorted(self.query_one(SelectionList).selected)
        return tuple(self.field.options[place].value for place in chosen) or None


def make_row(field: FormField) -> FieldRow:
    """Make the row that fits a field's kind."""
    match field.kind:
        case FieldKind.CHOICE | FieldKind.BOOLEAN:
            return ChoiceField(field)
        case FieldKind.CHOICES:
            return ChoicesField(field)
        case _:
            return TypedField(field)


def problem_of(field: FormField, value: FormValue) -> str:
    """Say what is wrong with a value, as far as can be seen without the server's pattern.

    Returns:
        One line for the user, or nothing.
    """
    if value is None:
        return "This is required." if field.required else ""
    match value:
        case bool():
            return ""
        case int() | float():
            size, unit = value, ""
        case tuple():
            size, unit = len(value), "option"
        case str():
            size, unit = len(value), "character"
    if field.kind is FieldKind.CHOICE:
        return ""
    if field.minimum is not None and size < field.minimum:
        return f"At least {_bound(field.minimum, unit)}."
    if field.maximum is not None and size > field.maximum:
        return f"At most {_bound(field.maximum, unit)}."
    return ""


def _label(text: str) -> str:
    return clip(one_line(text), MAX_LABEL)


def _input_type(kind: FieldKind) -> Literal["integer", "number", "text"]:
    match kind:
        case FieldKind.INTEGER:
            return "integer"
        case FieldKind.NUMBER:
            return "number"
        case _:
            return "text"


def _whole(text: str) -> int | None:
    if not text.strip():
        return None
    try:
        return int(text)
    except ValueError:
        raise ValueError("This has to be a whole number.") from None


def _number(text: str) -> float | None:
    if not text.strip():
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError("This has to be a number.")
    return number


def _bound(number: float, unit: str) -> str:
    """Write a bound with its unit, if it has one, and without a needless fraction."""
    if not float(number).is_integer():
        return f"{number:g}"
    return counted(int(number), unit) if unit else f"{int(number):,}"


def _numbered(labels: Iterable[str]) -> list[tuple[Text, int]]:
    """Give options for a `Select`, which parses bare strings as markup; each is its number."""
    return [(Text(label, no_wrap=True), place) for place, label in enumerate(labels)]
