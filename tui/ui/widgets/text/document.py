"""The content of a resource, drawn as what it is: Markdown, JSON, code or plain text."""

import json
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import urlsplit

from textual.content import Content

from tui.ui.widgets.text.blocks import Block, TextBlock
from tui.ui.widgets.text.markdown import code_block, parse_markdown

MAX_DRAWN: Final = 20_000
"""Characters of a text that are drawn as what it is; a longer one is plain."""

MAX_DRAWN_LINES: Final = 1_000
"""Lines of such a text."""

_MARKDOWN: Final = frozenset({"markdown", "md", "x-markdown"})

_PLAIN: Final = frozenset({"", "plain", "txt", "octet-stream"})


def kind_of(mime_type: str, uri: str) -> str:
    """Return the language of a text by its media type, or by how its address ends."""
    subtype = mime_type.partition(";")[0].rpartition("/")[2].rpartition("+")[2].lower().strip()
    if subtype not in _PLAIN:
        return subtype.removeprefix("x-")
    try:
        path = urlsplit(uri).path
    except ValueError:
        return ""
    ending = PurePosixPath(path).suffix[1:].lower()
    return "" if ending in _PLAIN else ending


def blocks_of(text: str, kind: str) -> list[Block]:
    """Draw a text as what it is. Its links are shown, never followed.

    Args:
        text: The text, for which `fits` is true.
        kind: Its language, as of `kind_of`.
    """
    if kind in _MARKDOWN:
        return parse_markdown(text).blocks
    if kind == "json":
        text = _indented(text)
    return [code_block(text, kind)] if kind else [TextBlock(Content(text))]


def _indented(text: str) -> str:
    """Indent JSON that stands in one line; anything else is returned as it is."""
    if "\n" in text.strip():
        return text
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def fits(text: str) -> bool:
    """Tell whether a text is short enough to be drawn as what it is."""
    return len(text) <= MAX_DRAWN and text.count("\n") < MAX_DRAWN_LINES
