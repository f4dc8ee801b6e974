"""A recorded server: its answers in a trace, found by method and parameters."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from tui.model.bounded_json import as_object, value_or_none

_HANDSHAKE: Final = frozenset({"initialize", "server/discover"})
"""Methods whose parameters say who asks, which may be another client."""

_TAKEN: Final = frozenset(
    {"ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
)
"""Methods that any client may use beside those recorded, and that have an empty answer."""

_REVISION: Final = "2025-11-25"
"""The newest revision with a handshake, for clients that know no later one."""

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
        self.servers: set[str] = set()
        self._answers = defaultdict[_Key, list[list[_Message]]](list)
        asked: dict[str, _Key] = {}
        told: list[_Message] = []
        for line in lines:
            frame = as_object(value_or_none(line.encode()))
            name, message = str(frame.get("server")), frame.get("message")
            if "gemdeck" in frame:
                asked.clear()  # another run counts anew
            elif server in {"", name} and isinstance(message, dict):
                match frame.get("direction"), frame.get("kind"):
                    case "sent", "request":
                        self.servers.add(name)
                        asked[str(frame.get("number"))] = key = _key(message)
                        self._answers[key] += ()
                    case "received", "notification" if "token" not in frame:
                        told.append(message)
                    case "received", "answer" if of := asked.pop(str(frame.get("pair")), None):
                        self._answers[of].append([*told, message])
                        told.clear()

    def answer(self, line: bytes) -> list[_Message]:
        """Return what the server says to a line that a client wrote."""
        message = as_object(value_or_none(line))
        if not {"id", "method"} <= message.keys():
            return []
        key = method, params = _key(message)
        if key not in self._answers:
            if (result := self._result_of(message)) is not None:
                return [{"jsonrpc": "2.0", "id": message["id"], "result": result}]
            is_known = any(method == name for name, _ in self._answers)
            code = UNKNOWN_PARAMS if is_known else UNKNOWN_METHOD
            error = {"code": code, "message": f"not in the trace: {method} {params}"}
            return [{"jsonrpc": "2.0", "id": message["id"], "error": error}]
        if not (found := self._answers[key]):
            return []
        *told, last = found.pop(0)
        if not found:
            found.append([last])
        return [*told, {**last, "id": message["id"]}]

    def _result_of(self, message: _Message) -> _Message | None:
        """Return the result of a request that needs no recording, or whose twin was recorded."""
        if message["method"] in _TAKEN:
            return {}
        known = self._answers.get(("server/discover", "")) or []
        found = known[-1][-1].get("result") if known and message["method"] == "initialize" else None
        if not isinstance(found, dict):
            return None
        version = as_object(message.get("params")).get("protocolVersion")
        info = found.get("serverInfo") or {"name": next(iter(self.servers), ""), "version": ""}
        more = {name: found[name] for name in ("capabilities", "instructions") if name in found}
        version = min(str(version or _REVISION), _REVISION)
        return {"protocolVersion": version, "serverInfo": info, **more}


def _key(message: _Message) -> _Key:
    method, said = str(message.get("method")), {**as_object(message.get("params"))}
    said.pop("_meta", None)
    if not said.get("arguments", True):
        del said["arguments"]  # some leave out what is empty
    return method, "" if method in _HANDSHAKE else json.dumps(said, sort_keys=True)
