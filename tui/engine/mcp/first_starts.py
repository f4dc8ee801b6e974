"""Waiting, before a message goes out, for servers that start for the first time."""

from tui.engine.mcp.manager import ServerManager
from tui.model.servers import ServerId


class FirstStarts:
    """Waits for the servers that a turn would otherwise miss, each of them once.

    Args:
        servers: The servers.

    Attributes:
        patience: Seconds that one message waits.
    """

    def __init__(self, servers: ServerManager) -> None:
        self.patience = 0.0
        self._servers = servers
        self._given_up = set[ServerId]()

    async def wait(self) -> tuple[ServerId, ...]:
        """Wait at most `patience`; return the servers to go without, if not named before."""
        named = frozenset(self._given_up)
        await self._servers.wait_while(self._is_waiting, self.patience)
        missing = tuple(one for one in self._servers.waiting_for() if one not in named)
        self._given_up.update(missing)
        return missing

    def skip(self) -> None:
        """Go without the servers that are still starting."""
        self._given_up.update(self._servers.waiting_for())
        self._servers.wake()

    def _is_waiting(self) -> bool:
        return not self._given_up.issuperset(self._servers.waiting_for())
