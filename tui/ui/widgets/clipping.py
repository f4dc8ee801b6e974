"""How much of a long text stands in the transcript, and how; the viewer shows the rest."""

from typing import Final

MAX_SHOWN_LINES: Final = 200
"""Lines of one text in the transcript."""

MAX_SHOWN: Final = 16_000
"""Characters of one text in the transcript."""

MAX_MARKDOWN: Final = 20_000
"""Characters of a text that are parsed; what follows is shown as plain text."""

MAX_MARKDOWN_LINES: Final = 1_000
"""Lines of a text that are parsed; they bound the list items and rows there can be."""

MAX_BLOCKS: Final = 300
"""Blocks of a text that are drawn as such; what follows is shown as plain text."""


def shown_part(text: str) -> tuple[str, int]:
    """Cut a text to what the transcript shows.

    Returns:
        The part to show, and how many characters are left out.
    """
    part = text[:MAX_SHOWN]
    lines = part.split("\n", MAX_SHOWN_LINES)
    if len(lines) > MAX_SHOWN_LINES:
        part = "\n".join(lines[:MAX_SHOWN_LINES])
    return part, len(text) - len(part)


def markdown_part(text: str) -> str:
    """Give the part of a text that is within the limits: whole lines, unless one is too long."""
    if len(text) <= MAX_MARKDOWN and text.count("\n") < MAX_MARKDOWN_LINES:
        return text
    lines = text[:MAX_MARKDOWN].split("\n", MAX_MARKDOWN_LINES)
    return "".join(f"{line}\n" for line in lines[:-1]) or text[:MAX_MARKDOWN]
