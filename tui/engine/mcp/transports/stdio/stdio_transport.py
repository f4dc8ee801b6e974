"""The stdio transport: a server process spoken to over its standard input and output.

The SDK has one too. This one notices a death while nothing is asked, keeps standard error off
the screen, survives bytes that are no UTF-8, limits the length of a message, answers for
replies that cannot be read, and leaves no process behind.
"""

import asyncio
import signal
from contextlib import suppress
from types import TracebackType
from typing import Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage

from tui.engine.servers.failures import ServerError
from tui.engine.servers.framing import encode, unsendable
from tui.engine.servers.intake import FloodError, Intake
from tui.engine.servers.log import ServerLog
from tui.engine.servers.process import EXIT_DRAIN, Launch, ServerProcess
from tui.engine.servers.transport import Streams

OUTGOING_QUEUE: Final = 256
"""Messages that may wait for a server that is slow to read; then senders wait."""

DELIVERY_GRACE: Final = 0.08
"""Seconds in which the last messages of a dead server are still handed on."""


ToSession = MemoryObjectSendStream[SessionMessage | Exception]
FromSession = MemoryObjectReceiveStream[SessionMessage]


class StdioTransport:
    """A server process as a transport for `mcp.Client`.

    Args:
        launch: What to start.
        log: Takes standard error and remarks.

    Attributes:
        ended: Set when the process is dead or of no use any longer.
    """

    def __init__(self, launch: Launch, log: ServerLog) -> None:
        self._launch = launch
        self._log = log
        self._process: ServerProcess | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._intake = Intake(log)
        self._flood: FloodError | None = None
        self.ended = asyncio.Event()

    async def __aenter__(self) -> Streams:
        self._process = process = await ServerProcess.start(self._launch, self._log.write_stderr)
        to_session, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        to_server, from_session = anyio.create_memory_object_stream[SessionMessage](OUTGOING_QUEUE)
        reading = asyncio.create_task(self._read(process, to_session))
        writing = asyncio.create_task(self._write(process, from_session, to_session))
        watching = asyncio.create_task(self._watch(process, reading))
        self._tasks = [reading, writing, watching]
        return from_server, to_server

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._process is None:
            return
        try:
            await self._process.close()
        finally:
            self.ended.set()
            for task in self._tasks:
                task.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def pid(self) -> int | None:
        """The id of the process, once there is one."""
        return self._process.pid if self._process is not None else None

    def ending(self) -> str:
        """Say in one line why the server is gone."""
        process = self._process
        if process is None:
            return "was not started"
        if process.exited_by_itself and process.exit_code is not None:
            return describe_exit(process.exit_code)
        return process.broken or "closed its standard output"

    def problem(self) -> ServerError | None:
        """Give the error of a server that was given up for good, or None."""
        return self._flood

    def kill(self) -> None:
        """Kill the process and its group at once."""
        if self._process is not None:
            self._process.kill()

    async def _read(self, process: ServerProcess, to_session: ToSession) -> None:
        """Hand messages on until the output ends or the session has gone."""
        async with to_session:
            try:
                while (line := await process.read_line()) is not None:
                    if (message := await self._intake.take(line)) is not None:
                        await _deliver(to_session, message)
            except FloodError as error:
                self._flood = error
                process.give_up(error.reason)

    async def _write(
        self, process: ServerProcess, from_session: FromSession, to_session: ToSession
    ) -> None:
        """Write messages until the session closes or the server takes no more."""
        async with from_session:
            async for outgoing in from_session:
                self._intake.note_sent(outgoing.message)
                try:
                    await process.write(encode(outgoing.message))
                except ValueError:
                    answer = unsendable(outgoing.message)
                    if answer is not None:
                        await _deliver(to_session, answer)
                except ServerError as error:
                    process.give_up(error.reason)
                    return

    async def _watch(self, process: ServerProcess, reading: asyncio.Task[None]) -> None:
        """Set `ended` when the process is dead or useless and its last words are read."""
        ends = [
            asyncio.create_task(process.exited.wait()),
            asyncio.create_task(process.output_ended.wait()),
        ]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait(ends, timeout=EXIT_DRAIN)
            await asyncio.wait({reading}, timeout=DELIVERY_GRACE)
            with suppress(TimeoutError):
                async with asyncio.timeout(EXIT_DRAIN if process.exited.is_set() else 0):
                    await process.errors_ended.wait()
            self.ended.set()
        finally:
            for task in ends:
                task.cancel()


def describe_exit(code: int) -> str:
    """Say in words how a process ended; a negative code names a signal."""
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


async def _deliver(to_session: ToSession, message: JSONRPCMessage) -> None:
    """Hand a message to the session; where that has closed, nobody waits for it."""
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        await to_session.send(SessionMessage(message))
