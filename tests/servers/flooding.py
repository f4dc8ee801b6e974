"""A server that shakes hands, declares everything, answers no list, and floods its client.

Run it as ``flooding.py MODE…``: ``silent`` floods with nothing, ``requests`` sends requests of
every kind as fast as it can, ``news`` adds notifications, ``replies`` answers each of our replies
with many more, ``deaf`` stops reading, and ``batches`` packs its messages into arrays.
"""

import itertools
import json
import sys
import threading
from typing import Any

MODES = set(sys.argv[1:])
NUMBERS = itertools.count(1_000)
LOCK = threading.Lock()

FORM = {"type": "object", "properties": {"name": {"type": "string"}}}
PROMPT = [{"role": "user", "content": {"type": "text", "text": "hello"}}]
ASKED: list[tuple[str, dict[str, Any]]] = [
    ("ping", {}),
    ("roots/list", {}),
    ("elicitation/create", {"message": "Who?", "requestedSchema": FORM}),
    ("sampling/createMessage", {"messages": PROMPT, "maxTokens": 9}),
    ("no/such", {"filler": "x" * 500}),
]
TOLD: list[tuple[str, dict[str, Any]]] = [
    ("message", {"level": "error", "data": "x" * 100}),
    ("tools/list_changed", {}),
    ("prompts/list_changed", {}),
    ("resources/list_changed", {}),
    ("resources/updated", {"uri": "x:y"}),
]


def send(messages: list[dict[str, Any]]) -> None:
    """Send messages, each on its line or all in one array."""
    whole = [{"jsonrpc": "2.0", **message} for message in messages]
    lines = [whole] if "batches" in MODES else whole
    with LOCK:
        sys.stdout.write("".join(f"{json.dumps(line)}\n" for line in lines))
        sys.stdout.flush()


def requests() -> list[dict[str, Any]]:
    """Ask everything once, and tell what there is to tell."""
    asked = [{"id": next(NUMBERS), "method": method, "params": p} for method, p in ASKED]
    told = [{"method": f"notifications/{name}", "params": params} for name, params in TOLD]
    return asked + told if "news" in MODES else asked


def flood() -> None:
    """Ask without end."""
    while True:
        send(requests() * 20)


def initialize(message: dict[str, Any]) -> None:
    """Shake hands, and begin."""
    result = {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}, "prompts": {}, "resources": {}},
        "serverInfo": {"name": "flooding", "version": "0"},
    }
    with LOCK:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}))
        sys.stdout.write("\n")
        sys.stdout.flush()
    if "requests" in MODES:
        threading.Thread(target=flood, daemon=True).start()


def main() -> None:
    """Serve until the input ends."""
    if "replies" in MODES:
        send(requests())
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "initialize":
            initialize(message)
        elif message.get("method") == "notifications/initialized" and "deaf" in MODES:
            threading.Event().wait()
        elif "method" not in message and "replies" in MODES:
            send([{"id": message["id"], "result": {}}] * 20 + requests())
        elif message.get("method") == "server/discover":
            send([{"id": message["id"], "error": {"code": -32601, "message": "unknown"}}])


if __name__ == "__main__":
    try:
        main()
    except (BrokenPipeError, KeyboardInterrupt):
        sys.exit()
