"""A recorded server: its answers in a trace, found by method and parameters."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from tui.model.bounded_json import JsonError, read_value
from tui.model.wire import Direction, FrameKind

_HANDSHAKE: Final = frozenset({"initialize", "server/discover"})
"""Methods whose parameters say who asks, which may be another client."""

UNKNOWN_METHOD: Final = -32_601
UNKNOWN_PARAMS: Final = -32_602

_Key = tuple[str, str]


class Recording:
    """The answers of one server in a trace.

    Equal requests get the recorded answers in their order, then the last one again. One without an
    answer gets none.

    Args:
        lines: The lines of the trace.
        server: Which server; empty for the only one.

    Attributes:
        servers: The names of the servers that count.
    """

    def __init__(self, lines: Iterable[str], server: str = "") -> None:
        self.servers: dict[str, None] = {}
        self._answers = defaultdict[_Key, list[Mapping[str, Any]]](list)
        asked: dict[int, _Key] = {}
        for line in lines:
            match _parsed(line.encode()):
                case {"server": str() as name} if server not in {"", name}:
                    continue
                case {
                    "server": str() as name,
                    "direction": Direction.SENT,
                    "kind": FrameKind.REQUEST,
                    "number": int() as number,
                    "message": dict() as message,
                }:
                    self.servers[name] = None
                    asked[number] = key = _key(message)
                    self._answers[key] += ()
                case {
                    "direction": Direction.RECEIVED,
                    "kind": FrameKind.ANSWER,
                    "pair": int() as number,
                    "message": dict() as message,
                } if number in asked:
                    self._answers[asked.pop(number)].append(message)
                case {"gemdeck": _}:
                    asked.clear()  # another run counts anew

    def answer(self, line: bytes) -> Mapping[str, Any] | None:
        """Return the answer to a line that a client wrote, or None if it gets none."""
        message = _parsed(line)
        if not isinstance(message, dict) or not {"id", "method"} <= message.keys():
            return None
        key = method, params = _key(message)
        if key in self._answers:
            found = self._answers[key]
            said = (found.pop(0) if len(found) > 1 else found[0]) if found else None
            return said and {**said, "id": message["id"]}
        is_known = any(method == name for name, _ in self._answers)
        code = UNKNOWN_PARAMS if is_known else UNKNOWN_METHOD
        words = f"not in the recording: {method} {params}"
        return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": words}}


def _parsed(line: bytes) -> object:
    try:
        return read_value(line)
    except JsonError:
        return None


def _key(message: Mapping[str, Any]) -> _Key:
    method, params = str(message.get("method")), message.get("params")
    said = {name: value for name, value in (params or {}).items() if name != "_meta"}
    return method, "" if method in _HANDSHAKE else json.dumps(said, sort_keys=True)
