"""Capabilities that the SDK's server offers but does not announce to older clients.

Clients of the handshake era (protocol versions up to 2025-11-25) learn from `initialize` what
a server does. `MCPServer.run("stdio")` announces there neither list changes nor logging; newer
clients are told of both in other ways and are served by the SDK alone.
"""

from collections.abc import Mapping
from typing import Any, Final

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

LIST_CHANGES: Final[Mapping[str, Mapping[str, bool]]] = {"resources": {"listChanged": True}}
"""Announces that the list of resources may change, and that the client will be told."""

LOGGING: Final[Mapping[str, Mapping[str, bool]]] = {"logging": {}}
"""Announces logging notifications."""


class HandshakeCapabilities:
    """Server middleware that adds capabilities to the answer to `initialize`.

    Where logging is among them, `logging/setLevel` is answered too: the spec asks for it of
    every server that logs, and these servers log so little that every level is sent.
    """

    def __init__(self, capabilities: Mapping[str, Mapping[str, bool]]) -> None:
        self._capabilities = capabilities

    async def __call__(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        """Handle one message."""
        if ctx.method == "logging/setLevel" and "logging" in self._capabilities:
            return {}
        result = await call_next(ctx)
        if ctx.method != "initialize" or not isinstance(result, dict):
            return result
        announced: dict[str, Any] = dict(result.get("capabilities") or {})
        for name, flags in self._capabilities.items():
            announced[name] = {**announced.get(name, {}), **flags}
        return {**result, "capabilities": announced}
