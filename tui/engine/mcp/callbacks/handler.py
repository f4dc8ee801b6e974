"""The gate for the requests of one server, and where they lead."""

import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.client import ClientRequestContext

from tui.engine.servers.facilities import Facilities
from tui.engine.servers.inbound.elicitation import Elicitor
from tui.engine.servers.inbound.sampling import Sampler
from tui.engine.servers.log import ServerLog
from tui.engine.servers.watchdog import Watchdog
from tui.engine.settings.definitions import ServerDefinition

_Result = TypeVar("_Result")
_Answer = TypeVar("_Answer")

_TOO_EARLY: Final = types.ErrorData(
    code=types.INVALID_REQUEST, message="Requests are refused before initialization"
)
_FAILED: Final = types.ErrorData(code=types.INTERNAL_ERROR, message="The request failed")

logger = logging.getLogger(__name__)


class Inbound:
    """Takes the requests of one connection, as the callbacks of `mcp.Client`.

    Nothing passes before the connection is initialised: the SDK dispatches requests from the
    first byte on. While one is answered, the calls of that server have time.

    Args:
        definition: The server.
        facilities: What it may use of us.
        log: Notes what was done for it.
        watchdog: Whose time stands still meanwhile.

    Attributes:
        elicitor: Answers elicitations.
    """

    def __init__(
        self,
        definition: ServerDefinition,
        facilities: Facilities,
        log: ServerLog,
        watchdog: Watchdog,
    ) -> None:
        self.elicitor = Elicitor(definition.id, facilities)
        self._sampler = Sampler(definition, facilities, log)
        self._facilities = facilities
        self._watchdog = watchdog
        self._scopes: set[anyio.CancelScope] = set()
        self._is_closed = False

    def close(self) -> None:
        """Withdraw every question of this connection; what comes later is refused."""
        self._is_closed = True
        for scope in self._scopes:
            scope.cancel()

    async def elicit(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """Let the user fill in a form or open an address."""
        if context.session.protocol_version is None:
            return _TOO_EARLY
        return await self._attend(lambda: self.elicitor.elicit(params), _FAILED)

    async def sample(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.CreateMessageResultWithTools | types.ErrorData:
        """Let the model generate text."""
        if context.session.protocol_version is None:
            return _TOO_EARLY
        return await self._attend(lambda: self._sampler.sample(params), _FAILED)

    async def list_roots(
        self, context: ClientRequestContext
    ) -> types.ListRootsResult | types.ErrorData:
        """Tell the server of the workspace folders."""
        if context.session.protocol_version is None:
            return _TOO_EARLY
        return types.ListRootsResult(
            roots=[
                types.Root(uri=folder.as_uri(), name=folder.name or str(folder))
                for folder in self._facilities.workspaces
            ]
        )

    async def open_required(self, error: MCPError, tool: str) -> bool:
        """Let the user open what a call needs; see `Elicitor.open_required`."""
        return await self._attend(lambda: self.elicitor.open_required(error, tool), False)

    async def _attend(
        self, work: Callable[[], Awaitable[_Result]], otherwise: _Answer
    ) -> _Result | _Answer:
        """Do what a request needs while the time of calls stands still.

        Gives `otherwise` if the connection closes meanwhile. Nothing of a fault of our own gets
        out: the SDK would send its words to the server.
        """
        if self._is_closed:
            return otherwise
        with self._watchdog.pause(), anyio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                return await work()
            except Exception:  # a broken answer must not end the connection
                logger.exception("a request of a server failed")
            finally:
                self._scopes.discard(scope)
        return otherwise
