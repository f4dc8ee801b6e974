"""A listener on loopback that counts who comes: it must stay alone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass
class Listener:
    """What came in; `url` is its address."""

    url: str = ""
    requests: list[bytes] = field(default_factory=list)

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Remember a connection, and close it."""
        self.requests.append(await reader.read(4_096))
        writer.close()


@asynccontextmanager
async def listening() -> AsyncIterator[Listener]:
    """Listen until the block ends."""
    listener = Listener()
    server = await asyncio.start_server(listener.take, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()
        listener.url = f"http://{host}:{port}/pixel.png"
        yield listener
