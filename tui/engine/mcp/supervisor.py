"""One server's life: its supervisor is the one task that opens and closes its connection."""

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final, Protocol

from tui.engine.servers.backoff import Backoff
from tui.engine.servers.catalog import ServerOffer
from tui.engine.servers.failures import ServerError, SignInError
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
_AT_REST: Final = frozenset({_S.STOPPED, _S.FAILED, _S.RETRYING, _S.NEEDS_SIGN_IN})
"""Statuses that a start leads out of."""

logger = logging.getLogger(__name__)


class Listener(Protocol):
    """Hears what becomes of servers."""

    def status_changed(self, supervisor: "Supervisor") -> None:
        """Hear that a server moved."""

    def offer_changed(self, supervisor: "Supervisor", offer: ServerOffer) -> None:
        """Hear what a server offers now."""


class Supervisor:
    """Starts, watches and stops one server, and starts it again when it fails.

    Commands return at once. They change what is wanted and wake the task, which alone enters
    and leaves the connection; nobody cancels it from outside but to bound its waits.

    Args:
        definition: Which server.
        load_connect: Gives the function that makes attempts to connect.
        host: What the server is told of us.
        listener: Hears of each change.
        log: Takes what the server writes.
        backoff: Decides when a server that failed is started again.
        enabled: Whether the user lets the server run.

    Attributes:
        status: What the server is doing.
        failure: Why it is not there, or None.
        retry_at: While it waits to be started again: when, in seconds of `time.monotonic`.
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
        *,
        backoff: Backoff | None = None,
        enabled: bool = True,
    ) -> None:
        self.definition = definition
        self.status = definition.withheld or (_S.STOPPED if enabled else _S.DISABLED)
        self.failure: Failure | None = definition.failure
        self.retry_at: float | None = None
        self.info: ServerInfo | None = None
        self.live: LiveServer | None = None
        self._load_connect = load_connect
        self._host = host
        self._listener = listener
        self._log = log
        self._backoff = backoff or Backoff()
        self._attempt: Attempt | None = None
        self._deadline: asyncio.Timeout | None = None
        self._wake = asyncio.Event()
        self._wanted = False
        self._enabled = enabled and not definition.may_enable
        self._closing = False
        self._is_told = False
        self._is_connected = False
        self._useless: ServerError | None = None

    @property
    def id(self) -> ServerId:
        """The server's id."""
        return self.definition.id

    def start(self) -> None:
        """Start the server, unless it is withheld, disabled or up already.

        One that waits to be tried again is started at once; its earlier failures are forgotten.
        """
        self._backoff.reset()
        if self.status in _AT_REST:
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
        elif self.status in _AT_REST - {_S.STOPPED}:
            self._move(_S.STOPPED)
            self._wake.set()

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

    def remark(self, words: str) -> None:
        """Add a warning of ours to the server's log."""
        self._log.add("gemdeck", Severity.WARNING, words)

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
            elif self.status is _S.RETRYING:
                await self._pause()
            else:
                await self._wake.wait()

    async def _pause(self) -> None:
        """Wait until it is time to try again, unless something else is wanted before."""
        try:
            async with asyncio.timeout(self._backoff.seconds_until(self.retry_at or 0.0)):
                await self._wake.wait()
        except TimeoutError:
            if self.status is _S.RETRYING:
                self._move(_S.STARTING)

    async def _run_once(self) -> None:
        """Make one attempt and hold the connection until it is to end or has ended.

        An attempt that fails, and a connection that is lost, lead to another attempt later, to
        a sign-in, or to the end.
        """
        error: ServerError | None = None
        self._is_told = self._is_connected = False
        self._useless = None
        self._log.begin()
        try:
            error = await self._hold_connection()
        except TimeoutError:
            error = self._timed_out()
        except ServerError as caught:
            error = caught
        except Exception as caught:  # noqa: BLE001 - whatever it is, the other servers go on
            trace = "".join(traceback.format_exception(caught))
            logger.warning("a server's connection broke: %s", self._log.mask(trace))
            error = ServerError(f"{type(caught).__name__}: {caught}")
        finally:
            self._attempt = None
            self._deadline = None
            self.live = None
            self._log.flush()
        self._settle(error)

    async def _hold_connection(self) -> ServerError | None:
        """Connect, be ready, close. Gives the reason why a server is of no use."""
        error: ServerError | None = None
        async with asyncio.timeout(CONNECT_TIMEOUT) as self._deadline:
            connect = await self._load_connect()
            if self._must_stop():
                return None
            self._attempt = connect(self.definition, self._log, self._host)
            async with self._attempt as live:
                self._is_connected = True
                self._listener.offer_changed(self, live.offer)
                if live.offer.is_empty:
                    self._useless = error = _nothing_offered()
                elif not self._must_stop():
                    self._grant(None)
                    await self._serve(live)
                self._grant(CLOSE_TIMEOUT)
        return error

    async def _serve(self, live: LiveServer) -> None:
        """Be ready until the server goes or is to go; say at once why it went."""
        self.live = live
        self.info = live.info
        self._backoff.succeeded()
        self._move(_S.READY)
        waits = [
            asyncio.create_task(live.ended.wait()),
            asyncio.create_task(live.outdated.wait()),
        ]
        for wait in waits:
            wait.add_done_callback(lambda _: self._wake.set())
        on_offer = partial(self._listener.offer_changed, self)
        following = asyncio.create_task(live.follow(on_offer), name=f"follow {self.id}")
        following.add_done_callback(_report)
        try:
            while not live.ended.is_set() and not self._must_stop():
                if live.outdated.is_set():
                    self.restart()
                    break
                self._wake.clear()
                await self._wake.wait()
        finally:
            for task in (*waits, following):
                task.cancel()
        if not self._must_stop():
            self._fail(live.problem() or ServerError(live.ending()))
        await asyncio.wait({*waits, following})

    def _timed_out(self) -> ServerError | None:
        """Give the failure of an attempt whose time ran out, while it opened or while it closed."""
        if self._must_stop():
            return None
        if self._is_connected:
            return self._useless
        return ServerError(
            f"did not get ready within {CONNECT_TIMEOUT:.0f} s",
            "A first start that downloads something takes longer.",
        )

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

    def _settle(self, error: ServerError | None) -> None:
        """Move on once the connection is closed."""
        if self.status is _S.STOPPING:
            self._move(_S.STOPPED)
            if not self._enabled:
                self._move(_S.DISABLED)
            elif self._wanted and not self._closing:
                self.start()
        elif error is not None and not self._is_told:
            self._fail(error)

    def _fail(self, error: ServerError) -> None:
        """Say why the server is not there, and decide whether and when to start it again."""
        self._is_told = True
        failure = error.as_failure(self._log.tail())
        if isinstance(error, SignInError):
            self._move(_S.NEEDS_SIGN_IN, failure)
        elif error.permanent:
            self._move(_S.FAILED, failure)
        else:
            retry_at = self._backoff.failed()
            if self._backoff.is_exhausted:
                self._move(_S.FAILED, replace(failure, advice=self._final_advice(failure)))
            else:
                self._move(_S.RETRYING, failure, retry_at)

    def _final_advice(self, failure: Failure) -> str:
        policy = self._backoff.policy
        often = f"It failed {policy.max_failures} times within {policy.window:.0f} s"
        return f"{failure.advice} {often}; r restarts it.".strip()

    def _move(
        self, status: ServerStatus, failure: Failure | None = None, retry_at: float | None = None
    ) -> None:
        self.status = advance(self.status, status)
        failure = self._log.mask_failure(failure) if failure is not None else None
        self.failure = failure
        self.retry_at = retry_at
        if status is not _S.READY:
            self.info = None
            self.live = None
        if failure is not None:
            severity = Severity.WARNING if status is _S.RETRYING else Severity.ERROR
            self._log.add("gemdeck", severity, sanitize_line(failure.reason))
        self._listener.status_changed(self)


def _nothing_offered() -> ServerError:
    return ServerError(
        "offers nothing: no usable tool, no prompt, no resource",
        "Look at its log, and at includeTools and excludeTools in the settings.",
        permanent=True,
    )


def _report(task: asyncio.Task[None]) -> None:
    """Log why a task that should have gone on ended."""
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.warning("changes of a server are not followed any longer", exc_info=error)
