"""What a refusal says, as one line that is safe to show, and how long it asks to wait."""

import codecs
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

from tui.model.bounded_json import JsonError, read_json, text_in
from tui.text import sanitize_line, without_sequences

MAX_BODY: Final = 8 * 1024
"""Bytes of a body that are looked at."""

MAX_CUT: Final = MAX_BODY // 4
"""Characters that are left out before the place where a body was cut: a secret may begin there."""

MAX_SAID: Final = 200
"""Characters that are shown."""

AMOUNT: Final = r"(\d{1,7}(?:\.\d{1,9})?)\s*(ms|[dhms])[a-z]*\s*"
"""A time as services write it in words."""

_UNITS: Final = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_TAGS: Final = re.compile(
    rb"<(script|style)\b.*?(?:</\1>|$)|<!--.*?(?:-->|$)|<[^<>]*>", re.DOTALL | re.IGNORECASE
)
_TITLE: Final = re.compile(rb"<(title|h1)\b[^<>]*>([^<>]{1,1000})</\1>", re.IGNORECASE)
_WORDS: Final = (
    *("errordescription", "detail", "message", "msg", "errormessage", "errormsg"),
    *("errorsummary", "faultstring", "title", "reason", "description", "error", "errors", "fault"),
)
"""Where services put words, in any spelling, the most telling first: OAuth, RFC 9457, the usual."""


def words_of(body: bytes, mask: Callable[[str], str] = str) -> str:
    """Return the words of a refusal's body: of its JSON, its page or its text; "" for none.

    Args:
        body: The body, or its beginning.
        mask: Masks secrets, as the body may quote the request: before its words are cut, and again
            without what is on no screen between their letters.
    """
    text = without_sequences(mask(_words(body)))
    return clipped(mask("".join(one for one in text if one.isprintable() or one.isspace())))


def _words(body: bytes) -> str:
    is_cut, body = len(body) >= MAX_BODY, body[:MAX_BODY]
    try:
        return words_in(read_json(body, last_key_counts=True))
    except JsonError:
        if body.lstrip()[:1] in {b"{", b"["}:
            return ""  # escapes may hide a secret in it
    if body.lstrip()[:1] == b"<":
        title = _TITLE.search(body)
        body = _TAGS.sub(b" ", title[2] if title is not None else body)
        is_cut = is_cut and title is None
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(body)  # it may end within a letter
    except UnicodeDecodeError:
        return ""
    return text[:-MAX_CUT] if is_cut else text


def words_in(content: object) -> str:
    """Return the words of a JSON value, with the code of an error in front."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return next(filter(None, map(words_in, content)), "")
    if not isinstance(content, Mapping):
        return ""
    plain = {re.sub("[_-]", "", name).lower(): value for name, value in content.items()}
    words = next(filter(None, (words_in(plain.get(name)) for name in _WORDS)), "")
    place, code = plain.get("loc"), error_code(content)
    if words and place and isinstance(place, list):
        words = f"{place[-1]}: {words}"
    return words if words.startswith(code) else ": ".join(filter(None, (code, words)))


def error_code(content: Mapping[str, Any]) -> str:
    """Return the code of an error in the form of OAuth (RFC 6749, 5.2), or ""."""
    return text_in(content, "error")


def clipped(words: str) -> str:
    """Return words as one line that is short enough to show."""
    return sanitize_line(words, MAX_SAID)


def wait_in(value: object) -> float | None:
    """Return the seconds that a service asks to wait; None where it says no time.

    It writes ``"34.4s"``, ``"430ms"``, ``"12h34m16s"``, ``"5 minutes"``, ``"7"`` or a date.
    """
    text = str(value or "").strip().rstrip(".").lower()
    text += "s" if text[-1:].isdecimal() else ""
    if not re.fullmatch(rf"(?:{AMOUNT}){{1,4}}", text):
        with suppress(ValueError, TypeError, IndexError, OverflowError):
            left = parsedate_to_datetime(str(value)) - datetime.now(UTC)
            return max(left.total_seconds(), 0.0)
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in re.findall(AMOUNT, text))
