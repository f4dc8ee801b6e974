"""The commands on the rules of tools."""

from tui.engine.approval.gate import ToolAccess
from tui.engine.bus import Publish
from tui.engine.mcp.manager import ServerManager
from tui.model.consent import GrantId, GrantView
from tui.model.events import ToolExplained
from tui.model.servers import ServerId


class RuleCommands:
    """What the user asks of the rules on tools; none of it permits anything.

    Args:
        access: Decides which tools may run.
        servers: Whose tools they are.
        publish: Takes the explanations.
    """

    def __init__(self, access: ToolAccess, servers: ServerManager, publish: Publish) -> None:
        self._access = access
        self._servers = servers
        self._publish = publish

    def grants(self) -> tuple[GrantView, ...]:
        """List all rules on tools, newest first."""
        return self._access.policy.views()

    def revoke(self, grant: GrantId) -> None:
        self._access.policy.revoke(grant)

    def review(self, server: ServerId) -> None:
        """Ask anew about the tools that a server changed."""
        self._access.review.review(server)

    def explain(self, server: ServerId, tool: str) -> None:
        """Tell how a tool stands, by its name as shown; it arrives as `ToolExplained`."""
        self._publish(ToolExplained(self._access.standing(self._servers, server, tool)))
