"""What is imported only when it is needed: the MCP SDK (0.5 s) and google-genai (0.35 s).

Both functions block; call them in a thread. Everything else is imported as usual.
"""

from tui.engine.auth.credentials import ModelAccess
from tui.engine.chat.backends.backend import ModelBackend
from tui.engine.mcp.supervisor import Connect
from tui.engine.threads import import_alone
from tui.model.settings import GemdeckSettings


def import_connection() -> Connect:
    """Give the function that makes attempts to connect to a server."""
    import_alone("tui.engine.mcp.session.connection")
    from tui.engine.mcp.session.connection import Connection  # noqa: PLC0415

    return Connection


def open_backend(access: ModelAccess, settings: GemdeckSettings) -> ModelBackend:
    """Open the service that `access` leads to.

    Raises:
        ModelError: If it cannot be used.
    """
    import_alone("tui.engine.chat.backends.gemini")
    from tui.engine.chat.backends.gemini import create_gemini_backend  # noqa: PLC0415

    return create_gemini_backend(
        access,
        settings.model,
        api_version=settings.api_version,
        idle_timeout=settings.idle_timeout,
        thoughts=settings.thoughts,
    )
