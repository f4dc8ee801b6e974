"""The only place that uses private parts of the MCP SDK, and why.

The SDK rejects a whole page of tools over one of them, drops the definition as the server wrote
it, loses a tool's result over one unknown content block, and validates structured content with the
server's own regular expressions on the event loop. This module works around that.

The SDK also validates and serializes each result on the event loop, which takes too long for
hundreds of thousands of values. So structured content bypasses it, unused parts are left out, and
any other reply is limited in size.
"""

import asyncio
import json
import logging
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from itertools import zip_longest
from typing import Any, Final

import mcp_types as types
from mcp import Client, MCPDeprecationWarning, MCPError
from mcp.shared.dispatcher import CallOptions
from mcp.shared.inbound import MCP_NAME_HEADER, encode_header_value
from mcp_types import CallToolResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError
from pydantic_core import to_json

from tui.engine.logs.redaction import NOT_MASKED
from tui.engine.mcp.catalog.media import kind_of, plain_base64
from tui.engine.mcp.catalog.results import ANY_MEDIA
from tui.engine.mcp.transports.jsonrpc_lines import EXCHANGE_FAILED, OWN_CODES, code_of
from tui.model.bounded_json import json_or_text
from tui.text import clip, sanitize_line

JsonObject = dict[str, Any]

MAX_VALUES: Final = 50_000
"""Most values of a reply; the SDK validates that many in some hundredths of a second."""

MAX_DATA_VALUES: Final = 1_000
"""Values of an error's ``data`` that are shown."""

MAX_ERROR_DATA: Final = 8_000
"""Characters of an error's ``data`` that are shown."""

_BLOCK_FIELDS: Final = frozenset(
    {"type", "text", "data", "mimeType", "uri", "name", "title", "description"}
)

MAX_KIND: Final = 64
"""Characters of the name of an unknown kind of block or result."""

MAX_ODD_BLOCK: Final = 8_000
"""Characters of a block of an unknown kind that are shown as they are."""

MAX_BLOCKS: Final = 1_000
"""Content blocks of one reply that are read."""

_CALL: Final = "tools/call"
_NOT_SAID: Final = NOT_MASKED | {"isError", "resultType", "structuredContent"}
_COMPLETE: Final = "complete"
_EMPTY: Final = {"type": "text", "text": ""}
_LISTS: Final = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
_RAW: Final = frozenset({*_LISTS, "skills/list", "tasks/get", "tasks/result"})
"""Methods that only `request` uses, without the SDK's own parsing."""

_HEADER: Final = b"x-mcp-header"
_SDK_LOGGERS: Final = ("mcp", "client")

_KEPT: ContextVar[list[JsonObject] | None] = ContextVar("kept", default=None)


@contextmanager
def keeping_results() -> Iterator[list[JsonObject]]:
    """Collect the results of the requests in a block, each as the server wrote it."""
    kept: list[JsonObject] = []
    token = _KEPT.set(kept)
    try:
        yield kept
    finally:
        _KEPT.reset(token)


def check_weight(raw: JsonObject) -> JsonObject:
    """Return a reply if it is small enough for the SDK.

    Raises:
        MCPError: If it is not, as when a transport fails one request.
    """
    if is_light(raw, MAX_VALUES):
        return raw
    words = "sent a response that is too complex to be read"
    raise MCPError(EXCHANGE_FAILED, f"{words}; whether the request had any effect is unknown")


def check_kind(raw: Mapping[str, Any]) -> None:
    """Check that a result is of a kind that the protocol knows; without a word it is complete.

    Raises:
        MCPError: If it is not, as when a transport fails one request.
    """
    if (kind := raw.get("resultType")) not in (None, _COMPLETE, "input_required", "task"):
        words = f"sent a result of the unknown kind “{sanitize_line(str(kind), MAX_KIND)}”"
        raise MCPError(EXCHANGE_FAILED, f"{words}; whether the request had any effect is unknown")


def is_task(raw: JsonObject) -> bool:
    """Return whether a task came in place of a tool's result, in the form of either era."""
    return raw.get("resultType") == "task" or ("task" in raw and "content" not in raw)


def read_call_result(raw: Mapping[str, Any], mask: Callable[[str], str] = str) -> CallToolResult:
    """Read a tool's result as the server wrote it.

    Its structured content may be anything, and is not validated. What is said in place of it and
    of content counts as such; `mask` masks the names in it.

    Raises:
        ValidationError: If it is none.
    """
    result = CallToolResult.model_validate(repair_result(raw), by_name=False)
    structured = raw.get("structuredContent")
    own = {key: raw[key] for key in raw if key not in _NOT_SAID}
    if own and structured is None and "content" not in raw:
        structured = json_or_text(mask(json.dumps(own)))
    return result.model_copy(update={"structured_content": structured})


def is_light(value: object, limit: int) -> bool:
    """Return whether a JSON value has at most `limit` values; stops soon after the limit."""
    pending = [value]
    count = 0
    while pending:
        current = pending.pop()
        if isinstance(current, dict | list):
            count += len(current)
            if count > limit:
                return False
            pending += current.values() if isinstance(current, dict) else current
    return True


def _plain_block(block: JsonObject) -> JsonObject:
    """Return a content block without its unused annotations, icons and ``_meta``."""
    plain = {name: value for name, value in block.items() if name in _BLOCK_FIELDS}
    resource = block.get("resource")
    if isinstance(resource, dict):
        names = ("uri", "mimeType", "text", "blob")
        given = {name: resource[name] for name in names if name in resource}
        plain["resource"] = {"uri": "", **given}
    if plain.get("type") == "resource_link":
        plain.setdefault("name", plain.get("uri"))
    if plain.get("type") in {"image", "audio"} and isinstance(plain.get("data"), str):
        plain["data"], named = plain_base64(plain["data"])
        plain["mimeType"] = plain.get("mimeType") or named or kind_of(plain["data"], ANY_MEDIA)
    return plain


def error_words(error: MCPError) -> str:
    """Return an error of the server in words, with its code and its data; not sanitized."""
    words = error.error.message
    if error.error.code not in OWN_CODES:
        words += f" (error {code_of(error.error)})"
    data = error.error.data
    if data is None:
        return words
    if not is_light(data, MAX_DATA_VALUES):
        return f"{words}; its data is too complex to be shown"
    said = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return f"{words}; its data: {clip(said, MAX_ERROR_DATA)}"


def shown_answer(raw: Mapping[str, Any], mask: Callable[[str], str]) -> JsonObject:
    """Return an answer for the user, masked also in names and what is passed back as it came."""
    return {
        mask(name): json_or_text(mask(json.dumps(one))) if name in NOT_MASKED else one
        for name, one in raw.items()
    }


def reply_of(error: MCPError) -> JsonObject:
    """Return an error of the server as it wrote it."""
    return {**error.error.model_dump(exclude_none=True), "code": code_of(error.error)}


def silence() -> None:
    """Keep the SDK's log records and deprecation warnings off standard error."""
    for name in _SDK_LOGGERS:
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
    warnings.simplefilter("ignore", MCPDeprecationWarning)


def adapt(client: Client, more: Callable[[str], Mapping[str, Any]]) -> None:
    """Make a connected client tolerate imperfect results and skip output schemas.

    `more` returns the parameters of a call of a tool which the SDK does not know.

    A result without a type is complete by the protocol, but the SDK refuses it. Structured content
    is not validated: the SDK would raise and lose the result, and a regular expression of the
    server would run on the event loop without a limit.
    """
    session, stateless = client.session, is_stateless(client)
    dispatcher = session._dispatcher
    send = dispatcher.send_raw_request

    async def send_and_repair(
        method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> JsonObject:
        if method == _CALL and params is not None:
            params = {**params, **more(params["name"])}
        raw = await send(method, params, opts)
        check_kind(raw)
        if (kept := _KEPT.get()) is not None:
            kept.append(raw)
        if method == _CALL and (is_task(raw) or raw.get("resultType", _COMPLETE) == _COMPLETE):
            raw = {"content": []}  # whoever keeps the results reads it
        if stateless:
            raw = {"resultType": _COMPLETE, **raw}
        return raw if method in _RAW else repair_contents(check_weight(raw), params or {})

    async def accept(name: str, result: types.CallToolResult) -> None:
        del name, result

    dispatcher.send_raw_request = send_and_repair  # type: ignore[method-assign]  # no public hook
    session.validate_tool_result = accept  # type: ignore[method-assign]  # no public switch


def is_stateless(client: Client) -> bool:
    """Return whether a connection uses the stateless protocol (2026-07-28 or later)."""
    return client.protocol_version in MODERN_PROTOCOL_VERSIONS


def announced(client: Client) -> types.ClientCapabilities:
    """Return what a connection told its server that we can do."""
    return client.session._build_capabilities(client.protocol_version)


def request_log_level(client: Client, level: types.LoggingLevel) -> None:
    """Make all further requests over a stateless connection ask for log messages.

    The SDK takes the level only before connecting; adopting the discovery result again updates
    what it adds to requests, without sending anything.
    """
    session = client.session
    session._log_level = level
    if session.discover_result is not None:
        session.adopt(session.discover_result)


async def request(client: Client, method: str, params: JsonObject, name: str = "") -> JsonObject:
    """Send a request and return the result as the server wrote it.

    `name` is what a server over stateless HTTP is told in a header that it is about.

    Raises:
        MCPError: If the server answers with an error or is gone.
    """
    session = client.session
    data: JsonObject = {"method": method, "params": params}
    options: CallOptions = {}
    session._stamp(data, options)
    if name and is_stateless(client):
        options.setdefault("headers", {})[MCP_NAME_HEADER] = encode_header_value(name)
    return await session._dispatcher.send_raw_request(method, data["params"], options)


async def refused_tools(client: Client, raw_tools: list[JsonObject]) -> set[str]:
    """Pass listed tools to the SDK; return the names that the protocol requires us to refuse.

    On 2026-07-28 connections a tool with invalid ``x-mcp-header`` annotations must not be used,
    and the SDK derives from the listing which arguments of others it sends in headers. It gets
    those with such annotations, now or before: it searches every schema on the event loop.
    """
    if not is_stateless(client):
        return set()
    known = frozenset(client.session._x_mcp_header_maps)
    tools = await asyncio.to_thread(_annotated, raw_tools, known)
    names = {tool.name for tool in tools}
    listing = types.ListToolsResult(tools=tools)
    kept = client.session._absorb_tool_listing(listing, complete=False).tools
    return names - {tool.name for tool in kept}


def _annotated(raw_tools: list[JsonObject], known: Collection[str]) -> list[types.Tool]:
    """Return the valid tools that say ``x-mcp-header``, and those with a name that is known."""
    tools = []
    for raw in raw_tools:
        name = raw.get("name")
        if isinstance(name, str) and (name in known or _HEADER in to_json(raw.get("inputSchema"))):
            with suppress(ValidationError):
                tools.append(types.Tool.model_validate(raw))
    return tools


def repair_result(raw: Mapping[str, Any]) -> JsonObject:
    """Return what is validated of a tool's result, with notes in place of what would lose it."""
    content = raw.get("content")
    if isinstance(content, str | dict):
        content = [content]
    blocks = content if isinstance(content, list) else []
    mended = [_readable_block(block) for block in blocks[:MAX_BLOCKS]]
    if (more := len(blocks) - MAX_BLOCKS) > 0:
        mended.append(_note(f"{more} more content blocks are left out"))
    if not isinstance(content, list | None) and raw.get("structuredContent") is None:
        return {"content": [_note("the tool's response cannot be read")], "isError": True}
    return {"content": mended, "isError": str(raw.get("isError") or False).lower() != "false"}


def repair_contents(raw: JsonObject, params: Mapping[str, Any]) -> JsonObject:
    """Mend what cannot be read of a rendered prompt or a resource; other replies stay.

    What nobody reads any more only counts: it is empty.
    """
    for key in {"messages", "contents"} & raw.keys():
        if not isinstance(given := raw[key], list):  # null is how some write an empty list
            raw = {**raw, key: [] if given is None else [given]}
    if (messages := raw.get("messages")) is not None:
        said = [one for message in messages for one in _blocks_of(message)]
        blocks = [_readable_block(block) for _, block in said[:MAX_BLOCKS]]
        pairs = zip_longest((role for role, _ in said), blocks, fillvalue=_EMPTY)
        raw = {**raw, "messages": [{"role": role, "content": block} for role, block in pairs]}
    if (listed := raw.get("contents")) is not None:
        uri, rest = params.get("uri"), len(listed) - MAX_BLOCKS
        parts = [_readable_content(one, uri) for one in listed[:MAX_BLOCKS]]
        raw = {**raw, "contents": parts + [{"uri": uri, "text": ""}] * rest}
    return raw


def _blocks_of(message: object) -> Iterator[tuple[str, object]]:
    """Yield the blocks of a prompt's message with its role; an unknown one is the user's."""
    given = message if isinstance(message, dict) else {"content": message}
    content, role = given.get("content"), given.get("role")
    for block in content if isinstance(content, list) else [content]:
        yield ("assistant" if role == "assistant" else "user"), block


def _readable_content(content: object, uri: object) -> JsonObject:
    """Return a part of a resource, as JSON where it has no text."""
    given = content if isinstance(content, dict) else {"text": content}
    resource = {"uri": uri} | {name: one for name, one in given.items() if one is not None}
    block = _readable_block({"type": "resource", "resource": resource})
    return block.get("resource") or {"uri": uri, "text": block["text"]}


def _readable_block(block: object) -> JsonObject:
    """Return a content block; what cannot be read as JSON, or a note if that is long."""
    if isinstance(block, str):
        return {"type": "text", "text": block}
    plain = _plain_block(block) if isinstance(block, dict) else {}
    with suppress(ValidationError):
        types.CallToolResult.model_validate({"content": [plain]}, by_name=False)
        return plain
    kind = sanitize_line(str(plain.get("type", "")), MAX_KIND)
    as_json = json.dumps(block, ensure_ascii=False)
    named = f"content block of type “{kind}”" if kind else "content block"
    said = " was omitted"
    said = f", as received: {as_json}" if len(as_json) <= MAX_ODD_BLOCK else said
    return _note(f"an unreadable {named}{said}")


def _note(words: str) -> JsonObject:
    return {"type": "text", "text": f"[{words[0].upper()}{words[1:]}.]"}
