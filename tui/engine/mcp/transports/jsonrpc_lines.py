"""JSON-RPC messages as lines of text: one message a line, and what to do with any other line."""

import asyncio
import re
import sys
from typing import Final, NamedTuple, NewType

import mcp_types as types
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest
from pydantic import ValidationError

from tui.engine.servers import json_text
from tui.engine.servers.transport import EXCHANGE_FAILED, OWN_CODES

Noise = NewType("Noise", str)
"""A line that is no message."""

PROGRESS: Final = "notifications/progress"

HEAD: Final = 300
"""Bytes at either end of an unreadable line that are searched for its id."""

MAX_UNASKED: Final = 50_000
"""Structural characters of a request or notification; the SDK walks through it on the loop."""

MAX_ON_LOOP: Final = 32 * 1024
"""Longest line, in bytes, that is read on the event loop; a thread costs more than it does."""

_ID: Final = rb'"id"\s*:\s*(\d{1,18}|"[^"\\]{1,100}")'
_VERSION: Final = rb'"jsonrpc"\s*:\s*"2\.0"'
_ID_FIRST: Final = re.compile(rb"\s*\{\s*(?:" + _VERSION + rb"\s*,\s*)?" + _ID + rb"\s*,")
_ID_LAST: Final = re.compile(rb"[}\]]\s*,\s*" + _ID + rb"(?:\s*,\s*" + _VERSION + rb")?\s*\}\s*\Z")
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class Reading(NamedTuple):
    """What a line turned out to be, and how many structural characters it has."""

    message: JSONRPCMessage | Noise | None
    structure: int


async def read(line: bytes, most: int = json_text.MAX_STRUCTURE) -> Reading:
    """Read one line as `decode` does, a long one off the event loop."""
    if len(line) <= MAX_ON_LOOP:
        return _read(line, most)
    return await asyncio.to_thread(_read, line, most)


def decode(line: bytes, most: int = json_text.MAX_STRUCTURE) -> JSONRPCMessage | Noise | None:
    """Read one line.

    A reply that cannot be read becomes an error reply, so that whoever waits for it hears of it
    at once. A server does not get to use the codes of our own such replies.

    Args:
        line: What to read.
        most: Structural characters that a reply may have.

    Returns:
        The message; or the line's beginning, if it is none; or None for a blank line.
    """
    return _read(line, most).message


def _read(line: bytes, most: int) -> Reading:
    count = json_text.structure(line)
    return Reading(_decode(line, count, most), count)


def _decode(line: bytes, count: int, most: int) -> JSONRPCMessage | Noise | None:
    line = line.removeprefix(_BYTE_ORDER_MARK).strip()
    if not line:
        return None
    if not line.startswith(b"{"):
        return _noise(line)
    if count > most:
        return _unreadable(line, _id_by_pattern(line), "is too complex to be read")
    # Parsing first and validating then costs a sixth of what validating the text would.
    try:
        value = json_text.parse(line, count)
    except json_text.UnreadableError as fault:
        return _unreadable(line, _id_by_pattern(line), str(fault))
    try:
        message = types.jsonrpc_message_adapter.validate_python(value, by_name=False)
    except ValidationError:
        return _unreadable(line, _id_of_reply(value), "breaks the protocol")
    if isinstance(message, JSONRPCError) and message.error.code in OWN_CODES:
        error = message.error.model_copy(update={"code": types.INTERNAL_ERROR})
        return message.model_copy(update={"error": error})
    if isinstance(message, JSONRPCRequest | JSONRPCNotification) and (
        count > MAX_UNASKED or _breaks_the_sdk(message)
    ):
        return _noise(line)
    return message


def encode(message: JSONRPCMessage) -> bytes:
    """Write one message as a line.

    Raises:
        ValueError: If it holds what JSON or UTF-8 cannot express.
    """
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"


def unsendable(message: JSONRPCMessage) -> JSONRPCError | None:
    """Answer a request that cannot be written, in the server's stead; None for anything else."""
    if not isinstance(message, JSONRPCRequest):
        return None
    problem = types.ErrorData(
        code=types.INVALID_PARAMS, message="the request holds text that cannot be sent"
    )
    return JSONRPCError(jsonrpc="2.0", id=message.id, error=problem)


def _breaks_the_sdk(message: JSONRPCRequest | JSONRPCNotification) -> bool:
    """Tell whether a report of progress holds a number that the SDK would fail to convert."""
    if message.method != PROGRESS:
        return False
    params = message.params or {}
    numbers = (params.get("progress"), params.get("total"))
    return any(isinstance(number, int) and abs(number) > sys.float_info.max for number in numbers)


def _noise(line: bytes) -> Noise:
    return Noise(line[:HEAD].decode("utf-8", "replace"))


def _unreadable(line: bytes, reply_id: int | str | None, reason: str) -> JSONRPCError | Noise:
    """Give an error reply in place of a reply that cannot be read, and noise for the rest."""
    if reply_id is None:
        return _noise(line)
    problem = types.ErrorData(
        code=EXCHANGE_FAILED,
        message=f"sent a reply that {reason}; whether the request had any effect is unknown",
    )
    return JSONRPCError(jsonrpc="2.0", id=reply_id, error=problem)


def _id_of_reply(value: object) -> int | str | None:
    """Find the id of what seems to be a reply and breaks the protocol."""
    if not isinstance(value, dict) or not ("result" in value or "error" in value):
        return None
    match value.get("id"):
        case bool():
            return None
        case int() | str() as reply_id:
            return reply_id
        case _:
            return None


def _id_by_pattern(line: bytes) -> int | str | None:
    """Find an id at either end of what is no JSON; an id in the middle may belong elsewhere."""
    if b'"result"' not in line and b'"error"' not in line:
        return None
    found = _ID_FIRST.match(line[:HEAD]) or _ID_LAST.search(line[-HEAD:])
    if found is None:
        return None
    value = found[1].decode("utf-8", "replace")
    return value.strip('"') if value.startswith('"') else int(value)
