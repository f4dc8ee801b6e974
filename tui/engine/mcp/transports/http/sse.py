"""The HTTP+SSE transport of 2024-11-05: an event stream to us, a POST for each message.

The SDK's own stops sending after one failed POST and fails at an event of 1 MiB.
"""

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

import httpx2
from mcp.shared.message import SessionMessage

from tui.engine.mcp.errors import ServerError
from tui.engine.mcp.transports.http.event_stream import EVENT_STREAM, read_events
from tui.engine.mcp.transports.http.http_client import HttpClient, discard
from tui.engine.mcp.transports.http.http_errors import (
    ExchangeError,
    Outcome,
    cut_error,
    session_error,
    status_error,
)
from tui.engine.mcp.transports.jsonrpc_lines import encode, split_batch

if TYPE_CHECKING:
    from tui.engine.mcp.transports.http.dispatcher import Dispatcher

ENDPOINT_TIMEOUT: Final = 10.0
"""Seconds that a server gets to send its endpoint where it is not known to speak SSE."""

MAX_ENDPOINT: Final = 8_192
"""Longest endpoint address, in characters."""


class ServerSentEvents:
    """The channel of a server that speaks HTTP+SSE.

    Args:
        http: The client.
        dispatcher: Takes what the server sends.
    """

    def __init__(self, http: HttpClient, dispatcher: "Dispatcher") -> None:
        self._http = http
        self._dispatcher = dispatcher
        self._endpoint: asyncio.Future[httpx2.URL] = asyncio.get_running_loop().create_future()

    async def open(self, patience: float | None = None) -> None:
        """Open the stream and wait for the endpoint, at most `patience` seconds if that is given.

        Raises:
            ExchangeError: If the server has no such stream.
        """
        reading = self._dispatcher.spawn(self._read())
        try:
            async with asyncio.timeout(patience):
                await asyncio.shield(self._endpoint)
        except TimeoutError:
            reading.cancel()
            reason = f"did not say within {patience:g} s where it takes messages"
            raise ExchangeError(ServerError(reason), Outcome.NOT_EXECUTED) from None

    async def send(self, outgoing: SessionMessage) -> None:
        """Post a message; its answer comes through the stream.

        Raises:
            ExchangeError: If the server did not accept it.
        """
        headers = {"content-type": "application/json"}
        body = encode(outgoing.message)
        endpoint = await self._endpoint
        async with self._http.exchange("POST", endpoint, headers, body) as response:
            await discard(response)
            if response.status_code == 404:
                raise session_error(404)
            if response.status_code >= 300:
                raise status_error(response)

    def cancels_by_abort(self) -> bool:
        return False

    async def close(self) -> None:
        """Do nothing: closing the stream ends the session."""

    async def _read(self) -> None:
        """Read the stream, whose end ends the connection."""
        headers = {"accept": EVENT_STREAM, "cache-control": "no-store"}
        try:
            async with self._http.exchange("GET", self._http.url, headers) as response:
                if response.status_code >= 300:
                    raise status_error(response)
                async with aclosing(read_events(response, self._dispatcher.take_lines)) as events:
                    async for event in events:
                        await self._take(event, response.url)
            raise cut_error()
        except ExchangeError as fault:
            if not self._endpoint.done():
                self._endpoint.set_exception(fault)
            elif fault.is_cut:
                await self._dispatcher.end(ServerError("closed its event stream"))
            else:
                await self._dispatcher.end(fault.error)

    async def _take(self, event: httpx2.ServerSentEvent, base: httpx2.URL) -> None:
        if event.event == "endpoint":
            if not self._endpoint.done():
                self._endpoint.set_result(_resolve(event.data, base))
            return
        if event.event != "message" or not event.data:
            return
        for part in await split_batch(event.data.encode()):
            if (message := await self._dispatcher.take(part)) is not None:
                await self._dispatcher.deliver(message)


def _resolve(place: str, base: httpx2.URL) -> httpx2.URL:
    """Return the endpoint of a server, which must be within its origin."""
    try:
        address = base.join(place) if len(place) <= MAX_ENDPOINT else None
    except httpx2.InvalidURL:
        address = None
    if address is None:
        raise ExchangeError(ServerError("named an address for messages that is not valid"))
    if (address.scheme, address.host, address.port) != (base.scheme, base.host, base.port):
        raise ExchangeError(
            ServerError(
                f"wants messages to go to another origin, {address.host}, which is refused",
                "Put the address of that server into `url`, if you trust it.",
            )
        )
    return address
