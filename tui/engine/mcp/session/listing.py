"""What a server lists, page by page, and which lists it announces as changed.

Servers announce changes in bursts, some without end. However many announcements arrive, one
refresh runs at a time, at most one waits, and the requests it makes are limited.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final

import mcp_types as types
from mcp import Client, MCPError
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.subscriptions import PromptsListChanged, ResourcesListChanged, ToolsListChanged
from pydantic_core import to_json

from tui.engine.mcp.backoff import Backoff, Clock
from tui.engine.mcp.catalog.offer import RawOffer
from tui.engine.mcp.catalog.skill_entry import SKILLS
from tui.engine.mcp.errors import ServerError
from tui.engine.mcp.server_log import ServerLog
from tui.engine.mcp.session import sdk_patches

MAX_ITEMS: Final = 10_000
"""Most items of one list that are read, and most pages, which may hold one item each."""

MAX_CHARS: Final = 24_000_000
"""Characters of one list, over all pages, after which no further page is read."""

VALUE_CHARS: Final = 16
"""Characters that each value of a list counts for, in addition to its text."""

_BETWEEN: Final = b",[{"
"""What stands before a value; commas in texts count as well."""

MAX_CURSOR_CHARS: Final = 8_192
"""Longest cursor that is sent back."""

DEBOUNCE: Final = 0.3
"""Seconds from the first announcement to the refresh, which covers all in between."""

INTERVAL: Final = 2.5
"""Shortest time between two refreshes, in seconds."""

ACK_PATIENCE: Final = 1.0
"""Seconds that a server gets to say that it tells of changes, before its lists are read."""

MAX_REFUSALS: Final = 5
"""Refusals in a row after which a server is not asked again to tell of changes."""

ITEM_REST: Final = 0.003
"""Seconds that each listed item puts the next refresh off: each costs the loop time."""

_GONE: Final = frozenset({types.METHOD_NOT_FOUND, types.CONNECTION_CLOSED})
"""Errors after which listening is pointless."""


class ListKind(StrEnum):
    """A list whose changes servers announce. Resources include their templates, and skills."""

    TOOLS = "tools"
    PROMPTS = "prompts"
    RESOURCES = "resources"


_LISTS: Final[Mapping[ListKind, Mapping[str, tuple[str, str]]]] = {
    ListKind.TOOLS: {"tools": ("tools/list", "tools")},
    ListKind.PROMPTS: {"prompts": ("prompts/list", "prompts")},
    ListKind.RESOURCES: {
        "resources": ("resources/list", "resources"),
        "templates": ("resources/templates/list", "resourceTemplates"),
        "skills": ("skills/list", "skills"),
    },
}
"""Per kind: the fields of `RawOffer`, each with the method and the key of its result."""

_ANNOUNCED: Final[Mapping[type, ListKind]] = {
    types.ToolListChangedNotification: ListKind.TOOLS,
    types.PromptListChangedNotification: ListKind.PROMPTS,
    types.ResourceListChangedNotification: ListKind.RESOURCES,
    ToolsListChanged: ListKind.TOOLS,
    PromptsListChanged: ListKind.PROMPTS,
    ResourcesListChanged: ListKind.RESOURCES,
}


class StaleLists:
    """The lists of one server that have changed since they were read, with a rate limit.

    Args:
        clock: The current time.
        sleep: Waits for some seconds of that clock.

    Attributes:
        heard: Set once the server was asked to tell of changes, whatever it answered.
        are_read: Whether the lists were read, or are being read.
    """

    def __init__(
        self,
        clock: Clock = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._clock, self._sleep = clock, sleep
        self._kinds: set[ListKind] = set()
        self._noted = asyncio.Event()
        self._next_at = 0.0
        self.heard, self.are_read = asyncio.Event(), False

    def add(self, kinds: Iterable[ListKind]) -> None:
        """Note that some lists have changed."""
        self._kinds.update(kinds)
        self._noted.set()

    def note(self, message: object) -> None:
        """Take an announcement of a change, of either era; ignore other messages."""
        if (kind := _ANNOUNCED.get(type(message))) is not None:
            self.add([kind])

    def rest(self, lists: RawOffer) -> None:
        """Put the next refresh off by how many items these lists have."""
        parts = (lists.tools, lists.prompts, lists.resources, lists.templates)
        self._next_at = max(self._next_at, self._clock()) + sum(map(len, parts)) * ITEM_REST

    async def next(self) -> Iterable[ListKind]:
        """Wait until some lists are due, and return them."""
        await self._noted.wait()
        await self._sleep(max(DEBOUNCE, self._next_at - self._clock()))
        self._next_at = self._clock() + INTERVAL
        kinds, self._kinds = self._kinds, set()
        self._noted.clear()
        return sorted(kinds)


async def listen(client: Client, changes: StaleLists, backoff: Backoff) -> None:
    """Listen for changes over a stateless connection, if the server announces them.

    A broken stream is opened again. All lists that were read by then count as changed when it
    opens, as announcements may have been missed.
    """
    declared = client.server_capabilities
    parts = (declared.tools, declared.prompts, declared.resources)
    tools, prompts, resources = (bool(part and part.list_changed) for part in parts)
    refusals = 0
    while (tools or prompts or resources) and refusals < MAX_REFUSALS:
        try:
            async with client.listen(
                tools_list_changed=tools,
                prompts_list_changed=prompts,
                resources_list_changed=resources,
            ) as stream:
                kinds = [k for k in ListKind if getattr(stream.honored, f"{k}_list_changed")]
                if not kinds:
                    return
                backoff.succeeded()
                refusals = 0
                if changes.are_read:
                    changes.add(kinds)
                changes.heard.set()
                async for event in stream:
                    changes.note(event)
        except MCPError as error:
            if error.code in _GONE:
                return
            refusals += 1
        except SubscriptionLost:
            pass
        changes.heard.set()
        await asyncio.sleep(backoff.seconds_until(backoff.failed()))


async def list_offer(
    client: Client, log: ServerLog, offer: RawOffer, kinds: Iterable[ListKind] = ListKind
) -> RawOffer:
    """List what the server declares of some kinds.

    Args:
        client: The connected client.
        log: Told which lists cannot be read.
        offer: The offer so far; prompts, resources or templates that fail stay as in it.
        kinds: What to list.

    Raises:
        ServerError: If the tools are declared and cannot be listed.
        MCPError: If the connection is lost.
    """
    declared = client.server_capabilities
    for kind in kinds:
        if getattr(declared, kind) is None:
            continue
        for field, (method, key) in _LISTS[kind].items():
            if field == "skills" and SKILLS not in (declared.extensions or {}):
                continue
            items: Any = await _list(client, method, key, log)
            if items is not None:
                offer = replace(offer, **{field: items})
        if kind is ListKind.TOOLS:
            tools = [tool for tool in offer.tools if isinstance(tool, dict)]
            refused = frozenset(await sdk_patches.refused_tools(client, tools))
            offer = replace(offer, refused_tools=refused)
    return offer


async def _list(client: Client, method: str, key: str, log: ServerLog) -> list[object] | None:
    """Return one list; None if it fails and the server can be used without it."""
    try:
        return await _list_all(client, method, key, log)
    except MCPError as error:
        if error.code == types.CONNECTION_CLOSED:
            raise
        if error.code == types.METHOD_NOT_FOUND:
            return []
        if key == ListKind.TOOLS:
            words = sdk_patches.error_words(error)
            raise ServerError(f"could not list its tools: {words}") from error
        log.remark(f"{method} failed: {sdk_patches.error_words(error)}")
        return None


async def _list_all(client: Client, method: str, key: str, log: ServerLog) -> list[object]:
    """Follow the cursors of one list until it ends, repeats a cursor or exceeds a limit."""
    items: list[object] = []
    size = 0
    cursor: str | int | None = None  # some servers count
    seen: set[str | int] = set()
    for _ in range(MAX_ITEMS):
        place = {} if cursor is None else {"cursor": cursor}
        page = await sdk_patches.request(client, method, place)
        found, cursor = page.get(key), page.get("nextCursor")
        cursor = cursor if type(cursor) in (str, int) else None
        is_repeated = cursor is not None and cursor in seen
        if not isinstance(found, list):
            log.remark(f"the response to {method} has no list of {key}")
        else:
            known = set(map(to_json, items)) if is_repeated else ()  # perhaps the last page again
            items.extend(one for one in found if not known or to_json(one) not in known)
            size += await asyncio.to_thread(count_chars, found)
        if cursor is None:
            return items
        if is_repeated or len(str(cursor)) > MAX_CURSOR_CHARS:
            log.remark(f"{method} repeated a cursor; the list ends there")
            return items
        if len(items) >= MAX_ITEMS or size >= MAX_CHARS:
            break
        seen.add(cursor)
    log.remark(f"{method} returned too much; reading stopped after {len(items)} items")
    return items[:MAX_ITEMS]


def count_chars(items: Iterable[object]) -> int:
    """Estimate what JSON values take; slow for many."""
    size = 0
    for item in items:  # one by one, so that other threads run in between
        text = to_json(item)
        size += len(text) + VALUE_CHARS * (len(text) - len(text.translate(None, _BETWEEN)))
    return size
