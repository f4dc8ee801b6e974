"""What a recorded server answers to clients that ask otherwise than the one of that time."""

import json
from typing import Any

from tui.engine.mcp.wire.recording import UNKNOWN_PARAMS, Recording


def recorded(*exchanges: tuple[dict[str, Any], dict[str, Any]]) -> Recording:
    lines = []
    for number, (request, result) in enumerate(exchanges, 1):
        sent = {"id": number, "jsonrpc": "2.0", **request}
        frame = {"server": "s", "direction": "sent", "kind": "request", "number": number}
        lines.append({**frame, "message": sent})
        answer = {"id": number, "jsonrpc": "2.0", "result": result}
        frame = {"server": "s", "direction": "received", "kind": "answer", "pair": number}
        lines.append({**frame, "message": answer})
    return Recording(map(json.dumps, lines))


def asked(recording: Recording, method: str, **params: Any) -> dict[str, Any]:  # noqa: ANN401
    message = {"jsonrpc": "2.0", "id": 9, "method": method, "params": params}
    [answer] = recording.answer(json.dumps(message).encode())
    assert answer["id"] == 9
    return {**answer}


def test_every_client_may_ping_subscribe_and_set_a_level() -> None:
    recording = recorded(({"method": "tools/list"}, {"tools": []}))
    for method in ("ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"):
        assert asked(recording, method, level="debug")["result"] == {}


def test_a_recorded_discovery_answers_a_handshake_too() -> None:
    found = {
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}},
        "instructions": "x",
    }
    recording = recorded(({"method": "server/discover"}, found))
    for version, answered in (("2025-06-18", "2025-06-18"), ("2026-07-28", "2025-11-25")):
        assert asked(recording, "initialize", protocolVersion=version)["result"] == {
            "protocolVersion": answered,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "s", "version": ""},
            "instructions": "x",
        }
    assert "error" in asked(recorded(({"method": "tools/list"}, {})), "initialize")


def test_empty_arguments_are_as_good_as_none() -> None:
    call = {"method": "tools/call", "params": {"name": "t"}}
    recording = recorded((call, {"content": []}))
    without: list[dict[str, Any]] = [{}, {"arguments": {}}, {"arguments": None}]
    for more in without:
        assert asked(recording, "tools/call", name="t", **more)["result"] == {"content": []}
    error = asked(recording, "tools/call", name="t", arguments={"a": 1})["error"]
    assert error["code"] == UNKNOWN_PARAMS
