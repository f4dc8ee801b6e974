"""A server whose single messages are heavy: run it as ``heavy.py MODE``.

``tools`` offers a hundred thousand and says over and over that they changed, ``numbers`` tells its
progress and writes its log in millions of digits, and ``quiet`` does none of it.
"""

import json
import sys
import threading
import time
from typing import Any

MODE = sys.argv[1]
TOOLS = 100_000
LOCK = threading.Lock()
Message = dict[str, Any]


def write(text: str) -> None:
    """Write one line."""
    with LOCK:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def send(message: Message) -> None:
    """Send one message."""
    write(json.dumps({"jsonrpc": "2.0", **message}))


def count() -> None:
    """Tell a long number again and again."""
    digits = "7" * 1_000_000
    while True:
        for name, params in (
            ("progress", f'"progressToken":1,"progress":{digits}'),
            ("message", f'"level":"error","data":[{digits},1e{digits},0.{digits}]'),
        ):
            write(f'{{"jsonrpc":"2.0","method":"notifications/{name}","params":{{{params}}}}}')
        time.sleep(0.05)


def change() -> None:
    """Say again and again that the tools changed."""
    while True:
        time.sleep(0.5)
        send({"method": "notifications/tools/list_changed"})


def tool(name: str) -> Message:
    """Describe a tool."""
    properties = {"text": {"type": "string"}}
    return {"name": name, "inputSchema": {"type": "object", "properties": properties}}


def lists(cursor: str | None) -> Message:
    """List tools, twenty thousand a page."""
    if MODE != "tools":
        return {"tools": [tool("draw")]}
    first = int(cursor or 0)
    page = [tool(f"tool_{n}") for n in range(first, min(TOOLS, first + 20_000))]
    return {"tools": page} | ({"nextCursor": str(first + 20_000)} if first + 20_000 < TOOLS else {})


def main() -> None:
    """Serve until the input ends."""
    for line in sys.stdin:
        message = json.loads(line)
        method, params = message.get("method"), message.get("params") or {}
        if method == "initialize":
            about = {"name": "heavy", "version": "0"}
            offered = {"tools": {"listChanged": True}, "logging": {}}
            result = {"protocolVersion": "2025-06-18", "capabilities": offered, "serverInfo": about}
            send({"id": message["id"], "result": result})
            if works := {"numbers": count, "tools": change}.get(MODE):
                threading.Thread(target=works, daemon=True).start()
        elif method == "tools/list":
            send({"id": message["id"], "result": lists(params.get("cursor"))})
        elif method == "tools/call":
            send({"id": message["id"], "result": {"content": [{"type": "text", "text": "done"}]}})
        elif "id" in message and method is not None:
            send({"id": message["id"], "error": {"code": -32601, "message": "unknown"}})


main()
