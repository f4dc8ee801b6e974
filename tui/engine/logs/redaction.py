"""Taking secrets out of what is written: logs, the audit log, messages of errors.

What is known to be a secret is masked wherever it stands, also in the forms in which it travels;
what only looks like one is masked too.
"""

import base64
import json
import threading
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote, quote_plus

from tui.engine.settings.secrets import (
    MASK,
    MIN_SECRET,
    known_secrets,
    masked_shapes,
    secrets_in_lines,
)
from tui.text import clip, clip_middle

MAX_SECRETS: Final = 2_000
"""Secrets that are known at once; of more, the oldest are forgotten."""

MAX_REDACTED: Final = 16_000
"""Characters of a text that are kept; the middle of a longer one is left out."""

MAX_REDACTED_LINE: Final = 4_000
"""Characters of one line that are kept: the patterns for what looks like a secret need it."""

_MIN_ENCODED: Final = 8
"""Shortest piece of Base64 that is masked; shorter ones occur by chance."""


class Redactor:
    """Knows the secrets of this run. Its methods may be called from any thread."""

    def __init__(self) -> None:
        self._values: dict[str, None] = {}
        self._forms: tuple[str, ...] = ()
        self._lock = threading.Lock()

    def register(self, *values: str) -> None:
        """Mask these from now on; values shorter than `MIN_SECRET` cannot be told from words."""
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
        """Give a text without its secrets, no longer than `MAX_REDACTED` characters and a bit."""
        text = self.redact_known(text)
        text = clip_middle(text, MAX_REDACTED // 4, MAX_REDACTED * 3 // 4)
        lines = (clip(line, MAX_REDACTED_LINE) for line in text.split("\n"))
        return "\n".join(map(masked_shapes, lines))

    def redact_known(self, text: str) -> str:
        """Give a text with the registered secrets masked, in each form, and nothing else."""
        for form in self._forms:
            text = text.replace(form, MASK)
        return text


def _forms(value: str) -> Iterator[str]:
    """Give the forms in which a secret may stand in a text."""
    for form in secrets_in_lines((value, value.strip())):
        yield form
        yield quote(form, safe="")
        yield quote(form)
        yield quote_plus(form)
        yield json.dumps(form)[1:-1]
        yield json.dumps(form, ensure_ascii=False)[1:-1]
        yield repr(form)[1:-1]
        yield from _base64(form.encode("utf-8", "surrogatepass"))


def _base64(value: bytes) -> Iterator[str]:
    """Give what of a value shows in Base64, wherever it stands in what was encoded.

    Three bytes are four characters. The first and last character of a value that does not
    begin or end on such a boundary depend on its neighbours and are left out.
    """
    for before in range(3):
        first = -(-before * 8 // 6)
        last = (before + len(value)) * 8 // 6
        encoded = base64.b64encode(b"\0" * before + value).decode("ascii")[first:last]
        if len(encoded) >= _MIN_ENCODED:
            yield encoded
            yield encoded.translate(_URL_SAFE)


_URL_SAFE: Final = str.maketrans("+/", "-_")
