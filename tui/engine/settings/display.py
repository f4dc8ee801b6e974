"""What the screen shows of a server definition: nothing secret, nothing raw."""

import re
import shlex
from typing import Final

from tui.engine.settings.definitions import ServerDefinition
from tui.engine.settings.secrets import masked_address, masked_words
from tui.model.servers import Transport
from tui.text import sanitize_line

_BLANK_RUN: Final = re.compile(r"\s{2,}")
"""White space that could push the rest of a word out of sight."""

_ODD_BLANK: Final = re.compile(r"[^\S ]")
"""A line break, a tab or any other single blank that a line would show as a space."""


def shown_target(definition: ServerDefinition) -> str:
    """Give the command line or address of a server as one line, with secrets masked."""
    if definition.transport is not Transport.STDIO:
        return sanitize_line(masked_address(definition.url, definition.secrets))
    if not definition.command:
        return ""
    words = masked_words((definition.command, *definition.args), definition.secrets)
    return sanitize_line(" ".join(map(_quoted, words)))


def _quoted(word: str) -> str:
    """Quote a word where its ends would not be seen otherwise; its blanks are made visible."""
    plain = word.isprintable() and not set(word) & set(" '\"")
    return word if word and plain else _visible(shlex.quote(word))


def _visible(text: str) -> str:
    """Count blanks that come in a row, and write others than spaces as escapes."""
    counted = _BLANK_RUN.sub(lambda run: f"[{len(run.group()):,} blanks]", text)
    return _ODD_BLANK.sub(lambda blank: ascii(blank.group())[1:-1], counted)
