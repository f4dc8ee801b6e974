"""Asks a connected server for all that it declares to offer, page by page."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import mcp_types as types
from mcp import Client, MCPError

from tui.engine.servers import sdk
from tui.engine.servers.catalog import RawOffer
from tui.engine.servers.failures import ServerError
from tui.engine.servers.log import ServerLog
from tui.engine.servers.refresh import ListKind
from tui.model.chat import Severity

MAX_PAGES: Final = 100
"""Pages of one list that are read."""

MAX_ITEMS: Final = 10_000
"""Items of one list that are read."""

MAX_CHARS: Final = 24_000_000
"""Characters of one list, over all pages, after which no further page is read."""

VALUE_CHARS: Final = 16
"""Characters that each value of a list counts for, beside those of a text or a name."""

MAX_CURSOR_CHARS: Final = 8_192
"""Longest cursor that is sent back."""


async def discover(client: Client, log: ServerLog) -> RawOffer:
    """List what the server declares.

    A list of prompts, resources or templates that fails is empty, with a word in the log.

    Raises:
        ServerError: If the tools are declared and cannot be listed.
        MCPError: If the connection is lost.
    """
    return await relist(client, log, RawOffer(), ListKind)


async def relist(
    client: Client, log: ServerLog, offer: RawOffer, kinds: Iterable[ListKind]
) -> RawOffer:
    """List some of what the server declares anew.

    A list of prompts, resources or templates that fails stays as it is in `offer`.

    Raises:
        ServerError: If the tools are declared and cannot be listed.
        MCPError: If the connection is lost.
    """
    capabilities = client.server_capabilities
    for kind in kinds:
        match kind:
            case ListKind.TOOLS if capabilities.tools is not None:
                tools = await _list_tools(client, log)
                objects = [tool for tool in tools if isinstance(tool, dict)]
                refused = frozenset(sdk.refused_tools(client, objects))
                offer = replace(offer, tools=tools, refused_tools=refused)
            case ListKind.PROMPTS if capabilities.prompts is not None:
                prompts = await _list_others(client, "prompts/list", "prompts", log)
                offer = replace(offer, prompts=offer.prompts if prompts is None else prompts)
            case ListKind.RESOURCES if capabilities.resources is not None:
                resources = await _list_others(client, "resources/list", "resources", log)
                templates = await _list_others(
                    client, "resources/templates/list", "resourceTemplates", log
                )
                offer = replace(
                    offer,
                    resources=offer.resources if resources is None else resources,
                    templates=offer.templates if templates is None else templates,
                )
    return offer


async def _list_tools(client: Client, log: ServerLog) -> list[object]:
    try:
        return await _list_all(client, "tools/list", "tools", log)
    except MCPError as error:
        if error.code == types.METHOD_NOT_FOUND:
            return []
        if error.code == types.CONNECTION_CLOSED:
            raise
        raise ServerError(f"could not list its tools: {error.error.message}") from error


async def _list_others(
    client: Client, method: str, key: str, log: ServerLog
) -> list[object] | None:
    """List what is not needed to use a server; None where that fails."""
    try:
        return await _list_all(client, method, key, log)
    except MCPError as error:
        if error.code == types.CONNECTION_CLOSED:
            raise
        if error.code == types.METHOD_NOT_FOUND:
            return []
        log.add("gemdeck", Severity.WARNING, f"{method} failed: {error.error.message}")
        return None


async def _list_all(client: Client, method: str, key: str, log: ServerLog) -> list[object]:
    """Follow the cursors of one list until it ends, repeats itself or exceeds a limit."""
    items: list[object] = []
    size = 0
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(MAX_PAGES):
        page = await sdk.request(client, method, {} if cursor is None else {"cursor": cursor})
        found = page.get(key)
        if isinstance(found, list):
            items.extend(found)
            size += await asyncio.to_thread(count_chars, found)
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str):
            return items
        if cursor in seen or len(cursor) > MAX_CURSOR_CHARS:
            log.add("gemdeck", Severity.WARNING, f"{method} repeats a cursor; the list ends there")
            return items
        if len(items) >= MAX_ITEMS or size >= MAX_CHARS:
            break
        seen.add(cursor)
    log.add("gemdeck", Severity.WARNING, f"{method} is too long; {len(items)} items were read")
    return items[:MAX_ITEMS]


def count_chars(value: object) -> int:
    """Estimate how long a JSON value is as text; takes its time for a large one."""
    pending = [value]
    size = 0
    while pending:
        current = pending.pop()
        size += VALUE_CHARS
        match current:
            case str():
                size += len(current)
            case list():
                pending += current
            case dict():
                size += sum(map(len, current))
                pending += current.values()
    return size
