"""Loads what speaks MCP when the first server needs it: importing the SDK takes half a second."""

import asyncio
import importlib
from typing import Final, cast

from tui.engine.servers.live import Connect

_MODULE: Final = "tui.engine.servers.connection"


class ConnectLoader:
    """Gives the function that makes attempts to connect.

    Args:
        connect: That function; None for the real one, which is imported in a thread.
    """

    def __init__(self, connect: Connect | None = None) -> None:
        self._connect = connect
        self._loading: asyncio.Task[Connect] | None = None

    async def load(self) -> Connect:
        """Give the function; whoever asks meanwhile waits for the same import."""
        if self._connect is not None:
            return self._connect
        if self._loading is None:
            self._loading = asyncio.create_task(_import_connect(), name="import the MCP SDK")
        return await asyncio.shield(self._loading)

    def cancel(self) -> None:
        """Wait for the import no longer."""
        if self._loading is not None:
            self._loading.cancel()


async def _import_connect() -> Connect:
    module = await asyncio.to_thread(importlib.import_module, _MODULE)
    return cast("Connect", module.Connection)
