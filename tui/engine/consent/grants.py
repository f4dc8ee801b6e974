"""What the user allowed for this session: records that are compared whole, never joined names."""

from collections.abc import Iterable
from dataclasses import dataclass

from tui.engine.tools import OfferedTool
from tui.model.servers import ServerId


@dataclass(frozen=True, slots=True)
class Grant:
    """One tool of one server may run in the definition that the user saw.

    Attributes:
        server: The server.
        tool: The tool's name as the server spells it.
        definition_hash: The hash of the tool's definition.
    """

    server: ServerId
    tool: str
    definition_hash: str

    @classmethod
    def of(cls, tool: OfferedTool) -> "Grant":
        """Give the grant that covers a tool in its present definition and nothing else."""
        return cls(tool.server, tool.name, tool.definition_hash)


class SessionGrants:
    """The grants of this run, in memory.

    "Always this server" is kept as one grant for each tool as it was offered, so a tool that
    the server changes or adds later asks again.
    """

    def __init__(self) -> None:
        self._grants: set[Grant] = set()

    def allow(self, tools: Iterable[OfferedTool]) -> None:
        """Let these tools run in the definitions given."""
        self._grants.update(Grant.of(tool) for tool in tools)

    def covers(self, tool: OfferedTool) -> bool:
        """Tell whether a tool may run unasked in the definition given."""
        return Grant.of(tool) in self._grants
