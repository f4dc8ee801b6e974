"""Filled-in forms: checks what the user entered and converts it to the schema's types."""

import math
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Final
from urllib.parse import urlsplit

from tui.engine.mcp.callbacks.form_schema import Control, Form
from tui.engine.mcp.schema import safe_regex
from tui.model.requests import FieldKind, FormField, FormValue

MAX_ANSWER_TEXT: Final = 100_000
"""Longest text of one field that is sent."""

Answer = dict[str, str | int | float | bool | list[str] | None]
"""The content of an accepted form, by the server's own names."""

_FORMATS: Final[Mapping[str, tuple[str, Callable[[str], object], str]]] = {
    "email": (r"[^@\s]{1,64}@[^@\s.]+(?:\.[^@\s.]+)*", str, "is not an email address"),
    "uri": (
        r"[A-Za-z][A-Za-z0-9+.-]*:\S+",
        urlsplit,
        "is not an address such as https://example.com",
    ),
    "date": (r"\d{4}-\d{2}-\d{2}", date.fromisoformat, "is not a date such as 2026-07-28"),
    "date-time": (  # RFC 3339, with an offset
        r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[Zz]|[+-]\d{2}:\d{2})",
        datetime.fromisoformat,
        "is not a date and time such as 2026-07-28T09:30:00Z",
    ),
}
"""Per format: a pattern, a parser that raises `ValueError`, and what to say if either fails."""

_YES: Final = frozenset({"true", "yes", "y", "1", "on"})
_NO: Final = frozenset({"false", "no", "n", "0", "off"})


class AnswerError(Exception):
    """A field does not fit the schema; the text says why, `field` is its key."""

    def __init__(self, field: FormField, what: str) -> None:
        super().__init__(what)
        self.field = field.key


def read_answer(form: Form, content: Mapping[str, FormValue]) -> Answer:
    """Check what the user entered and convert it to the types of the schema.

    Fields missing from `content` keep their default; None and empty text leave a field out.

    Args:
        form: The form.
        content: The values by field key. Texts are converted where the field is a number.

    Raises:
        AnswerError: If a field is missing or does not fit.
    """
    answer: Answer = {}
    for control in form.controls:
        entered = content.get(control.field.key, control.field.default)
        if entered is None or entered == "" or (entered == () and not control.field.required):
            if control.field.required:
                raise AnswerError(control.field, "is needed")
            if control.sends_null:
                answer[control.name] = None
            continue
        answer[control.name] = _convert(control, entered)
    return answer


def _convert(control: Control, entered: FormValue) -> str | int | float | bool | list[str]:
    field = control.field
    match field.kind:
        case FieldKind.TEXT:
            return _text(control, entered)
        case FieldKind.BOOLEAN:
            return _boolean(field, entered)
        case FieldKind.INTEGER | FieldKind.NUMBER:
            return _number(field, entered)
        case FieldKind.CHOICE:
            return _choice(control, entered)
        case FieldKind.CHOICES:
            return _choices(control, entered)


def _text(control: Control, entered: FormValue) -> str:
    field = control.field
    if not isinstance(entered, str):
        raise AnswerError(field, "is not a text")
    if len(entered) > MAX_ANSWER_TEXT:
        raise AnswerError(field, f"is longer than {MAX_ANSWER_TEXT} characters")
    _check_bounds(
        field, len(entered), "has fewer than {:g} characters", "has more than {:g} characters"
    )
    if field.format and not _has_format(field.format, entered):
        raise AnswerError(field, _FORMATS[field.format][2])
    if control.pattern and safe_regex.find(control.pattern, entered) is False:
        raise AnswerError(field, f"does not match {field.pattern}")
    return entered


def _has_format(name: str, text: str) -> bool:
    pattern, parse, _ = _FORMATS[name]
    try:
        parse(text)
    except ValueError:
        return False
    return re.fullmatch(pattern, text) is not None


def _check_bounds(field: FormField, size: float, too_low: str, too_high: str) -> None:
    if field.minimum is not None and size < field.minimum:
        raise AnswerError(field, too_low.format(field.minimum))
    if field.maximum is not None and size > field.maximum:
        raise AnswerError(field, too_high.format(field.maximum))


def _boolean(field: FormField, entered: FormValue) -> bool:
    if isinstance(entered, bool):
        return entered
    word = entered.strip().lower() if isinstance(entered, str) else ""
    if word not in _YES | _NO:
        raise AnswerError(field, "is neither yes nor no")
    return word in _YES


def _number(field: FormField, entered: FormValue) -> int | float:
    is_integer = field.kind is FieldKind.INTEGER
    number = _parse(entered)
    if number is None:
        raise AnswerError(field, "is not a whole number" if is_integer else "is not a number")
    if is_integer and not isinstance(number, int):
        if not number.is_integer():
            raise AnswerError(field, "is not a whole number")
        number = int(number)
    _check_bounds(field, number, "is less than {:g}", "is more than {:g}")
    return number


def _parse(entered: FormValue) -> int | float | None:
    """Read a number; None if it is not one, or one that JSON does not have."""
    if isinstance(entered, bool) or not isinstance(entered, str | int | float):
        return None
    try:
        number = entered if not isinstance(entered, str) else int(entered.strip())
    except ValueError:
        try:
            number = float(str(entered).strip())
        except ValueError:
            return None
    return number if isinstance(number, int) or math.isfinite(number) else None


def _choice(control: Control, entered: FormValue) -> str:
    if not isinstance(entered, str) or entered not in control.values:
        raise AnswerError(control.field, "is none of its options")
    return control.values[entered]


def _choices(control: Control, entered: FormValue) -> list[str]:
    field = control.field
    chosen = (entered,) if isinstance(entered, str) else entered
    if not isinstance(chosen, tuple) or any(value not in control.values for value in chosen):
        raise AnswerError(field, "is none of its options")
    values = [control.values[value] for value in dict.fromkeys(chosen)]
    _check_bounds(
        field, len(values), "needs {:g} or more choices", "takes no more than {:g} choices"
    )
    return values
