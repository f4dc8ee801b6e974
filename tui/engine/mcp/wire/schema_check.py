"""Checks messages against the schema of their revision of the protocol.

It imports the types of the MCP SDK: use it in a thread, once a server is connected.
"""

from collections.abc import Mapping
from typing import Any, Final, get_args

from mcp_types import methods
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from tui.engine.mcp.wire.tap import Noted, label
from tui.model.bounded_json import value_or_none
from tui.model.wire.frames import Direction, FrameFault, FrameKind

_SCHEMAS: Final[Mapping[tuple[Direction, FrameKind], Mapping[tuple[str, str], Any]]] = {
    (Direction.SENT, FrameKind.REQUEST): methods.CLIENT_REQUESTS,
    (Direction.SENT, FrameKind.NOTIFICATION): methods.CLIENT_NOTIFICATIONS,
    (Direction.SENT, FrameKind.ANSWER): methods.CLIENT_RESULTS,
    (Direction.RECEIVED, FrameKind.REQUEST): methods.SERVER_REQUESTS,
    (Direction.RECEIVED, FrameKind.NOTIFICATION): methods.SERVER_NOTIFICATIONS,
    (Direction.RECEIVED, FrameKind.ANSWER): methods.SERVER_RESULTS,
}
_RESULT_TYPES: Final = ("complete", "input_required")
"""Those of the revisions that gemdeck speaks, without any extension."""

MAX_PLACE: Final = 5
"""Names of the place of a fault that are told."""


def check(noted: Noted) -> tuple[FrameFault, str] | None:
    """Return what is wrong with a message, and more words on it; None for nothing.

    One that is not kept whole is taken for good, and so is a method that the revision does not
    know: it may be an extension's.
    """
    schemas = _SCHEMAS.get((noted.direction, noted.kind))
    if schemas is None or noted.tail or noted.faults:
        return None
    if (value := value_or_none(noted.head)) is None:
        return None
    schema = schemas.get((noted.method, noted.version))
    if noted.kind is FrameKind.ANSWER:
        if not isinstance(value := value.get("result"), dict):
            return None
        if noted.version in MODERN_PROTOCOL_VERSIONS:
            value = {"resultType": "complete", **value}  # what is left out means that
            if value["resultType"] not in _RESULT_TYPES:
                return FrameFault.UNKNOWN_RESULT, label(value["resultType"])
        if options := get_args(schema):  # a result, or the questions that come before it
            asks = value["resultType"] == "input_required"
            schema = next(one for one in options if asks is ("InputRequired" in one.__name__))
    if schema is None:
        return None
    try:
        schema.model_validate(value, by_name=False)
    except ValidationError as error:
        [first, *_] = error.errors(include_url=False, include_context=False, include_input=False)
        place = ".".join(map(str, first["loc"][-MAX_PLACE:]))
        return FrameFault.INVALID, label(f"{place}: {first['msg']}")
    return None
