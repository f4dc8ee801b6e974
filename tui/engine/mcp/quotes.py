"""Finds out whether a text repeats what a server said, to tell the user whose words they are."""

from collections import Counter, deque
from collections.abc import Iterable
from typing import Final

from tui.engine.mcp.catalog.offered_tool import MediaPart, TextPart
from tui.model.servers import ServerId

MIN_QUOTE: Final = 40
"""Characters in a row that are a quotation; fewer occur by chance."""

MAX_TEXT: Final = 300_000
"""Characters of a text that are compared: more than a prompt for sampling may have."""

MAX_SAID: Final = 100_000
"""Characters that are remembered of one text."""

MAX_REMEMBERED: Final = 400_000
"""Characters that are remembered of all servers; the oldest go first."""

MAX_LOOKS: Final = MAX_TEXT // MIN_QUOTE * 2
"""Places of a text that are compared in full with the words of one server: as many as there are
blocks in it, so that no padding with lone blocks hides a quotation after it."""

MIN_SIGNS: Final = 6
"""Different characters of a block that is no mere line or padding."""

_BLOCK: Final = MIN_QUOTE // 2
"""Every quotation holds one whole block of what was said, wherever it begins."""

_Places = dict[ServerId, tuple[str, int]]
"""Where each server said a block last: other servers that repeat it hide nothing."""

_NOWHERE: Final[_Places] = {}


class Quotes:
    """Remembers what servers said lately, blanks aside. Lives on one event loop."""

    def __init__(self) -> None:
        self._said: deque[tuple[ServerId, str]] = deque()
        self._size = 0
        self._blocks: dict[str, _Places] | None = None

    def note(self, server: ServerId, parts: Iterable[TextPart | MediaPart]) -> None:
        """Remember what a server said."""
        words = _joined(
            "\n".join(part.text for part in parts if isinstance(part, TextPart)), MAX_SAID
        )
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
        blocks = self._index()
        words = _joined(text, MAX_TEXT)
        looks = Counter[ServerId]()
        found: dict[ServerId, None] = {}
        for at in range(len(words) - _BLOCK + 1):
            for server, (said, place) in blocks.get(words[at : at + _BLOCK], _NOWHERE).items():
                if server == own or server in found or looks[server] == MAX_LOOKS:
                    continue
                looks[server] += 1
                if _common(words, at, said, place):
                    found[server] = None
        return tuple(found)

    def _index(self) -> dict[str, _Places]:
        if self._blocks is None:
            self._blocks = {}
            for server, said in self._said:
                for at in range(0, len(said) - _BLOCK + 1, _BLOCK):
                    block = said[at : at + _BLOCK]
                    if len(set(block)) >= MIN_SIGNS:
                        self._blocks.setdefault(block, {})[server] = said, at
        return self._blocks


def _joined(text: str, limit: int) -> str:
    return " ".join(text[:limit].split())


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
