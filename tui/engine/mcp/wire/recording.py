"""A recorded server: its answers in a trace, found by method and parameters."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from tui.model.bounded_json import JsonError, read_value

_HANDSHAKE: Final = frozenset({"initialize", "server/discover"})
"""Methods whose parameters say who asks, which may be another client."""

UNKNOWN_METHOD: Final = -32_601
UNKNOWN_PARAMS: Final = -32_602

_Key = tuple[str, str]
_Message = Mapping[str, Any]


class Recording:
    """What one server said in a trace.

    Equal requests get the recorded answers in their order, then the last one again. One without an
    answer gets none. What the server told before an answer is told before it again, once; progress,
    which belongs to requests of that time, is not.

    Args:
        lines: The lines of the trace.
        server: Which server; empty for the only one.

    Attributes:
        servers: The names of the servers that count.
    """

    def __init__(self, lines: Iterable[str], server: str = "") -> None:
        self.servers: dict[str, None] = {}
        self._answers = defaultdict[_Key, list[list[_Message]]](list)
        asked: dict[int, _Key] = {}
        told: list[_Message] = []
        for line in lines:
            match _parsed(line.encode()):
                case {"gemdeck": _}:
                    asked.clear()  # another run counts anew
                case {"server": str() as name} if server not in {"", name}:
                    pass
                case {"kind": "notification", "token": _}:
                    pass
                case {
                    "server": str() as name,
                    "direction": "sent",
                    "kind": "request",
                    "number": int() as number,
                    "message": dict() as message,
                }:
                    self.servers[name] = None
                    asked[number] = key = _key(message)
                    self._answers[key] += ()
                case {"direction": "received", "kind": "notification", "message": dict() as notice}:
                    told.append(notice)
                case {"kind": "answer", "pair": int() as number, "message": dict() as message} if (
                    number in asked
                ):
                    self._answers[asked.pop(number)].append([*told, message])
                    told.clear()

    def answer(self, line: bytes) -> list[_Message]:
        """Return what the server says to a line that a client wrote."""
        message = _parsed(line)
        if not isinstance(message, dict) or not {"id", "method"} <= message.keys():
            return []
        key = method, params = _key(message)
        if key not in self._answers:
            is_known = any(method == name for name, _ in self._answers)
            code = UNKNOWN_PARAMS if is_known else UNKNOWN_METHOD
            error = {"code": code, "message": f"not in the recording: {method} {params}"}
            return [{"jsonrpc": "2.0", "id": message["id"], "error": error}]
        if not (found := self._answers[key]):
            return []
        *told, last = found[0]
        found[0] = [last]
        if len(found) > 1:
            del found[0]
        return [*told, {**last, "id": message["id"]}]


def _parsed(line: bytes) -> object:
    try:
        return read_value(line)
    except JsonError:
        return None


def _key(message: _Message) -> _Key:
    method, params = str(message.get("method")), message.get("params")
    said = {name: value for name, value in (params or {}).items() if name != "_meta"}
    return method, "" if method in _HANDSHAKE else json.dumps(said, sort_keys=True)
