"""The stdio transport: a server process, reached over its standard input and output.

Unlike the SDK's own it notices the end of an idle server, keeps standard error off the screen,
accepts invalid UTF-8, limits the length of messages, answers unreadable replies, and leaves no
process behind.
"""

import asyncio
import logging
import signal
from typing import Final

import anyio
import mcp_types as types

from tui.engine.background import wait_within
from tui.engine.mcp.errors import ServerError
from tui.engine.mcp.server_log import ServerLog
from tui.engine.mcp.transports import jsonrpc_lines as rpc
from tui.engine.mcp.transports.stdio.process import EOF_GRACE, EXIT_DRAIN, ServerProcess
from tui.model.servers import Transport
from tui.model.wire.frames import FrameFault

_log: Final = logging.getLogger(__name__)

PROBE_PATIENCE: Final = 3.0
"""Seconds after which a server that leaves the probe unanswered is greeted in the older way."""

KNOWN_PATIENCE: Final = 9.0
"""The same for a server that has answered it before; less than the SDK would wait."""

DELIVERY_GRACE: Final = 0.08
"""Seconds to deliver the last messages of a dead server."""


class Probe:
    """The question of the newer era, which a server of the older one may leave unanswered.

    Then the session gets an answer of ours, and shakes hands. A server that was only busy starting
    answers both; if it refuses the handshake, the session is told to ask again.

    Attributes:
        is_known: Whether the server has answered it before.
        is_late: Whether it was answered too late, so that the server speaks both eras or the newer.
    """

    is_known = is_late = False
    _asked: types.RequestId | None = None
    _silent: types.RequestId | None = None
    _supported: object = None

    @property
    def is_unanswered(self) -> bool:
        """Whether our patience ended, and no answer came since."""
        return self._silent is not None and not self.is_late

    async def wait(self, request: types.RequestId, to_session: rpc.ToSession) -> None:
        """Answer in place of a server that says nothing within our patience."""
        self._asked = request
        await asyncio.sleep(KNOWN_PATIENCE if self.is_known else PROBE_PATIENCE)
        if self._asked is not None:
            self._asked, self._silent = None, request
            await rpc.deliver(to_session, rpc.overdue(request, types.REQUEST_TIMEOUT))

    def take(self, message: types.JSONRPCMessage) -> types.JSONRPCMessage:
        """Return what the session gets for a message of the server."""
        if isinstance(message, types.JSONRPCResponse) and message.id == self._silent:
            self.is_late, self._supported = True, message.result.get("supportedVersions")
        elif isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            if message.id is None and self._asked is not None:  # of what it could not read
                message = message.model_copy(update={"id": self._asked})
            if message.id == self._asked:
                self._asked = None
            supported, self._supported = self._supported, None
            if supported and isinstance(message, types.JSONRPCError):
                data = {"supported": supported, "requested": ""}
                return rpc.overdue(message.id, types.UNSUPPORTED_PROTOCOL_VERSION, data)
        return message


class StdioTransport:
    """A server process as a transport for `mcp.Client`.

    Args:
        process: The server.
        log: Takes remarks.
        probe: How the newer era is asked for.

    Attributes:
        kind: How the server is reached.
        ended: Set when the process has ended or is unusable.
        problem: Why the server cannot be used, or None.
    """

    kind = Transport.STDIO

    def __init__(self, process: ServerProcess, log: ServerLog, probe: Probe) -> None:
        self._process, self._probe = process, probe
        self._tasks: list[asyncio.Task[None]] = []
        self._flow_control = rpc.FlowControl(log)
        self._tap = log.tap
        self.problem: ServerError | None = None
        self.ended = asyncio.Event()

    async def __aenter__(self) -> rpc.Streams:
        streams, to_session, from_session = rpc.open_streams(self._tap)
        reading = asyncio.create_task(self._read(to_session))
        writing = asyncio.create_task(self._write(from_session, to_session))
        self._tasks = [reading, writing, asyncio.create_task(self._watch(reading))]
        return streams

    async def __aexit__(self, *exception: object) -> None:
        with anyio.CancelScope(shield=True):
            try:
                await self._process.close()
                self._flow_control.note_rest(self._process.unfinished())
            finally:
                self.ended.set()
                for task in self._tasks:
                    task.cancel()
                await asyncio.gather(*self._tasks, return_exceptions=True)

    def ending(self) -> str:
        """Return in one line why the server is gone."""
        process = self._process
        if process.exited_by_itself and process.exit_code is not None:
            return describe_exit(process.exit_code)
        return process.broken or "closed its standard output"

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code of a process that ended by itself, as a shell gives it."""
        code = self._process.exit_code if self._process.exited_by_itself else None
        return code if code is None or code >= 0 else 128 - code

    def kill(self) -> None:
        """Kill the process and its group at once."""
        self._process.kill()

    async def _read(self, to_session: rpc.ToSession) -> None:
        """Deliver messages until the output ends or the session has closed."""
        async with to_session:
            try:
                while await self._pass_on(to_session):
                    pass
                if self._process.overlong:
                    self._tap.received(self._process.overlong, fault=FrameFault.TOO_LARGE)
            except rpc.FloodError as error:
                self.problem = error
                self._process.give_up(error.reason)
            except Exception as error:  # noqa: BLE001 - or nobody would learn that it is deaf
                _log.exception("a server's output could not be read")
                self._process.give_up(f"could not be read ({type(error).__name__})")

    async def _pass_on(self, to_session: rpc.ToSession) -> bool:
        """Deliver the messages of the next line, and return whether there was one.

        In a call of its own, a long line does not stay until the next one comes.
        """
        if (line := await self._process.read_line()) is None:
            return False
        for part in await rpc.split_batch(line):
            if (message := await self._flow_control.take(part)) is not None:
                await rpc.deliver(to_session, self._probe.take(message))
        return True

    async def _write(self, from_session: rpc.FromSession, to_session: rpc.ToSession) -> None:
        """Write messages until the session closes or the server stops reading."""
        async with from_session:
            async for outgoing in from_session:
                self._flow_control.note_sent(outgoing.message)
                match outgoing.message:
                    case types.JSONRPCRequest(method="server/discover", id=asked):
                        self._tasks.append(asyncio.create_task(self._probe.wait(asked, to_session)))
                try:
                    line = rpc.encode(outgoing.message)
                    self._tap.sent(outgoing.message, line)
                    await self._process.write(line)
                except ValueError:
                    if (answer := rpc.unsendable(outgoing.message)) is not None:
                        await rpc.deliver(to_session, answer)
                except ServerError as error:
                    await wait_within(self._process.exited, EOF_GRACE)
                    await wait_within(self._process.output_ended, EXIT_DRAIN)  # its last words
                    self._process.give_up(error.reason)
                    return

    async def _watch(self, reading: asyncio.Task[None]) -> None:
        """Set `ended` when the process is dead or unusable and its last output is read."""
        process = self._process
        ends = [asyncio.create_task(one.wait()) for one in (process.exited, process.output_ended)]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait(ends, timeout=EXIT_DRAIN if process.broken else EOF_GRACE)
            await asyncio.wait({reading}, timeout=DELIVERY_GRACE)
            await wait_within(process.errors_ended, EXIT_DRAIN if process.exited.is_set() else 0)
            self.ended.set()
        finally:
            for task in ends:
                task.cancel()


def describe_exit(code: int) -> str:
    """Describe how a process ended; a negative code is a signal."""
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
