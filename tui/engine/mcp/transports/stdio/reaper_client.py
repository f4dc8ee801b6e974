"""A server under a reaper, its parent process on Linux, as asyncio shows a subprocess."""

import asyncio
import errno
import os
import signal
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Final, cast

from tui.engine.mcp.errors import ServerError
from tui.engine.mcp.transports.stdio.zygote import Zygote

START_TIMEOUT: Final = 10.0
"""Seconds that a reaper gets to start the server; usually some hundredths."""

_REAPER: Final = 3
"""The number of the socket to the reaper, after those of the server's standard streams."""

_PASSING: Final = frozenset({errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EPIPE})


class ReaperClient(asyncio.SubprocessTransport):
    """A server whose reaper ends it when this process ends.

    Args:
        protocol: Is told what asyncio tells of a subprocess.
    """

    def __init__(self, protocol: asyncio.SubprocessProtocol) -> None:
        super().__init__()
        self.protocol = protocol
        self._pipes: dict[int, asyncio.BaseTransport] = {}
        self._answered = asyncio.Event()
        self._heard = b""
        self._failure = ServerError("could not be started: its parent process failed")
        self._pid = self._reaper_pid = 0
        self._exit_code: int | None = None
        self._is_closing = False
        protocol.connection_made(self)

    async def start(
        self, zygote: Zygote, arguments: Sequence[str], environment: Mapping[str, str], folder: Path
    ) -> None:
        """Start the server. Call `close` also after an error or a cancellation.

        Raises:
            OSError: If the system refuses to make the pipes or the reaper.
            ServerError: If the system refuses to start the server.
            ValueError: If an argument contains NUL or a variable has an invalid name.
        """
        request = _request(arguments, environment, folder)
        await self._connect(zygote)
        self._send(request)
        try:
            async with asyncio.timeout(START_TIMEOUT):
                await self._answered.wait()
        except TimeoutError as error:
            zygote.close()  # it may hang; the next server gets another
            raise ServerError("could not be started: its parent process does not answer") from error
        if not self._pid:
            raise self._failure

    def get_pid(self) -> int:
        return self._pid

    def get_returncode(self) -> int | None:
        return self._exit_code

    def get_pipe_transport(self, fd: int) -> asyncio.BaseTransport | None:
        return self._pipes.get(fd)

    def terminate(self) -> None:
        """Send SIGTERM to the server's group."""
        self._send(b"T")

    def kill(self) -> None:
        """Kill the server and all that it started."""
        self._send(b"K")

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        """Close the pipes, and kill the server if it still runs."""
        self._is_closing = True
        for number, pipe in self._pipes.items():
            if number != _REAPER:
                pipe.close()
            elif self._reaper_pid:
                with suppress(ProcessLookupError):
                    os.kill(self._reaper_pid, signal.SIGKILL)  # it hangs
            else:
                self.kill()
                cast("asyncio.WriteTransport", pipe).write_eof()
        if not self._pipes:
            self.protocol.connection_lost(None)

    def abandon(self) -> None:
        """Close the socket to a reaper that does not answer; alone, it ends the server."""
        if (reaper := self._pipes.get(_REAPER)) is not None:
            cast("asyncio.WriteTransport", reaper).abort()

    def add_pipe(self, number: int, pipe: asyncio.BaseTransport) -> None:
        self._pipes[number] = pipe

    def remove_pipe(self, number: int, error: Exception | None) -> None:
        """Take note that a pipe is closed."""
        del self._pipes[number]
        if number == _REAPER:
            self._end()
        else:
            self.protocol.pipe_connection_lost(number, error)
        if self._is_closing and not self._pipes:
            self.protocol.connection_lost(None)

    def hear(self, data: bytes) -> None:
        """Take what the reaper says."""
        *lines, self._heard = (self._heard + data).split(b"\n")
        for line in lines:
            match line.split():
                case [b"started", pid, reaper_pid]:
                    self._pid, self._reaper_pid = int(pid), int(reaper_pid)
                case [b"failed", number]:
                    self._failure = start_error(int(number))
                case [b"done", exit_code]:
                    self._exit_code = int(exit_code)
            self._answered.set()

    def _end(self) -> None:
        """Take note that the reaper has ended, and with it the server."""
        self._answered.set()
        if not self._pid:
            return
        if self._exit_code is None:  # it was killed, and only the server with it
            self._exit_code = -signal.SIGKILL
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signal.SIGKILL)
        self.protocol.process_exited()

    async def _connect(self, zygote: Zygote) -> None:
        """Let the zygote fork a reaper, and connect to it and the streams of the server."""
        ours: list[FileIO | socket.socket] = []
        theirs: list[FileIO | socket.socket] = []
        try:
            for number in range(_REAPER):
                reading, writing = os.pipe()
                ends = FileIO(reading, "rb"), FileIO(writing, "wb")
                theirs.append(ends[number != 0])
                ours.append(ends[number == 0])
            for side, end in zip((ours, theirs), socket.socketpair(), strict=True):
                side.append(end)
            zygote.fork([end.fileno() for end in theirs])
            while ours:
                await self._connect_one(ours.pop(), len(ours))
        finally:
            for unused in (*ours, *theirs):
                unused.close()

    async def _connect_one(self, end: FileIO | socket.socket, number: int) -> None:
        loop = asyncio.get_running_loop()
        stream = _Stream(self, number)
        if isinstance(end, socket.socket):
            await loop.create_connection(lambda: stream, sock=end)
        elif number == 0:
            await loop.connect_write_pipe(lambda: stream, end)
        else:
            await loop.connect_read_pipe(lambda: stream, end)

    def _send(self, words: bytes) -> None:
        if (reaper := self._pipes.get(_REAPER)) is not None:
            cast("asyncio.WriteTransport", reaper).write(words)


class _Stream(asyncio.Protocol):
    """Hands on what one pipe brings."""

    def __init__(self, client: ReaperClient, number: int) -> None:
        self._client = client
        self._number = number

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._client.add_pipe(self._number, transport)

    def data_received(self, data: bytes) -> None:
        if self._number == _REAPER:
            self._client.hear(data)
        else:
            self._client.protocol.pipe_data_received(self._number, data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._client.remove_pipe(self._number, exc)

    def pause_writing(self) -> None:
        if self._number != _REAPER:
            self._client.protocol.pause_writing()

    def resume_writing(self) -> None:
        if self._number != _REAPER:
            self._client.protocol.resume_writing()


def start_error(number: int) -> ServerError:
    """Return the error for an errno of starting a server."""
    reason = f"could not be started: {os.strerror(number)}"
    return ServerError(reason, permanent=number not in _PASSING)


def _request(arguments: Sequence[str], environment: Mapping[str, str], folder: Path) -> bytes:
    """Encode what to start."""
    if any(not name or "=" in name for name in environment):
        raise ValueError("a variable has an invalid name")
    variables = (f"{name}={value}" for name, value in environment.items())
    words = (str(len(arguments)), str(folder), *arguments, *variables)
    if any("\0" in word for word in words):
        raise ValueError("an argument or a variable contains a NUL")
    body = b"\0".join(map(os.fsencode, words))
    return b"%08x%b" % (len(body), body)
