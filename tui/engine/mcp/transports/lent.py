"""A server that runs in an open deck, in place of a process of its own."""

import asyncio
from contextlib import suppress
from typing import Final


class LentServer:
    """A server behind a socket of an open deck; what it has of `ServerProcess` means the same.

    Its own requests are answered in the deck, and its standard error stays there.
    """

    pid: Final = 0
    exit_code: Final = None
    exited_by_itself: Final = False
    overlong: Final = b""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.exited = self.output_ended = self.errors_ended = asyncio.Event()
        self.broken = ""

    async def read_line(self) -> bytes | None:
        line = b""
        with suppress(OSError, ValueError):  # ValueError: it is too long
            line = await self._reader.readline()
        if not line.endswith(b"\n"):
            self.give_up("ended with the open gemdeck")
        return line or None

    def unfinished(self) -> bytes:
        return b""

    async def write(self, data: bytes) -> None:
        with suppress(OSError):  # its end is read
            self._writer.write(data)
            await self._writer.drain()

    async def close(self) -> None:
        self.kill()

    def kill(self) -> None:
        """Leave it to the deck."""
        self.give_up("was closed")
        self._writer.close()

    def give_up(self, reason: str) -> None:
        self.broken = self.broken or reason
        self.exited.set()
