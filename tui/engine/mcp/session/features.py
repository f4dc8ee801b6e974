"""Prompts, resources, completions and log levels over one connection."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, cast, get_args

import mcp_types as types
from mcp import Client, MCPError
from pydantic import ValidationError

from tui.engine.servers import sdk
from tui.engine.servers.catalog import ServerOffer
from tui.engine.servers.facilities import Facilities
from tui.engine.servers.features import (
    Completion,
    RenderedPrompt,
    ResourceReading,
    ServerCallError,
    ServerGoneError,
)
from tui.engine.servers.inbound.sampling import REFUSED
from tui.engine.servers.prompts import convert_prompt
from tui.engine.servers.resources import convert_resource
from tui.engine.servers.subscriptions import Subscriptions
from tui.engine.servers.transport import OWN_CODES
from tui.engine.servers.watchdog import CallTimeoutError, Watchdog
from tui.model.events import LogLevelChanged, SubscriptionChanged
from tui.model.servers import ServerId
from tui.text import sanitize_line

REQUEST_TIMEOUT: Final = 60.0
"""Seconds that a prompt, a resource or a subscription may take; a user's answer not counted."""

QUICK_TIMEOUT: Final = 5.0
"""Seconds that a completion, a change of the log level or a sign of life may take."""

MAX_VALUES: Final = 100
"""Completed values that are taken; the protocol allows as many."""

MAX_VALUE: Final = 500
"""Characters of a completed value; longer ones are left out."""

MAX_ARGUMENT: Final = 50_000
"""Longest argument of a prompt, in characters."""

LOG_LEVELS: Final = frozenset(get_args(types.LoggingLevel))
"""The levels of RFC 5424, in lower case."""

DEFAULT_LOG_LEVEL: Final = "info"
"""The level that stateless servers are told unasked; without any they log nothing to us."""


class ConnectedFeatures:
    """Implements `tui.engine.servers.features.Features`.

    Use it as an async context manager while the connection lasts: entering it takes up what the
    user wanted of the server before, subscriptions and the log level.

    Args:
        client: The connected client.
        server: Which server this is.
        offer: Gives what the server offers now.
        facilities: Hears of changes, and remembers over reconnects.
        watchdog: Bounds the requests.
    """

    def __init__(
        self,
        client: Client,
        server: ServerId,
        offer: Callable[[], ServerOffer],
        facilities: Facilities,
        watchdog: Watchdog,
    ) -> None:
        self._client = client
        self._server = server
        self._offer = offer
        self._facilities = facilities
        self._watchdog = watchdog
        self._subscriptions = Subscriptions(client, self._announce_update)
        self._resuming: asyncio.Task[None] | None = None
        self._is_closed = False

    async def __aenter__(self) -> "ConnectedFeatures":
        if sdk.is_stateless(self._client):
            level = self._facilities.log_levels.get(self._server, DEFAULT_LOG_LEVEL)
            await self._tell_log_level(level)
        self._resuming = asyncio.create_task(self._resume(), name=f"resume {self._server}")
        return self

    async def __aexit__(self, *exception: object) -> None:
        self._is_closed = True
        if self._resuming is not None:
            self._resuming.cancel()
            await asyncio.wait({self._resuming})
        await self._subscriptions.aclose()

    def hear(self, message: object) -> None:
        """Take a notification of the handshake era; others mean nothing here."""
        if isinstance(message, types.ResourceUpdatedNotification) and not sdk.is_stateless(
            self._client
        ):
            self._announce_update(message.params.uri)

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> RenderedPrompt:
        """Let the server render a prompt; see `Features`."""
        spelling = self._offer().spelling
        if any(len(value) > MAX_ARGUMENT for value in arguments.values()):
            raise ServerCallError(f"An argument is longer than {MAX_ARGUMENT} characters.")
        given = {spelling.argument(name, key): value for key, value in arguments.items()}
        async with self._asking(REQUEST_TIMEOUT):
            result = await self._client.get_prompt(spelling.prompt(name), given)
        return await asyncio.to_thread(convert_prompt, result)

    async def read_resource(self, uri: str) -> ResourceReading:
        """Read a resource; see `Features`."""
        async with self._asking(REQUEST_TIMEOUT):
            result = await self._client.read_resource(self._offer().spelling.uri(uri))
        return await asyncio.to_thread(convert_resource, self._server, sanitize_line(uri), result)

    async def subscribe(self, uri: str) -> None:
        """Hear of changes of a resource from now on; see `Features`."""
        async with self._asking(REQUEST_TIMEOUT):
            await self._subscriptions.add(self._offer().spelling.uri(uri))

    async def unsubscribe(self, uri: str) -> None:
        """Hear of them no longer; see `Features`."""
        async with self._asking(REQUEST_TIMEOUT):
            await self._subscriptions.remove(self._offer().spelling.uri(uri))

    async def complete(
        self, target: str, argument: str, value: str, context: Mapping[str, str]
    ) -> Completion:
        """Complete an argument; see `Features`."""
        if self._client.server_capabilities.completions is None:
            return Completion()
        offer = self._offer()
        spelling = offer.spelling
        ref: types.PromptReference | types.ResourceTemplateReference
        if any(template.uri_template == target for template in offer.templates):
            ref = types.ResourceTemplateReference(uri=spelling.uri(target))
        else:
            ref = types.PromptReference(name=spelling.prompt(target))
        given = {spelling.argument(target, key): text for key, text in context.items()}
        async with self._asking(QUICK_TIMEOUT):
            result = await self._client.complete(
                ref, {"name": spelling.argument(target, argument), "value": value}, given or None
            )
        values = result.completion.values
        fit = [v for v in values[:MAX_VALUES] if len(v) <= MAX_VALUE and v == sanitize_line(v)]
        total = result.completion.total or 0
        has_more = bool(result.completion.has_more) or max(total, len(values)) > len(fit)
        return Completion(tuple(dict.fromkeys(fit)), has_more)

    async def set_log_level(self, level: str) -> None:
        """Tell the server from which level on to log; see `Features`."""
        if not takes_log_level(self._client):
            raise ServerCallError("The server takes no log level.")
        if level not in LOG_LEVELS:
            raise ServerCallError(f"There is no log level {sanitize_line(level, 40)!r}.")
        async with self._asking(QUICK_TIMEOUT):
            await self._tell_log_level(level)
        self._facilities.log_levels[self._server] = level

    async def announce_roots(self) -> None:
        """Tell the server that the workspace folders have changed; see `Features`."""
        if not sdk.is_stateless(self._client):
            async with self._asking(QUICK_TIMEOUT):
                await self._client.send_roots_list_changed()

    async def ping(self) -> float:
        """Ask for a sign of life; see `Features`."""
        if sdk.is_stateless(self._client):
            raise ServerCallError("Servers of this era know no ping.")
        began = time.perf_counter()
        async with self._asking(QUICK_TIMEOUT):
            await self._client.send_ping()
        return time.perf_counter() - began

    async def _resume(self) -> None:
        """Take up the subscriptions of an earlier connection, and the log level."""
        level = self._facilities.log_levels.get(self._server)
        try:
            if level is not None and not sdk.is_stateless(self._client):
                await self.set_log_level(level)
        except ServerGoneError:
            return
        except ServerCallError:
            self._facilities.log_levels.pop(self._server, None)
        for uri in sorted(self._facilities.subscriptions.get(self._server, ())):
            try:
                await self.subscribe(uri)
                self._facilities.resource_updated(self._server, uri)
            except ServerGoneError:
                return  # the next connection takes up what is still wanted
            except ServerCallError:
                self._facilities.subscriptions[self._server].discard(uri)
                self._facilities.publish(SubscriptionChanged(self._server, uri, subscribed=False))

    async def _tell_log_level(self, level: str) -> None:
        known = cast("types.LoggingLevel", level)
        if sdk.is_stateless(self._client):
            sdk.request_log_level(self._client, known)
        else:
            await self._client.set_logging_level(known)
        self._facilities.publish(LogLevelChanged(self._server, level))

    def _announce_update(self, uri: str) -> None:
        self._facilities.resource_updated(self._server, sanitize_line(uri))

    @asynccontextmanager
    async def _asking(self, seconds: float) -> AsyncIterator[None]:
        """Bound a request, and turn whatever the SDK raises into a `ServerCallError`."""
        if self._is_closed:
            raise ServerGoneError("The server is gone.")
        try:
            async with self._watchdog.watch(seconds):
                yield
        except CallTimeoutError as error:
            raise ServerCallError(f"The server gave {error}.") from None
        except MCPError as error:
            raise _call_error(error) from error
        except ValidationError as error:
            raise ServerCallError("The server's answer could not be read.") from error
        except RuntimeError as error:
            raise ServerCallError(sanitize_line(str(error))) from error


def takes_log_level(client: Client) -> bool:
    """Tell whether a server can be told from which level on to log; stateless ones always can."""
    return sdk.is_stateless(client) or client.server_capabilities.logging is not None


def _call_error(error: MCPError) -> ServerCallError:
    match error.code:
        case types.CONNECTION_CLOSED:
            return ServerGoneError("The server is gone.")
        case types.METHOD_NOT_FOUND:
            return ServerCallError("The server does not know how to do that.")
        case code if code == REFUSED:
            return ServerCallError("The server needed a generation, which was refused.")
        case code if code in OWN_CODES:
            return ServerGoneError(f"The server {sanitize_line(error.error.message)}.")
        case code:
            words = sanitize_line(error.error.message)
            return ServerCallError(f"The server refused: {words} (error {code})")
