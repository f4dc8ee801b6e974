"""Serves gemdeck's servers over stdio to a client of another program, in both eras of MCP."""

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any, Final, cast, get_args

import anyio
import mcp_types as types
from mcp.server import NotificationOptions, Server
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.subscriptions import event_from_wire, event_to_notification
from pydantic import ValidationError

from tui import __version__
from tui.engine.background import TaskSet, in_daemon_thread
from tui.engine.mcp.session import sdk_patches
from tui.engine.serving.deck_socket import DeckLink
from tui.engine.serving.shared_servers import (
    CANCELLED,
    CAPABILITIES,
    FORM_SECONDS,
    MAX_FOLLOWED,
    NOT_ANSWERED,
    RequestRefusedError,
    SharedServers,
)
from tui.model.bounded_json import as_object, value_or_none
from tui.model.chat import Progress
from tui.text import sanitize_line

INSTRUCTIONS: Final = (
    "These are the tools of the servers in the user's gemdeck, under gemdeck's names. "
    "A call that is denied says how the user can allow it."
)

_LISTS: Final = ("tools", "prompts", "resources")
_LEVELS: Final[Sequence[str]] = get_args(types.LoggingLevel)
"""From the least important one on."""

MAX_LISTENING: Final = 16
"""Streams in which a stateless client listens at most."""

_HANDLERS: Final = (
    *("list_tools", "call_tool", "list_prompts", "get_prompt", "list_resources"),
    *("list_resource_templates", "read_resource", "completion"),
    *("subscribe_resource", "unsubscribe_resource"),
)

LOG_SECONDS: Final = 0.1
"""Seconds that a call which wants messages stays open for the last ones: they come in batches."""

_CALL: Final = "tools/call"
_SUBSCRIBE: Final = "resources/subscribe"
_UNSUBSCRIBE: Final = "resources/unsubscribe"

_PLAIN: Final = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
"""What each result of the stateless era has; the SDK leaves it out in the other one."""

MAX_REPORTED: Final = 64
"""Progress of a call that waits for its client; of more, the oldest is dropped."""

STATELESS: Final = "2026-07-28"
"""From this revision on, clients listen to changes in a stream."""

_Context = ServerRequestContext[dict[str, Any], Any]

Sharing = SharedServers | DeckLink
"""What a client gets: an engine's servers, or those of an open deck."""

Sources = Callable[[str], AsyncGenerator[Sharing, None]]
"""What a client gets one after another, for the name that it has for itself."""


class McpServer:
    """Answers one client on standard input and output.

    Args:
        sources: Gives, for the name that the client has for itself, what it gets; once that has
            ended, the next.
        is_better: Tells whether they are to be asked anew, once no request runs.
    """

    def __init__(self, sources: Sources, is_better: Callable[[], bool]) -> None:
        self._sources, self._is_better = sources, is_better
        self._source: Sharing | None = None
        self._failure = ""
        self._opened = asyncio.Event()
        self._bus = InMemorySubscriptionBus()
        self._listening = ListenHandler(self._bus, max_subscriptions=MAX_LISTENING)
        self._followed = Counter[str]()
        self._level = "info"
        self._last: _Context | None = None
        self._running: list[_Context] = []
        self._tasks = TaskSet("serving a client failed")

    async def run(self) -> None:
        """Serve until the client closes our standard input."""
        sdk_patches.silence()
        handlers: dict[str, Any] = {f"on_{name}": self._answer for name in _HANDLERS}
        handlers["on_subscriptions_listen"] = self._listen
        handlers["on_set_logging_level"] = self._set_level
        server = Server("gemdeck", version=__version__, instructions=INSTRUCTIONS, **handlers)
        changing = NotificationOptions(
            tools_changed=True, prompts_changed=True, resources_changed=True
        )
        options = server.create_initialization_options(changing)
        try:
            # a thread of the SDK's that waits in standard input would outlive SIGTERM
            stdin = cast("anyio.AsyncFile[str]", _lines())
            async with stdio_server(stdin=stdin) as (incoming, outgoing):
                await server.run(incoming, outgoing, options)
        finally:
            await self._tasks.aclose()

    async def _source_for(self, context: _Context) -> Sharing:
        is_idle = self._opened.is_set() and not self._running
        if self._last is None or (is_idle and self._is_better()):
            self._tasks.cancel()
            self._opened = asyncio.Event()
            name = known.client_info.name if (known := context.session.client_params) else ""
            self._tasks.start(self._follow(name, self._opened))
        self._last = context
        await self._opened.wait()
        if self._source is None:
            raise MCPError(NOT_ANSWERED, self._failure)
        return self._source

    async def _answer(self, context: _Context, _: object) -> dict[str, Any]:
        source, method = await self._source_for(context), context.method
        params, meta = dict(context.params or {}), dict(context.meta or {})
        if not _is_stateless(context) and (declared := context.session.client_capabilities):
            told = declared.model_dump(by_alias=True, exclude_none=True)
            params["_meta"] = {**meta, CAPABILITIES: told}
        self._running.append(context)
        try:
            result = await self._result(source, context, params)
            if method == _CALL and types.LOG_LEVEL_META_KEY in meta:
                await asyncio.sleep(LOG_SECONDS)
            if method in {_SUBSCRIBE, _UNSUBSCRIBE}:
                self._followed[params["uri"]] = int(method == _SUBSCRIBE)
            return {**_PLAIN, **result}
        except RequestRefusedError as error:
            code, words = error.reply["code"], sanitize_line(str(error.reply["message"]))
            raise MCPError(code, words, error.reply.get("data")) from error
        finally:
            self._running.remove(context)

    async def _result(
        self, source: Sharing, context: _Context, params: dict[str, Any]
    ) -> Mapping[str, Any]:
        """Return the result of a request, for which a client may fill in forms."""
        while True:
            result = await self._asked(source, context.method, params, context.session)
            if result.get("resultType") != "input_required" or _is_stateless(context):
                return result
            params["requestState"] = result["requestState"]
            try:
                params["inputResponses"] = await _filled_in(result["inputRequests"], context)
            except asyncio.CancelledError:
                self._tasks.start(source.request(CANCELLED, params))
                raise

    async def _asked(
        self, source: Sharing, method: str, params: Mapping[str, Any], session: ServerSession
    ) -> Mapping[str, Any]:
        """Return the result of a request, and report its progress meanwhile."""
        reported = asyncio.Queue[Progress | None](MAX_REPORTED)

        def report(one: Progress | None) -> None:
            if reported.full():
                reported.get_nowait()
            reported.put_nowait(one)

        asking = asyncio.create_task(source.request(method, params, report))
        asking.add_done_callback(lambda _: report(None))
        try:
            while (one := await reported.get()) is not None:
                await session.report_progress(one.progress, one.total, one.message or None)
            return await asking
        finally:
            asking.cancel()
            await asyncio.wait({asking})

    async def _follow(self, name: str, opened: asyncio.Event) -> None:
        """Answer from one source after another, and tell the client of what changes."""
        try:
            async with aclosing(self._sources(name)) as sources:
                async for source in sources:
                    async with aclosing(source.changes()) as changes:
                        await self._begin(source)
                        async for one in changes:
                            await self._tell(one["method"], one.get("params") or {})
                    opened.clear()
        except Exception as error:
            self._source, self._failure = None, sanitize_line(f"gemdeck cannot serve: {error}")
            raise
        finally:
            opened.set()  # whoever waits is told that there is nothing

    async def _begin(self, source: Sharing) -> None:
        """Answer from a source, and follow there what the client followed at the last one."""
        is_first, self._source = self._source is None, source
        self._opened.set()
        for kind in _LISTS if not is_first else ():
            await self._tell(f"notifications/{kind}/list_changed", {})
        for uri in +self._followed:
            with suppress(RequestRefusedError):
                await source.request(_SUBSCRIBE, {"uri": uri})
                await self._tell("notifications/resources/updated", {"uri": uri})

    async def _tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Forward a notification to the client."""
        if method == "notifications/message":
            await self._log(types.LoggingMessageNotificationParams.model_validate(params))
        elif (event := event_from_wire(method, params)) is not None:
            await self._bus.publish(event)
            if self._last is not None and not _is_stateless(self._last):
                await self._last.session.send_notification(event_to_notification(event, {}))

    async def _log(self, params: types.LoggingMessageNotificationParams) -> None:
        """Forward a log message: from the client's level on, or within a request that wants it."""
        said = types.LoggingMessageNotification(params=params)
        enough = _LEVELS[: _LEVELS.index(params.level) + 1]
        if self._last is not None and not _is_stateless(self._last):
            if self._level in enough:
                await self._last.session.send_notification(said)
            return
        for context in self._running:
            if (context.meta or {}).get(types.LOG_LEVEL_META_KEY) in enough:
                await context.session.send_notification(said, context.request_id)
                return

    async def _set_level(self, _: _Context, params: types.SetLevelRequestParams) -> dict[str, Any]:
        """Set the client's own log level; those of the servers stay."""
        self._level = params.level
        return {}

    async def _listen(
        self, context: _Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Tell of changes in a stream, and of those resources that servers let be followed."""
        source, wanted, taken = await self._source_for(context), params.notifications, list[str]()
        try:
            for uri in (wanted.resource_subscriptions or ())[:MAX_FOLLOWED]:
                with suppress(RequestRefusedError):
                    await source.request(_SUBSCRIBE, {"uri": uri})
                    taken.append(uri)
                    self._followed[uri] += 1
            wanted.resource_subscriptions = taken
            return await self._listening(context, params)
        finally:
            self._followed.subtract(taken)
            for uri in taken:
                if not self._followed[uri] and self._source is not None:
                    self._tasks.start(self._source.request(_UNSUBSCRIBE, {"uri": uri}))


def _is_stateless(context: _Context) -> bool:
    return context.protocol_version >= STATELESS


async def _filled_in(forms: Mapping[str, Any], context: _Context) -> Mapping[str, Any]:
    """Let a client of the handshake era answer forms."""
    answers, related = {}, ServerMessageMetadata(related_request_id=context.request_id)
    for key, form in forms.items():
        asked = types.ElicitRequest.model_validate(form)
        try:
            found = await context.session.send_request(
                asked, types.ElicitResult, FORM_SECONDS, related
            )
            answers[key] = found.model_dump(by_alias=True, mode="json", exclude_none=True)
        except (MCPError, ValidationError):
            answers[key] = {"action": "cancel"}
    return answers


async def _lines() -> AsyncIterator[str]:
    """Give messages singly, with what the SDK requires and some clients leave out."""
    source = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    while line := (await in_daemon_thread(source.readline)).decode("utf-8-sig", "replace"):
        read = value_or_none(line.encode())  # without the mark with which PowerShell begins
        for one in read if isinstance(read, list) else [read]:
            whole = {"jsonrpc": "2.0", **one} if isinstance(one, dict) else one
            if isinstance(whole, dict) and whole.get("method") == "initialize":
                params = as_object(whole.get("params"))
                about = {"name": "", "version": "", **as_object(params.get("clientInfo"))}
                whole["params"] = {"capabilities": {}, **params, "clientInfo": about}
            yield line if whole == read else json.dumps(whole) + "\n"
