"""Colours of code, within a time: lexers may take time that grows with the square of a text."""

import re
from time import thread_time
from typing import Final

from textual.content import Span

MAX_COLOURED: Final = 20_000
"""Characters of a text that gets colours."""

MAX_SECONDS: Final = 0.04
"""Seconds of processor time after which the rest of a text stays without colours."""

_LONG_LINE: Final = re.compile(r"[^\n]{401}")
"""A line for which one step of a lexer may take long; such a text gets no colours."""


def code_spans(text: str, language: str) -> list[Span]:
    """Return the colours of a text in a language that Pygments knows by this name."""
    if len(text) > MAX_COLOURED or _LONG_LINE.search(text):
        return []
    from pygments.lexers import (  # type: ignore[import-untyped]  # noqa: PLC0415 - slow
        get_lexer_by_name,
    )
    from textual.highlight import HighlightTheme  # noqa: PLC0415

    spans: list[Span] = []
    at = 0
    until = thread_time() + MAX_SECONDS
    for kind, token in get_lexer_by_name(language, stripnl=False).get_tokens(text):
        end = at + len(token)
        while kind and kind not in HighlightTheme.STYLES:
            kind = kind.parent  # noqa: PLW2901 - a wider kind may have a colour
        style = HighlightTheme.STYLES.get(kind, "")
        if style and token.strip():
            spans.append(Span(at, end, style))
        at = end
        if thread_time() > until:
            break
    return spans
