"""What is imported only when it is needed: the MCP SDK (0.5 s) and google-genai (0.35 s).

These functions block; call them in a thread. Everything else is imported as usual.
"""

import importlib
import sys
from types import ModuleType
from typing import Any, Final

from tui.engine.background import import_alone
from tui.engine.chats.backends.backend import ModelBackend
from tui.engine.keys.credentials import ModelAccess
from tui.engine.mcp.supervisor import Connect
from tui.engine.sign_in.sign_ins import MakeSend
from tui.model.settings import GemdeckSettings

_PARTS: Final = ("", ".mcpserver", ".runner", ".session", ".stdio")
_SERVING: Final = tuple(f"mcp.server{part}" for part in _PARTS)
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
    """Import the MCP SDK, whose `name` is ``mcp``, without the half that serves.

    The SDK's client imports `mcp.server` for servers in its own process, of which gemdeck has none.
    With it come starlette, uvicorn, cryptography and 150 other modules: 16 MB and a third of the
    time. They come with the first use, if ever: whoever has gemdeck as a library may serve as well.
    """
    placeholders = {serving: _Placeholder(serving) for serving in _SERVING}
    sys.modules.update(placeholders)
    try:
        importlib.import_module(name)
    finally:
        for serving in placeholders:
            del sys.modules[serving]


def import_connection() -> Connect:
    """Give the function that makes attempts to connect to a server."""
    import_alone("mcp", import_sdk)
    import_alone("tui.engine.mcp.session.connection")
    from tui.engine.mcp.session.connection import Connection  # noqa: PLC0415

    return Connection


def import_auth_requests() -> MakeSend:
    """Give what makes senders of requests to authorization servers."""
    import_alone("mcp", import_sdk)
    import_alone("tui.engine.mcp.transports.http.auth_requests")
    from tui.engine.mcp.transports.http.auth_requests import make_send  # noqa: PLC0415

    return make_send


def open_backend(access: ModelAccess, settings: GemdeckSettings) -> ModelBackend:
    """Open the model that the settings name, of the service that `access` leads to.

    Raises:
        ModelError: If it cannot be used.
    """
    service = access.service
    if service is not None and service.load is not None:
        opened: ModelBackend = service.load()(settings.model.removeprefix(f"{service.name}/"))
        return opened
    if service is not None:
        from tui.engine.chats.backends.completions import CompletionsBackend  # noqa: PLC0415

        return CompletionsBackend(access, settings)
    import_alone("tui.engine.chats.backends.gemini")
    from tui.engine.chats.backends.gemini import create_gemini_backend  # noqa: PLC0415

    return create_gemini_backend(access, settings)
