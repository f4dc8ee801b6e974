"""Pasted text is data: it is parted from keystrokes before any of it is read as a key.

A terminal puts what is pasted between two markers. The text may hold anything in between, above
all escape sequences, which must neither end the paste nor be taken for keys.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import monotonic
from typing import Final

PASTE_START: Final = "\x1b[200~"
"""What the terminal sends before pasted text."""

PASTE_END: Final = "\x1b[201~"
"""What the terminal sends after pasted text."""

MAX_PASTE: Final = 1_000_000
"""Characters kept of one paste; the rest up to its end is dropped."""

PASTE_PATIENCE: Final = 10.0
"""Seconds of silence after which a paste without an end has ended, so that keys count again."""

MIN_HELD: Final = 2
"""Characters of an incomplete start marker that are held back; Esc alone is a key, and passes."""

_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|.)?")
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def clean_paste(text: str) -> str:
    """Make pasted text plain data: one kind of line end, no escape or control characters."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", _ESCAPES.sub("", lines))


@dataclass(frozen=True, slots=True)
class Keystrokes:
    """Input outside a paste, as it came."""

    text: str


@dataclass(frozen=True, slots=True)
class Pasted:
    """The text of one paste, cleaned."""

    text: str


class PasteReader:
    """Parts a terminal's input into keystrokes and pastes, however it is cut into reads.

    Args:
        clock: Gives seconds that never run backwards.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._pieces: list[str] | None = None
        self._size = 0
        self._held = ""
        self._after_escape = False
        self._read_at = clock()

    def read(self, text: str) -> Iterator[Keystrokes | Pasted]:
        """Take what was read; give what it completes, in order."""
        self._read_at = self._clock()
        text, self._held = self._held + text, ""
        if self._after_escape:
            rest = PASTE_START[1:]
            if text.startswith(rest):
                # The Esc before was passed on as a key; an empty paste completes what it began.
                yield Keystrokes(rest + PASTE_END)
                self._begin()
                text = text[len(rest) :]
            elif rest.startswith(text) and len(text) >= MIN_HELD:
                self._held = text
                return
        while text:
            if self._pieces is None:
                before, marker, text = self._cut(text, PASTE_START, MIN_HELD)
                if before:
                    yield Keystrokes(before)
                    self._after_escape = before.endswith("\x1b")
                if marker:
                    self._begin()
            else:
                inside, marker, text = self._cut(text, PASTE_END, 1)
                self._keep(inside)
                if marker:
                    yield self._finish()

    def tick(self) -> Iterator[Pasted]:
        """Give a paste whose end does not come any more; called now and then."""
        if self._pieces is not None and self._clock() - self._read_at > PASTE_PATIENCE:
            self._keep(self._held)
            self._held = ""
            yield self._finish()

    def _cut(self, text: str, marker: str, least: int) -> tuple[str, bool, str]:
        """Cut at a marker, and hold back what may be the beginning of one.

        Returns:
            What stands before the marker, whether it is there, and what stands behind it.
        """
        before, found, after = text.partition(marker)
        if not found:
            lengths = range(len(marker) - 1, least - 1, -1)
            held = next((size for size in lengths if text.endswith(marker[:size])), 0)
            before, self._held = text[: len(text) - held], text[len(text) - held :]
        return before, bool(found), after

    def _begin(self) -> None:
        self._pieces, self._size, self._after_escape = [], 0, False

    def _keep(self, text: str) -> None:
        part = text[: MAX_PASTE - self._size]
        if part and self._pieces is not None:
            self._pieces.append(part)
            self._size += len(part)

    def _finish(self) -> Pasted:
        pieces, self._pieces = self._pieces or [], None
        return Pasted(clean_paste("".join(pieces)))
