"""Which tools the model holds, and how it finds the others."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tui.engine.mcp.catalog.offer import Tool
from tui.engine.mcp.catalog.offered_tool import OfferedTool
from tui.model.servers import ServerId
from tui.model.settings_rules import DEFAULT_MAX_TOOLS, DEFAULT_TOOL_SHARE

MAX_DECLARED_BYTES: Final = 1_000_000
"""Bytes of all declarations together, however large the model's context is."""

USUAL_CONTEXT: Final = 1_048_576
"""Tokens of a context of unknown size."""

BYTES_PER_TOKEN: Final = 4
"""Bytes of a declaration that count as one token."""

MAX_FOUND: Final = 8
"""Tools that one search finds."""

MIN_SCORE: Final = 0.3
"""Share of the best score that others need to be found, too."""

MAX_QUERY: Final = 500
"""Characters of a query that count."""

_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\W\d_a-zA-Z]+")

Key = tuple[ServerId, str]
"""A server and the tool's name there."""


@dataclass(slots=True)
class Budget:
    """How many tools the model holds at most.

    Attributes:
        max_tools: Their number.
        share: What they may take of its context, in percent.
        context: The size of that, in tokens; 0 if unknown.
    """

    max_tools: int = DEFAULT_MAX_TOOLS
    share: float = DEFAULT_TOOL_SHARE
    context: int = 0

    @property
    def max_bytes(self) -> int:
        tokens = (self.context or USUAL_CONTEXT) * self.share / 100
        return min(MAX_DECLARED_BYTES, int(tokens * BYTES_PER_TOKEN))

    def words(self) -> str:
        return f"{self.max_tools:,} or {self.share:g} % of its context"


class Holding:
    """Decides which tools the model holds.

    If all fit, it holds all. If not, half of the budget is shared among the servers, and the
    other half is for what the model loads, of which the newest stay.

    Args:
        budget: Returns the budget.
    """

    def __init__(self, budget: Callable[[], Budget]) -> None:
        self._budget = budget
        self._loaded: dict[Key, None] = {}

    def load(self, keys: Iterable[Key]) -> None:
        """Let the model hold these from now on."""
        for key in keys:
            self._loaded.pop(key, None)
            self._loaded[key] = None

    def beyond(self, tools: Mapping[ServerId, Sequence[Tool]]) -> frozenset[Key]:
        """Return the tools that the model does not hold."""
        budget = self._budget()
        every = {(server, tool.name): tool for server, own in tools.items() for tool in own}
        count, size = len(every), sum(tool.size for tool in every.values())
        if count <= budget.max_tools and size <= budget.max_bytes:
            return frozenset()
        held = set(_shared(tools, budget.max_tools // 2, budget.max_bytes // 2))
        room = budget.max_bytes - sum(every[key].size for key in held)
        loaded = [key for key in reversed(self._loaded) if key in every]
        for key in loaded:
            if key not in held and len(held) < budget.max_tools and every[key].size <= room:
                held.add(key)
                room -= every[key].size
        return frozenset(every.keys() - held)


def _shared(tools: Mapping[ServerId, Sequence[Tool]], left: int, room: int) -> Iterable[Key]:
    """Share a number and a size among servers: what one with few does not need, others get."""
    fewest_first = sorted(tools.items(), key=lambda item: len(item[1]))
    for sharers, (server, own) in zip(range(len(tools), 0, -1), fewest_first, strict=True):
        share, bytes_left = left // sharers, room // sharers
        for tool in own:
            if share and tool.size <= bytes_left:
                share, left = share - 1, left - 1
                bytes_left, room = bytes_left - tool.size, room - tool.size
                yield server, tool.name


def search(query: str, tools: Sequence[OfferedTool]) -> list[OfferedTool]:
    """Return the tools that fit best to a query: words in names count most, rare words more."""
    wanted = set(_words(query[:MAX_QUERY]))
    named = [(set(_words(f"{tool.server} {tool.id} {tool.view.title}")), tool) for tool in tools]
    described = [set(_words(tool.view.description)) for tool in tools]
    frequency = Counter(
        word for (names, _), words in zip(named, described, strict=True) for word in names | words
    )

    def score(names: set[str], words: set[str]) -> float:
        return sum(
            math.log(1 + len(tools) / (1 + frequency[word])) * weight
            for word in wanted
            if (weight := 3 * (word in names) + (word in words))
        )

    scored = [
        (score(names, words) + 10 * (tool.id.casefold() in query.casefold()), tool)
        for (names, tool), words in zip(named, described, strict=True)
    ]
    scored.sort(key=lambda one: -one[0])
    least = scored[0][0] * MIN_SCORE if scored else 0
    return [tool for points, tool in scored[:MAX_FOUND] if points > 0 and points >= least]


def _words(text: str) -> Iterable[str]:
    """Return the words of a text or a name, without a plural's ``s``."""
    return (found.casefold().removesuffix("s") for found in _WORD.findall(text))
