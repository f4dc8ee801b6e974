"""JSON-RPC messages as lines of text: one message a line, and what to do with any other line."""

import json
import re
from typing import Final, NewType

import mcp_types as types
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCRequest
from pydantic import ValidationError
from pydantic_core import from_json

Noise = NewType("Noise", str)
"""A line that is no message."""

HEAD: Final = 300
"""Bytes at either end of an unreadable line that are searched for its id."""

MAX_REPAIRED: Final = 256 * 1024
"""Longest unreadable line that is parsed once more, with more tolerance, for its id."""

_ID: Final = rb'"id"\s*:\s*(\d{1,18}|"[^"\\]{1,100}")'
_VERSION: Final = rb'"jsonrpc"\s*:\s*"2\.0"'
_ID_FIRST: Final = re.compile(rb"\s*\{\s*(?:" + _VERSION + rb"\s*,\s*)?" + _ID + rb"\s*,")
_ID_LAST: Final = re.compile(rb"[}\]]\s*,\s*" + _ID + rb"(?:\s*,\s*" + _VERSION + rb")?\s*\}\s*\Z")
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


def decode(line: bytes) -> JSONRPCMessage | Noise | None:
    """Read one line.

    Bytes that are no UTF-8 are replaced. A reply that cannot be read becomes an error reply, so
    that whoever waits for it hears of it at once.

    Returns:
        The message; or the line's beginning, if it is none; or None for a blank line.
    """
    line = line.removeprefix(_BYTE_ORDER_MARK).strip()
    if not line:
        return None
    # Parsing first and validating then costs a sixth of what validating the text would.
    try:
        value = from_json(line.decode("utf-8", "replace"))
    except ValueError:
        return _unreadable(line, _id_in_text(line))
    try:
        return types.jsonrpc_message_adapter.validate_python(value, by_name=False)
    except ValidationError:
        return _unreadable(line, _id_of_reply(value))


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


def _unreadable(line: bytes, reply_id: int | str | None) -> JSONRPCError | Noise:
    """Give an error reply in place of a reply that cannot be read, and noise for the rest."""
    if reply_id is None:
        return Noise(line[:HEAD].decode("utf-8", "replace"))
    problem = types.ErrorData(
        code=types.PARSE_ERROR, message="the server's reply could not be read"
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


def _id_in_text(line: bytes) -> int | str | None:
    """Find the id of what seems to be a reply and is no strict JSON."""
    if len(line) > MAX_REPAIRED:
        return _id_by_pattern(line)
    try:
        value = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return _id_by_pattern(line)
    return _id_of_reply(value)


def _id_by_pattern(line: bytes) -> int | str | None:
    """Find an id at either end of what is no JSON; an id in the middle may belong elsewhere."""
    if b'"result"' not in line and b'"error"' not in line:
        return None
    found = _ID_FIRST.match(line[:HEAD]) or _ID_LAST.search(line[-HEAD:])
    if found is None:
        return None
    value = found[1].decode("utf-8", "replace")
    return value.strip('"') if value.startswith('"') else int(value)
