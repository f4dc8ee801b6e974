"""Consent without a screen: what the command line allows runs, all else is denied."""

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from tui.engine.tools import OfferedTool
from tui.model.chat import EntryId
from tui.model.consent import Choice, Decision
from tui.model.servers import ServerId

_WHOLE_SERVER: Final = ".*"

_Meaning = tuple[ServerId, str | None]
"""A server and one of its tools, or None for all of them."""


class HeadlessConsent:
    """Implements `Consent` from patterns.

    ``server.tool`` allows one tool, ``server`` and ``server.*`` allow all tools of a server.
    Both names may hold dots. A pattern is therefore compared, at each of its dots, with the
    pairs that exist, and whoever means two things at once allows neither.

    Args:
        allowed: The patterns. None at all allows nothing.
    """

    def __init__(self, allowed: Collection[str]) -> None:
        self._allowed = tuple(allowed)

    async def confirm(
        self,
        call: EntryId,  # noqa: ARG002 - part of the protocol
        tool: OfferedTool,
        arguments: str,  # noqa: ARG002 - part of the protocol
        offered: Sequence[OfferedTool],
    ) -> Decision:
        """Decide on one call; see `Consent.confirm`."""
        if tool.trusted:
            return Decision(Choice.ONCE)
        known = {(other.server, other.name) for other in (*offered, tool)}
        own = {(tool.server, tool.name), (tool.server, None)}
        for pattern in self._allowed:
            meanings = set(_meanings(pattern, known))
            if len(meanings) == 1 and meanings <= own:
                return Decision(Choice.ONCE)
        return Decision(
            Choice.DENY, "This run has no user to ask, and the tool is not on its list of allowed."
        )


def _meanings(pattern: str, known: set[tuple[ServerId, str]]) -> Iterator[_Meaning]:
    """Give everything among the known servers and tools that a pattern can mean."""
    servers = {server for server, _ in known}
    for whole in {pattern, pattern.removesuffix(_WHOLE_SERVER)}:
        if whole in servers:
            yield ServerId(whole), None
    for index, character in enumerate(pattern):
        pair = (ServerId(pattern[:index]), pattern[index + 1 :])
        if character == "." and pair in known:
            yield pair
