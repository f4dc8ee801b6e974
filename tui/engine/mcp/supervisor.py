"""The supervisor of one server: the only task that opens and closes its connection."""

import asyncio
import logging
import os
import time
import traceback
from collections.abc import Awaitable, Callable, Iterable
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from tui.engine.background import wait_within
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.keys.key_store import CredentialError
from tui.engine.keys.secret_store import with_extension_secrets, with_named_secrets
from tui.engine.mcp.backoff import Backoff
from tui.engine.mcp.catalog.offer import ServerOffer, read_offer
from tui.engine.mcp.context import ClientContext
from tui.engine.mcp.errors import ProbeError, ServerError, SignInError, internal_error
from tui.engine.mcp.network_watch import ASLEEP, clock_offset
from tui.engine.mcp.refused_access import claims_in, refused_access
from tui.engine.mcp.server_log import ServerLog
from tui.engine.mcp.telling_line import telling_line
from tui.engine.mcp.transports.stdio.launch import running_server
from tui.engine.mcp.usage import UsageMeter
from tui.model.chat import Severity
from tui.model.servers import (
    ATTEMPTED,
    UNDECIDED,
    AccessRefused,
    Failure,
    RefusedAccess,
    ServerId,
    ServerInfo,
    ServerStatus,
    Transport,
    advance,
)
from tui.text import sanitize_line

if TYPE_CHECKING:  # it imports the MCP SDK, which takes half a second
    from tui.engine.mcp.session.connection import Connection
    from tui.engine.mcp.transports.stdio.process import ServerProcess

Connect: TypeAlias = (
    "Callable[[ServerDefinition, ServerLog, ClientContext, ServerProcess | None], Connection]"
)
"""Makes a connection that is not open yet. Opening it raises `ServerError` or any SDK error."""

SEARCHED_TAIL: Final = 60
"""Last lines of a program that ended in which the one that says why is looked for."""

MAX_CAUSE: Final = 60
"""Characters of the reason why a server was started again."""

MOVE_POLL: Final = 0.2
"""Seconds between two looks at whether the calls have ended that a move waits for."""

TELL_TIMEOUT: Final = 2.0
"""Seconds to tell a server that it has other roots."""

LOOK_TIMEOUT: Final = 1.0
"""Seconds to find out what a path in its last words is."""

MAX_TOLD: Final = 20
"""Accesses that are told of between two starts."""

CLOSE_TIMEOUT: Final = 4.0
"""Seconds that a connection gets to close before it is abandoned."""

_S = ServerStatus
_RUNNING: Final = frozenset({_S.STARTING, _S.READY})
_AT_REST: Final = frozenset({_S.ASLEEP, _S.STOPPED, _S.FAILED, _S.RETRYING, _S.NEEDS_SIGN_IN})
"""Statuses from which a server can start."""

_TRIED: Final = frozenset({_S.ASLEEP, _S.READY, _S.RETRYING, _S.FAILED, _S.NEEDS_SIGN_IN})
"""Statuses that end a first start."""

logger = logging.getLogger(__name__)


class Supervisor:
    """Starts, watches and stops one server, and starts it again when it fails.

    Commands return at once. They change the wanted state and wake the task, the only one that
    enters and leaves the connection; it is not cancelled from outside except to bound its waits.

    Args:
        definition: Which server.
        load_connect: Loads the function that makes connections.
        context: What all connections share.
        on_status: Called after each change of the status.
        on_offer: Called with each new offer of the server.
        log: Takes what the server writes.
        backoff: Decides when to start a failed server again.
        enabled: Whether the user has left the server enabled.

    Attributes:
        status: The current status.
        failure: Why the server is not ready, or None.
        retry_at: When the next attempt starts, in seconds of `time.monotonic`, or None.
        since: When the status was reached, in seconds of `time.monotonic`.
        restarted: How often the server was started again by itself and why, or "".
        lacks: What it was started without, why, and what to do; or "".
        info: The server's description of itself while it can be called, or None.
        live: The connection while the server is ready, or None.
        usage: What is measured of the server.
        is_launching: Whether it was told to start, and its process does not run yet.
        is_queued: Whether it waits until fewer servers are starting.
        refused: What it last reported as refused by its sandbox, or None.
        others: Returns all servers.
    """

    def __init__(
        self,
        definition: ServerDefinition,
        load_connect: Callable[[], Awaitable[Connect]],
        context: ClientContext,
        log: ServerLog,
        *,
        on_status: Callable[["Supervisor"], None],
        on_offer: Callable[["Supervisor", ServerOffer], None],
        backoff: Backoff | None = None,
        enabled: bool = True,
    ) -> None:
        self.definition = definition
        self.status = definition.withheld or (_S.STOPPED if enabled else _S.DISABLED)
        self.failure: Failure | None = definition.failure
        self.retry_at: float | None = None
        self.since = time.monotonic()
        self.restarted = self.lacks = ""
        self.info: ServerInfo | None = None
        self.live: Connection | None = None
        self.usage = UsageMeter()
        self.is_launching = self.is_queued = False
        self._load_connect, self._context, self._on_status = load_connect, context, on_status
        self._on_offer, self._log = on_offer, log
        self._backoff = backoff or Backoff()
        self._attempt: Connection | None = None
        self._deadline: asyncio.Timeout | None = None
        self._wake = asyncio.Event()
        self._wanted = self._has_settled = False
        self._enabled = enabled and not definition.may_enable
        self._closing = self._is_told = False
        self._began_outside: bool | None = None  # where the process runs, if one does
        self._dozes = self._may_recall = self._queues = False
        self._restarts = 0
        self._cause = ""
        self._end_turn: Callable[[], None] = lambda: None
        self.refused: RefusedAccess | None = None
        self._told = set[RefusedAccess]()
        self.others: Callable[[], Iterable[ServerDefinition]] = tuple
        self._looks: asyncio.Task[object] | None = None
        if definition.launch.sandbox is not None:
            log.on_words = self._hear

    @property
    def id(self) -> ServerId:
        return self.definition.id

    @property
    def transport(self) -> Transport:
        """What is in use: of an address without a type, SSE where HTTP was refused."""
        return self.live.transport.kind if self.live is not None else self.definition.transport

    @property
    def is_first_start(self) -> bool:
        """Whether it starts, and has been neither ready nor failed since it was told to."""
        return self.status in UNDECIDED and not self._has_settled and not self._dozes

    @property
    def is_callable(self) -> bool:
        """Whether it is ready, or sleeps and wakes for a call."""
        return self.live is not None or self._dozes

    def begin(self) -> None:
        """Start the server, unless it starts when it is needed and what it offers is kept."""
        self.start()
        self._queues = True
        if self.definition.is_lazy and self.status is _S.STARTING:
            self._may_recall, self.is_launching = True, False

    def redefine(self, definition: ServerDefinition) -> None:
        """Take one that differs only in its line, which tools it leaves out, when it starts, where.

        A connection gets other roots at once. A process moves into the opened folder when its calls
        have ended, and out of it at once.
        """
        has_moved = definition.is_outside is not self.definition.is_outside
        self.definition = definition
        if has_moved and self._attempt is not None:
            self._attempt.move(is_outside=definition.is_outside)
        if has_moved and not definition.is_outside and self.status in {_S.RETRYING, _S.FAILED}:
            self.start()  # it may have failed for want of what is in the folder
        elif self._is_misplaced and definition.is_outside and self.status is _S.STARTING:
            self.restart()
        if self._dozes and not definition.is_lazy:
            self.wake()
        self._wake.set()

    @property
    def _is_misplaced(self) -> bool:
        """Whether its process runs elsewhere than it should."""
        is_here = self._began_outside in {None, self.definition.is_outside}
        return self.definition.transport is Transport.STDIO and not is_here

    def wake(self) -> bool:
        """Start the server if it sleeps; return whether it is on its way."""
        if self._dozes:
            if self.status is _S.STARTING:
                self._skip_queue()
            else:
                self.start()
        return self._dozes

    def start(self) -> None:
        """Start the server, unless it is withheld, disabled or already running.

        A server that waits for a retry starts at once; its earlier failures are forgotten.
        """
        self._backoff.reset()
        self._begin_to_start()

    def _begin_to_start(self) -> None:
        self._has_settled = False
        self._skip_queue()
        self._restarts, self.restarted = 0, ""
        if self.status in _AT_REST:
            self._wanted = self.is_launching = True
            self._move(_S.STARTING)
        elif self.status is _S.STOPPING:
            self._wanted = self._enabled

    def _skip_queue(self) -> None:
        """Let a start not wait for its turn, or no longer."""
        self._queues = False
        self._wake.set()

    def network_changed(self) -> None:
        """Try a server on the network again that is away, whatever the reason was."""
        if self.definition.transport is not Transport.STDIO and self.status in ATTEMPTED:
            self._begin_to_start()  # its failures still count: some networks change all the time
            self._has_settled = self._queues = True

    def stop(self) -> None:
        """Stop the server; it stays stopped."""
        self._wanted = self._dozes = False
        if self.status in _RUNNING:
            self._begin_to_stop()
        elif self.status in _AT_REST - {_S.STOPPED}:
            self._move(_S.STOPPED)
            self._wake.set()

    def restart(self) -> None:
        """Stop the server if it runs, and start it."""
        if self.status in _RUNNING:
            self._wanted = True
            self._has_settled = False
            self._begin_to_stop()
        else:
            self.start()

    def set_enabled(self, *, enabled: bool) -> None:
        """Disable or enable the server.

        A withheld server stays withheld, unless its definition lets the user enable it.
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
        """Stop the server for good, which ends `run`."""
        self._closing = True
        self.stop()
        self._wake.set()

    def kill(self) -> None:
        """Kill the server at once."""
        if self._attempt is not None:
            self._attempt.transport.kill()

    async def run(self) -> None:
        """Supervise until `close` is called. Cancelling it ends the server too.

        An error in here makes the server a failed one, until the user starts it again.
        """
        while True:
            try:
                return await self._supervise()
            except Exception as error:  # the user must learn of it, and can start it again
                logger.exception("a server's supervisor broke down")
                self.status, self.live, self.retry_at = _S.FAILED, None, None
                self._dozes = False
                self.failure = self._log.mask_failure(internal_error(error).as_failure())
                with suppress(Exception):  # it may be the fault
                    self._on_status(self)
            if self._closing:
                return
            self._wake.clear()
            await self._wake.wait()

    async def _supervise(self) -> None:
        await self._context.visibility.prepare(self.definition)
        while True:
            self._wake.clear()
            if self._may_recall:
                await self._recall()
            if self.status in {_S.STARTING, _S.STOPPING}:
                await self._run_once()
            elif self._closing:
                return
            elif self.status is _S.RETRYING:
                await self._pause()
            else:
                await self._wake.wait()

    async def _recall(self) -> None:
        """Sleep in place of a start, if what the server offered last is kept.

        Of its tools those are left out whose definition it has not shown itself.
        """
        self._may_recall = False
        definition, visibility = self.definition, self._context.visibility
        kept = await asyncio.to_thread(self._context.catalogs.load, definition.fingerprint)
        if kept is not None:
            raw, info = kept
            offer = await asyncio.to_thread(read_offer, raw)
            offer = offer.only(lambda tool: visibility.is_known(definition, tool))
            if not offer.is_empty and self.status is _S.STARTING:
                self.info = info
                self.usage.offered(offer, is_first=True)
                self._on_offer(self, offer)
                self._move(_S.ASLEEP)
                return
        self.is_launching = self.status is _S.STARTING

    async def _pause(self) -> None:
        """Wait for the next attempt or the next command, or until the machine was asleep."""
        offset = clock_offset()
        while (left := self._backoff.seconds_until(self.retry_at or 0.0)) > 0:
            if self._wake.is_set():
                return
            if clock_offset() - offset > ASLEEP:
                return self.network_changed()
            await wait_within(self._wake, min(left, ASLEEP))
        if self.status is _S.RETRYING:
            self._restarts += 1
            self.restarted = f"restarted {self._restarts} ×, {self._cause}"
            self._queues = True
            self._move(_S.STARTING)

    async def _run_once(self) -> None:
        """Connect once and hold the connection until it ends.

        A failed attempt or a lost connection leads to a retry, a sign-in, or a failed server.
        """
        error: ServerError | None = None
        is_connected = self._is_told = False
        borrowed: ServerProcess | None = None
        self._log.begin()
        self._told = set()
        try:
            async with asyncio.timeout(None) as self._deadline:
                await self._take_turn()
                if not self._dozes:
                    self.usage.started()
                self._grant(self.definition.timeout)
                definition = await self._filled()  # it may be told to move meanwhile
                definition = replace(definition, is_outside=self.definition.is_outside)
                self._began_outside = definition.is_outside
                if self._context.borrow is not None:
                    borrowed = await self._context.borrow(self.definition)
                starting = running_server(definition, self._log, self._context, self._must_stop)
                async with nullcontext(borrowed) if borrowed else starting as process:
                    self.is_launching = False
                    self._grant(None)
                    connect = await self._load_connect()  # the process gets ready meanwhile
                    if not self._must_stop():
                        self._grant(self.definition.timeout)
                        definition = replace(definition, is_outside=self.definition.is_outside)
                        self._attempt = connect(definition, self._log, self._context, process)
                        async with self._attempt as live:
                            is_connected = True
                            self._take_offer(live.offer, is_first=True)
                            if live.offer.is_empty:
                                words = "offers nothing: no usable tool, no prompt, no resource"
                                for tool in live.offer.tools[:1]:
                                    words += f" ({tool.view.name}: {tool.view.problem})"
                                error = ServerError(words, "See its log.", permanent=True)
                            elif not self._must_stop():
                                self._grant(None)
                                await self._serve(live)
                            self._grant(CLOSE_TIMEOUT)
        except TimeoutError:
            if not is_connected and not self._must_stop():
                advice = "If it needs longer, set a larger `timeout` (milliseconds) in its entry."
                error = ServerError(f"was not ready within {self.definition.timeout:g} s", advice)
        except ProbeError:
            self._backoff.failed()  # it is still to start, and does so at once
        except ServerError as caught:  # a borrowed one that was not ready is started instead
            error = caught if is_connected or borrowed is None else None
        except Exception as caught:  # noqa: BLE001 - the other servers must go on
            trace = "".join(traceback.format_exception(caught))
            logger.warning("a server's connection broke: %s", self._log.mask(trace))
            error = internal_error(caught)
        finally:
            self._deadline = self._began_outside = None
            self.is_launching = False
            self.live = None
            self._log.flush()
        if self._looks is not None:
            await asyncio.wait({self._looks}, timeout=LOOK_TIMEOUT)
        self._settle(error)
        self._attempt = None

    def _hear(self, words: str) -> None:
        """Look at what the server wrote, unless a look is under way."""
        if any(claims_in(words)) and (self._looks is None or self._looks.done()):
            self._looks = asyncio.create_task(self.look(words))

    async def look(self, words: str) -> RefusedAccess | None:
        """Return what its words report as refused by its sandbox, and tell of it."""
        if self.definition.launch.sandbox is None or not (claims := [*claims_in(words)]):
            return None
        what = claims, self.definition, self.others(), self._context
        found = await asyncio.to_thread(refused_access, *what)
        is_over = self._closing or len(self._told) == MAX_TOLD  # closing, another has its place
        if found is not None and found not in self._told and not is_over:
            self.refused = found
            self._told.add(found)
            self._log.remark(found.words)
            self._context.publish(AccessRefused(self.id, found))
        return found

    async def _take_turn(self) -> None:
        """Wait in the queue of starts, unless the user or a call starts the server meanwhile."""
        if not self._queues:
            return
        self.is_queued, turn = True, asyncio.create_task(self._context.starts.turn())
        turn.add_done_callback(lambda _: self._wake.set())
        try:
            while not turn.done() and self._queues:
                self._wake.clear()
                await self._wake.wait()
        finally:
            self.is_queued = False
            if not turn.cancel():  # it had come; the next status ends it
                self._end_turn = turn.result()

    async def _filled(self) -> ServerDefinition:
        """Return the server with the secrets that its extension or the user keeps elsewhere."""
        definition, redactor, self.lacks = self.definition, self._context.redactor, ""
        if definition.launch.kept:
            definition, self.lacks = await with_extension_secrets(definition, redactor)
        if self.lacks:
            self._log.remark(self.lacks)
        try:
            definition = await with_named_secrets(definition, redactor)
        except CredentialError as error:
            raise ServerError(str(error), error.advice, permanent=True) from error
        self._log.learn(definition.given(os.environ), definition.secrets - self.definition.secrets)
        return definition

    async def _serve(self, live: "Connection") -> None:
        """Be ready until the server ends or has to stop; publish at once why it ended."""
        self.live = live
        self.info = live.info
        self._backoff.succeeded()
        self._move(_S.READY)
        if self.refused not in {None, *self._told}:  # it stays in sight while it is tried again
            self.refused = None
            self._context.publish(AccessRefused(self.id, None))
        waits = [asyncio.create_task(event.wait()) for event in (live.ended, live.outdated)]
        for wait in waits:
            wait.add_done_callback(lambda _: self._wake.set())
        following = asyncio.create_task(live.follow(self._take_offer), name=f"follow {self.id}")
        following.add_done_callback(self._report)
        is_outside = bool(self._began_outside)
        try:
            while not live.ended.is_set() and not self._must_stop():
                left = self._until_sleep(live)
                if is_outside is not self.definition.is_outside:
                    is_outside = self.definition.is_outside
                    with suppress(TimeoutError):
                        async with asyncio.timeout(TELL_TIMEOUT):
                            await live.features.tell_roots_changed()
                elif live.outdated.is_set() or (self._is_misplaced and self._may_move(live)):
                    self.restart()
                elif left is not None and left <= 0:
                    self._wanted, self._dozes = False, True
                    self._begin_to_stop()
                else:
                    self._wake.clear()
                    await wait_within(self._wake, MOVE_POLL if self._is_misplaced else left)
        finally:
            for task in (*waits, following):
                task.cancel()
        if not self._must_stop():
            self._fail(live.transport.problem or ServerError(live.transport.ending()))
        await asyncio.wait({*waits, following})

    def _may_move(self, live: "Connection") -> bool:
        """Return whether no call keeps the process in its place; what must leave does not wait."""
        return self.definition.is_outside or not (self.usage.running or live.tasks.followed)

    def _until_sleep(self, live: "Connection") -> float | None:
        """Return the seconds until the server sleeps if nobody uses it; None for never."""
        after = self._context.sleep_after
        if not self.definition.is_lazy or not after:
            return None
        return after - min(live.idle(), time.monotonic() - self.since)

    def _take_offer(self, offer: ServerOffer, *, is_first: bool = False) -> None:
        self.usage.offered(offer, is_first=is_first)
        if self.definition.is_lazy and self._attempt is not None:
            catalogs = self._context.catalogs
            catalogs.save(self.definition.fingerprint, offer.raw, self._attempt.info)
        self._on_offer(self, offer)

    def _must_stop(self) -> bool:
        return self.status is _S.STOPPING

    def _begin_to_stop(self) -> None:
        """Ask the task to close the connection; abort one that is still opening."""
        was_starting = self.status is _S.STARTING
        self._move(_S.STOPPING)
        self._wake.set()
        if was_starting:
            self._grant(0)

    def _grant(self, seconds: float | None) -> None:
        """Set the time the attempt has from now on; None for no limit."""
        when = None if seconds is None else asyncio.get_running_loop().time() + seconds
        if self._deadline is not None:
            with suppress(RuntimeError):  # it has just expired
                self._deadline.reschedule(when)

    def _settle(self, error: ServerError | None) -> None:
        """Set the next status after the connection has closed."""
        if self.status is _S.STOPPING:
            self._move(_S.ASLEEP if self._dozes else _S.STOPPED)
            if not self._enabled:
                self._move(_S.DISABLED)
            elif self._wanted and not self._closing:
                self.start()
        elif error is not None and not self._is_told:
            self._fail(error)

    def _fail(self, error: ServerError) -> None:
        """Publish a failure, and decide whether and when to retry."""
        self._is_told = True
        if isinstance(error, SignInError) and self.definition.endpoint.sign_in.is_off:
            advice = "Remove oauth.enabled from its entry to sign in, or set `headers`."
            error = ServerError(error.reason, advice, permanent=True)
        code = self._attempt.transport.exit_code if self._attempt is not None else None
        tail = self._log.tail()
        line = self._log.printed if self.status is _S.STARTING else ""
        if code is not None and tail:  # what it wrote last says why it ended
            line = telling_line(self._log.tail(SEARCHED_TAIL)) or line or tail[-1]
        if line:
            error = ServerError(f"{error.reason}: {line}", error.advice, permanent=error.permanent)
        masked = error.masked(self._log.mask)  # before a text is cut
        failure = self._log.mask_failure(masked.as_failure(tail))
        failure = replace(failure, advice=f"{self.lacks} {failure.advice}".strip())
        self._cause = sanitize_line(failure.reason, MAX_CAUSE) if code is None else f"exit {code}"
        if isinstance(error, SignInError):
            self._move(_S.NEEDS_SIGN_IN, failure)
        elif error.permanent:
            self._move(_S.FAILED, failure)
        else:
            retry_at = self._backoff.failed()
            if self._backoff.is_exhausted:
                times = self._backoff.policy.max_failures
                often = f"Gave up after {times} attempts: press r to restart it."
                advice = f"{failure.advice} {often}".strip()
                self._move(_S.FAILED, replace(failure, advice=advice))
            else:
                self._move(_S.RETRYING, failure, retry_at)

    def _move(
        self, status: ServerStatus, failure: Failure | None = None, retry_at: float | None = None
    ) -> None:
        self.status = advance(self.status, status)
        self.failure = failure
        self.retry_at = retry_at
        self.since = time.monotonic()
        self._dozes = status is _S.ASLEEP or (self._dozes and status in UNDECIDED)
        if status is not _S.READY:
            self.live = None
            if not self._dozes:
                self.info = None
        if status not in {_S.STARTING, _S.RETRYING}:
            self._end_turn()
        logger.debug("%s: %s", self.id, status.value)
        self._log.tap.word(status.value, failure.reason if failure is not None else "")
        if failure is not None:
            severity = Severity.WARNING if status is _S.RETRYING else Severity.ERROR
            self._log.remark(sanitize_line(failure.reason), severity)
        self._has_settled = self._has_settled or status in _TRIED
        self._on_status(self)

    def _report(self, task: asyncio.Task[None]) -> None:
        """Tell why the task that follows changes ended."""
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.warning("a server's changes are no longer followed", exc_info=error)
            self._log.remark("its changes are no longer tracked; restart it to see them")
