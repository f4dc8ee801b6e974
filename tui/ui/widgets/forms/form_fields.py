"""The fields of a form that a server requests; each shows what is wrong with its value."""

from collections.abc import Iterable, Mapping
from typing import ClassVar, Final, Literal, Self

from rich.cells import cell_len
from rich.text import Text
from textual import events, on
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.style import Style
from textual.widget import Widget
from textual.widgets import Input, Select

from tui.model.bounded_json import JsonError, read_json
from tui.model.input.arguments import MAX_DEPTH
from tui.model.input.field_values import number_in, problem_of
from tui.model.requests import PRIVATE_WARNING, FieldKind, FormField, FormValue
from tui.text import clip
from tui.ui import keymap
from tui.ui.widgets.frame import WORDY
from tui.ui.widgets.text.folded_text import FoldedText
from tui.ui.widgets.text.plain import PlainText, block, one_line

MAX_TYPED: Final = 10_000
"""Characters of a field's input."""

MAX_BESIDE: Final = 40
"""Cells of a description that stands beside its field; a longer one stands below."""

BOXES: Final = ("[ ]", "[x]")
"""A box as it is and once it is ticked."""

MAX_LABEL_WIDTH: Final = 24
"""Cells of the column of labels."""

INDENT: Final = 2
"""Cells before the label of what is in an object, for each one around it."""

MAX_FORM: Final = 104
"""Cells of the widest frame around a server's form, of which `AROUND` are no room for a field."""

AROUND: Final = 14
GAPS: Final = 4
"""Cells between a label, its control and what stands beside them."""

_HINTS: Final[Mapping[str, str]] = {
    "email": "name@example.org",
    "uri": "https://example.org/",
    "date": "2026-01-31",
    "date-time": "2026-01-31T09:30:00Z",
    FieldKind.INTEGER: "a whole number",
    FieldKind.NUMBER: "a number",
    FieldKind.JSON: 'JSON: [1, 2], {"a": "b"}, "text"',
    "own": "default",
    "server": "npx -y …   claude mcp add …   {…}   https://…",
    "args": "quoted as in a shell",
    "env": "NAME=value …",
    "headers": "'Name: value' …",
}

_TYPES: Final[Mapping[FieldKind, Literal["integer", "number"]]] = {
    FieldKind.INTEGER: "integer",
    FieldKind.NUMBER: "number",
}
"""What only digits go into."""


class TypedLine(Input):
    """An input that keeps all lines of a paste; Textual's keeps the first.

    Home and End that would not move the cursor are left to what it stands in.
    """

    def on_paste(self, event: events.Paste) -> None:
        """Insert the whole text, its lines joined by spaces."""
        event.stop()
        event.prevent_default()
        self.replace(" ".join(event.text.split()), *self.selection)

    def action_home(self, select: bool = False) -> None:
        if not self.cursor_position:
            raise SkipAction
        super().action_home(select)

    def action_end(self, select: bool = False) -> None:
        if self.cursor_position == len(self.value):
            raise SkipAction
        super().action_end(select)


class ValueChanged(Message):
    """A box was ticked or not, a yes or no was chosen, or rows are others."""


class Tick(Horizontal, can_focus=True):
    """A box, and the words that wrap beside it; keys and clicks tick it.

    Textual's own has its cross at all times, and only the color says whether it counts.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "change", "Tick", show=False),
        Binding("enter", "app.focus_next", "Next field", show=False),
    ]

    def __init__(self, words: str, *, value: bool) -> None:
        self.value = value
        self._box = PlainText(BOXES[value], classes="box")
        super().__init__(self._box, PlainText(Content(words)), classes="tick")

    def action_change(self) -> None:
        self.value = not self.value
        self._box.update(BOXES[self.value])
        self.post_message(ValueChanged())

    def on_click(self) -> None:
        self.action_change()


class Ticks(Vertical):
    """A box to tick for each option."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "app.focus_previous", "Option before", show=False),
        Binding("down", "app.focus_next", "Next option", show=False),
    ]

    def __init__(self, field: FormField) -> None:
        ticked, self._options = field.default, field.options
        chosen = ticked if isinstance(ticked, tuple) else ()
        self.boxes = [Tick(one_line(one.label), value=one.value in chosen) for one in field.options]
        super().__init__(*self.boxes, classes="ticks")

    @property
    def value(self) -> FormValue:
        """The values of the ticked options in the server's order."""
        pairs = zip(self._options, self.boxes, strict=True)
        return tuple(option.value for option, box in pairs if box.value) or None

    def focus(self, scroll_visible: bool = True) -> Self:
        """Begin with the first box."""
        for box in self.boxes[:1]:
            box.focus(scroll_visible)
        return self


class WholeText(FoldedText, can_focus=False):
    """A text in full: what it stands in scrolls, not the text."""


class YesNo(PlainText, can_focus=True):
    """Yes, no, or neither so far; keys and clicks choose."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "choose(True)", "Yes", show=False),
        Binding("n", "choose(False)", "No", show=False),
        Binding("left,right,space", "change", "The other", show=False),
        Binding("backspace,delete", "choose(None)", "Neither", show=False),
        Binding("enter", "app.focus_next", "Next field", show=False),
    ]

    def __init__(self, field: FormField) -> None:
        super().__init__(classes="yes-no")
        self.value = field.default if isinstance(field.default, bool) else None

    def render(self) -> Content:
        return Content("  ").join(
            Content(f"({'•' if self.value is value else ' '}) {words}").stylize(
                Style.from_meta({"@click": f"choose({value})"})
            )
            for value, words in ((True, "yes"), (False, "no"))
        )

    def action_choose(self, value: bool | None) -> None:
        self.value = value
        self.refresh()
        self.post_message(ValueChanged())

    def action_change(self) -> None:
        self.action_choose(not self.value)


class DropDown(Select[int]):
    """A list of options that drops down; its values are their indexes."""

    def __init__(self, field: FormField) -> None:
        self._offered: list[FormValue] = [option.value for option in field.options]
        has_default = field.default in self._offered
        super().__init__(
            _numbered(one_line(option.label) for option in field.options),
            prompt="choose… (required)" if field.required else "choose…",
            allow_blank=not (field.required and has_default),
            value=self._offered.index(field.default) if has_default else Select.NULL,
            type_to_search=False,
            compact=True,
        )

    @property
    def chosen(self) -> FormValue:
        return None if self.selection is None else self._offered[self.selection]


class Rows(PlainText, can_focus=True):
    """Rows of a list, of which one may be open; keys open, add and remove them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *keymap.bindings("rows.open", "rows.add", "rows.drop"),
        Binding("up", "step(-1)", "Row before", show=False),
        Binding("down", "step(1)", "Next row", show=False),
    ]

    def __init__(self, field: FormField) -> None:
        super().__init__(classes="rows")
        self._default = field.default
        self._labels = {one.value: one_line(one.label) for one in field.options} | {"": "new"}
        self.order = [one.value for one in field.options]
        self.opened, self.cursor = field.opened, int(field.opened or 0)

    @property
    def value(self) -> FormValue:
        order = tuple(self.order)
        return self._default if order == (self._default or ()) else order or None

    def render(self) -> Content:
        if not self.order:
            return Content.styled("no rows", "$text-muted")
        lines = (
            Content.styled(
                f"▾ {at + 1}" if one == self.opened else f"▸ {at + 1}  {self._labels[one]}",
                "reverse" if at == self.cursor and self.has_focus else "",
            ).stylize(Style.from_meta({"@click": f"open({at})"}))
            for at, one in enumerate(self.order)
        )
        return Content("\n").join(lines)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Offer what there are rows for."""
        return bool(self.order) or action not in {"open", "drop"}

    def action_step(self, by: int) -> None:
        """Go to another row; beyond the last and the first to another field."""
        if not 0 <= self.cursor + by < len(self.order):
            raise SkipAction
        self.cursor += by
        self.refresh()

    def action_open(self, at: int | None = None) -> None:
        self.cursor = self.cursor if at is None else at
        one = self.order[self.cursor]
        self._arrange(self.order, "" if one == self.opened else f"{self.cursor}")

    def action_add(self) -> None:
        """Add a row below this one, and open it."""
        self.cursor += bool(self.order)
        self._arrange(
            [*self.order[: self.cursor], "", *self.order[self.cursor :]], f"{self.cursor}"
        )

    def action_drop(self) -> None:
        rows = [*self.order[: self.cursor], *self.order[self.cursor + 1 :]]
        self.cursor = max(0, min(self.cursor, len(rows) - 1))
        self._arrange(rows, "")

    def _arrange(self, order: list[str], opened: str) -> None:
        """Tell of another order, or that the row of a place is open in it, if any."""
        self.order, self.opened = order, opened
        self.post_message(ValueChanged())


class FieldRow(Vertical):
    """A label, the server's description, a control, and the problem with its value."""

    control: YesNo | DropDown | Ticks | Rows | TypedLine

    class Mended(Message):
        """What was wrong with the value no longer is."""

    def __init__(self, field: FormField) -> None:
        super().__init__(classes="field")
        self.field = field
        self.is_prefilled = False
        """Whether the default is a server's, of which all has to be seen."""
        self.label_width = MAX_LABEL_WIDTH
        self.is_wide = False
        """Whether the control has the whole width, and the description stands below it."""
        self.control = self.make_control()

    def make_control(self) -> YesNo | DropDown | Ticks | Rows | TypedLine:
        """Return the control, set to the default."""
        return _CONTROLS[self.field.kind](self.field)

    def value(self) -> FormValue:
        """Return the value, or None if the field is empty.

        Raises:
            ValueError: If it has the wrong type; the message is for the user.
        """
        control = self.control
        return control.chosen if isinstance(control, DropDown) else control.value

    @property
    def shows_default(self) -> bool:
        """Whether the control shows all of the default that is sent."""
        return True

    @property
    def beside(self) -> Content:
        """What stands beside the control: that it is filled in, and a short description."""
        words = self.field.description
        is_short = not self.is_wide and "\n" not in words and cell_len(words) <= MAX_BESIDE
        own = Content.styled("prefilled" if self.is_prefilled else "", "$text-warning")
        return Content.styled(" · ", "$text-muted").join(
            filter(None, (own, Content.styled(words if is_short else "", "$text-muted")))
        )

    def compose(self) -> ComposeResult:
        field = self.field
        words = one_line(field.title)
        label = Content.assemble((words, "bold"), (" *" if field.required else "", "$accent"))
        beside = PlainText(self.beside, classes="field-beside")
        self.named = PlainText(label, classes="field-label")
        self.whole = WholeText(str(field.default), classes="server-words default")
        is_beside = field.description in self.beside.plain
        told = Content("" if is_beside else block(clip(field.description, limit=1_000)))
        self.told = PlainText(told, classes="field-description")
        self.told.display = bool(told)
        self.problem = PlainText(classes="field-problem")
        self.fit()
        if field.asks_secret:
            yield PlainText(Content(PRIVATE_WARNING), classes="field-warning")
        yield Horizontal(self.named, self.control, beside, classes="field-line")
        yield from (self.whole, self.told, self.problem)

    def on_mount(self) -> None:
        self.complain("")

    def on_resize(self) -> None:
        self.fit()

    def fit(self) -> None:
        """Stand below each other where there is no room beside, and show a default whole."""
        is_narrow = self.app.size.width < WORDY
        self.set_class(is_narrow, "-narrow")
        self.named.styles.width = "100%" if is_narrow else self.label_width
        self.named.styles.padding = (0, 1, 0, INDENT * len(self.field.around))
        left = self.label_width + 1 if self.is_wide and not is_narrow else 0
        self.told.styles.padding = self.problem.styles.padding = (0, 0, 0, left)
        self.whole.display = not self.shows_default

    @property
    def chosen(self) -> str | None:
        """What was chosen that changes the form: other fields, or no way back to nothing."""
        changes = self.field.key.endswith("?") or (self.field.required and not self.field.default)
        value = self.value() if changes and self.field.kind is FieldKind.CHOICE else None
        return None if value in {None, self.field.default} else str(value)

    def resume(self, _: Widget) -> None:
        """Go on where the control of this field before was."""
        self.control.focus()

    def check(self, *, whole: bool = True) -> str:
        """Validate the value, if there is one or `whole`; show and return the problem, or ""."""
        try:
            value = self.value()
            reason = problem_of(self.field, value) if whole or value is not None else ""
        except ValueError as error:
            reason = str(error)
        self.complain(reason)
        return reason

    def complain(self, reason: str) -> None:
        self.problem.say(one_line(reason))
        self.set_class(bool(reason), "-wrong")

    def go_on(self) -> None:
        """Go to what follows."""
        self.screen.focus_next()

    @on(Input.Changed)
    @on(Select.Changed)
    @on(ValueChanged)
    def _look_again(self) -> None:
        """Take a complaint back once what it was about is mended."""
        if self.has_class("-wrong") and not self.check():
            self.post_message(self.Mended())

    @on(Input.Submitted)
    def _on_submitted(self) -> None:
        """Enter goes on; it never sends a form."""
        self.go_on()


class TypedField(FieldRow):
    """A text, an address, a date or a number in a one-line input."""

    LINE: ClassVar[type[TypedLine]] = TypedLine
    control: TypedLine

    def make_control(self) -> TypedLine:
        field = self.field
        return self.LINE(
            self._initial_text(),
            placeholder=_HINTS.get(field.format or field.kind, ""),
            type=_TYPES.get(field.kind, "text"),
            max_length=MAX_TYPED,
            disabled=field.kind is FieldKind.JSON and len(str(field.default)) > MAX_TYPED,
            validate_on=(),
            select_on_focus=False,
            compact=True,
        )

    def value(self) -> FormValue:
        """Return the text or number; an unedited default is returned unchanged."""
        text = self.control.value
        if text == self._initial_text():
            return self.field.default
        if self.field.kind in _TYPES:
            return number_in(text, self.field.kind)
        if self.field.kind is FieldKind.JSON and text.strip():
            try:
                read_json(text, MAX_DEPTH)
            except JsonError as error:
                raise ValueError(f"Not valid JSON: {error.reason}.") from None
        return text or None

    @property
    def shows_default(self) -> bool:
        text, shown = str(self.field.default), self._initial_text()
        inner = min(self.app.size.width * 24 // 25, MAX_FORM) - AROUND
        room = inner if self.has_class("-narrow") else inner * 7 // 10 - self.label_width - GAPS
        return not self.is_prefilled or (text == shown and cell_len(shown) <= room)

    def _initial_text(self) -> str:
        default = self.field.default
        return "" if default is None else one_line(str(default))[:MAX_TYPED]


class RowsField(FieldRow):
    """A list of objects."""

    control: Rows

    @property
    def chosen(self) -> str | None:
        opened, is_same = self.control.opened, self.value() == self.field.default
        return None if is_same and opened == self.field.opened else opened

    def resume(self, before: Widget) -> None:
        """Go on at the same row, or in the first field of one that was added."""
        self.screen.set_focus(self.control)
        if isinstance(before, Rows):
            self.control.cursor = before.cursor
            if "" in before.order:
                self.go_on()


_CONTROLS: Final[Mapping[FieldKind, type[YesNo | DropDown | Ticks | Rows]]] = {
    FieldKind.BOOLEAN: YesNo,
    FieldKind.CHOICE: DropDown,
    FieldKind.CHOICES: Ticks,
    FieldKind.ROWS: Rows,
}
"""What is not typed into."""


def make_row(field: FormField) -> FieldRow:
    """Return the row for a field's kind."""
    if field.kind is FieldKind.ROWS:
        return RowsField(field)
    return FieldRow(field) if field.kind in _CONTROLS else TypedField(field)


def _numbered(labels: Iterable[str]) -> list[tuple[Text, int]]:
    """Return options for a `Select`, which parses bare strings as markup, with their indexes."""
    return [(Text(label), index) for index, label in enumerate(labels)]
