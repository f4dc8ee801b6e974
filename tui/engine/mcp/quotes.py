"""Finds out whether a text repeats what a server said, to tell the user whose words they are."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

from tui.engine.mcp.catalog.offered_tool import MediaPart, TextPart
from tui.model.servers import ServerId

MIN_QUOTE: Final = 40
"""Characters in a row that are a quotation; fewer occur by chance."""

MAX_TEXT: Final = 100_000
"""Characters that are looked at of one text."""

MAX_REMEMBERED: Final = 400_000
"""Characters that are remembered of all servers; the oldest go first."""

MAX_LOOKS: Final = 2_000
"""Places of a text that are compared in full."""

MIN_SIGNS: Final = 6
"""Different characters of a block that is no mere line or padding."""

_BLOCK: Final = MIN_QUOTE // 2
"""Every quotation holds one whole block of what was said, wherever it begins."""

_Place = tuple[ServerId, str, int]


class Quotes:
    """Remembers what servers said lately, blanks aside. Lives on one event loop."""

    def __init__(self) -> None:
        self._said: deque[tuple[ServerId, str]] = deque()
        self._size = 0
        self._blocks: dict[str, _Place] | None = None

    def note(self, server: ServerId, parts: Iterable[TextPart | MediaPart]) -> None:
        """Remember what a server said."""
        words = _joined("\n".join(part.text for part in parts if isinstance(part, TextPart)))
        if len(words) < MIN_QUOTE:
            return
        self._said.append((server, words))
        self._size += len(words)
        while self._size > MAX_REMEMBERED:
            self._size -= len(self._said.popleft()[1])
        self._blocks = None

    def sources(self, text: str, own: ServerId) -> tuple[ServerId, ...]:
        """Return the servers, other than the one that asks, whose words a text repeats."""
        if all(server == own for server, _ in self._said):
            return ()
        words = _joined(text)
        found: dict[ServerId, None] = {}
        for at, (server, said, place) in self._places(words):
            if server != own and server not in found and _common(words, at, said, place):
                found[server] = None
        return tuple(found)

    def _places(self, words: str) -> Iterator[tuple[int, _Place]]:
        if self._blocks is None:
            self._blocks = {
                said[at : at + _BLOCK]: (server, said, at)
                for server, said in self._said
                for at in range(0, len(said) - _BLOCK + 1, _BLOCK)
            }
        looks = 0
        for at in range(len(words) - _BLOCK + 1):
            block = words[at : at + _BLOCK]
            place = self._blocks.get(block)
            if place is not None and len(set(block)) >= MIN_SIGNS:
                yield at, place
                looks += 1
                if looks == MAX_LOOKS:
                    return


def _joined(text: str) -> str:
    return " ".join(text[:MAX_TEXT].split())


def _common(words: str, at: int, said: str, place: int) -> bool:
    """Return whether what both have in common around a block is a quotation."""
    before = after = 0
    while before < min(at, place, _BLOCK) and words[at - before - 1] == said[place - before - 1]:
        before += 1
    rest = zip(words[at : at + MIN_QUOTE], said[place : place + MIN_QUOTE], strict=False)
    for one, other in rest:
        if one != other:
            break
        after += 1
    return before + after >= MIN_QUOTE
