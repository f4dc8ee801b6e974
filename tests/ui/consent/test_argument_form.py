"""Arguments in a form and back: what nobody touched is exactly what it was."""

from dataclasses import replace
from typing import Any

import pytest

from tests.ui.requests.samples import COLOURS
from tui.model.requests import FieldKind, FormField, FormValue
from tui.ui.widgets.forms.argument_form import fill, merge
from tui.ui.widgets.forms.form_fields import MAX_TYPED

TEXT = FormField("a", FieldKind.TEXT, "A", default="the schema's own")


def of(kind: FieldKind) -> FormField:
    return replace(TEXT, kind=kind, options=COLOURS if "of" in kind.value else (), default=None)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (FieldKind.TEXT, "main"),
        (FieldKind.TEXT, ""),
        (FieldKind.INTEGER, 10**30),
        (FieldKind.NUMBER, 1.5),
        (FieldKind.NUMBER, 2),
        (FieldKind.BOOLEAN, False),
        (FieldKind.CHOICE, "g"),
        (FieldKind.CHOICES, ["r", "b"]),
        (FieldKind.CHOICES, []),
        (FieldKind.TEXT, None),
    ],
)
def test_a_value_its_field_shows_is_filled_in_and_comes_back_as_it_was(
    kind: FieldKind, value: object
) -> None:
    filled = fill([of(kind)], {"a": value, "other": [1]})
    assert filled is not None
    entered: dict[str, FormValue] = {"a": filled[0].default}
    assert merge({"a": value, "other": [1]}, filled, entered) == {"a": value, "other": [1]}


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (FieldKind.TEXT, "two\nlines"),
        (FieldKind.TEXT, "zero\u200bwidth"),
        (FieldKind.TEXT, "x" * (MAX_TYPED + 1)),
        (FieldKind.TEXT, 1),
        (FieldKind.INTEGER, True),
        (FieldKind.INTEGER, 1.0),
        (FieldKind.NUMBER, "1"),
        (FieldKind.BOOLEAN, 1),
        (FieldKind.CHOICE, "unknown"),
        (FieldKind.CHOICES, ["b", "r"]),
        (FieldKind.CHOICES, ["r", "r"]),
        (FieldKind.CHOICES, "r"),
        (FieldKind.CHOICES, [{}]),
    ],
)
def test_a_value_its_field_cannot_show_as_it_is_makes_no_form(
    kind: FieldKind, value: object
) -> None:
    assert fill([of(kind)], {"a": value}) is None


def test_without_fields_there_is_no_form() -> None:
    assert fill([], {"a": 1}) is None


def test_an_argument_that_is_missing_stays_missing_whatever_the_schema_would_fill_in() -> None:
    filled = fill([TEXT], {})
    assert filled is not None
    assert filled[0].default is None
    assert merge({}, filled, {"a": None}) == {}


@pytest.mark.parametrize(
    ("entered", "expected"),
    [
        ("new", {"a": "new", "b": 1}),
        (None, {"b": 1}),
        (("r", "g"), {"a": ["r", "g"], "b": 1}),
        ("old", {"a": "old", "b": 1}),
    ],
)
def test_what_was_entered_replaces_its_argument_and_an_emptied_field_takes_it_out(
    entered: FormValue, expected: dict[str, Any]
) -> None:
    assert merge({"a": "old", "b": 1}, [replace(TEXT, default="old")], {"a": entered}) == expected
