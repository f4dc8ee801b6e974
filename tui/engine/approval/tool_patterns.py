"""Patterns on the names of servers and tools: ``*`` within one name, always matched whole.

Permission and prohibition err to opposite sides. A pattern that allows compares characters as
they are and takes no name that a tool may not have; one that denies compares what names look
like, so that ``Read_File`` or a Cyrillic letter among Latin ones does not slip through. It holds
for each form of a tool's name: as its server spells it, as it is shown, and as the model has it.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Final

from tui.engine.mcp.catalog.tool_names import sanitize_name
from tui.model.servers import ServerId
from tui.model.settings import ToolPattern
from tui.text import INVISIBLE, LATIN_ALIKE, sanitize_line

ANY: Final = "*"
"""Stands for any characters, also none."""

_REMEMBERED: Final = 65_536
"""Names whose likeness is remembered: those of a large catalog are compared with each call."""

_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")
"""The names that the protocol allows for tools."""

_ALIKE_IN_ASCII: Final = str.maketrans("i1|0", "lllo")
"""Characters that many fonts draw alike; capitals are folded before."""

_UNSEEN: Final = dict.fromkeys((*range(0x21), 0x7F, *map(ord, INVISIBLE)))
"""Blanks, controls, and what draws nothing; they are left out."""

_UNSEEN_CATEGORIES: Final = frozenset({"Mn", "Me", "Cf", "Cc", "Zs", "Zl", "Zp"})


class AllowingPatterns:
    """Patterns of rules that allow: exact characters, and only names that a tool may have.

    None at all allow nothing.
    """

    def __init__(self, patterns: Iterable[ToolPattern] = ()) -> None:
        self.patterns = tuple(patterns)

    def match(self, server: str, tool: str) -> bool:
        return is_plain(tool) and any(
            _matches(pattern.server, server) and _matches(pattern.tool, tool)
            for pattern in self.patterns
        )


class DenyingPatterns:
    """Patterns of rules that deny: compared by what names look like.

    Those that are about a server are sorted out once, so that a long catalog is judged fast.
    """

    def __init__(self, patterns: Iterable[ToolPattern] = ()) -> None:
        self.patterns = tuple(patterns)
        self._by_server: dict[str, tuple[dict[str, ToolPattern], dict[str, ToolPattern]]] = {}

    def match(self, server: str, tool: str, given: str = "") -> ToolPattern | None:
        """Return a rule that matches a tool.

        Args:
            server: Its server.
            tool: Its name as the server spells it.
            given: Its name towards the model, where it has one already.
        """
        if not self.patterns:
            return None
        exact, wild = self._about(server)
        for name in _looks(tool, given):
            if name in exact:
                return exact[name]
            for pattern, rule in wild.items():
                if _matches(pattern, name):
                    return rule
        return None

    def _about(self, server: str) -> tuple[dict[str, ToolPattern], dict[str, ToolPattern]]:
        """Return the rules about a server by the likeness of their tools: all, those with ``*``."""
        known = self._by_server.get(server)
        if known is None:
            forms = {likeness(server), likeness(sanitize_name(server))}
            exact = {
                likeness(rule.tool): rule
                for rule in self.patterns
                if any(_matches(likeness(rule.server), form) for form in forms)
            }
            wild = {pattern: rule for pattern, rule in exact.items() if ANY in pattern}
            known = self._by_server[server] = exact, wild
        return known


def is_plain(name: str) -> bool:
    """Return whether the protocol allows a name for tools."""
    return _PLAIN_NAME.fullmatch(name) is not None


@lru_cache(maxsize=_REMEMBERED)
def likeness(name: str) -> str:
    """Reduce a name to what it looks like: equal for names that a hurried reader mixes up.

    Compatibility forms, case, marks, blanks, invisible characters and letters of other alphabets
    that look like Latin ones are folded (after Unicode TS 39; the table is far smaller).
    """
    if not name.isascii():
        folded = unicodedata.normalize("NFKC", name).casefold()
        plain = unicodedata.normalize("NFKD", folded)
        kept = (c for c in plain if unicodedata.category(c) not in _UNSEEN_CATEGORIES)
        name = "".join(kept).translate(LATIN_ALIKE)
    return name.translate(_UNSEEN).casefold().translate(_ALIKE_IN_ASCII)


@lru_cache(maxsize=_REMEMBERED)
def _looks(tool: str, given: str) -> frozenset[str]:
    """Return the likeness of each form of a tool's name."""
    forms = (tool, sanitize_line(tool), sanitize_name(tool), given or tool)
    return frozenset(map(likeness, forms))


def _matches(pattern: str, name: str) -> bool:
    """Match a whole name, in time that grows with pattern times name at most."""
    first, *others = pattern.split(ANY)
    if not others:
        return pattern == name
    *inner, last = others
    if len(name) < len(first) + len(last) or not (name.startswith(first) and name.endswith(last)):
        return False
    start, end = len(first), len(name) - len(last)
    for piece in inner:
        found = name.find(piece, start, end)
        if found < 0:
            return False
        start = found + len(piece)
    return True


_WHOLE_SERVER: Final = ".*"

Meaning = tuple[ServerId, str | None]
"""A server and the name of one of its tools, or None for all of them."""


def meanings(word: str, servers: Collection[ServerId]) -> tuple[Meaning, ...]:
    """Return all that a word of ``--allowed-tools`` can mean.

    It goes by the names of servers alone, so that it means the same whichever of them are up.

    Args:
        word: ``SERVER``, ``SERVER.*`` or ``SERVER.TOOL``; names may hold dots.
        servers: All configured servers.
    """
    wholes = sorted({word, word.removesuffix(_WHOLE_SERVER)})
    splits = ((word[:dot], word[dot + 1 :]) for dot, sign in enumerate(word) if sign == ".")
    return (
        *((ServerId(whole), None) for whole in wholes if whole in servers),
        *((ServerId(one), tool) for one, tool in splits if one in servers and is_plain(tool)),
    )


def names_tool(
    words: Iterable[str], server: ServerId, tool: str, servers: Collection[ServerId]
) -> bool:
    """Return whether one of the words can mean only this tool, or only its server."""
    found = (meanings(word, servers) for word in words)
    return any(meant in {((server, tool),), ((server, None),)} for meant in found)
