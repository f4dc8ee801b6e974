"""Long pastes, each of which one character stands for in the composer.

Textual lays a text out again for each key, in time that grows with its length. The characters are
Unicode's noncharacters, which are for a program's own use and occur in no text.
"""

from collections.abc import Iterator
from itertools import cycle
from typing import Final

FIRST: Final = 0xFDD0
COUNT: Final = 32
"""The noncharacters U+FDD0 to U+FDEF."""

SHOWN: Final = "▤"
"""What is drawn for a folded text; one cell wide, as a noncharacter is."""

FOLD_AT: Final = 4_000
"""Characters in the composer beyond which a paste is folded."""

MIN_FOLD: Final = 100
"""Shortest paste that is folded."""


class Folds:
    """Texts and the characters that stand for them."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._characters: Iterator[str] = cycle(chr(FIRST + number) for number in range(COUNT))

    def fold(self, text: str, kept: str) -> str:
        """Return a character for a text, or the text itself if none is left.

        Args:
            text: The text.
            kept: The characters whose texts are still needed are in this one.
        """
        free = (next(self._characters) for _ in range(COUNT))
        character = next((one for one in free if one not in kept), None)
        if character is None:
            return text
        self._texts[character] = text
        return character

    def unfold(self, text: str) -> str:
        """Return a text with all that its characters stand for."""
        for character in self._texts.keys() & set(text):
            text = text.replace(character, self._texts[character])
        return text

    def drawn(self, line: str) -> str:
        """Return a line as it is drawn, with as many characters."""
        return line.translate(_DRAWN)


_DRAWN: Final = dict.fromkeys(range(FIRST, FIRST + COUNT), SHOWN)
