"""A server that tells that it was started: ``canary.py FILE WORD…`` adds a line to a file.

The line holds its words and its folder, as JSON. It then serves one tool.
"""

import json
import sys
from pathlib import Path

FILE, *WORDS = sys.argv[1:]


def main() -> None:
    """Tell, and serve until standard input ends."""
    with Path(FILE).open("a", encoding="utf-8") as file:
        file.write(json.dumps({"words": WORDS, "cwd": str(Path.cwd())}) + "\n")
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], **reply(request)}))
            sys.stdout.write("\n")
            sys.stdout.flush()


def reply(request: dict[str, object]) -> dict[str, object]:
    """Answer one request."""
    match request["method"]:
        case "initialize":
            info = {"name": "canary", "version": "0"}
            about = {"capabilities": {"tools": {}}, "serverInfo": info}
            return {"result": {"protocolVersion": "2025-06-18", **about}}
        case "tools/list":
            return {"result": {"tools": [{"name": "sing", "inputSchema": {"type": "object"}}]}}
        case "ping":
            return {"result": {}}
    return {"error": {"code": -32601, "message": "method not found"}}


if __name__ == "__main__":
    main()
