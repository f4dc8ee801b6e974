"""A server without any SDK that asks too early, too much, or for what was never declared.

It records the answers to its own requests in the file that ``PUSHY_RECORD`` names, one JSON text
a line. ``pushy.py early`` asks before the handshake; its tools ask for more.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

Message = dict[str, Any]

EARLY = "early" in sys.argv[1:]
RECORD = Path(os.environ.get("PUSHY_RECORD", "record"))
STORM = 30

FORM: Message = {
    "message": "quick",
    "requestedSchema": {"type": "object", "properties": {"a": {"type": "string"}}},
}
SAMPLE: Message = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "x"}}],
    "maxTokens": 10,
}


def send(message: Message) -> None:
    """Send one message."""
    sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    sys.stdout.buffer.flush()


def answer(request: Message, result: Message) -> None:
    """Answer a request."""
    send({"id": request["id"], "result": result})


def ask(request_id: str, method: str, params: Message) -> None:
    """Send a request of our own."""
    send({"id": request_id, "method": method, "params": params})


def call_tool(request: Message) -> None:
    """Run a tool."""
    name = request["params"]["name"]
    if name == "storm":
        for number in range(STORM):
            ask(f"storm-{number}", "elicitation/create", FORM)
    elif name == "nested":
        properties = {"deep": {"type": "object", "properties": {}}}
        schema = {"type": "object", "properties": properties}
        ask("nested", "elicitation/create", {"message": "x", "requestedSchema": schema})
    elif name == "unknown":
        ask("unknown", "tasks/create", {})
    elif name == "exit":
        ask("last", "elicitation/create", FORM)
        return
    answer(request, {"content": [{"type": "text", "text": "asked"}]})


def serve(message: Message) -> None:
    """Take one request."""
    match message["method"]:
        case "initialize":
            if EARLY:
                ask("early-form", "elicitation/create", FORM)
                ask("early-sample", "sampling/createMessage", SAMPLE)
                ask("early-roots", "roots/list", {})
            answer(
                message,
                {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "pushy", "version": "0"},
                },
            )
        case "tools/list":
            names = ("storm", "nested", "unknown", "exit")
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
            answer(message, {"tools": tools})
        case "tools/call":
            call_tool(message)
        case _:
            send({"id": message["id"], "error": {"code": -32601, "message": "no"}})


def main() -> None:
    """Serve until the input ends."""
    for line in sys.stdin:
        message = json.loads(line)
        if "method" in message and "id" in message:
            serve(message)
        elif "id" in message:
            with RECORD.open("a") as file:
                file.write(line)


if __name__ == "__main__":
    main()
