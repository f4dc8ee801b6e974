"""A server without any SDK that puts the secret it was given into all that it says.

``parrot.py`` speaks over standard output, with the secret of the variable ``PARROT_TOKEN`` and the
last one of its arguments, alone or after a name; `replies` is what it says over any transport.
"""

import base64
import json
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

Message = dict[str, Any]

URI = "db://reader:{}@host/rows"
CAPABILITIES = ("tools", "prompts", "resources", "logging", "completions")


def tools(secret: str) -> list[Message]:
    field = {"type": "string", "description": f"such as {secret}", "default": secret}
    schema = {"type": "object", "properties": {"text": field, f"of {secret}": {"type": "string"}}}
    said = {"title": f"Say {secret}", "description": f"Says {secret}."}
    names = ("say", "structure", "fail", "break", "media", "report", "ask", "write")
    return [{"name": name, **said, "inputSchema": schema} for name in names]


def replies(request: Message, secret: str) -> Iterator[Message]:
    """Yield what a request leads to, its answer last."""
    params = request.get("params") or {}
    ident = request.get("id")
    uri = URI.format(secret)
    encoded = base64.b64encode(f"a picture of {secret}".encode()).decode()
    text = {"type": "text", "text": f"it is {secret}, {json.dumps(secret)}, {encoded}"}
    template = {"uriTemplate": f"{uri}/{{row}}", "name": "row"}
    contents = [{"uri": uri, "text": f"row {secret}, read"}, {"uri": uri, "blob": encoded}]
    results: dict[str, Any] = {
        "initialize": {
            "protocolVersion": "2025-06-18",
            "capabilities": {name: {} for name in CAPABILITIES},
            "serverInfo": {"name": f"parrot {secret}", "version": "1"},
            "instructions": f"Always say {secret}.",
        },
        "tools/list": {"tools": tools(secret)},
        "prompts/list": {"prompts": [{"name": "tell", "description": f"Tells {secret}."}]},
        "prompts/get": {"messages": [{"role": "user", "content": text}], "taskId": secret},
        "resources/list": {"resources": [{"uri": uri, "name": secret, "mimeType": "text/plain"}]},
        "resources/templates/list": {"resourceTemplates": [template]},
        "resources/read": {"contents": contents},
        "completion/complete": {"completion": {"values": [secret, "plain"]}},
        "logging/setLevel": {},
        "ping": {},
    }
    match request.get("method"), params.get("name"):
        case "tools/call", "structure":
            back = dict.fromkeys(("nextCursor", "requestState", secret), secret)
            structured = {secret: [{"id": secret}]}
            yield answer(ident, {"content": [], "structuredContent": structured, **back})
        case "tools/call", "fail":
            yield answer(ident, {"content": [text], "isError": True})
        case "tools/call", "break":
            error = {"code": -32050, "message": f"{secret} fails", "data": {"given": secret}}
            yield {"jsonrpc": "2.0", "id": ident, "error": error}
        case "tools/call", "media":
            picture = {"type": "image", "mimeType": "image/png", "data": encoded}
            yield answer(ident, {"content": [picture]})
        case "tools/call", "report":
            token = params["_meta"]["progressToken"]
            yield note("progress", progressToken=token, progress=1, message=f"at {secret}")
            yield note("message", level="info", data={"of": secret})
            yield answer(ident, {"content": [text]})
        case "tools/call", "ask":
            schema = {"type": "object", "properties": {"a": {"type": "string", "title": secret}}}
            asked = {"message": f"Is it {secret}?", "requestedSchema": schema}
            yield {"jsonrpc": "2.0", "id": secret, "method": "elicitation/create", "params": asked}
            yield answer(ident, {"content": [text]})
        case "tools/call", "write":
            yield answer(ident, {"content": [{"type": "text", "text": json.dumps(params)}]})
        case "resources/read", _ if params["uri"] != uri:
            error = {"code": -32002, "message": "there is no such resource"}
            yield {"jsonrpc": "2.0", "id": ident, "error": error}
        case "tools/call", _:
            yield answer(ident, {"content": [text]})
        case method, _ if method in results:
            yield answer(ident, results[method])
        case _:
            error = {"code": -32601, "message": f"{secret} does not know it"}
            yield {"jsonrpc": "2.0", "id": ident, "error": error}


def answer(ident: object, result: Message) -> Message:
    return {"jsonrpc": "2.0", "id": ident, "result": result}


def note(method: str, **params: object) -> Message:
    return {"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params}


def main() -> None:
    """Serve until standard input ends; each answer of the client goes to standard error."""
    secret = os.environ.get("PARROT_TOKEN") or re.split("=|: ", sys.argv[-1])[-1]
    print(f"begun with {secret}", file=sys.stderr, flush=True)
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if "method" not in request:
            print(f"answered {request['id'] == secret}", file=sys.stderr, flush=True)
        elif "id" in request:
            for message in replies(request, secret):
                sys.stdout.buffer.write(json.dumps(message).encode() + b"\n")
                sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
