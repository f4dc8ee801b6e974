"""Changes of single resources, announced by servers of both eras."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from mcp import Client
from mcp.client.subscriptions import ResourceUpdated, Subscription

from tui.engine.servers import sdk
from tui.engine.servers.features import ServerCallError

MAX_SUBSCRIPTIONS: Final = 50
"""Resources of one connection whose changes are announced."""

FIRST_WAIT: Final = 1.0
"""Seconds until a stream of announcements that broke off is opened again; doubled each time."""

LONGEST_WAIT: Final = 60.0
"""The longest of these waits."""

logger = logging.getLogger(__name__)


class Subscriptions:
    """The subscribed resources of one connection.

    Servers of the handshake era are told by a request and answer by notifications, which reach
    the client elsewhere. Stateless ones get a stream for each resource, which is opened again
    when it breaks off; that counts as a change, since what was missed is not repeated.

    Args:
        client: The connected client.
        on_update: Takes the URI of a resource that has changed, as the server spells it.
    """

    def __init__(self, client: Client, on_update: Callable[[str], None]) -> None:
        self._client = client
        self._on_update = on_update
        self._listening: dict[str, asyncio.Task[None] | None] = {}

    async def add(self, uri: str) -> None:
        """Subscribe; a second time does nothing, even while the first one is under way.

        Raises:
            ServerCallError: If there are too many, or the server does not announce changes.
            MCPError: If the server refuses.
        """
        if uri in self._listening:
            return
        if len(self._listening) >= MAX_SUBSCRIPTIONS:
            raise ServerCallError(f"There are {MAX_SUBSCRIPTIONS} subscriptions already.")
        try:
            if sdk.is_stateless(self._client):
                await self._open_stream(uri)
            else:
                self._listening[uri] = None
                await self._client.subscribe_resource(uri)
        except BaseException:  # cancelled or refused: what is not subscribed may be so later
            task = self._listening.pop(uri, None)
            if task is not None:
                task.cancel()
                await asyncio.wait({task})
            raise

    async def remove(self, uri: str) -> None:
        """Subscribe no longer.

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
        """Let go of all streams."""
        tasks = {task for task in self._listening.values() if task is not None}
        self._listening.clear()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _open_stream(self, uri: str) -> None:
        """Begin to listen; return once the server has agreed."""
        accepted: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def give_up(_ended: "asyncio.Task[None]") -> None:
            if not accepted.done():
                accepted.set_exception(ServerCallError("It was given up meanwhile."))

        task = asyncio.create_task(self._listen(uri, accepted), name=f"listen to {uri!r}")
        task.add_done_callback(give_up)
        self._listening[uri] = task
        await accepted

    async def _listen(self, uri: str, accepted: "asyncio.Future[None]") -> None:
        """Listen for ever; only the first attempt may fail for good."""
        wait = FIRST_WAIT
        while True:
            try:
                async with self._client.listen(resource_subscriptions=[uri]) as stream:
                    if accepted.done():
                        self._on_update(uri)
                    elif _is_honoured(stream):
                        accepted.set_result(None)
                    else:
                        raise ServerCallError("The server does not announce changes of it.")
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


def _is_honoured(stream: Subscription) -> bool:
    return bool(stream.honored.resource_subscriptions)
