"""Checks messages against the schema of their revision of the protocol.

It imports the types of the MCP SDK: use it in a thread, once a server is connected.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, get_args

from mcp_types import methods
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from tui.engine.mcp.wire.tap import Noted, label
from tui.model.bounded_json import JsonError, read_value
from tui.model.wire.frames import Direction, FrameFault, FrameKind

_SCHEMAS: Final[Mapping[tuple[Direction, FrameKind], Mapping[tuple[str, str], Any]]] = {
    (Direction.SENT, FrameKind.REQUEST): methods.CLIENT_REQUESTS,
    (Direction.SENT, FrameKind.NOTIFICATION): methods.CLIENT_NOTIFICATIONS,
    (Direction.SENT, FrameKind.ANSWER): methods.CLIENT_RESULTS,
    (Direction.RECEIVED, FrameKind.REQUEST): methods.SERVER_REQUESTS,
    (Direction.RECEIVED, FrameKind.NOTIFICATION): methods.SERVER_NOTIFICATIONS,
    (Direction.RECEIVED, FrameKind.ANSWER): methods.SERVER_RESULTS,
}
_RESULT_TYPES: Final = frozenset({"complete", "input_required"})
"""Those of the revisions that gemdeck speaks, without any extension."""

MAX_PLACE: Final = 5
"""Names of the place of a fault that are told."""


def check(noted: Noted) -> None:
    """Note what is wrong with a message, once; one that is not kept whole is taken for good."""
    if noted.is_checked:
        return
    noted.is_checked = True
    schemas = _SCHEMAS.get((noted.direction, noted.kind))
    if schemas is None or noted.tail or noted.version not in KNOWN_PROTOCOL_VERSIONS:
        return
    with suppress(JsonError):
        message = read_value(noted.head)
        if isinstance(message, dict) and "error" not in message:
            _check(noted, message, schemas.get((noted.method, noted.version)))
    noted.shown = None


def _check(noted: Noted, message: dict[str, Any], schema: Any) -> None:  # noqa: ANN401 - of the SDK
    """Check one message; a method that the revision does not know may be an extension's."""
    value: object = message
    kind: object = "complete"
    if noted.kind is FrameKind.ANSWER:
        value = message.get("result")
        kind = value.get("resultType", "complete") if isinstance(value, dict) else None
        if noted.version in MODERN_PROTOCOL_VERSIONS and kind not in _RESULT_TYPES:
            noted.faults += (FrameFault.UNKNOWN_RESULT,)
            noted.detail = label(kind)
            return
        if isinstance(value, dict) and noted.version in MODERN_PROTOCOL_VERSIONS:
            value = {"resultType": "complete", **value}  # what is left out means that
    if schema is None:
        return
    if options := get_args(schema):  # a result, or the questions that come before it
        asks = kind == "input_required"
        schema = next(one for one in options if asks is ("InputRequired" in one.__name__))
    try:
        TypeAdapter(schema).validate_python(value, by_name=False)
    except ValidationError as error:
        [first, *_] = error.errors(include_url=False, include_context=False, include_input=False)
        place = ".".join(map(str, first["loc"][-MAX_PLACE:]))
        noted.faults += (FrameFault.INVALID,)
        noted.detail = label(f"{place}: {first['msg']}")
