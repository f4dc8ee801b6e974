"""Tool calls that are no part of a turn: those of the user, and of gemdeck as a library."""

import itertools

from tui.engine.bus import Publish
from tui.engine.chat.calls import CallRunner
from tui.engine.consent.consent import TurnRecord
from tui.engine.consent.tool_access import ToolAccess
from tui.engine.mcp.catalog.offered_tool import JsonObject, ToolCallError, ToolResult
from tui.engine.mcp.manager import ServerManager
from tui.model.chat import EntryId
from tui.model.servers import ServerId


class DirectCalls:
    """Runs tools with the same consent as a call of the model.

    Args:
        servers: The servers.
        access: Decides which calls run.
        publish: Takes the entries of the calls.
    """

    def __init__(self, servers: ServerManager, access: ToolAccess, publish: Publish) -> None:
        self._servers = servers
        self._access = access
        self._publish = publish
        self._numbers = itertools.count(1)

    async def call(
        self, server: ServerId, tool: str, arguments: JsonObject, *, by_user: bool
    ) -> ToolResult:
        """Run a tool; see `Engine.call_tool`."""
        if not isinstance(arguments, dict):
            raise ToolCallError("The arguments must be an object.")
        offered = self._servers.offered_tools()
        found = next((t for t in offered if (t.server, t.view.name) == (server, tool)), None)
        confirm, entry = self._access.approval.confirm, EntryId(f"c{next(self._numbers)}")
        runner = CallRunner(self._servers, confirm, self._publish, TurnRecord())
        if found is None:
            _, held = self._servers.look_up(server, tool) or (None, None)
            if held is not None:
                runner.record_withheld(entry, held.id, arguments)
            raise ToolCallError(self._access.standing(self._servers, server, tool).words)
        return await runner.run_alone(found, arguments, entry, by_user=by_user)
