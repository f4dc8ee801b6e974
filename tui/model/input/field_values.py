"""Whether what was entered into a field fits it; the same on the screen and before it is sent."""

import math
from contextlib import suppress

from tui.model.requests import FieldKind, FormField, FormValue
from tui.text import counted


def number_in(text: str, kind: FieldKind) -> int | float | None:
    """Read what was typed as a number; None if nothing was.

    Raises:
        ValueError: If it is none; the message is for the user.
    """
    if not text.strip():
        return None
    with suppress(ValueError):
        return int(text)
    with suppress(ValueError):
        if kind is FieldKind.NUMBER and math.isfinite(number := float(text)):
            return number
    raise ValueError("Enter a whole number." if kind is FieldKind.INTEGER else "Enter a number.")


def problem_of(field: FormField, value: FormValue) -> str:
    """Check a value against everything but the server's pattern and format.

    Returns:
        The problem in one line for the user, or an empty string.
    """
    if value is None:
        return "This is required." if field.required else ""
    match value:
        case bool():
            return ""
        case int() | float():
            size, unit = value, ""
        case tuple():
            size, unit = len(value), "row" if field.kind is FieldKind.ROWS else "option"
        case str():
            size, unit = len(value), "character"
    if field.kind is FieldKind.CHOICE:
        return ""
    if field.minimum is not None and size < field.minimum:
        return f"At least {_bound(field.minimum, unit)}."
    if field.maximum is not None and size > field.maximum:
        return f"At most {_bound(field.maximum, unit)}."
    return ""


def _bound(number: float, unit: str) -> str:
    """Format a bound with its unit, without a fraction if it is a whole number."""
    if not float(number).is_integer():
        return f"{number:g}"
    return counted(int(number), unit) if unit else f"{int(number):,}"
