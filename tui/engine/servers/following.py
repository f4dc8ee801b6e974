"""Follows what a connected server announces: its changed lists are listed anew."""

import asyncio
from collections.abc import Callable
from typing import Final

import mcp_types as types
from mcp import Client, MCPError
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ServerEvent,
    ToolsListChanged,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from tui.engine.servers.backoff import Backoff
from tui.engine.servers.catalog import RawOffer, ServerOffer, read_offer
from tui.engine.servers.discovery import relist
from tui.engine.servers.failures import ServerError
from tui.engine.servers.log import ServerLog
from tui.engine.servers.refresh import Changes, ListKind
from tui.engine.settings.definitions import ServerDefinition
from tui.model.chat import Severity

_GONE: Final = frozenset({types.METHOD_NOT_FOUND, types.CONNECTION_CLOSED})
"""Errors after which there is nothing to listen to."""


class Follower:
    """Keeps what is known of a server's offer up to date.

    Args:
        definition: Which server.
        log: Takes remarks.

    Attributes:
        offer: The server's lists as it wrote them last.
    """

    def __init__(self, definition: ServerDefinition, log: ServerLog) -> None:
        self.offer = RawOffer()
        self._definition = definition
        self._log = log
        self._changes = Changes()

    def hear(self, message: object) -> None:
        """Take a notification of the handshake era; others mean nothing here."""
        match message:
            case types.ToolListChangedNotification():
                self._changes.note(ListKind.TOOLS)
            case types.PromptListChangedNotification():
                self._changes.note(ListKind.PROMPTS)
            case types.ResourceListChangedNotification():
                self._changes.note(ListKind.RESOURCES)

    async def run(self, client: Client, on_offer: Callable[[ServerOffer], None]) -> None:
        """Follow a connected server until it is gone or the task is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            if client.protocol_version in MODERN_PROTOCOL_VERSIONS:
                tasks.create_task(listen(client, self._changes, Backoff()))
            while await self._refresh(client):
                on_offer(await asyncio.to_thread(read_offer, self.offer, self._definition))

    async def _refresh(self, client: Client) -> bool:
        """Wait for changes and list what changed; False once the connection is lost."""
        while True:
            kinds = tuple(await self._changes.next())
            try:
                self.offer = await relist(client, self._log, self.offer, kinds)
            except MCPError:
                return False
            except ServerError as error:
                words = f"its tools changed and {error.reason}; the old ones are shown"
                self._log.add("gemdeck", Severity.WARNING, words)
                continue
            self._log.add("gemdeck", Severity.INFO, f"changed, listed anew: {', '.join(kinds)}")
            return True


async def listen(client: Client, changes: Changes, backoff: Backoff) -> None:
    """Hear of changes over a stateless connection, for as long as the server tells of them.

    A stream that breaks is opened again. What may have been missed meanwhile counts as changed,
    as does what may have changed before the stream was first open.
    """
    declared = client.server_capabilities
    while True:
        try:
            async with client.listen(
                tools_list_changed=declared.tools is not None,
                prompts_list_changed=declared.prompts is not None,
                resources_list_changed=declared.resources is not None,
            ) as stream:
                honoured = _honoured(stream.honored)
                if not honoured:
                    return
                backoff.succeeded()
                changes.note(*honoured)
                async for event in stream:
                    changes.note(*_kinds(event))
        except MCPError as error:
            if error.code in _GONE:
                return
        except SubscriptionLost:
            pass
        await asyncio.sleep(backoff.seconds_until(backoff.failed()))


def _honoured(accepted: types.SubscriptionFilter) -> list[ListKind]:
    """Name the lists whose changes the server agreed to announce."""
    flags = {
        ListKind.TOOLS: accepted.tools_list_changed,
        ListKind.PROMPTS: accepted.prompts_list_changed,
        ListKind.RESOURCES: accepted.resources_list_changed,
    }
    return [kind for kind, agreed in flags.items() if agreed]


def _kinds(event: ServerEvent) -> tuple[ListKind, ...]:
    match event:
        case ToolsListChanged():
            return (ListKind.TOOLS,)
        case PromptsListChanged():
            return (ListKind.PROMPTS,)
        case ResourcesListChanged():
            return (ListKind.RESOURCES,)
    return ()
