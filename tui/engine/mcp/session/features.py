"""Prompts, resources, completions and log levels over one connection."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import replace
from typing import Any, Final, cast, get_args

import mcp_types as types
from mcp import Client, MCPError
from mcp.client.subscriptions import ResourceUpdated
from pydantic import ValidationError

from tui.engine.logs.redaction import Redactor
from tui.engine.mcp.backoff import LISTENING, Backoff
from tui.engine.mcp.callbacks.sampling import REFUSED
from tui.engine.mcp.catalog import results
from tui.engine.mcp.catalog.offer import ServerOffer
from tui.engine.mcp.catalog.offered_tool import CompletionValues, RenderedPrompt, ResourceReading
from tui.engine.mcp.catalog.skill_entry import SKILLS, Skill, read_skill
from tui.engine.mcp.context import ClientContext
from tui.engine.mcp.errors import ServerCallError, ServerGoneError
from tui.engine.mcp.session import sdk_patches
from tui.engine.mcp.session.call_timeout import CallTimeout, CallTimeoutError
from tui.engine.mcp.transports.jsonrpc_lines import OWN_CODES
from tui.model.events import LogLevelChanged, SubscriptionChanged
from tui.model.servers import ServerId
from tui.text import sanitize_line

MAX_SUBSCRIPTIONS: Final = 50
"""Most subscriptions of one connection."""

logger = logging.getLogger(__name__)

MAX_VALUES: Final = 100
"""Most completion values, as in the protocol."""

MAX_VALUE: Final = 500
"""Longest completion value, in characters; longer ones are dropped."""

MAX_ARGUMENT: Final = 50_000
"""Longest argument of a prompt, in characters."""

LOG_LEVELS: Final = frozenset(get_args(types.LoggingLevel))
"""The levels of RFC 5424, in lower case."""

DEFAULT_LOG_LEVEL: Final = "info"
"""The initial level for stateless servers, which otherwise do not log to us."""


class Subscriptions:
    """The subscribed resources of one connection.

    Servers of the handshake era get a request and send notifications, which the client handles.
    For stateless servers there is a stream for each resource. A broken stream is opened again,
    which counts as a change, since missed announcements are not repeated.

    Args:
        client: The connected client.
        on_update: Called with the URI of a changed resource, as the server spells it.
    """

    def __init__(self, client: Client, on_update: Callable[[str], None]) -> None:
        self._client, self._on_update = client, on_update
        self._listening: dict[str, asyncio.Task[None] | None] = {}

    async def add(self, uri: str) -> None:
        """Subscribe; does nothing if already subscribed or subscribing.

        Raises:
            ServerCallError: If there are too many, or the server does not announce changes.
            MCPError: If the server refuses.
        """
        if uri in self._listening:
            return
        if len(self._listening) >= MAX_SUBSCRIPTIONS:
            raise ServerCallError(f"There are already {MAX_SUBSCRIPTIONS} subscriptions.")
        try:
            if sdk_patches.is_stateless(self._client):
                await self._open_stream(uri)
            else:
                self._listening[uri] = None
                await self._client.subscribe_resource(uri)
        except BaseException:  # cancelled or refused: allow another try later
            await _stop(self._listening.pop(uri, None))
            raise

    async def remove(self, uri: str) -> None:
        """Unsubscribe.

        Raises:
            MCPError: If the server refuses.
        """
        if uri not in self._listening:
            return
        task = self._listening.pop(uri)
        if task is None:
            await self._client.unsubscribe_resource(uri)
        await _stop(task)

    async def aclose(self) -> None:
        """Close all streams."""
        tasks = [*self._listening.values()]
        self._listening.clear()
        await _stop(*tasks)

    async def _open_stream(self, uri: str) -> None:
        """Start listening; return once the server has accepted."""
        accepted: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def give_up(_ended: "asyncio.Task[None]") -> None:
            if not accepted.done():
                accepted.set_exception(ServerCallError("It was cancelled in the meantime."))

        task = asyncio.create_task(self._listen(uri, accepted), name=f"listen to {uri!r}")
        task.add_done_callback(give_up)
        self._listening[uri] = task
        await accepted

    async def _listen(self, uri: str, accepted: "asyncio.Future[None]") -> None:
        """Listen until cancelled; only the first attempt can fail."""
        backoff = Backoff(LISTENING)
        while True:
            try:
                async with self._client.listen(resource_subscriptions=[uri]) as stream:
                    if accepted.done():
                        self._on_update(uri)
                    elif stream.honored.resource_subscriptions:
                        accepted.set_result(None)
                    else:
                        raise ServerCallError("The server does not report changes to it.")
                    backoff.succeeded()
                    async for event in stream:
                        if isinstance(event, ResourceUpdated):
                            self._on_update(event.uri)
            except Exception as error:  # whatever ends the stream, it is opened again
                if not accepted.done():
                    accepted.set_exception(error)
                    return
                logger.debug("a subscription broke off", exc_info=error)
            await asyncio.sleep(backoff.seconds_until(backoff.failed()))


async def _stop(*tasks: asyncio.Task[None] | None) -> None:
    """Cancel tasks and wait for their end."""
    running = {task for task in tasks if task is not None}
    for task in running:
        task.cancel()
    if running:
        await asyncio.wait(running)


class Features:
    """The prompts, resources, completions and log level of one connection.

    Use it as an async context manager while the connection lasts: entering it restores the
    subscriptions and the log level of the previous connection. Names and URIs are given as they
    are shown. Requests raise `ServerCallError`; cancelling the caller cancels the request on the
    server.

    Args:
        client: The connected client.
        server: Which server this is.
        offer: Returns the current offer of the server.
        context: Keeps subscriptions and log levels across reconnects.
        call_timeout: Limits the requests.
        own: Masks the server's secrets, and knows the addresses that it masked.
        calling: See `Elicitation.calling`.
    """

    def __init__(
        self,
        client: Client,
        server: ServerId,
        offer: Callable[[], ServerOffer],
        context: ClientContext,
        call_timeout: CallTimeout,
        own: Redactor,
        calling: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._client, self._server, self._offer = client, server, offer
        self._context, self._calling = context, calling
        self._call_timeout, self._own = call_timeout, own
        self._subscriptions = Subscriptions(client, self._publish_update)
        self._resuming: asyncio.Task[None] | None = None
        self._is_closed = False

    async def __aenter__(self) -> "Features":
        if sdk_patches.is_stateless(self._client):
            level = self._context.log_levels.get(self._server, DEFAULT_LOG_LEVEL)
            await self._send_log_level(level)
        self._resuming = asyncio.create_task(self._resume(), name=f"resume {self._server}")
        return self

    async def __aexit__(self, *exception: object) -> None:
        self._is_closed = True
        await _stop(self._resuming)
        await self._subscriptions.aclose()

    def resource_updated(self, uri: str) -> None:
        """Take a notification of the handshake era."""
        if not sdk_patches.is_stateless(self._client):
            self._publish_update(uri)

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> RenderedPrompt:
        self._refuse_withheld(name)
        if any(len(value) > MAX_ARGUMENT for value in arguments.values()):
            raise ServerCallError(f"An argument is longer than {MAX_ARGUMENT} characters.")
        async with self._requesting():
            with sdk_patches.keeping_results() as kept:
                result = await self._client.get_prompt(name, dict(arguments))
        return replace(
            await asyncio.to_thread(results.convert_prompt, result), raw=self._shown(kept[-1])
        )

    async def read_resource(self, uri: str) -> ResourceReading:
        self._refuse_withheld(uri)
        async with self._requesting():
            with sdk_patches.keeping_results() as kept:
                result = await self._client.read_resource(self._own.said(uri))
        shown = sanitize_line(uri)
        read = await asyncio.to_thread(results.convert_resource, self._server, shown, result)
        return replace(read, raw=self._shown(kept[-1]))

    async def get_skill(self, uri: str) -> Skill | None:
        """Ask for the entry of one skill by its address; None if the answer is none of it."""
        if SKILLS not in (self._client.server_capabilities.extensions or {}):
            raise ServerCallError("The server has no skills.")
        async with self._requesting():
            answer = await sdk_patches.request(self._client, "skills/get", {"uri": uri})
        found = await asyncio.to_thread(read_skill, answer.get("skill"))
        return found if found is not None and found.uri == uri else None

    async def request(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Send any request; return its answer as the server wrote it, its `result` or `error`."""
        if not isinstance(params.get("_meta", {}), dict):  # the SDK writes into it
            raise ServerCallError("Its _meta must be an object.")
        async with self._requesting():
            with sdk_patches.keeping_results() as kept:
                try:
                    await sdk_patches.request(self._client, method, dict(params))
                except MCPError as error:
                    if not kept and error.code in {*OWN_CODES, types.CONNECTION_CLOSED}:
                        raise
                    if not kept:
                        return {"error": sdk_patches.reply_of(error)}
        return {"result": self._shown(kept[-1])}

    def opening(self) -> Mapping[str, Any]:
        """Return how the server answered ``initialize`` or ``server/discover``."""
        session = self._client.session
        answer = session.discover_result or session.initialize_result
        return answer.model_dump(by_alias=True, mode="json", exclude_none=True) if answer else {}

    async def subscribe(self, uri: str) -> None:
        self._refuse_withheld(uri)
        async with self._requesting():
            await self._subscriptions.add(uri)

    async def unsubscribe(self, uri: str) -> None:
        async with self._requesting():
            await self._subscriptions.remove(uri)

    async def complete(
        self, target: str, argument: str, value: str, context: Mapping[str, str]
    ) -> CompletionValues:
        """Complete an argument of a prompt or of a resource template.

        Args:
            target: The prompt's name or the URI template.
            argument: The argument's name.
            value: The text entered so far.
            context: The other arguments that are filled in already.
        """
        if self._client.server_capabilities.completions is None:
            return CompletionValues()
        ref: types.PromptReference | types.ResourceTemplateReference
        if any(template.uri_template == target for template in self._offer().templates):
            ref = types.ResourceTemplateReference(uri=target)
        else:
            ref = types.PromptReference(name=target)
        wanted = {"name": argument, "value": value}
        async with self._requesting():
            result = await self._client.complete(ref, wanted, dict(context) or None)
        values = result.completion.values
        fit = [v for v in values[:MAX_VALUES] if len(v) <= MAX_VALUE and v == sanitize_line(v)]
        total = result.completion.total
        has_more = bool(result.completion.has_more) or max(total or 0, len(values)) > len(fit)
        return CompletionValues(tuple(dict.fromkeys(fit)), has_more, total)

    async def set_log_level(self, level: str) -> None:
        """Set the level from which the server logs."""
        if not takes_log_level(self._client):
            raise ServerCallError("The server does not support log levels.")
        if level not in LOG_LEVELS:
            raise ServerCallError(f"There is no log level {sanitize_line(level, 40)!r}.")
        async with self._requesting():
            await self._send_log_level(level)
        self._context.log_levels[self._server] = level

    async def tell_roots_changed(self) -> None:
        """Say that the opened folders are others; a stateless server asks whenever it must know."""
        if not sdk_patches.is_stateless(self._client):
            with suppress(ServerCallError):
                async with self._requesting():
                    await self._client.send_roots_list_changed()

    def _shown(self, answer: dict[str, Any]) -> dict[str, Any]:
        return sdk_patches.shown_answer(answer, self._own.redact_json)

    def _refuse_withheld(self, shown: str) -> None:
        """Refuse a name that is shown but differs from the server's own name."""
        offer = self._offer()
        problems = [r.problem for r in offer.resources if r.uri == shown]
        problems += [p.problem for p in offer.prompts if p.name == shown]
        if problems and all(problems):
            raise ServerCallError(f"It was not requested: {problems[0]}.")

    async def _resume(self) -> None:
        """Restore the log level and the subscriptions of the previous connection."""
        level = self._context.log_levels.get(self._server)
        try:
            if level is not None and not sdk_patches.is_stateless(self._client):
                await self.set_log_level(level)
        except ServerGoneError:
            return
        except ServerCallError:
            self._context.log_levels.pop(self._server, None)
        for uri in sorted(self._context.subscriptions.get(self._server, ())):
            try:
                await self.subscribe(uri)
                self._context.resource_updated(self._server, uri)
            except ServerGoneError:
                return  # the next connection tries again
            except ServerCallError:
                self._context.subscriptions[self._server].discard(uri)
                self._context.publish(SubscriptionChanged(self._server, uri, subscribed=False))

    async def _send_log_level(self, level: str) -> None:
        known = cast("types.LoggingLevel", level)
        if sdk_patches.is_stateless(self._client):
            sdk_patches.request_log_level(self._client, known)
        else:
            await self._client.set_logging_level(known)
        self._context.publish(LogLevelChanged(self._server, level))

    def _publish_update(self, uri: str) -> None:
        self._context.resource_updated(self._server, sanitize_line(uri))

    @asynccontextmanager
    async def _requesting(self) -> AsyncIterator[None]:
        """Limit a request, and convert SDK errors to `ServerCallError`."""
        if self._is_closed:
            raise ServerGoneError("The server is no longer connected.")
        try:
            with self._calling():
                async with self._call_timeout.watch():
                    yield
        except CallTimeoutError as error:
            raise ServerCallError(f"The server returned {error}.") from None
        except MCPError as error:
            raise _call_error(error) from error
        except ValidationError as error:
            said = sanitize_line(str(error.errors(include_url=False)[0]["input"]))
            raise ServerCallError(f"The server's response could not be read: {said}") from error
        except RuntimeError as error:
            raise ServerCallError(sanitize_line(str(error))) from error


def takes_log_level(client: Client) -> bool:
    """Return whether a server accepts a log level; stateless servers always do."""
    return sdk_patches.is_stateless(client) or client.server_capabilities.logging is not None


def _call_error(error: MCPError) -> ServerCallError:
    reply = sdk_patches.reply_of(error)
    match error.code:
        case types.CONNECTION_CLOSED:
            return ServerGoneError("The server is no longer connected.")
        case types.METHOD_NOT_FOUND:
            return ServerCallError("The server does not support this request.", reply=reply)
        case code if code == REFUSED:
            return ServerCallError("The server requested generated text, which was refused.")
        case code if code in OWN_CODES:
            return ServerGoneError(f"The server {sanitize_line(error.error.message)}.")
        case _:
            words = sanitize_line(sdk_patches.error_words(error))
            return ServerCallError(f"The server refused: {words}", reply=reply)
