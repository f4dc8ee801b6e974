"""Calls of tools outside the conversation, by the user or a program."""

from tui.engine.approval.consent import TurnRecord
from tui.engine.approval.tool_access import ToolAccess
from tui.engine.bus import Publish
from tui.engine.chats.calls import CallRunner
from tui.engine.mcp.catalog.offered_tool import JsonObject, ToolCallError, ToolResult
from tui.engine.mcp.manager import ServerManager
from tui.model.chat import ConversationId, EntryId
from tui.model.frozen import dataclass
from tui.model.servers import ServerId


@dataclass(frozen=True, slots=True)
class DirectCaller:
    """Runs single calls with the consent that calls of the model need.

    Attributes:
        servers: The servers.
        access: Decides.
        publish: Takes the events of a conversation.
        conversation: Its id.
    """

    servers: ServerManager
    access: ToolAccess
    publish: Publish
    conversation: ConversationId

    async def call(
        self,
        server: ServerId,
        tool: str,
        arguments: JsonObject,
        entry: EntryId,
        *,
        by_user: bool,
    ) -> ToolResult:
        """Run a tool, by its name as shown; see `Engine.call_tool`."""
        if not isinstance(arguments, dict):
            raise ToolCallError("The arguments must be an object.")
        offered = self.servers.offered_tools()
        found = next((t for t in offered if (t.server, t.view.name) == (server, tool)), None)
        turn = TurnRecord(conversation=self.conversation)
        runner = CallRunner(self.servers, self.access.gate, self.publish, turn)
        if found is None:
            _, held = self.servers.registry.look_up(server, tool) or (None, None)
            if held is not None:
                runner.record_withheld(entry, held.id, arguments)
            raise ToolCallError(self.access.standing(self.servers, server, tool).words)
        return await runner.run_alone(found, arguments, entry, by_user=by_user)
