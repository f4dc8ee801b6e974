"""What of a reply the SDK is spared, as it walks through all of a result on the event loop.

The SDK validates a result and writes it out again for the sake of checking it. For a result of
hundreds of thousands of values that takes longer than the loop may be held up. So structured
content is handed past it, what is not used is left out, and any other reply is bounded.
"""

from typing import Any, Final

from mcp import MCPError
from mcp_types import CallToolResult

from tui.engine.servers.transport import EXCHANGE_FAILED

JsonObject = dict[str, Any]

MAX_VALUES: Final = 50_000
"""Values of a reply that the SDK walks through in hundredths of a second."""

MAX_META_VALUES: Final = 1_000
"""Values of a result's ``_meta`` that are kept."""

_HELD: Final = "held"
_BLOCK_FIELDS: Final = frozenset(
    {"type", "text", "data", "mimeType", "uri", "name", "title", "description"}
)


class _Held(str):
    """Looks like a text to the SDK and carries structured content past it."""

    __slots__ = ("value",)
    value: JsonObject


def spare(raw: JsonObject) -> JsonObject:
    """Give the result of a tool with little in it for the SDK to walk through."""
    spared = dict(raw)
    spared["content"] = [_plain_block(block) for block in raw["content"]]
    structured = raw.get("structuredContent")
    if structured is not None:
        held = _Held()
        held.value = structured
        spared["structuredContent"] = {_HELD: held}
    if not is_light(raw.get("_meta"), MAX_META_VALUES):
        del spared["_meta"]
    return spared


def restore(result: CallToolResult) -> CallToolResult:
    """Give a result back the structured content that was handed past the SDK."""
    match result.structured_content:
        case {"held": _Held() as held}:
            return result.model_copy(update={"structured_content": held.value})
        case _:
            return result


def check_weight(raw: JsonObject) -> JsonObject:
    """Give a reply if it is light enough for the SDK.

    Raises:
        MCPError: If it is not, in the way of a transport that fails one request.
    """
    if is_light(raw, MAX_VALUES):
        return raw
    words = "sent a reply that is too complex to be read"
    raise MCPError(EXCHANGE_FAILED, f"{words}; whether the request had any effect is unknown")


def is_light(value: object, limit: int) -> bool:
    """Tell whether a JSON value holds at most `limit` values; looks at hardly more of them."""
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
    """Give a content block without annotations, icons and ``_meta``, none of which is used."""
    plain = {name: value for name, value in block.items() if name in _BLOCK_FIELDS}
    resource = block.get("resource")
    if isinstance(resource, dict):
        names = ("uri", "mimeType", "text", "blob")
        plain["resource"] = {name: resource[name] for name in names if name in resource}
    return plain
