"""Flow control for one server: a token bucket that limits how fast its messages are read.

Every message has a cost, and a server has an allowance that grows with time. A server that
overdraws it is read only as fast as the allowance grows, so that it blocks on its own full pipe;
if it keeps that up, it is given up. Progress reports and log messages are dropped first, so that
a result behind thousands of them arrives soon.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final

import mcp_types as types

from tui.engine.mcp.backoff import Clock
from tui.engine.mcp.errors import ServerError
from tui.engine.mcp.server_log import ServerLog
from tui.engine.mcp.transports import jsonrpc_lines
from tui.model.bounded_json import MAX_STRUCTURE

RATE: Final = 1_000.0
"""Growth of the allowance per second; a short message costs 1."""

BURST: Final = 5_000.0
"""The largest and the initial allowance."""

PIECE: Final = 16 * 1024
"""Bytes that cost as much as a message: a server may send 16 MiB a second, and 80 MiB at once."""

STRUCTURE: Final = 500
"""Structural characters of JSON that cost as much as a message."""

REQUEST_COST: Final = 10.0
"""Cost of a request, which is validated, answered by a task of its own, and perhaps shown."""

MAX_OPEN: Final = 100
"""Requests of a server under way at once; then it is not read until some are answered."""

DROPPED_COST: Final = 0.05
"""Cost of noise and of dropped reports."""

LINE_COST: Final = 0.02
"""Cost of one line of an event stream."""

MAX_EXCESS: Final = 30.0
"""Seconds that a server may overdraw its allowance without a rest."""

REST: Final = BURST / 10
"""An allowance that counts as a rest: the server did not use all of it."""

PAUSE: Final = 0.05
"""Shortest pause in reading from a server that overdraws its allowance, in seconds."""

SLICE: Final = 0.01
"""Seconds of reading one server before other tasks get a turn."""

MAX_NOISE_LINES: Final = 20
"""Invalid lines that are shown in the server's log; further ones are dropped."""

LOSSY: Final = frozenset({jsonrpc_lines.PROGRESS, "notifications/message"})
"""Notifications that are dropped while the allowance is low."""


HANDSHAKE: Final = frozenset({"initialize", "server/discover"})
"""Requests whose answers the SDK validates on the loop before `sdk_patches` applies."""


class FloodError(ServerError):
    """A server overdrew its allowance for too long."""


class FlowControl:
    """Reads the messages of one connection within an allowance.

    Args:
        log: Takes remarks.
        clock: The current time.
        sleep: Waits for some seconds of that clock.
    """

    def __init__(
        self,
        log: ServerLog,
        clock: Clock = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._log = log
        self._clock = clock
        self._sleep = sleep
        self._allowance = BURST
        self._counted_at = self._turn_began = clock()
        self._exceeds_since: float | None = None
        self._most = jsonrpc_lines.MAX_UNASKED
        self._noise = 0
        self._drops = False
        self._open = Counter[types.RequestId | None]()

    def note_sent(self, message: types.JSONRPCMessage) -> None:
        """Note a message to the server; after the handshake its messages may be larger."""
        match message:
            case types.JSONRPCRequest(method=method) if method not in HANDSHAKE:
                self._most = MAX_STRUCTURE
            case types.JSONRPCResponse(id=answered) | types.JSONRPCError(id=answered):
                self._note_end(answered)

    async def take(self, line: bytes) -> types.JSONRPCMessage | None:
        """Read one message; return None for invalid lines and dropped reports.

        Raises:
            FloodError: If the server has overdrawn its allowance for too long.
        """
        await self._wait()  # for earlier messages: a message does not wait for its own cost
        while self._open.total() >= MAX_OPEN:
            await self._sleep(PAUSE)
        found, structure = await jsonrpc_lines.read(line, self._most)
        message = None if isinstance(found, str) else found
        self._grow()
        cost = 1.0
        match message:
            case None:
                if isinstance(found, str):
                    self._note_noise(found)
                cost = DROPPED_COST
            case types.JSONRPCNotification(method=method) if (
                method in LOSSY and self._allowance < BURST / 2
            ):
                if not self._drops:
                    self._drops = True
                    self._log.remark("sends reports faster than they are read; some are dropped")
                message, cost = None, DROPPED_COST
            case types.JSONRPCRequest(id=request):
                self._open[request] += 1
                cost = REQUEST_COST
            case types.JSONRPCNotification(
                method="notifications/cancelled", params={"requestId": int() | str() as request}
            ):
                self._note_end(request)
        self._spend(cost + len(line) / PIECE + structure / STRUCTURE)
        return message

    def _note_end(self, request: types.RequestId | None) -> None:
        """Note that a request of the server is answered, or needs no answer any more."""
        if self._open[request] > 1:
            self._open[request] -= 1
        else:
            del self._open[request]

    async def take_lines(self, count: int) -> None:
        """Charge for lines of an event stream, which may contain no message at all.

        Raises:
            FloodError: If the server has overdrawn its allowance for too long.
        """
        self._spend(LINE_COST * count)
        await self._wait()

    def _grow(self) -> None:
        now = self._clock()
        grown = self._allowance + (now - self._counted_at) * RATE
        self._allowance, self._counted_at = min(BURST, grown), now

    def _spend(self, cost: float) -> None:
        self._grow()
        self._allowance -= cost

    async def _wait(self) -> None:
        """Wait if the allowance is overdrawn, and yield to other tasks now and then."""
        self._grow()
        now = self._counted_at
        if self._allowance >= REST:
            self._exceeds_since = None
        if self._allowance < 0:
            if self._exceeds_since is None:
                self._exceeds_since = now
            elif now - self._exceeds_since > MAX_EXCESS:
                raise FloodError(
                    f"sent more than {RATE:,.0f} messages or {RATE * PIECE / 2**20:.0f} MiB a "
                    f"second for {MAX_EXCESS:.0f} s",
                    "Its log may say why; r restarts it.",
                    permanent=True,
                )
            await self._sleep(max(PAUSE, -self._allowance / RATE))
        elif now - self._turn_began > SLICE:
            await self._sleep(0)
        else:
            return
        self._turn_began = self._clock()

    def _note_noise(self, noise: str) -> None:
        self._noise += 1
        if self._noise <= MAX_NOISE_LINES:
            self._log.remark(f"not a message, ignored: {noise}")
        if self._noise == MAX_NOISE_LINES:
            self._log.remark("further such lines are ignored silently")
