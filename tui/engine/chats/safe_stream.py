"""Sanitize streamed text, wherever an escape sequence is split."""

import re
import unicodedata
from typing import Final

from tui.text import MAX_COMBINING, sanitize

MAX_HELD: Final = 4_200
"""Most characters held back; slightly more than `tui.text` allows for one escape."""

_INTRODUCER: Final = re.compile(r"[\x1b\x90\x98\x9b\x9d-\x9f]")
_COMPLETE: Final = re.compile(
    r"""
    (?:\x1b[P\]X^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]{0,4096}(?:\x07|\x1b\\|\x9c)
    | (?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]
    | \x1b[ -/]*[0-OQ-WYZ\\`-~]
    """,
    re.VERBOSE,
)
_INCOMPLETE: Final = re.compile(
    r"""
    (?:\x1b[P\]X^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]{0,4096}\x1b?
    | (?:\x1b\[|\x9b)[0-?]*[ -/]*
    | \x1b[ -/]*
    """,
    re.VERBOSE,
)
_JOINERS: Final = "\u200d\ufe0f"


class DeltaSanitizer:
    """Sanitizes a text that arrives in pieces.

    A possible start of an escape sequence is held back until the rest has arrived, so that the
    sequence is dropped whole. Joiners and combining marks are checked with the character before
    them, even if it came in an earlier piece. Every piece passes `tui.text.sanitize`, so the
    output is safe wherever the text was split.
    """

    def __init__(self) -> None:
        self._held = ""
        self._context = ""

    def feed(self, piece: str) -> str:
        """Add the next piece; return the text that can be shown now."""
        text = self._held + piece
        cut = _safe_length(text)
        if len(text) - cut > MAX_HELD:
            cut = len(text)
        self._held = text[cut:]
        return self._release(text[:cut])

    def flush(self) -> str:
        """Return the text held back; the stream has ended."""
        text, self._held = self._held, ""
        released = self._release(text)
        self._context = ""
        return released

    def _release(self, text: str) -> str:
        if not text:
            return ""
        shown = sanitize(self._context + text)[len(self._context) :]
        self._context = _last_cluster(self._context + shown)
        return shown


def _safe_length(text: str) -> int:
    """Return the length of the prefix that further text cannot change."""
    position = 0
    while found := _INTRODUCER.search(text, position):
        if complete := _COMPLETE.match(text, found.start()):
            position = complete.end()
        elif _INCOMPLETE.fullmatch(text, found.start()):
            return found.start()
        else:
            position = found.start() + 1
    end = len(text)
    if text.endswith("\r"):
        return end - 1
    while end and text[end - 1] in _JOINERS:
        end -= 1
    return end


def _last_cluster(shown: str) -> str:
    """Return the last base character with its marks, the context for the next piece."""
    start = len(shown)
    while start and len(shown) - start <= MAX_COMBINING:
        start -= 1
        character = shown[start]
        if unicodedata.category(character) not in {"Mn", "Me"}:
            cluster = shown[start:]
            return cluster if sanitize(cluster) == cluster else ""
    return ""
