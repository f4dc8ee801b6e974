"""One server process: its pipes, its end, and the steps to end it.

The process leads its own session and process group, so that the terminal's keys do not reach it
and its children can be ended with it. On Linux it runs under a reaper, which also ends children
that left the group, and the server if gemdeck is killed; elsewhere those survive.
"""

import asyncio
import errno
import os
import signal
import socket
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Final, cast

from tui.engine.background import wait_within
from tui.engine.mcp.errors import ServerError
from tui.engine.mcp.transports.stdio.zygote import Zygote
from tui.model.frozen import Frozen

STDERR_BURST: Final = 512 * 1024
"""Bytes of standard error that are read at once."""

STDERR_RATE: Final = 20 * STDERR_BURST
"""Bytes of standard error that are read a second."""

MAX_MESSAGE_BYTES: Final = 16 * 1024 * 1024
"""Longest line of standard output, in bytes."""

MAX_STDERR_LINE_BYTES: Final = 8 * 1024
"""Longest line of standard error, in bytes; the rest of the line is dropped."""

OVERLONG_KEPT: Final = 1024
"""Bytes that are kept of a longer one."""

MAX_QUEUED_BYTES: Final = 4 * 1024 * 1024
"""Bytes of queued output at which reading pauses."""

LINE_OVERHEAD: Final = 64
"""Bytes that each line counts for in addition to its length."""

WRITE_TIMEOUT: Final = 30.0
"""Seconds that a server may leave its standard input unread while messages wait."""

EXIT_DRAIN: Final = 0.3
"""Seconds to drain the pipes of a dead process, which a surviving child may hold open."""

EOF_GRACE: Final = 1.0
"""Seconds that a server gets to exit after its standard input was closed, or it closed a pipe."""

TERMINATE_GRACE: Final = 1.0
"""Seconds that its group gets after SIGTERM."""

KILL_GRACE: Final = 0.5
"""Seconds to notice the end of a killed process."""

START_TIMEOUT: Final = 10.0
"""Seconds that a reaper gets to start the server; usually some hundredths."""

_REAPER: Final = 3
"""The number of the socket to the reaper, after those of the server's standard streams."""

_PASSING: Final = frozenset({errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EPIPE})


class LineTooLongError(Exception):
    """A line exceeds its limit."""


class LineSplitter:
    """Splits chunks of bytes into lines.

    The pieces of an unfinished line are joined once at its end, so that a line of many chunks
    takes linear time.

    Args:
        limit: Longest line in bytes, without its newline.
        cut: Whether to cut longer lines; otherwise they are an error.
    """

    def __init__(self, limit: int, *, cut: bool = False) -> None:
        self._limit, self._cut = limit, cut
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Add a chunk; return the lines that it completes, without newlines.

        Raises:
            LineTooLongError: If a line exceeds the limit and must not be cut.
        """
        if b"\n" not in data:
            self._keep(data)
            return []
        first, *complete, rest = data.split(b"\n")
        self._keep(first)
        lines = [self.finish()]
        lines += complete if len(data) <= self._limit else map(self._fit, complete)
        self._keep(rest)
        return lines

    def _keep(self, piece: bytes) -> None:
        if piece := self._fit(piece, self._limit - self._size):
            self._pieces.append(piece)
            self._size += len(piece)

    def _fit(self, piece: bytes, room: int | None = None) -> bytes:
        """Cut a piece to the given room, by default that of a whole line."""
        room = self._limit if room is None else room
        if len(piece) > room and not self._cut:
            raise LineTooLongError
        return piece[:room]

    def finish(self) -> bytes:
        """Return the unfinished line, and begin anew."""
        line = b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        return line


class StderrQuota:
    """The rate limit of one pipe.

    Args:
        pause: Stops reading.
        resume: Continues reading.
    """

    def __init__(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        self._pause, self._resume = pause, resume
        self._left = float(STDERR_BURST)
        self._counted_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def spend(self, size: int) -> None:
        """Count bytes that were read, and stop until they may have been."""
        loop = asyncio.get_running_loop()
        grown = self._left + (loop.time() - self._counted_at) * STDERR_RATE
        self._left, self._counted_at = min(STDERR_BURST, grown) - size, loop.time()
        if self._left < 0:
            self.stop()
            self._pause()
            self._timer = loop.call_later(-self._left / STDERR_RATE, self._resume)

    def stop(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()


class Invocation(Frozen):
    """What to start: arguments with a resolved program, the complete environment, a folder.

    Attributes:
        arguments: The program and its arguments.
        environment: All variables.
        folder: The working folder.
        place: Its device and inode, as ``DEVICE:INODE``; in another folder that has come to its
            place nothing starts. Not held where there is no reaper.
    """

    arguments: Sequence[str]
    environment: Mapping[str, str]
    folder: Path
    place: str = ""


class ServerProcess(asyncio.SubprocessProtocol):
    """A started server process.

    Args:
        on_stderr: Takes complete raw lines of standard error.

    Attributes:
        exited: Set when the process has ended; `exit_code` is known then.
        exited_by_itself: Whether it ended before we wanted it to.
        output_ended: Set when standard output has ended.
        errors_ended: Set when standard error has ended.
        broken: Why the process is unusable although it may still run, or empty.
        overlong: The beginning of a line that was too long, or empty.
    """

    def __init__(self, on_stderr: Callable[[list[bytes]], None]) -> None:
        self._on_stderr = on_stderr
        self._transport: asyncio.SubprocessTransport | None = None
        self._output = LineSplitter(MAX_MESSAGE_BYTES)
        self._errors = LineSplitter(MAX_STDERR_LINE_BYTES, cut=True)
        self._lines: deque[bytes] = deque()
        self._queued_bytes = 0
        self._stderr_quota = StderrQuota(
            lambda: self._pause_reading(2), lambda: self._resume_reading(2)
        )
        self._arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._closed = asyncio.Event()
        self._closing: asyncio.Task[None] | None = None
        self.exited = asyncio.Event()
        self.output_ended = asyncio.Event()
        self.errors_ended = asyncio.Event()
        self.exited_by_itself = self._is_ending = False
        self.broken = ""
        self.overlong = b""

    @classmethod
    async def start(
        cls, invocation: Invocation, on_stderr: Callable[[list[bytes]], None], zygote: Zygote
    ) -> "ServerProcess":
        """Start a process, under a reaper if available.

        Raises:
            ServerError: If the system refuses to start it.
        """
        try:
            if zygote.is_available():
                process = cls(on_stderr)
                server = ReaperClient(process)
                try:
                    await server.start(zygote, invocation)
                except BaseException:
                    await process._drop()
                    raise
                return process
            _, process = await asyncio.get_running_loop().subprocess_exec(
                lambda: cls(on_stderr),
                *invocation.arguments,
                env=dict(invocation.environment),
                cwd=invocation.folder,
                start_new_session=True,
            )
        except OSError as error:
            raise start_error(error.errno or errno.EIO) from error
        except ValueError as error:
            raise ServerError(f"could not be started: {error}", permanent=True) from error
        return process

    @property
    def pid(self) -> int:
        return self._process().get_pid()

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; None while the process runs."""
        return self._process().get_returncode()

    async def read_line(self) -> bytes | None:
        """Return the next line of standard output, or None at its end."""
        while not self._lines:
            if self.output_ended.is_set():
                return None
            self._arrived.clear()
            await self._arrived.wait()
        line = self._lines.popleft()
        self._queued_bytes -= len(line) + LINE_OVERHEAD
        if self._queued_bytes < MAX_QUEUED_BYTES:
            self._resume_reading(1)
        return line

    def unfinished(self) -> bytes:
        """Take what standard output has after its last line."""
        return self._output.finish()

    async def write(self, data: bytes) -> None:
        """Write to standard input.

        Raises:
            ServerError: If it is closed, or the server leaves it unread.
        """
        pipe = self._input()
        if pipe is None or pipe.is_closing():
            raise ServerError("closed its standard input")
        pipe.write(data)
        if not await wait_within(self._writable, WRITE_TIMEOUT):
            raise ServerError(f"did not read its standard input for {WRITE_TIMEOUT:.0f} s")

    def end_input(self) -> None:
        if (pipe := self._input()) is not None:
            pipe.close()

    async def close(self) -> None:
        """End the process and its group: end of input, then SIGTERM, then SIGKILL.

        Takes at most the three graces. A cancellation takes effect afterwards, so that no process
        is left behind.
        """
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name="close server process")
        await _finish(self._closing)

    def give_up(self, reason: str) -> None:
        """Stop reading output; `reason` says why in one line."""
        self.broken = self.broken or reason
        self._end_output()

    def kill(self) -> None:
        """Kill the group at once."""
        self._is_ending = True
        if not self.exited.is_set():
            self._signal_group(signal.SIGKILL)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        """Handle output (asyncio calls this)."""
        if isinstance(data, str):
            return
        if fd == 1:
            self._take_output(data)
            return
        if lines := self._errors.feed(data):
            self._on_stderr(lines)
        self._stderr_quota.spend(len(data) + LINE_OVERHEAD * len(lines))

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002
        """Handle the end of a pipe (asyncio calls this)."""
        (self._writable.set, self._end_output, self._end_errors)[fd]()

    def process_exited(self) -> None:
        """Handle the end of the process and end its group (asyncio calls this)."""
        if not isinstance(self._transport, ReaperClient):
            self._signal_directly(signal.SIGKILL)
        self.exited_by_itself = not self._is_ending
        self.exited.set()
        loop = asyncio.get_running_loop()
        loop.call_later(EXIT_DRAIN, self._end_output)
        loop.call_later(EXIT_DRAIN, self._end_errors)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._closed.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def _take_output(self, data: bytes) -> None:
        if self.broken:
            return
        try:
            lines = self._output.feed(data)
        except LineTooLongError:
            self.overlong = (self._output.finish() or data)[:OVERLONG_KEPT]
            self.give_up(f"sent a message larger than {MAX_MESSAGE_BYTES // 1024 // 1024} MiB")
            return
        if not lines:
            return
        self._lines.extend(lines)
        self._queued_bytes += sum(map(len, lines)) + LINE_OVERHEAD * len(lines)
        self._arrived.set()
        if self._queued_bytes >= MAX_QUEUED_BYTES:
            self._pause_reading(1)

    def _end_output(self) -> None:
        self.output_ended.set()
        self._arrived.set()

    def _end_errors(self) -> None:
        if not self.errors_ended.is_set():
            self.errors_ended.set()
            self._stderr_quota.stop()
            if rest := self._errors.finish():
                self._on_stderr([rest])

    async def _close(self) -> None:
        if self.output_ended.is_set():  # its end may not have been noticed yet
            await wait_within(self.exited, EXIT_DRAIN if self.broken else EOF_GRACE)
        else:
            self.give_up("was closed")
        self._is_ending = True
        self._lines.clear()  # a server that is busy writing must be able to exit
        self._queued_bytes = 0
        self._resume_reading(1)
        if (pipe := self._input()) is not None:
            pipe.close()
        if not await wait_within(self.exited, EOF_GRACE):
            self._signal_group(signal.SIGTERM)
            if not await wait_within(self.exited, TERMINATE_GRACE):
                self._signal_group(signal.SIGKILL)
                await wait_within(self.exited, KILL_GRACE)
        await wait_within(self.errors_ended, EXIT_DRAIN)
        if pipe is not None and pipe.get_write_buffer_size() > 0:
            pipe.abort()
        await self._drop()

    async def _drop(self) -> None:
        """Close the pipes, and the socket to a reaper that does not answer."""
        self._process().close()
        try:
            await wait_within(self._closed, KILL_GRACE)
        finally:
            if isinstance(self._transport, ReaperClient):
                self._transport.abandon()

    def _signal_group(self, number: int) -> None:
        """Send SIGTERM or SIGKILL to the group, if it still exists."""
        if not isinstance(self._transport, ReaperClient):
            self._signal_directly(number)
        elif number == signal.SIGKILL:
            self._transport.kill()
        else:
            self._transport.terminate()

    def _signal_directly(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _pause_reading(self, fd: int) -> None:
        if (pipe := self._process().get_pipe_transport(fd)) is not None:
            cast("asyncio.ReadTransport", pipe).pause_reading()

    def _resume_reading(self, fd: int) -> None:
        if (pipe := self._process().get_pipe_transport(fd)) is not None:
            cast("asyncio.ReadTransport", pipe).resume_reading()

    def _input(self) -> asyncio.WriteTransport | None:
        return cast("asyncio.WriteTransport | None", self._process().get_pipe_transport(0))

    def _process(self) -> asyncio.SubprocessTransport:
        if self._transport is None:
            raise RuntimeError("the process has not been started")
        return self._transport


async def _finish(task: asyncio.Task[None]) -> None:
    """Wait for a task that ends by itself; delay a cancellation until then."""
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError
    task.result()


class ReaperClient(asyncio.SubprocessTransport):
    """A server whose reaper ends it when this process ends.

    Args:
        protocol: Is told what asyncio tells of a subprocess.

    Attributes:
        pipes: The open ones, by the number of the stream at the server's end.
    """

    def __init__(self, protocol: asyncio.SubprocessProtocol) -> None:
        super().__init__()
        self.protocol = protocol
        self.pipes: dict[int, asyncio.BaseTransport] = {}
        self._answered = asyncio.Event()
        self._heard = b""
        self._failure = ServerError("could not be started: its parent process failed")
        self._pid = self._reaper_pid = 0
        self._exit_code: int | None = None
        self._is_closing = False
        protocol.connection_made(self)

    async def start(self, zygote: Zygote, invocation: Invocation) -> None:
        """Start the server. Call `close` also after an error or a cancellation.

        Raises:
            OSError: If the system refuses to make the pipes or the reaper.
            ServerError: If the system refuses to start the server.
            ValueError: If an argument contains NUL or a variable has an invalid name.
        """
        request = _request(invocation)
        await self._connect(zygote)
        self._send(request)
        if not await wait_within(self._answered, START_TIMEOUT):
            zygote.close()  # it may hang; the next server gets another
            raise ServerError("could not be started: its parent process does not respond")
        if not self._pid:
            raise self._failure

    def get_pid(self) -> int:
        return self._pid

    def get_returncode(self) -> int | None:
        return self._exit_code

    def get_pipe_transport(self, fd: int) -> asyncio.BaseTransport | None:
        return self.pipes.get(fd)

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
        for number, pipe in self.pipes.items():
            if number != _REAPER:
                pipe.close()
            elif self._reaper_pid:
                with suppress(ProcessLookupError):
                    os.kill(self._reaper_pid, signal.SIGKILL)  # it hangs
            else:
                self.kill()
                cast("asyncio.WriteTransport", pipe).write_eof()
        if not self.pipes:
            self.protocol.connection_lost(None)

    def abandon(self) -> None:
        """Close the socket to a reaper that does not answer; alone, it ends the server."""
        if (reaper := self.pipes.get(_REAPER)) is not None:
            cast("asyncio.WriteTransport", reaper).abort()

    def remove_pipe(self, number: int, error: Exception | None) -> None:
        """Take note that a pipe is closed."""
        del self.pipes[number]
        if number == _REAPER:
            self._end()
        else:
            self.protocol.pipe_connection_lost(number, error)
        if self._is_closing and not self.pipes:
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
        if (reaper := self.pipes.get(_REAPER)) is not None:
            cast("asyncio.WriteTransport", reaper).write(words)


class _Stream(asyncio.Protocol):
    """Hands on what one pipe brings."""

    def __init__(self, client: ReaperClient, number: int) -> None:
        self._client, self._number = client, number

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._client.pipes[self._number] = transport

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


def _request(invocation: Invocation) -> bytes:
    """Encode what to start."""
    if any(not name or "=" in name for name in invocation.environment):
        raise ValueError("an environment variable has an invalid name")
    variables = (f"{name}={value}" for name, value in invocation.environment.items())
    arguments, folder = invocation.arguments, str(invocation.folder)
    words = (str(len(arguments)), folder, invocation.place, *arguments, *variables)
    if any("\0" in word for word in words):
        raise ValueError("an argument or an environment variable contains a NUL")
    body = b"\0".join(map(os.fsencode, words))
    return b"%08x%b" % (len(body), body)
