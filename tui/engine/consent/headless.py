"""Consent without a screen: what rules and the command line allow runs, all else is denied."""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from tui.engine.consent.protocol import Answer, Inquiry
from tui.engine.consent.rules.policy import Policy
from tui.engine.tools import OfferedTool
from tui.model.consent import Effect
from tui.model.servers import ServerId

_WHOLE_SERVER: Final = ".*"

_FORBIDDEN: Final = "A rule of the user forbids this tool."
_NOBODY: Final = "This run has no user to ask, and the tool is not on its list of allowed."

_Pair = tuple[ServerId, str]
"""A server and the name of one of its tools."""

_Meaning = tuple[ServerId, str | None]
"""A server and one of its tools, or None for all of them."""


class HeadlessConsent:
    """Implements `Consent` from rules, and from patterns of the command line.

    ``server.tool`` allows one tool, ``server`` and ``server.*`` allow all tools of a server.
    Both names may hold dots. A pattern is therefore compared, at each of its dots, with the
    pairs that exist, and whoever means two things at once allows neither. What a rule denies
    stays denied, and what a rule says to ask about is, too: nobody is there to ask.

    Args:
        allowed: The patterns. None at all allows nothing.
        policy: The rules; without one there are none.
    """

    def __init__(self, allowed: Collection[str], policy: Policy | None = None) -> None:
        self.policy = policy or Policy()
        self._allowed = tuple(allowed)

    async def confirm(self, inquiry: Inquiry) -> Answer:
        """Decide on one call; see `Consent.confirm`."""
        await self.policy.refresh()
        verdict = self.policy.judge(inquiry.tool, inquiry.arguments)
        if verdict.effect is Effect.DENY:
            return Answer(allows=False, source=verdict.source, note=_FORBIDDEN)
        if verdict.effect is Effect.ALLOW:
            self.policy.used(verdict)
            return Answer(allows=True, source=verdict.source)
        if verdict.grant is None and self._is_named(inquiry):  # else a rule says to ask
            return Answer(allows=True, source="--allowed-tools")
        return Answer(allows=False, source="nobody to ask", note=_NOBODY)

    def unmatched(self, offered: Iterable[OfferedTool]) -> tuple[str, ...]:
        """Name the patterns that allow nothing among these tools: a typing error, or unclear."""
        known = _pairs(offered)
        return tuple(p for p in self._allowed if len(set(_meanings(p, known))) != 1)

    def _is_named(self, inquiry: Inquiry) -> bool:
        tool = inquiry.tool
        known = _pairs((*inquiry.offered, tool))
        own = {(tool.server, tool.name), (tool.server, None)}
        for pattern in self._allowed:
            meanings = set(_meanings(pattern, known))
            if len(meanings) == 1 and meanings <= own:
                return True
        return False


def _pairs(tools: Iterable[OfferedTool]) -> set[_Pair]:
    return {(tool.server, tool.name) for tool in tools}


def _meanings(pattern: str, known: set[_Pair]) -> Iterator[_Meaning]:
    """Give everything among the known servers and tools that a pattern can mean."""
    servers = {server for server, _ in known}
    for whole in {pattern, pattern.removesuffix(_WHOLE_SERVER)}:
        if whole in servers:
            yield ServerId(whole), None
    for index, character in enumerate(pattern):
        pair = (ServerId(pattern[:index]), pattern[index + 1 :])
        if character == "." and pair in known:
            yield pair
