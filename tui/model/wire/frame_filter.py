"""The filter of the protocol: ``method:tools/call server:git err >200ms words``."""

import re
from collections.abc import Sequence
from typing import Final

from tui.model.frozen import Frozen
from tui.model.wire.exchanges import Exchange
from tui.model.wire.frames import WireFrame

ERRORS: Final = "err"
"""The word that keeps only what went wrong."""

FIELDS: Final = ("method", "server", "target", "id", "call")
"""What can be asked for by its name."""

_WHOLE: Final = ("id", "call")
"""Of these the whole is asked for, of the others a part."""

_SLOWER: Final = re.compile(r">(\d{1,9}(?:\.\d{1,9})?)(ms|s|m)?")
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0}


class FrameFilter(Frozen):
    """What exchanges must have to be shown: all of this.

    Attributes:
        words: Words in their names, in lower case.
        named: Fields and what they hold, in lower case; one frame of the exchange has each.
        slower: Seconds that they took at least, or None; what is open is slow.
        errors: Whether something must have gone wrong.
    """

    words: Sequence[str] = ()
    named: Sequence[tuple[str, str]] = ()
    slower: float | None = None
    errors: bool = False

    def admits(self, exchange: Exchange) -> bool:
        if self.slower is not None and not exchange.waits:
            seconds = exchange.seconds
            if seconds is None or seconds < self.slower:
                return False
        if not all(word in exchange.text for word in self.words):
            return False
        if self.errors and not exchange.is_bad:
            return False
        return all(any(_has(one, *of) for one in exchange.frames) for of in self.named)


def parse_filter(text: str) -> FrameFilter:
    """Read a filter as it is typed; what is no field and no time is a word."""
    words, named, slower, errors = list[str](), list[tuple[str, str]](), None, False
    for part in text.lower().split():
        name, colon, value = part.partition(":")
        if part == ERRORS:
            errors = True
        elif colon and name in FIELDS:
            named += [(name, value)] if value else []
        elif found := _SLOWER.fullmatch(part):
            slower = float(found[1]) * _UNITS[found[2] or "ms"]
        elif part != ">":
            words.append(part)
    return FrameFilter(words, named, slower, errors)


def call_words(frame: WireFrame) -> str:
    """Name the call in the chat that a frame is for, as a filter takes it."""
    return f"{frame.conversation}/{frame.call}" if frame.call else ""


def _has(frame: WireFrame, name: str, value: str) -> bool:
    found = call_words(frame) if name == "call" else str(getattr(frame, name))
    return found.lower() == value if name in _WHOLE else value in found.lower()
