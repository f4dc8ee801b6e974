"""Imports the MCP SDK without the half that serves.

The SDK's client imports `mcp.server` in order to talk to a server in its own process, which gemdeck
never does. With it come starlette, uvicorn, cryptography and 150 other modules: 16 MB of memory and
a third of the time.
"""

import importlib
import sys
from types import ModuleType
from typing import Final

_SERVING: Final = (
    "mcp.server",
    "mcp.server.mcpserver",
    "mcp.server.runner",
    "mcp.server.session",
    "mcp.server.stdio",
)
"""What the client half imports of the other one."""


class _Placeholder(ModuleType):
    """Gives an empty class for whatever is imported from it."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def import_sdk(name: str) -> None:
    """Import the SDK, whose `name` is ``mcp``; its server half can still be imported later."""
    placeholders = {serving: _Placeholder(serving) for serving in _SERVING}
    sys.modules.update(placeholders)
    try:
        importlib.import_module(name)
    finally:
        for serving in placeholders:
            del sys.modules[serving]
