"""What the body of a refusal says, as one line that is safe to show once it is masked."""

import re
from collections.abc import Mapping
from typing import Any, Final

from tui.model.bounded_json import JsonError, read_json
from tui.text import sanitize_line

MAX_BODY: Final = 8 * 1024
"""Bytes of a body that are looked at."""

MAX_SAID: Final = 200
"""Characters that are shown."""

_TAGS: Final = re.compile(
    rb"<(script|style)\b.*?(?:</\1>|$)|<!--.*?(?:-->|$)|<[^<>]*>", re.DOTALL | re.IGNORECASE
)
_TITLE: Final = re.compile(rb"<(title|h1)\b[^<>]*>([^<>]{1,1000})</\1>", re.IGNORECASE)
_WORDS: Final = ("error_description", "detail", "message", "title", "reason", "error", "errors")
"""Where services put words, the most telling first: OAuth, RFC 9457, and the usual."""


def words_of(body: bytes) -> str:
    """Return the words of a refusal's body: of its JSON, its page or its text; "" for none."""
    body = body[:MAX_BODY]
    try:
        return clipped(words_in(read_json(body, last_key_counts=True)))
    except JsonError:
        pass
    if body.lstrip()[:1] == b"<":
        title = _TITLE.search(body)
        body = _TAGS.sub(b" ", title[2] if title is not None else body)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return ""
    return clipped(" ".join(text.split()))


def words_in(content: object) -> str:
    """Return the words of a JSON value, with the code of an error in front."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return next(filter(None, map(words_in, content)), "")
    if not isinstance(content, Mapping):
        return ""
    words = next(filter(None, (words_in(content.get(name)) for name in _WORDS)), "")
    code = error_code(content)
    return words if words.startswith(code) else ": ".join(filter(None, (code, words)))


def error_code(content: Mapping[str, Any]) -> str:
    """Return the code of an error in the form of OAuth (RFC 6749, 5.2), or ""."""
    code = content.get("error")
    return code if isinstance(code, str) else ""


def clipped(words: str) -> str:
    """Return words as one line that is short enough to show."""
    return sanitize_line(words, MAX_SAID)
