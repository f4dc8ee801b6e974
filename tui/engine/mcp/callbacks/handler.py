"""Requests from one server, as callbacks of `mcp.Client`."""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeVar

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.client import ClientRequestContext

from tui.engine.definitions.definition import ServerDefinition
from tui.engine.mcp.callbacks.elicitation import Elicitation
from tui.engine.mcp.callbacks.sampling import Sampling
from tui.engine.mcp.context import ClientContext
from tui.engine.mcp.server_log import ServerLog
from tui.engine.mcp.session.call_timeout import CallTimeout
from tui.model.chat import Severity

_Result = TypeVar("_Result")
_Answer = TypeVar("_Answer")

_TOO_EARLY: Final = types.ErrorData(
    code=types.INVALID_REQUEST, message="Requests are refused before initialization"
)
_FAILED: Final = types.ErrorData(code=types.INTERNAL_ERROR, message="The request failed")

logger = logging.getLogger(__name__)


class RequestHandler:
    """Answers the requests of one connection.

    Requests before initialization are refused, as the SDK dispatches them from the first byte on.
    While one is answered, the timeout of that server's calls is paused.

    Args:
        definition: The server.
        context: What all connections share.
        log: Takes remarks.
        call_timeout: The timeout to pause.

    Attributes:
        elicitation: Answers elicitations.
    """

    def __init__(
        self,
        definition: ServerDefinition,
        context: ClientContext,
        log: ServerLog,
        call_timeout: CallTimeout,
    ) -> None:
        self.elicitation = Elicitation(definition.id, context)
        self._sampling = Sampling(definition, context, log)
        self._context = context
        self._call_timeout = call_timeout
        self._scopes: set[anyio.CancelScope] = set()
        self._is_closed = False
        context.desk.remarks[definition.id] = partial(log.add, "gemdeck", Severity.WARNING)

    def close(self) -> None:
        """Withdraw all questions of this connection and refuse later requests."""
        self._is_closed = True
        for scope in self._scopes:
            scope.cancel()

    async def elicit(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """Ask the user to fill in a form or open an address."""
        if context.session.protocol_version is None:
            return _TOO_EARLY
        return await self._attend(lambda: self.elicitation.elicit(params), _FAILED)

    async def sample(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.CreateMessageResultWithTools | types.ErrorData:
        if context.session.protocol_version is None:
            return _TOO_EARLY
        return await self._attend(lambda: self._sampling.sample(params), _FAILED)

    async def list_roots(
        self, context: ClientRequestContext
    ) -> types.ListRootsResult | types.ErrorData:
        """Return the workspace folders."""
        if context.session.protocol_version is None:
            return _TOO_EARLY
        folders = self._context.workspaces
        return types.ListRootsResult(
            roots=[types.Root(uri=f.as_uri(), name=f.name or str(f)) for f in folders]
        )

    async def open_required(self, error: MCPError, tool: str) -> bool:
        return await self._attend(lambda: self.elicitation.open_required(error, tool), False)

    async def _attend(
        self, work: Callable[[], Awaitable[_Result]], otherwise: _Answer
    ) -> _Result | _Answer:
        """Do some work with the call timeout paused; return `otherwise` if that fails.

        It fails if the connection closes. Our own errors must not get out either: the SDK would
        send their text to the server.
        """
        if self._is_closed:
            return otherwise
        with self._call_timeout.pause(), anyio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                return await work()
            except Exception:  # a broken answer must not end the connection
                logger.exception("a request of a server failed")
            finally:
                self._scopes.discard(scope)
        return otherwise
