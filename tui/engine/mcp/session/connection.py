"""One connection: an `mcp.Client` over one transport, opened and closed by one task.

Importing the MCP SDK takes half a second: import this module in a thread.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, AsyncExitStack, contextmanager
from dataclasses import replace
from itertools import count, islice
from typing import Any, Final, Literal, TypeVar
from weakref import WeakValueDictionary

import anyio
import mcp_types as types
from mcp import Client, InputRequiredRoundsExceededError, MCPError
from mcp.client import ClientRequestContext, advertise
from pydantic import ValidationError

from tui.engine.background import TaskSet, wait_within
from tui.engine.definitions.definition import ServerDefinition, shown_target
from tui.engine.mcp.backoff import Backoff
from tui.engine.mcp.callbacks.elicitation import Elicitation, required_addresses
from tui.engine.mcp.callbacks.sampling import REFUSED, Sampling
from tui.engine.mcp.catalog.marks import marks_of
from tui.engine.mcp.catalog.offer import RawOffer, ServerOffer, Tool, read_offer
from tui.engine.mcp.catalog.offered_tool import (
    CallNotTakenError,
    JsonObject,
    ToolCallError,
    ToolResult,
)
from tui.engine.mcp.catalog.results import convert_result, text_size
from tui.engine.mcp.catalog.skill_entry import SKILLS
from tui.engine.mcp.context import ClientContext
from tui.engine.mcp.errors import ProbeError, ServerError, SignInError, internal_error, leaves
from tui.engine.mcp.schema.to_gemini import unknown_dialect
from tui.engine.mcp.server_log import ServerLog, json_text
from tui.engine.mcp.session import sdk_patches
from tui.engine.mcp.session.call_timeout import CallTimeout, CallTimeoutError, ProgressReporter
from tui.engine.mcp.session.era import EraCache
from tui.engine.mcp.session.features import Features, takes_log_level
from tui.engine.mcp.session.listing import ACK_PATIENCE, StaleLists, list_offer, listen
from tui.engine.mcp.session.sdk_patches import keeping_results
from tui.engine.mcp.session.task_requests import ASKED_TTL, EXTENSION, MAX_INPUTS, TaskRequests
from tui.engine.mcp.session.task_state import TaskState, read_task
from tui.engine.mcp.transports.http.headers_command import HeadersCommand
from tui.engine.mcp.transports.http.http_transport import HttpTransport
from tui.engine.mcp.transports.jsonrpc_lines import EXCHANGE_FAILED, SESSION_LOST
from tui.engine.mcp.transports.stdio.process import ServerProcess
from tui.engine.mcp.transports.stdio.stdio_transport import Probe, StdioTransport
from tui.model.bounded_json import as_object
from tui.model.chat import Progress, Severity
from tui.model.input.addresses import MAX_URL, check_address
from tui.model.servers import ProtocolEra, ServerInfo, Transport
from tui.text import counted, sanitize, sanitize_line

_Result = TypeVar("_Result")
_Answer = TypeVar("_Answer")

_TOO_EARLY: Final = types.ErrorData(
    code=types.INVALID_REQUEST, message="Requests are refused before initialization"
)
_TOO_OFTEN: Final = types.ErrorData(code=types.INVALID_REQUEST, message="Too many requests")
_FAILED: Final = types.ErrorData(code=types.INTERNAL_ERROR, message="The request failed")

_REFUSAL: Final = "The server requested input, which only the older protocol supports."
_SETTING: Final = "gemdeck.protocols"
_RELATED: Final = "io.modelcontextprotocol/related-task"
_NO_RESULT: Final = "The server's response is not a valid tool result."

CLIENT_NAME: Final = "gemdeck"

MAX_INSTRUCTIONS: Final = 20_000
"""Characters of a server's instructions that are kept."""

MAX_CLAIM: Final = 64
"""Characters of a name, a version or a capability."""

MAX_CAPABILITIES: Final = 32
"""Capabilities and extensions that are named."""

ENDING_GRACE: Final = 1.5
"""Seconds that a failed call waits for the reason why the server is gone."""

MAX_TEXT_ON_LOOP: Final = 20_000
"""Longest result that is converted on the event loop, in characters."""

MAX_CHECK_ON_LOOP: Final = 100_000
"""Largest product of the sizes of a result and its schema that is checked on the event loop: some
thousands of keywords at worst. A thread takes longer to wake up than most checks take."""

NO_BACK_CHANNEL: Final = "back-channel"
"""In the message of a stateless server that wanted to send us a request."""

logger = logging.getLogger(__name__)

_SAMPLING: Final = types.SamplingCapability(tools=types.SamplingToolsCapability())

_QUIET: Final = dict.fromkeys(("debug", "info", "notice"), Severity.INFO)
_SEVERITIES: Final = {**_QUIET, "warning": Severity.WARNING}


class RequestHandler:
    """Answers the requests of one connection.

    Requests before initialization are refused, as the SDK dispatches them from the first byte on.
    While one is answered, the timeout of that server's calls is paused.

    Args:
        definition: The server.
        context: What all connections share.
        log: Takes remarks.
        call_timeout: The timeout to pause.

    Attributes:
        elicitation: Answers elicitations.
        is_outside: Whether the opened folder is none of the roots.
    """

    def __init__(
        self,
        definition: ServerDefinition,
        context: ClientContext,
        log: ServerLog,
        call_timeout: CallTimeout,
    ) -> None:
        self.elicitation = Elicitation(definition.id, context)
        self.is_outside = definition.is_outside
        self._sampling = Sampling(definition, context, log)
        self._context, self._call_timeout = context, call_timeout
        self._scopes: dict[anyio.CancelScope, object] = {}
        self._is_closed = False
        context.desk.remarks[definition.id] = log.remark

    def close(self) -> None:
        """Withdraw all questions of this connection and refuse later requests."""
        self._is_closed = True
        self.withdraw(*self._scopes.values())

    def withdraw(self, *tasks: object) -> None:
        """Withdraw the questions that belong to tasks; None stands for those of no task."""
        for scope, task in self._scopes.items():
            if task in tasks:
                scope.cancel()

    async def elicit(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """Ask the user to fill in a form or open an address."""
        return await self._reply(context, params, lambda: self.elicitation.elicit(params))

    async def sample(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.CreateMessageResultWithTools | types.ErrorData:
        return await self._reply(context, params, lambda: self._sampling.sample(params))

    async def list_roots(
        self, context: ClientRequestContext
    ) -> types.ListRootsResult | types.ErrorData:
        """Return the opened folders; outside the first, only further ones that are not in it."""
        if context.session.protocol_version is None:
            return _TOO_EARLY
        folders = self._context.workspaces
        if self.is_outside:
            folders = tuple(f for f in folders if folders[0] not in (f, *f.parents))
        roots = [types.Root(uri=f.as_uri(), name=f.name or str(f)) for f in folders]
        return types.ListRootsResult(roots=roots)

    async def open_required(self, error: MCPError, tool: str) -> bool:
        return await self._attend(lambda: self.elicitation.open_required(error, tool), False)

    async def _reply(
        self,
        context: ClientRequestContext,
        params: types.RequestParams,
        work: Callable[[], Awaitable[_Result]],
    ) -> _Result | types.ErrorData:
        if context.session.protocol_version is None:
            return _TOO_EARLY
        related = (params.meta or {}).get(_RELATED)
        task = str(related.get("taskId")) if isinstance(related, dict) else None
        known = self._call_timeout.asked
        asked = known[task] if task in known else known.setdefault(None, set())
        asked.add(min(len(asked), MAX_INPUTS))
        return _TOO_OFTEN if len(asked) > MAX_INPUTS else await self._attend(work, _FAILED, task)

    async def _attend(
        self, work: Callable[[], Awaitable[_Result]], otherwise: _Answer, task: object = None
    ) -> _Result | _Answer:
        """Do some work with the call timeout paused; return `otherwise` if that fails.

        It fails if the connection closes. Our own errors must not get out either: the SDK would
        send their text to the server.
        """
        if self._is_closed:
            return otherwise
        with self._call_timeout.pause(), anyio.CancelScope() as scope:
            self._scopes[scope] = task
            try:
                return await work()
            except Exception:  # a broken answer must not end the connection
                logger.exception("a request of a server failed")
            finally:
                del self._scopes[scope]
        return otherwise


class EraChoice:
    """The era of one connection.

    Args:
        definition: Which server.
        eras: The cache.

    Attributes:
        probe: How the server is asked whether it speaks the newer one.
        outdated: Set when the server needs the other era and no running call would be broken off
            by a new connection.
    """

    def __init__(self, definition: ServerDefinition, eras: EraCache) -> None:
        self.probe, self.outdated = Probe(), asyncio.Event()
        self._definition, self._eras = definition, eras
        self._is_recalled = self._is_wrong = False
        self._calls, self._writing = 0, asyncio.Lock()  # the era found out last stays

    async def choose(self) -> Literal["auto", "legacy"]:
        """Return the SDK's connection mode."""
        era = self._definition.protocol
        if era is ProtocolEra.AUTO:
            era = await asyncio.to_thread(self._eras.recall, self._definition)
            self.probe.is_known = self._is_recalled = era is not ProtocolEra.AUTO
        return "legacy" if era is ProtocolEra.HANDSHAKE else "auto"

    def check(self, version: str) -> None:
        """Check the negotiated revision against the settings.

        Raises:
            ServerError: If the settings require the stateless protocol and it is not spoken.
        """
        if self._definition.protocol is ProtocolEra.STATELESS and version < "2026-07-28":
            reason = f"uses revision {version}, but the settings require the stateless protocol"
            raise ServerError(reason, f"Set the server to auto in {_SETTING}.", permanent=True)

    def distrust(self, *, of_probe: bool, is_kept: bool = False) -> bool:
        """Make the next attempt another one: with a probe, if this one relied on the cache.

        If `of_probe`, and it was made, a local server is greeted without, in other runs too if
        `is_kept`; returns if that is new.
        """
        one = self._definition
        if self._is_recalled:
            self._eras.distrust(one)
        elif of_probe and one.transport is Transport.STDIO and one.protocol is ProtocolEra.AUTO:
            return self._eras.suspect(one, is_kept=is_kept)
        return False

    async def remember(self, era: ProtocolEra) -> None:
        """Remember the era of the server, unless the settings force one."""
        if self._definition.protocol is ProtocolEra.AUTO:
            async with self._writing:
                await asyncio.to_thread(self._eras.remember, self._definition, era)

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Count a call while it runs."""
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1
            self._replace_when_idle()

    async def refuse_callback(self) -> ToolCallError:
        """Explain the error of a server that wants to send us a request and cannot.

        Servers written for the handshake send requests of their own. The stateless protocol has
        none, so the connection is replaced, unless the settings force it.
        """
        if self._definition.protocol is not ProtocolEra.AUTO:
            return ToolCallError(f"{_REFUSAL} Set the server to auto or handshake in {_SETTING}.")
        await self.remember(ProtocolEra.HANDSHAKE)
        self._is_wrong = True
        self._replace_when_idle()
        return ToolCallError(f"{_REFUSAL} It is reconnecting with that one: repeat the call.")

    def _replace_when_idle(self) -> None:
        if self._is_wrong and self._calls == 0:
            self.outdated.set()


class Connection:
    """A connection to one server, as an async context manager.

    Entering it opens the transport, shakes hands and lists the server's offer; the caller limits
    the time. One task enters and leaves; any task may call.

    Args:
        definition: Which server.
        log: Takes what the server writes.
        context: What all connections share.
        process: The server's process, which the caller ends, or the server as an open deck lends
            it; None for a server over HTTP.

    Attributes:
        transport: Its transport, which knows why the server is gone.
        info: The server's description of itself.
        offer: Its current offer.
        ended: Set when the server is gone, even if no request is running.
        outdated: Set when the server needs a connection of the other era.
        features: Its prompts, resources, completions and log level.
        tasks: The calls that it runs as tasks.
        connected: Seconds until it had answered the first request.
        listed: Seconds that its lists took after that.
        clock: The seconds of a clock that stops while the server waits for us.
        calling: See `Elicitation.calling`.
    """

    transport: StdioTransport | HttpTransport
    features: Features
    tasks: TaskRequests
    info: ServerInfo
    offer: ServerOffer
    ended: asyncio.Event
    outdated: asyncio.Event
    calling: Callable[[], AbstractContextManager[None]]
    connected = listed = 0.0

    def __init__(
        self,
        definition: ServerDefinition,
        log: ServerLog,
        context: ClientContext,
        process: ServerProcess | None = None,
    ) -> None:
        self._definition, self._log, self._context = definition, log, context
        self._stack = AsyncExitStack()
        self._call_timeout = CallTimeout(definition.timeout)
        self.clock = self._call_timeout.clock
        self._era = EraChoice(definition, context.eras)
        self._commanded: HeadersCommand | None = None
        self._has_process = False
        if process is not None:
            self.transport = StdioTransport(process, log, self._era.probe)
            self.transport.kind = definition.transport
            self._has_process = process.pid != 0  # else a deck answers, which knows the era
        else:
            sign_ins = context.sign_ins
            credentials = sign_ins.credentials(definition) if sign_ins is not None else None
            if definition.launch.command:
                self._commanded = HeadersCommand(definition, log, context)
            signs, pausing = self._commanded or credentials, self._call_timeout.pause
            self.transport = HttpTransport(definition, log, signs, pausing)
        self.ended = self.transport.ended
        self._client: Client | None = None
        self._lists = RawOffer()
        self._reporters = WeakValueDictionary[str | int, ProgressReporter]()
        self._tokens = count(1)
        self._stale = StaleLists()
        self._tasks = TaskSet("changes of lists could not be listened for")
        self.outdated = self._era.outdated
        self._handler = RequestHandler(definition, context, log, self._call_timeout)
        self.calling = self._handler.elicitation.calling

    async def __aenter__(self) -> "Connection":
        sdk_patches.silence()
        try:
            async with AsyncExitStack() as stack:
                await self._open(stack)
                self._stack = stack.pop_all()
        except asyncio.CancelledError:
            is_silent = self._has_process and self._era.probe.is_unanswered
            self._era.distrust(of_probe=is_silent, is_kept=True)
            raise
        except Exception as error:  # whatever the SDK raises, the user wants the reason
            failure = await self._explain(error)
            is_early = self._has_process and not (self.connected or failure.permanent)
            if self._era.distrust(of_probe=is_early):
                words = f"{failure.reason}; restarting it with the older handshake (initialize)"
                self._log.remark(words)
                failure = ProbeError(failure.reason)
            raise failure from error
        return self

    async def __aexit__(self, *exception: Any) -> None:  # noqa: ANN401 - as the stack takes it
        await self._stack.__aexit__(*exception)

    async def _open(self, stack: AsyncExitStack) -> None:
        context, definition = self._context, self._definition
        logger.debug("%s: connecting to %s", definition.id, shown_target(definition))
        client = Client(
            self.transport,
            mode=await self._era.choose(),
            list_roots_callback=self._handler.list_roots,
            elicitation_callback=self._handler.elicit,
            sampling_callback=self._handler.sample if context.generator else None,
            sampling_capabilities=_SAMPLING,
            logging_callback=self._on_log,
            message_handler=self._on_message,
            client_info=types.Implementation(name=CLIENT_NAME, version=context.client_version),
            extensions=[advertise(SKILLS), advertise(EXTENSION)],
            cache=None,
        )
        begun = self.clock()
        await stack.enter_async_context(client)
        self.connected = self.clock() - begun
        stack.callback(self._handler.close)
        self.info = info = _server_info(client)
        said = info.name, info.version, info.protocol_version
        declared = ", ".join(info.capabilities) or "nothing"
        logger.debug("%s: %s %s speaks %s, declares %s", definition.id, *said, declared)
        self._era.check(client.protocol_version)
        sdk_patches.adapt(client, self._task_asked_for)
        if sdk_patches.is_stateless(client):  # first: a change while the lists are read is told
            stack.push_async_callback(self._tasks.aclose)
            listening = self._tasks.start(listen(client, self._stale, Backoff()))
            listening.add_done_callback(lambda _: self._stale.heard.set())
            await wait_within(self._stale.heard, ACK_PATIENCE)
        self._stale.are_read = True
        self._lists = await list_offer(client, self._log, self._lists)
        self.listed = self.clock() - begun - self.connected
        self.offer = await asyncio.to_thread(read_offer, self._lists)
        own, offered = self._log.own, lambda: self.offer
        known = client, definition.id, offered, context
        features = Features(*known, self._call_timeout, own, self.calling)
        self.features = await stack.enter_async_context(features)
        self.tasks = TaskRequests(client, self._clean, self._handler.withdraw)
        self.tasks.asked = self._call_timeout.asked
        stack.callback(self.tasks.close)
        self._client = client
        offer = self.offer
        tools, prompts = counted(len(offer.tools), "tool"), counted(len(offer.prompts), "prompt")
        resources = counted(len(offer.resources), "resource")
        logger.debug("%s: offers %s, %s, %s", definition.id, tools, prompts, resources)

    def move(self, *, is_outside: bool) -> None:
        """Go by where the server is to run now, with its roots and the program for its headers."""
        self._definition = replace(self._definition, is_outside=is_outside)
        self._handler.is_outside = is_outside
        if self._commanded is not None:
            self._commanded.definition = self._definition

    def idle(self) -> float:
        """Return for how many seconds nobody has used the server; 0 while it is followed."""
        is_followed = self._context.subscriptions.get(self._definition.id)
        return 0.0 if is_followed or self.tasks.followed else self._call_timeout.idle()

    async def follow(self, on_offer: Callable[[ServerOffer], None]) -> None:
        """List again whatever the server announces as changed, while it is connected."""
        client = self._client
        if client is None:
            return
        # Of a server that was late there is more patience the next time.
        era = ProtocolEra.STATELESS if self._era.probe.is_late else self.info.era
        await self._era.remember(era)
        self._stale.rest(self._lists)
        while await self._refresh(client):
            self.offer = await asyncio.to_thread(read_offer, self._lists)
            on_offer(self.offer)

    async def _refresh(self, client: Client) -> bool:
        """Read the lists until something has changed; return False once the connection is lost."""
        while True:
            kinds, before = tuple(await self._stale.next()), self._lists
            try:
                self._lists = await list_offer(client, self._log, self._lists, kinds)
            except MCPError:
                return False
            except ServerError as error:
                self._log.remark(f"its tools changed, but {error.reason}; the old list is kept")
                continue
            self._stale.rest(self._lists)
            if self._lists != before:
                self._log.remark(f"changed; list reloaded: {', '.join(kinds)}", Severity.INFO)
                return True

    async def call_tool(
        self, name: str, arguments: JsonObject, on_progress: Callable[[Progress], None]
    ) -> ToolResult | TaskState:
        """Run a tool by its name on the server, which may turn the call into a task.

        Cancelling the caller or exceeding the timeout cancels the call on the server.

        Raises:
            CallNotTakenError: If it is safe to repeat the call on a new connection.
            ToolCallError: If no result came back.
        """
        client = self._client
        if client is None:
            raise ToolCallError("The server is not connected.")
        report = ProgressReporter(on_progress)
        try:
            with self._era.calling():
                async with self._call_timeout.watch():
                    with keeping_results() as kept:
                        # dropped with the last who has it: this call, or the task that it becomes
                        self._reporters[token := next(self._tokens)] = report
                        await self._send_call(client, name, arguments, {"progress_token": token})
        except CallTimeoutError as error:
            raise ToolCallError(
                f"The tool returned {error} and was cancelled; it may have had an effect."
            ) from None
        except MCPError as error:
            raise await self._call_error(error) from error
        except ValidationError as error:
            raise ToolCallError(_NO_RESULT) from error
        except InputRequiredRoundsExceededError as error:
            raise ToolCallError("The server requested input too often in one call.") from error
        except RuntimeError as error:
            raise ToolCallError(self._clean(str(error))) from error
        raw = kept[-1]
        if sdk_patches.is_task(raw):
            return replace(read_task(raw), reporter=report)
        return await self.read_result(name, raw)

    async def send_call(
        self, params: JsonObject, on_progress: Callable[[Progress], None]
    ) -> Mapping[str, Any]:
        """Call a tool by a request as it is, and return the answer as the server wrote it.

        Only its progress token becomes one of this connection.
        """
        report = ProgressReporter(on_progress)
        if "progressToken" in (meta := as_object(params.get("_meta"))):
            self._reporters[token := next(self._tokens)] = report
            params = {**params, "_meta": {**meta, "progressToken": token}}
        return await self.features.request("tools/call", params)

    async def read_result(self, name: str, raw: JsonObject) -> ToolResult:
        """Convert a tool's result; raises `ToolCallError` if it is none."""
        try:
            sdk_patches.check_kind(raw)
            result = sdk_patches.read_call_result(raw, self._log.own.redact_json)
        except (MCPError, ValidationError) as error:
            raise ToolCallError(_NO_RESULT) from error
        tool = next((t for t in self.offer.tools if t.name == name), None)
        size, weight = text_size(result), tool.output_weight if tool is not None else 0
        if size > MAX_TEXT_ON_LOOP or size * weight > MAX_CHECK_ON_LOOP:
            return await asyncio.to_thread(self._convert, result, tool, raw)
        return self._convert(result, tool, raw)

    def remark(self, words: str) -> None:
        """Write into the server's log what is no problem."""
        self._log.remark(words, Severity.INFO)

    def _task_asked_for(self, name: str) -> JsonObject:
        """Return the parameters of a call that has to be a task; of any other, none."""
        tasks = self._client.server_capabilities.tasks if self._client is not None else None
        is_taken = tasks is not None and tasks.requests is not None and tasks.requests.tools
        needs = any(tool.name == name and tool.needs_task for tool in self.offer.tools)
        is_asked = is_taken and needs and not self.info.is_stateless
        return {"task": {"ttl": ASKED_TTL}} if is_asked else {}

    def _convert(
        self, result: types.CallToolResult, tool: Tool | None, raw: JsonObject
    ) -> ToolResult:
        """Convert a result, and check it against the tool's output schema if there is one."""
        faults: list[str] = []
        schema = tool.output_schema if tool is not None else None
        if schema is not None and not result.is_error:
            from tui.engine.mcp.schema.validate import check_value  # noqa: PLC0415 - slow

            structured = result.structured_content
            missing = ["it has no structured content"]
            faults = missing if structured is None else check_value(schema, structured, "result")
        lead = "the result does not match the tool's output schema: "
        misfit = lead + "; ".join(faults) if faults else ""
        odd = unknown_dialect(tool.schema) or unknown_dialect(schema or {}) if tool else ""
        converted = convert_result(result, filter(None, (misfit, odd)))
        shown = sdk_patches.shown_answer(raw, self._log.own.redact_json)
        return replace(converted, raw=shown, faults=tuple(faults))

    async def _send_call(
        self, client: Client, name: str, arguments: JsonObject, meta: types.RequestParamsMeta
    ) -> None:
        """Send a call, and repeat it if the user first had to open an address."""
        try:
            await client.call_tool(name, dict(arguments), meta=meta)
        except MCPError as error:
            if error.code != types.URL_ELICITATION_REQUIRED:
                raise
            if not await self._handler.open_required(error, sanitize_line(name, 128)):
                raise
            await client.call_tool(name, dict(arguments), meta=meta)

    async def _call_error(self, error: MCPError) -> ToolCallError:
        if error.code == types.INVALID_REQUEST and NO_BACK_CHANNEL in error.error.message:
            return await self._era.refuse_callback()
        if error.code in {EXCHANGE_FAILED, SESSION_LOST}:
            kind = CallNotTakenError if error.code == SESSION_LOST else ToolCallError
            return kind(f"The server {sanitize_line(error.error.message)}.")
        if error.code == types.URL_ELICITATION_REQUIRED and (asked := required_addresses(error)):
            words = "The call was not run: an address of the server must be opened first."
            places = ", ".join(check_address(one.url).url for one in asked)
            return ToolCallError(words, f"Open {places}", sdk_patches.reply_of(error))
        if error.code == REFUSED and self.info.is_stateless:
            words = "The call ended because its request for generated text was refused."
            return ToolCallError(words)
        if error.code != types.CONNECTION_CLOSED:
            text = self._clean(sdk_patches.error_words(error))
            words = f"The server refused the call: {text}"
            return ToolCallError(words, reply=sdk_patches.reply_of(error))
        reason = await self._reason_of_end()
        words = "\n".join(self._log.tail(5))
        return ToolCallError(
            f"The server {reason} during the call; whether it had any effect is unknown."
            + (f" Its last output:\n{words}" if words else "")
        )

    async def _reason_of_end(self) -> str:
        if not await wait_within(self.ended, ENDING_GRACE):
            return "was closed"
        return self._log.mask(sanitize_line(self.transport.ending()))

    def _clean(self, text: str) -> str:
        """Sanitize text of the server and mask its secrets."""
        return self._log.mask(sanitize(self._log.mask(text), MAX_INSTRUCTIONS))

    async def _explain(self, error: Exception) -> ServerError:
        """Return the reason why connecting failed."""
        causes, problem = leaves(error), self.transport.problem
        if isinstance(problem, SignInError):
            return problem  # whatever could not be done for want of it
        for cause in causes:
            if isinstance(cause, ServerError):
                return cause
        if problem is not None:
            return problem
        for cause in causes:
            if isinstance(cause, MCPError) and cause.code == types.CONNECTION_CLOSED:
                reason = f"{await self._reason_of_end()} during startup"
                return ServerError(reason, "See its log for the last output.")
            if isinstance(cause, MCPError):
                reason = f"refused to connect: {sdk_patches.error_words(cause)}"
                is_final = cause.code == types.UNSUPPORTED_PROTOCOL_VERSION
                return ServerError(reason, permanent=is_final)
            if isinstance(cause, ValidationError):
                reason = "sent a response that is not MCP"
                return ServerError(reason, "Check that it is an MCP server.", permanent=True)
            if isinstance(cause, RuntimeError):  # no revision of the protocol in common
                return ServerError(str(cause), permanent=True)
        return internal_error(error)

    async def _on_message(self, message: object) -> None:
        self._stale.note(message)
        match message:
            case types.ResourceUpdatedNotification() if self._client is not None:
                self.features.resource_updated(message.params.uri)
            case types.ProgressNotification(params=told):
                if (reporter := self._reporters.get(told.progress_token)) is not None:
                    await reporter(told.progress, told.total, told.message)
            case types.ElicitCompleteNotification():
                self._handler.elicitation.complete(message.params.elicitation_id)

    async def _on_log(self, params: types.LoggingMessageNotificationParams) -> None:
        data = params.data if isinstance(params.data, str) else json_text(params.data)
        text = f"{params.logger}: {data}" if params.logger else data
        self._log.add("log", _SEVERITIES.get(params.level, Severity.ERROR), text, params.level)


def _server_info(client: Client) -> ServerInfo:
    info = client.server_info
    declared = client.server_capabilities
    return ServerInfo(
        name=sanitize_line(info.name, MAX_CLAIM) if info is not None else "",
        version=sanitize_line(info.version, MAX_CLAIM) if info is not None else "",
        protocol_version=sanitize_line(client.protocol_version, MAX_CLAIM),
        instructions=sanitize(client.instructions or "", MAX_INSTRUCTIONS),
        marks=marks_of(client.instructions),
        title=sanitize_line((info and info.title) or "", MAX_CLAIM),
        website=sanitize_line((info and info.website_url) or "", MAX_URL),
        capabilities=_declared(declared),
        announced=_declared(sdk_patches.announced(client)),
        log_levels=takes_log_level(client),
        completions=declared.completions is not None,
        subscriptions=declared.resources is not None and bool(declared.resources.subscribe),
    )


def _declared(by: types.ServerCapabilities | types.ClientCapabilities) -> tuple[str, ...]:
    """Name the capabilities that one side declares, and its extensions."""
    known = by.model_dump(exclude_none=True, exclude={"extensions"})
    names = islice((*sorted(known), *(by.extensions or ())), MAX_CAPABILITIES)
    return tuple(sanitize_line(name, MAX_CLAIM) for name in names)
