"""Separate pasted text from keystrokes before any of it is read as a key.

A terminal puts pasted text between two markers (bracketed paste). The text may contain escape
sequences, which must neither end the paste nor count as keys.
"""

import re
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Final

from tui.model.frozen import Frozen

PASTE_START: Final = "\x1b[200~"
"""What the terminal sends before pasted text."""

PASTE_END: Final = "\x1b[201~"
"""What the terminal sends after pasted text."""

MAX_PASTE: Final = 5_000_000
"""Characters kept of one paste; the rest is dropped."""

PASTE_PATIENCE: Final = 10.0
"""Seconds of silence that end a paste without an end marker, so that keys count again."""

MIN_HELD: Final = 2
"""Characters of an incomplete start marker that are held back; Esc alone is a key and passes."""

_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|.)?")
_CONTROLS: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufdd0-\ufdef]"
)


def clean_paste(text: str) -> str:
    """Normalize line ends; drop escape sequences, control characters and noncharacters."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", _ESCAPES.sub("", lines))


class Keystrokes(Frozen):
    """Input outside a paste, unchanged."""

    text: str


class Pasted(Frozen):
    """The text of one paste, cleaned."""

    text: str


class PasteReader:
    """Split a terminal's input into keystrokes and pastes, however it is cut into reads.

    Args:
        clock: Monotonic time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._pieces: list[str] | None = None
        self._size = 0
        self._held = ""
        self._after_escape = False
        self._read_at = clock()

    def read(self, text: str) -> Iterator[Keystrokes | Pasted]:
        """Add input, and yield what is complete, in order."""
        self._read_at = self._clock()
        text, self._held = self._held + text, ""
        if self._after_escape:
            rest = PASTE_START[1:]
            if text.startswith(rest):
                # The Esc was already passed on as a key: complete that sequence as an empty paste.
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
        """Yield a paste whose end marker is overdue; called regularly."""
        if self._pieces is not None and self._clock() - self._read_at > PASTE_PATIENCE:
            self._keep(self._held)
            self._held = ""
            yield self._finish()

    def _cut(self, text: str, marker: str, least: int) -> tuple[str, bool, str]:
        """Split at a marker, and hold back what may be the start of one.

        Returns:
            The text before the marker, whether it was found, and the text after it.
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
