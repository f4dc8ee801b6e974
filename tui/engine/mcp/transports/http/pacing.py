"""Keeps whatever a peer sends over HTTP from holding the event loop.

The HTTP library takes all that a read brings in one go: a thousand interim answers, or chunks of a
byte each. So less is read at a time the longer the last piece took, and the loop's other work gets
its turn in between. What comes before an answer is bounded, too. This module alone touches private
names of httpx2 and httpcore2.
"""

import asyncio
import math
import time
from typing import Any, Final

import httpcore2
import httpx2
from httpcore2._backends.anyio import AnyIOStream

CONNECT_TIMEOUT: Final = 10.0
"""Seconds for a server or proxy to accept a connection, or to say where it takes messages."""

MAX_HEAD: Final = 64 * 1024
"""Bytes before the body of an answer, interim answers (HTTP 1xx) included."""

LEAST_READ: Final = 512
"""Bytes that are read at a time at least."""

MOST_READ: Final = 64 * 1024
"""Bytes that are read at a time at most."""

LONG: Final = 0.001
"""Seconds after which a piece took so long that the next one is smaller."""

SHARE: Final = 8.0
"""How much longer than a piece took the loop's other work gets."""

MAX_PAUSE: Final = 0.05
"""Most seconds between two pieces."""

LEAST_PIECE: Final = 256
"""Bytes that every piece of a body counts as at least: a chunk of one byte costs as much."""


def weight(piece: bytes) -> int:
    """Return as how many bytes a piece of a body counts towards the limit of the whole."""
    return max(len(piece), LEAST_PIECE)


def pace(client: httpx2.AsyncClient) -> httpx2.AsyncClient:
    """Let a new client read no faster than the loop's other work can bear, and return it."""
    for transport in (client._transport, *client._mounts.values()):
        if isinstance(transport, httpx2.AsyncHTTPTransport):
            pool = transport._pool
            pool._network_backend = _PacedBackend()
    client.event_hooks["response"].insert(0, _end_head)
    return client


async def _end_head(response: httpx2.Response) -> None:
    stream = response.extensions.get("network_stream")
    if isinstance(stream, _PacedStream):
        stream.left = math.inf


class _PacedStream(AnyIOStream):
    """A connection, read piece by piece.

    Attributes:
        left: Bytes that may still come before the head of the answer ends.
    """

    def __init__(self, like: Any) -> None:  # noqa: ANN401 - another `AnyIOStream`
        super().__init__(like._stream)
        self.left: float = MAX_HEAD
        self._size = 8 * LEAST_READ
        self._is_more = False
        self._given = self._until = 0.0

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        if self.left <= 0:
            raise httpcore2.RemoteProtocolError("the head of the answer does not end")
        if self._is_more:
            took = (self._until or time.thread_time()) - self._given
            grown = self._size // 2 if took > LONG else self._size * 2
            self._size = min(max(grown, LEAST_READ), MOST_READ)
            await asyncio.sleep(min(SHARE * took, MAX_PAUSE) if took > LONG / 4 else 0)
        size = min(self._size, max_bytes)
        data = await super().read(size, timeout)
        self.left -= len(data)
        self._is_more, self._given, self._until = len(data) == size, time.thread_time(), 0.0
        asyncio.get_running_loop().call_soon(self._rest)
        return data

    def _rest(self) -> None:
        self._until = time.thread_time()  # whoever reads waits for something else

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        self.left = MAX_HEAD
        await super().write(buffer, timeout)

    async def start_tls(self, *arguments: Any, **named: Any) -> httpcore2.AsyncNetworkStream:  # noqa: ANN401
        return _PacedStream(await super().start_tls(*arguments, **named))


class _PacedBackend(httpcore2.AnyIOBackend):
    async def connect_tcp(self, *arguments: Any, **named: Any) -> httpcore2.AsyncNetworkStream:  # noqa: ANN401
        return _PacedStream(await super().connect_tcp(*arguments, **named))
