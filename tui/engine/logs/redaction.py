"""Mask secrets in logs, the audit log and error messages.

Known secrets are masked in all their encodings; text that looks like a secret is masked too.
"""

import base64
import json
import threading
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote, quote_plus

from tui.engine.logs.secret_names import (
    MASK,
    MIN_SECRET,
    known_secrets,
    masked_shapes,
    secrets_in_lines,
)
from tui.text import clip, clip_middle

MAX_SECRETS: Final = 2_000
"""Most registered secrets; beyond that the oldest are dropped."""

MAX_REDACTED: Final = 16_000
"""Longest text kept, in characters; the middle of a longer one is cut out."""

MAX_REDACTED_LINE: Final = 4_000
"""Longest line kept, in characters; the patterns are not linear."""

_MIN_ENCODED: Final = 8
"""Shortest Base64 fragment that is masked; shorter ones occur by chance."""


class Redactor:
    """Masks the secrets of this run. Methods may be called from any thread."""

    def __init__(self) -> None:
        self._values: dict[str, None] = {}
        self._forms: tuple[str, ...] = ()
        self._lock = threading.Lock()

    def register(self, *values: str) -> None:
        """Mask these values from now on; those shorter than `MIN_SECRET` are ignored."""
        with self._lock:
            new = [value for value in values if len(value.strip()) >= MIN_SECRET]
            if all(value in self._values for value in new):
                return
            self._values |= dict.fromkeys(new)
            while len(self._values) > MAX_SECRETS:
                del self._values[next(iter(self._values))]
            self._forms = tuple(
                known_secrets(form for value in self._values for form in _forms(value))
            )

    def redact(self, text: str) -> str:
        """Return a text with secrets masked, clipped to about `MAX_REDACTED` characters."""
        text = self.redact_known(text)
        text = clip_middle(text, MAX_REDACTED // 4, MAX_REDACTED * 3 // 4)
        lines = (clip(line, MAX_REDACTED_LINE) for line in text.split("\n"))
        return "\n".join(map(masked_shapes, lines))

    def redact_known(self, text: str) -> str:
        """Return a text with only the registered secrets masked, in all their encodings."""
        for form in self._forms:
            text = text.replace(form, MASK)
        return text

    def settled(self, text: str) -> int:
        """Return how many characters of a text that still grows begin no registered secret."""
        end = len(text)
        for form in self._forms:
            start = text.find(form[0], max(0, len(text) - len(form) + 1), end)
            while start >= 0 and not form.startswith(text[start:]):
                start = text.find(form[0], start + 1, end)
            end = end if start < 0 else start
        return end


def _forms(value: str) -> Iterator[str]:
    """Return the encodings in which a secret may appear."""
    for form in secrets_in_lines((value, value.strip())):
        yield form
        encoded = _bytes(form)
        yield quote(encoded, safe="")
        yield quote(encoded)
        yield quote_plus(encoded)
        yield json.dumps(form)[1:-1]
        yield json.dumps(form, ensure_ascii=False)[1:-1]
        yield repr(form)[1:-1]
        yield from _base64(encoded)


def _bytes(value: str) -> bytes:
    """Encode a value; what the environment holds need not be UTF-8."""
    try:
        return value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half a surrogate pair of another origin
        return value.encode("utf-8", "surrogatepass")


def _base64(value: bytes) -> Iterator[str]:
    """Return the Base64 characters of a value at each possible offset.

    Three bytes become four characters. Characters that also depend on neighboring bytes are
    left out.
    """
    for before in range(3):
        first = -(-before * 8 // 6)
        last = (before + len(value)) * 8 // 6
        encoded = base64.b64encode(b"\0" * before + value).decode("ascii")[first:last]
        if len(encoded) >= _MIN_ENCODED:
            yield encoded
            yield encoded.translate(_URL_SAFE)


_URL_SAFE: Final = str.maketrans("+/", "-_")
