"""What is imported only when it is needed: the MCP SDK (0.5 s) and google-genai (0.35 s).

These functions block; call them in a thread. Everything else is imported as usual.
"""

from tui.engine.auth.credentials import ModelAccess
from tui.engine.auth.sign_ins import MakeSend
from tui.engine.chat.backends.backend import ModelBackend
from tui.engine.mcp.client_half import import_sdk
from tui.engine.mcp.supervisor import Connect
from tui.engine.threads import import_alone
from tui.model.settings import GemdeckSettings


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
