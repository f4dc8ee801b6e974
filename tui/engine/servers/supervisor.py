"""One server's life: its supervisor is the one task that opens and closes its connection."""

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, Protocol

from tui.engine.servers.catalog import ServerOffer
from tui.engine.servers.failures import ServerError
from tui.engine.servers.live import Attempt, Connect, Host, LiveServer
from tui.engine.servers.log import ServerLog
from tui.engine.servers.status import advance
from tui.engine.settings.definitions import ServerDefinition
from tui.model.chat import Severity
from tui.model.servers import Failure, ServerId, ServerInfo, ServerStatus
from tui.text import sanitize_line

CONNECT_TIMEOUT: Final = 30.0
"""Seconds a server gets to start, shake hands and list what it offers."""

CLOSE_TIMEOUT: Final = 4.0
"""Seconds a connection gets to close before the wait for it is broken off."""

_S = ServerStatus
_RUNNING: Final = frozenset({_S.STARTING, _S.READY})

logger = logging.getLogger(__name__)


class Listener(Protocol):
    """Hears what becomes of servers."""

    def status_changed(self, supervisor: "Supervisor") -> None:
        """Hear that a server moved."""

    def offer_changed(self, supervisor: "Supervisor", offer: ServerOffer) -> None:
        """Hear what a server offers now."""


class Supervisor:
    """Starts, watches and stops one server.

    Commands return at once. They change what is wanted and wake the task, which alone enters
    and leaves the connection; nobody cancels it from outside but to bound its waits.

    Args:
        definition: Which server.
        load_connect: Gives the function that makes attempts to connect.
        host: What the server is told of us.
        listener: Hears of each change.
        log: Takes what the server writes.

    Attributes:
        status: What the server is doing.
        failure: Why it is not there, or None.
        info: What it says of itself while it is ready, or None.
        live: The connection while it is ready, or None.
    """

    def __init__(
        self,
        definition: ServerDefinition,
        load_connect: Callable[[], Awaitable[Connect]],
        host: Host,
        listener: Listener,
        log: ServerLog,
    ) -> None:
        self.definition = definition
        self.status = definition.withheld or _S.STOPPED
        self.failure: Failure | None = definition.failure
        self.info: ServerInfo | None = None
        self.live: LiveServer | None = None
        self._load_connect = load_connect
        self._host = host
        self._listener = listener
        self._log = log
        self._attempt: Attempt | None = None
        self._deadline: asyncio.Timeout | None = None
        self._wake = asyncio.Event()
        self._wanted = False
        self._enabled = not definition.may_enable
        self._closing = False
        self._is_told = False
        self._is_connected = False
        self._useless: Failure | None = None

    @property
    def id(self) -> ServerId:
        """The server's id."""
        return self.definition.id

    def start(self) -> None:
        """Start the server, unless it is withheld, disabled or up already."""
        if self.status in {_S.STOPPED, _S.FAILED}:
            self._wanted = True
            self._move(_S.STARTING)
            self._wake.set()
        elif self.status is _S.STOPPING:
            self._wanted = self._enabled

    def stop(self) -> None:
        """Stop the server; it stays stopped."""
        self._wanted = False
        if self.status in _RUNNING:
            self._begin_to_stop()
        elif self.status is _S.FAILED:
            self._move(_S.STOPPED)

    def restart(self) -> None:
        """Stop the server where it runs, and start it."""
        if self.status in _RUNNING:
            self._wanted = True
            self._begin_to_stop()
        else:
            self.start()

    def set_enabled(self, *, enabled: bool) -> None:
        """Disable the server, or let it run again.

        One that is withheld stays so, unless its definition leaves that to the user.
        """
        is_fixed = self.definition.withheld is not None and not self.definition.may_enable
        if is_fixed or enabled is self._enabled:
            return
        self._enabled = enabled
        if enabled:
            if self.status is _S.DISABLED:
                self._move(_S.STOPPED)
            self.start()
            return
        self.stop()
        if self.status is not _S.STOPPING:
            self._move(_S.DISABLED)

    def close(self) -> None:
        """Stop the server for good; `run` then ends."""
        self._closing = True
        self.stop()
        self._wake.set()

    def kill(self) -> None:
        """End the server at once, without any courtesy."""
        if self._attempt is not None:
            self._attempt.kill()

    async def run(self) -> None:
        """Live until `close` is called. Cancelling it ends the server too."""
        while True:
            self._wake.clear()
            if self.status in {_S.STARTING, _S.STOPPING}:
                await self._run_once()
            elif self._closing:
                return
            else:
                await self._wake.wait()

    async def _run_once(self) -> None:
        """Make one attempt and hold the connection until it is to end or has ended.

        An attempt that fails, and a connection that is lost, end as failed; this is the place
        to try again later.
        """
        failure: Failure | None = None
        self._is_told = self._is_connected = False
        self._useless = None
        self._log.begin()
        try:
            failure = await self._hold_connection()
        except TimeoutError:
            failure = self._timed_out()
        except ServerError as error:
            failure = error.as_failure(self._log.tail())
        except Exception as error:  # noqa: BLE001 - whatever it is, the other servers go on
            trace = "".join(traceback.format_exception(error))
            logger.warning("a server's connection broke: %s", self._log.mask(trace))
            words = f"{type(error).__name__}: {error}"
            failure = ServerError(words).as_failure(self._log.tail())
        finally:
            self._attempt = None
            self._deadline = None
            self.live = None
            self._log.flush()
        self._settle(failure)

    async def _hold_connection(self) -> Failure | None:
        """Connect, be ready, close. Gives the failure of a server that is of no use."""
        failure: Failure | None = None
        async with asyncio.timeout(CONNECT_TIMEOUT) as self._deadline:
            connect = await self._load_connect()
            if self._must_stop():
                return None
            self._attempt = connect(self.definition, self._log, self._host)
            async with self._attempt as live:
                self._is_connected = True
                self._listener.offer_changed(self, live.offer)
                if live.offer.is_empty:
                    self._useless = failure = self._nothing_offered()
                elif not self._must_stop():
                    self._grant(None)
                    await self._serve(live)
                self._grant(CLOSE_TIMEOUT)
        return failure

    async def _serve(self, live: LiveServer) -> None:
        """Be ready until the server goes or is to go; say at once why it went."""
        self.live = live
        self.info = live.info
        self._move(_S.READY)
        gone = asyncio.create_task(live.ended.wait())
        gone.add_done_callback(lambda _: self._wake.set())
        try:
            while not live.ended.is_set() and not self._must_stop():
                self._wake.clear()
                await self._wake.wait()
        finally:
            gone.cancel()
        if not self._must_stop():
            failure = ServerError(live.ending(), "Restart it with r.")
            self._move(_S.FAILED, failure.as_failure(self._log.tail()))
            self._is_told = True

    def _nothing_offered(self) -> Failure:
        return ServerError(
            "offers nothing: no usable tool, no prompt, no resource",
            "Look at its log, and at includeTools and excludeTools in the settings.",
        ).as_failure(self._log.tail())

    def _timed_out(self) -> Failure | None:
        """Give the failure of an attempt whose time ran out, while it opened or while it closed."""
        if self._must_stop():
            return None
        if self._is_connected:
            return self._useless
        return ServerError(
            f"did not get ready within {CONNECT_TIMEOUT:.0f} s",
            "Restart it with r; a first start that downloads something takes longer.",
        ).as_failure(self._log.tail())

    def _must_stop(self) -> bool:
        return self.status is _S.STOPPING

    def _begin_to_stop(self) -> None:
        """Ask the task to let go of the connection; one that is being opened is broken off."""
        was_starting = self.status is _S.STARTING
        self._move(_S.STOPPING)
        self._wake.set()
        if was_starting:
            self._grant(0)

    def _grant(self, seconds: float | None) -> None:
        """Give the attempt this much time from now on; None for no end."""
        when = None if seconds is None else asyncio.get_running_loop().time() + seconds
        if self._deadline is not None:
            with suppress(RuntimeError):  # its time is over at this very moment
                self._deadline.reschedule(when)

    def _settle(self, failure: Failure | None) -> None:
        """Move on once the connection is closed."""
        if self.status is _S.STOPPING:
            self._move(_S.STOPPED)
            if not self._enabled:
                self._move(_S.DISABLED)
            elif self._wanted and not self._closing:
                self.start()
        elif failure is not None and not self._is_told:
            self._move(_S.FAILED, failure)

    def _move(self, status: ServerStatus, failure: Failure | None = None) -> None:
        self.status = advance(self.status, status)
        failure = self._log.mask_failure(failure) if failure is not None else None
        self.failure = failure
        if status is not _S.READY:
            self.info = None
            self.live = None
        if status is _S.FAILED and failure is not None:
            self._log.add("gemdeck", Severity.ERROR, sanitize_line(failure.reason))
        self._listener.status_changed(self)
