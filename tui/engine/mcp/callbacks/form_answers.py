"""Filled-in forms: from what the user entered to what the server asked for, or why not."""

import math
import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import Final
from urllib.parse import urlsplit

from tui.engine.servers import patterns
from tui.engine.servers.inbound.forms import Control, Form
from tui.model.requests import FieldKind, FormField, FormValue

MAX_ANSWER_TEXT: Final = 100_000
"""Longest text of one field that is sent."""

Answer = dict[str, str | int | float | bool | list[str] | None]
"""The content of an accepted form, by the server's own names."""

_EMAIL: Final = re.compile(r"[^@\s]{1,64}@[^@\s.]+(?:\.[^@\s.]+)*")
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOMENT: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[Zz]|[+-]\d{2}:\d{2})"
)
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")
_YES: Final = frozenset({"true", "yes", "y", "1", "on"})
_NO: Final = frozenset({"false", "no", "n", "0", "off"})


class AnswerError(Exception):
    """A form is not filled in as the server asks; the text says which field and why."""


def read_answer(form: Form, content: Mapping[str, FormValue]) -> Answer:
    """Turn what the user entered into the types of the schema, and check it.

    A field that `content` does not name keeps its default; one that is None or an empty text
    is left out.

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
                raise _wrong(control.field, "is needed")
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
        raise _wrong(field, "is no text")
    if len(entered) > MAX_ANSWER_TEXT:
        raise _wrong(field, f"is longer than {MAX_ANSWER_TEXT} characters")
    if field.minimum is not None and len(entered) < field.minimum:
        raise _wrong(field, f"has fewer than {field.minimum:g} characters")
    if field.maximum is not None and len(entered) > field.maximum:
        raise _wrong(field, f"has more than {field.maximum:g} characters")
    if problem := _format_problem(field.format, entered):
        raise _wrong(field, problem)
    if control.pattern and patterns.find(control.pattern, entered) is False:
        raise _wrong(field, f"does not match {field.pattern}")
    return entered


def _format_problem(name: str, text: str) -> str:
    match name:
        case "email" if not _EMAIL.fullmatch(text):
            return "is no mail address"
        case "uri" if not _is_uri(text):
            return "is no address such as https://example.com"
        case "date" if not _is_date(text):
            return "is no date such as 2026-07-28"
        case "date-time" if not _is_moment(text):
            return "is no date and time such as 2026-07-28T09:30:00Z"
        case _:
            return ""


def _is_uri(text: str) -> bool:
    try:
        urlsplit(text)
    except ValueError:
        return False
    return _SCHEME.fullmatch(text) is not None


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return _DATE.fullmatch(text) is not None


def _is_moment(text: str) -> bool:
    """Tell whether this is a date-time of RFC 3339, which has an offset."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return _MOMENT.fullmatch(text) is not None


def _boolean(field: FormField, entered: FormValue) -> bool:
    if isinstance(entered, bool):
        return entered
    word = entered.strip().lower() if isinstance(entered, str) else ""
    if word not in _YES | _NO:
        raise _wrong(field, "is neither yes nor no")
    return word in _YES


def _number(field: FormField, entered: FormValue) -> int | float:
    is_integer = field.kind is FieldKind.INTEGER
    number = _parse(entered)
    if number is None:
        raise _wrong(field, "is no whole number" if is_integer else "is no number")
    if is_integer and not isinstance(number, int):
        if not number.is_integer():
            raise _wrong(field, "is no whole number")
        number = int(number)
    if field.minimum is not None and number < field.minimum:
        raise _wrong(field, f"is less than {field.minimum:g}")
    if field.maximum is not None and number > field.maximum:
        raise _wrong(field, f"is more than {field.maximum:g}")
    return number


def _parse(entered: FormValue) -> int | float | None:
    """Read a number; None if it is none that JSON has."""
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
        raise _wrong(control.field, "is none of its options")
    return control.values[entered]


def _choices(control: Control, entered: FormValue) -> list[str]:
    field = control.field
    chosen = (entered,) if isinstance(entered, str) else entered
    if not isinstance(chosen, tuple) or any(value not in control.values for value in chosen):
        raise _wrong(field, "is none of its options")
    values = [control.values[value] for value in dict.fromkeys(chosen)]
    if field.minimum is not None and len(values) < field.minimum:
        raise _wrong(field, f"needs {field.minimum:g} or more choices")
    if field.maximum is not None and len(values) > field.maximum:
        raise _wrong(field, f"takes no more than {field.maximum:g} choices")
    return values


def _wrong(field: FormField, what: str) -> AnswerError:
    return AnswerError(f"{field.title}: {what}")
