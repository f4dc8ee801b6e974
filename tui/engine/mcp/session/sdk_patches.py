"""Where we reach below the public surface of the MCP SDK, and why. Nothing else does.

The SDK reads a whole page of tools or none of it, drops the definition as the server wrote it,
loses a tool's result over one unknown content block, and validates structured content with the
server's own regular expressions on the event loop. All of it is set right here.
"""

import logging
import warnings
from collections.abc import Mapping
from typing import Any, Final

import mcp_types as types
from mcp import Client, MCPDeprecationWarning
from mcp.shared.dispatcher import CallOptions
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from tui.engine.servers import sparing

JsonObject = dict[str, Any]

MAX_BLOCKS: Final = 1_000
"""Content blocks of one result that are read."""

_CALL: Final = "tools/call"
_COMPLETE: Final = "complete"
_RAW: Final = frozenset(
    {"tools/list", "prompts/list", "resources/list", "resources/templates/list"}
)
"""What is asked for by `request` alone, past the SDK's own reading."""

_SDK_LOGGERS: Final = ("mcp", "client")
_blocks: Final[TypeAdapter[types.ContentBlock]] = TypeAdapter(types.ContentBlock)


def silence() -> None:
    """Keep the SDK's log records and deprecation warnings off standard error."""
    for name in _SDK_LOGGERS:
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
    warnings.simplefilter("ignore", MCPDeprecationWarning)


def adapt(client: Client) -> None:
    """Make a connected client forgiving towards results and deaf to output schemas.

    A result without a type is complete: so the protocol says, where the SDK refuses it.
    Validation of structured content is set aside because the SDK raises and loses the result,
    and because a regular expression of the server would run unbounded on the event loop.
    """
    session = client.session
    dispatcher = session._dispatcher
    send = dispatcher.send_raw_request

    async def send_and_mend(
        method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> JsonObject:
        raw = await send(method, params, opts)
        if is_stateless(client):
            raw = {"resultType": _COMPLETE, **raw}
        if method == _CALL and raw.get("resultType", _COMPLETE) == _COMPLETE:
            return sparing.spare(mend_result(raw))
        return raw if method in _RAW else sparing.check_weight(raw)

    async def accept(name: str, result: types.CallToolResult) -> None:
        del name, result

    dispatcher.send_raw_request = send_and_mend  # type: ignore[method-assign]  # no public hook
    session.validate_tool_result = accept  # type: ignore[method-assign]  # no public switch


def is_stateless(client: Client) -> bool:
    """Tell whether a connection is of the era that began with revision 2026-07-28."""
    return client.protocol_version in MODERN_PROTOCOL_VERSIONS


def request_log_level(client: Client, level: types.LoggingLevel) -> None:
    """Let every further request over a stateless connection ask for log messages.

    The SDK takes the level only before connecting; adopting the discovery once more rebuilds
    what it puts on requests, without a word on the wire.
    """
    session = client.session
    session._log_level = level
    if session.discover_result is not None:
        session.adopt(session.discover_result)


async def request(client: Client, method: str, params: JsonObject) -> JsonObject:
    """Send a request and give the result as the server wrote it.

    Raises:
        MCPError: If the server answers with an error or is gone.
    """
    session = client.session
    data: JsonObject = {"method": method, "params": params}
    options: CallOptions = {}
    session._stamp(data, options)
    return await session._dispatcher.send_raw_request(method, data["params"], options)


def refused_tools(client: Client, raw_tools: list[JsonObject]) -> set[str]:
    """Tell the SDK of listed tools; give the names that the protocol obliges us to refuse.

    On 2026-07-28 connections a tool whose ``x-mcp-header`` annotations are invalid must not be
    used, and the arguments of others travel in headers that the SDK derives from the listing.
    """
    if client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return set()
    tools = []
    for raw in raw_tools:
        try:
            tools.append(types.Tool.model_validate(raw))
        except ValidationError:
            continue
    names = {tool.name for tool in tools}
    listing = types.ListToolsResult(tools=tools)
    kept = client.session._absorb_tool_listing(listing, complete=False).tools
    return names - {tool.name for tool in kept}


def mend_result(raw: JsonObject) -> JsonObject:
    """Leave out of a tool's result what the SDK would lose all of it for."""
    if raw.get("resultType", _COMPLETE) != _COMPLETE:
        return raw
    mended = dict(raw)
    content = raw.get("content")
    mended["content"] = (
        [block for block in content[:MAX_BLOCKS] if _is_readable(block)]
        if isinstance(content, list)
        else []
    )
    if "isError" in raw:
        mended["isError"] = bool(raw["isError"])
    structured = raw.get("structuredContent")
    if structured is not None and not isinstance(structured, dict):
        mended["structuredContent"] = {"result": structured}
    if not isinstance(raw.get("_meta", {}), dict):
        del mended["_meta"]
    return mended


def _is_readable(block: object) -> bool:
    try:
        _blocks.validate_python(block, by_name=False)
    except ValidationError:
        return False
    return True
