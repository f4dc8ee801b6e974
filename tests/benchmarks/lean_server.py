"""A server that does next to no work itself: ``lean_server.py [TOOLS]`` lists that many more."""

import json
import sys
from typing import Any

INTEGER = {"type": "integer"}
WORDS = "Looks something up in the shop's database and gives what it finds, in a few words. "
ADD: dict[str, Any] = {
    "name": "add",
    "description": "Add two numbers.",
    "inputSchema": {"type": "object", "properties": {"a": INTEGER}, "required": ["a"]},
    "outputSchema": {"type": "object", "properties": {"result": INTEGER}, "required": ["result"]},
}


def tool(number: int) -> dict[str, Any]:
    """Define a tool as servers commonly do."""
    properties = {
        "query": {"type": "string", "description": f"What to look for in table {number}"},
        "limit": {"type": "integer", "default": 10, "minimum": 1, "maximum": 100},
        "order": {"type": "string", "enum": ["newest", "oldest"], "description": "In which order"},
    }
    schema = {"type": "object", "properties": properties, "required": ["query"]}
    return {"name": f"look_up_{number}", "description": 3 * WORDS, "inputSchema": schema}


TOOLS = [ADD, *map(tool, range(int(sys.argv[1]) if sys.argv[1:] else 0))]

for line in sys.stdin:
    message = json.loads(line)
    result: dict[str, Any] = {"resultType": "complete"}
    match message["method"]:
        case "initialize":
            result["protocolVersion"] = "2025-11-25"
            result |= {"capabilities": {"tools": {}}, "serverInfo": {"name": "lean", "version": ""}}
        case "server/discover":
            result |= {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
            result |= {"ttlMs": 0, "cacheScope": "private"}
        case "tools/list":
            result |= {"tools": TOOLS, "ttlMs": 0, "cacheScope": "private"}
        case "tools/call":
            found = message["params"]["arguments"]["a"] + 1
            result["content"] = [{"type": "text", "text": str(found)}]
            result["structuredContent"] = {"result": found}
    if "id" in message:
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
