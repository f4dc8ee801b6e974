"""Subscriptions to single resources, for servers of both eras."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from mcp import Client
from mcp.client.subscriptions import ResourceUpdated

from tui.engine.mcp.errors import ServerCallError
from tui.engine.mcp.session import sdk_patches

MAX_SUBSCRIPTIONS: Final = 50
"""Most subscriptions of one connection."""

FIRST_WAIT: Final = 1.0
"""Seconds before a broken stream is opened again; doubled each time."""

LONGEST_WAIT: Final = 60.0
"""The longest such wait."""

logger = logging.getLogger(__name__)


class Subscriptions:
    """The subscribed resources of one connection.

    Servers of the handshake era get a request and send notifications, which the client handles.
    For stateless servers there is a stream for each resource. A broken stream is opened again,
    which counts as a change, since missed announcements are not repeated.

    Args:
        client: The connected client.
        on_update: Called with the URI of a changed resource, as the server spells it.
    """

    def __init__(self, client: Client, on_update: Callable[[str], None]) -> None:
        self._client = client
        self._on_update = on_update
        self._listening: dict[str, asyncio.Task[None] | None] = {}

    async def add(self, uri: str) -> None:
        """Subscribe; does nothing if already subscribed or subscribing.

        Raises:
            ServerCallError: If there are too many, or the server does not announce changes.
            MCPError: If the server refuses.
        """
        if uri in self._listening:
            return
        if len(self._listening) >= MAX_SUBSCRIPTIONS:
            raise ServerCallError(f"There are {MAX_SUBSCRIPTIONS} subscriptions already.")
        try:
            if sdk_patches.is_stateless(self._client):
                await self._open_stream(uri)
            else:
                self._listening[uri] = None
                await self._client.subscribe_resource(uri)
        except BaseException:  # cancelled or refused: allow another try later
            task = self._listening.pop(uri, None)
            if task is not None:
                task.cancel()
                await asyncio.wait({task})
            raise

    async def remove(self, uri: str) -> None:
        """Unsubscribe.

        Raises:
            MCPError: If the server refuses.
        """
        if uri not in self._listening:
            return
        task = self._listening.pop(uri)
        if task is None:
            await self._client.unsubscribe_resource(uri)
        else:
            task.cancel()
            await asyncio.wait({task})

    async def aclose(self) -> None:
        """Close all streams."""
        tasks = {task for task in self._listening.values() if task is not None}
        self._listening.clear()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _open_stream(self, uri: str) -> None:
        """Start listening; return once the server has accepted."""
        accepted: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def give_up(_ended: "asyncio.Task[None]") -> None:
            if not accepted.done():
                accepted.set_exception(ServerCallError("It was cancelled meanwhile."))

        task = asyncio.create_task(self._listen(uri, accepted), name=f"listen to {uri!r}")
        task.add_done_callback(give_up)
        self._listening[uri] = task
        await accepted

    async def _listen(self, uri: str, accepted: "asyncio.Future[None]") -> None:
        """Listen until cancelled; only the first attempt can fail."""
        wait = FIRST_WAIT
        while True:
            try:
                async with self._client.listen(resource_subscriptions=[uri]) as stream:
                    if accepted.done():
                        self._on_update(uri)
                    elif stream.honored.resource_subscriptions:
                        accepted.set_result(None)
                    else:
                        raise ServerCallError("The server does not report changes to it.")
                    wait = FIRST_WAIT
                    async for event in stream:
                        if isinstance(event, ResourceUpdated):
                            self._on_update(event.uri)
            except Exception as error:  # whatever ends the stream, it is opened again
                if not accepted.done():
                    accepted.set_exception(error)
                    return
                logger.debug("a subscription broke off", exc_info=error)
            await asyncio.sleep(wait)
            wait = min(wait * 2, LONGEST_WAIT)
