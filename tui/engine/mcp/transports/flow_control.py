"""Takes in what one server sends, at a pace that leaves the machine to everybody else.

Each thing a server sends has a price, and the server an allowance that grows with time. One
that spends more is read no faster than its allowance grows, so that it blocks on its own full
pipe; one that goes on like that is given up. Reports that only the newest counts of are the
first to go, so that a result behind thousands of them is not long in coming.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from mcp_types import JSONRPCMessage, JSONRPCNotification, JSONRPCRequest

from tui.engine.servers import framing
from tui.engine.servers.backoff import Clock
from tui.engine.servers.failures import ServerError
from tui.engine.servers.json_text import MAX_STRUCTURE
from tui.engine.servers.log import ServerLog
from tui.model.chat import Severity

RATE: Final = 1_000.0
"""What the allowance of a server grows by in a second; a message of no great length costs 1."""

BURST: Final = 5_000.0
"""The largest allowance, and the one to begin with."""

PIECE: Final = 16 * 1024
"""Bytes that cost as much as a message: a server may send 16 MiB a second, and 80 MiB at once."""

STRUCTURE: Final = 500
"""Structural characters of JSON that cost as much as a message."""

DROPPED_COST: Final = 0.05
"""What costs us only the look at it: noise, and reports that are dropped."""

LINE_COST: Final = 0.02
"""One line of a stream of events, whatever it is a part of."""

MAX_EXCESS: Final = 30.0
"""Seconds for which a server may want more than its allowance without a rest."""

REST: Final = BURST / 10
"""An allowance of so much is a rest: the server did not want all it could have."""

PAUSE: Final = 0.05
"""Shortest pause, in seconds, in which nothing is taken from a server that wants too much."""

SLICE: Final = 0.01
"""Seconds for which one server is read before everybody else gets a turn."""

MAX_NOISE_LINES: Final = 20
"""Lines that are no message and still shown in the server's log; further ones are dropped."""

LOSSY: Final = frozenset({framing.PROGRESS, "notifications/message"})
"""Notifications that are dropped while little of the allowance is left."""


HANDSHAKE: Final = frozenset({"initialize", "server/discover"})
"""Requests whose answers the SDK walks through on the loop before anybody can spare it that."""


class FloodError(ServerError):
    """A server sent more than its allowance for too long."""


class Intake:
    """What one connection of a server sends, message by message.

    Args:
        log: Takes remarks.
        clock: What time it is.
        sleep: Waits some seconds of that clock.
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
        self._most = framing.MAX_UNASKED
        self._noise = 0
        self._drops = False

    def note_sent(self, message: JSONRPCMessage) -> None:
        """Hear of a message to the server: what comes after its handshake may be larger."""
        if isinstance(message, JSONRPCRequest) and message.method not in HANDSHAKE:
            self._most = MAX_STRUCTURE

    async def take(self, line: bytes) -> JSONRPCMessage | None:
        """Read one message; None for what is none, and for a report that is dropped.

        Raises:
            FloodError: If the server has sent too much for too long.
        """
        await self._wait()  # for what came before: a message does not wait for its own price
        message, structure = await framing.read(line, self._most)
        weight = len(line) / PIECE + structure / STRUCTURE
        match message:
            case None:
                self._spend(DROPPED_COST)
            case str() as noise:
                self._note_noise(noise)
                self._spend(DROPPED_COST + weight)
                return None
            case JSONRPCNotification(method=method) if method in LOSSY and self._is_short():
                self._note_drop()
                self._spend(DROPPED_COST + weight)
                return None
            case _:
                self._spend(1 + weight)
        return message

    async def take_lines(self, count: int) -> None:
        """Count lines of a stream of events, which may hold no message at all.

        Raises:
            FloodError: If the server has sent too much for too long.
        """
        self._spend(LINE_COST * count)
        await self._wait()

    def _is_short(self) -> bool:
        self._grow()
        return self._allowance < BURST / 2

    def _grow(self) -> None:
        now = self._clock()
        grown = self._allowance + (now - self._counted_at) * RATE
        self._allowance, self._counted_at = min(BURST, grown), now

    def _spend(self, cost: float) -> None:
        self._grow()
        self._allowance -= cost

    async def _wait(self) -> None:
        """Wait where the allowance is overdrawn, and now and then for everybody else."""
        self._grow()
        now = self._counted_at
        if self._allowance >= REST:
            self._exceeds_since = None
        if self._allowance < 0:
            if self._exceeds_since is None:
                self._exceeds_since = now
            elif now - self._exceeds_since > MAX_EXCESS:
                raise _flood()
            await self._sleep(max(PAUSE, -self._allowance / RATE))
        elif now - self._turn_began > SLICE:
            await self._sleep(0)
        else:
            return
        self._turn_began = self._clock()

    def _note_noise(self, noise: str) -> None:
        self._noise += 1
        if self._noise <= MAX_NOISE_LINES:
            self._remark(f"not a message, ignored: {noise}")
        if self._noise == MAX_NOISE_LINES:
            self._remark("further such lines are ignored silently")

    def _note_drop(self) -> None:
        if not self._drops:
            self._drops = True
            self._remark("sends reports faster than they are read; some of them are left out")

    def _remark(self, text: str) -> None:
        self._log.add("gemdeck", Severity.WARNING, text)


def _flood() -> FloodError:
    return FloodError(
        f"sent more than {RATE:,.0f} messages or {RATE * PIECE / 2**20:.0f} MiB a second "
        f"for {MAX_EXCESS:.0f} s",
        "Its log may say what it is about; r restarts it.",
        permanent=True,
    )
