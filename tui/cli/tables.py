"""Text in columns."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

GAP: Final = "  "
"""Between columns."""


def table(rows: Sequence[Sequence[str]]) -> str:
    """Align columns; the last is as long as it is."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (GAP.join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "\n".join(lines)


def fields(named: Mapping[str, Any]) -> str:
    """Write each name that has a value, and its further lines below one another."""
    shown = {
        name.replace("_", " "): value if isinstance(value, list) else str(value).splitlines()
        for name, value in named.items()
    }
    width = max(map(len, shown), default=0)
    return "\n".join(
        f"{'' if number else name:<{width}}{GAP}{line}"
        for name, lines in shown.items()
        for number, line in enumerate(lines)
    )
