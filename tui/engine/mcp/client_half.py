"""Imports the MCP SDK without the half that serves.

The SDK's client imports `mcp.server` for servers in its own process, of which gemdeck has none.
With it come starlette, uvicorn, cryptography and 150 other modules: 16 MB and a third of the time.
Here they come with the first use, if ever: whoever has gemdeck as a library may serve as well.
"""

import importlib
import sys
from types import ModuleType
from typing import Any, Final

_SERVING: Final = (
    "mcp.server",
    "mcp.server.mcpserver",
    "mcp.server.runner",
    "mcp.server.session",
    "mcp.server.stdio",
)
"""What the client half imports of the other one."""


class _Later(type):
    """Makes classes that stand for a class or function of the same name in the real module."""

    def __call__(cls, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - whatever it takes
        return getattr(importlib.import_module(cls.__module__), cls.__name__)(*arguments, **named)

    def __instancecheck__(cls, instance: object) -> bool:
        real = getattr(sys.modules.get(cls.__module__), cls.__name__, None)
        return isinstance(real, type) and isinstance(instance, real)


class _Placeholder(ModuleType):
    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Later(name, (), {"__module__": self.__name__})


def import_sdk(name: str) -> None:
    """Import the SDK, whose `name` is ``mcp``."""
    placeholders = {serving: _Placeholder(serving) for serving in _SERVING}
    sys.modules.update(placeholders)
    try:
        importlib.import_module(name)
    finally:
        for serving in placeholders:
            del sys.modules[serving]
