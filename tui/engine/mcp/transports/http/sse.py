"""The HTTP+SSE transport of 2024-11-05: one stream of events to us, a POST for each message.

The SDK's own stops sending for good after one failed POST and breaks at an event of 1 MiB.
"""

import asyncio
from contextlib import aclosing
from typing import Final

import httpx2
from mcp.shared.message import SessionMessage

from tui.engine.servers.failures import ServerError
from tui.engine.servers.framing import encode
from tui.engine.servers.network.channel import Inlet
from tui.engine.servers.network.client import HttpClient, discard
from tui.engine.servers.network.errors import (
    ExchangeError,
    Fate,
    cut_error,
    session_error,
    status_error,
)
from tui.engine.servers.network.events import EVENT_STREAM, read_events

ENDPOINT_TIMEOUT: Final = 10.0
"""Seconds a server gets to say where it takes messages, once its stream is open."""

MAX_ENDPOINT: Final = 8_192
"""Longest address of an endpoint, in characters."""


class ServerSentEvents:
    """The channel of a server that speaks HTTP+SSE.

    Args:
        http: How it is reached.
        inlet: Takes what the server sends.
    """

    def __init__(self, http: HttpClient, inlet: Inlet) -> None:
        self._http = http
        self._inlet = inlet
        self._endpoint: asyncio.Future[httpx2.URL] = asyncio.get_running_loop().create_future()

    async def open(self) -> None:
        """Open the stream and learn where messages go.

        Raises:
            ExchangeError: If the server offers no such stream.
        """
        reading = self._inlet.spawn(self._read())
        try:
            async with asyncio.timeout(ENDPOINT_TIMEOUT):
                await asyncio.shield(self._endpoint)
        except TimeoutError:
            reading.cancel()
            reason = f"did not say within {ENDPOINT_TIMEOUT:.0f} s where it takes messages"
            raise ExchangeError(ServerError(reason), Fate.NOT_EXECUTED) from None

    async def carry(self, outgoing: SessionMessage) -> None:
        """Post a message; what answers it comes with the stream.

        Raises:
            ExchangeError: If the server did not take it.
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
        """Tell that a server of this kind has to be told of a cancellation."""
        return False

    async def close(self) -> None:
        """Do nothing: the end of the stream is the farewell."""

    async def _read(self) -> None:
        """Read the stream; its end is that of the connection."""
        headers = {"accept": EVENT_STREAM, "cache-control": "no-store"}
        try:
            async with self._http.exchange("GET", self._http.url, headers) as response:
                if response.status_code >= 300:
                    raise status_error(response)
                async with aclosing(read_events(response, self._inlet.take_lines)) as events:
                    async for event in events:
                        await self._take(event, response.url)
            raise cut_error()
        except ExchangeError as fault:
            if not self._endpoint.done():
                self._endpoint.set_exception(fault)
            elif fault.is_cut:
                await self._inlet.end(ServerError("broke off its event stream"))
            else:
                await self._inlet.end(fault.error)

    async def _take(self, event: httpx2.ServerSentEvent, base: httpx2.URL) -> None:
        if event.event == "endpoint":
            if not self._endpoint.done():
                self._endpoint.set_result(_resolve(event.data, base))
            return
        if event.event != "message" or not event.data:
            return
        if (message := await self._inlet.take(event.data.encode())) is not None:
            await self._inlet.deliver(message)


def _resolve(place: str, base: httpx2.URL) -> httpx2.URL:
    """Give the address that a server names for messages; it must lie within its origin."""
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
