"""A server without any SDK that offers prompts and resources.

Its argument is the path of a JSON object: ``tools`` and ``prompts`` (names to argument names; ``!``
after one makes it required), ``completions`` (values, or those of each argument by its name),
``resources`` and ``templates`` (URIs), ``contents`` (what is read, by URI; or the file that holds
it), ``silent`` (names and URIs that are never answered), ``record`` (a file that takes every
message, one a line), ``gate`` (a file without which it does not start), ``definitions`` (more
members of tools, by name), ``skills`` (a file with entries of skills by their addresses, read at
each request: those in its ``list`` are listed, two a page, and those in its ``get`` given one by
one; its ``read`` is like ``contents``), ``info``, ``capabilities`` and ``instructions`` (more of
what it says of itself), ``results`` (those of a call or a prompt, by name) and ``before`` (what is
sent before one, and files as ``gate`` that it waits for; the result waits for the answer to the
last request).
A tool or a prompt says what it got, the prompt ``talk`` after a word of each role; any other
resource says its URI.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Message = dict[str, Any]

EXTENSION = "io.modelcontextprotocol/skills"

SAYS: Message = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))


def initialize(_: Message) -> Message:
    """Shake hands."""
    return {
        "protocolVersion": "2025-06-18",
        "capabilities": {
            **{"prompts": {}, "resources": {"subscribe": True}},
            **({"tools": {}} if "tools" in SAYS else {}),
            **({"completions": {}} if "completions" in SAYS else {}),
            **({"extensions": {EXTENSION: {}}} if "skills" in SAYS else {}),
            **SAYS.get("capabilities", {}),
        },
        "serverInfo": {"name": "library", "version": "1", **SAYS.get("info", {})},
        **{key: SAYS[key] for key in ("instructions",) if key in SAYS},
    }


def list_tools(_: Message) -> Message:
    """List the tools."""
    tools = []
    for name, arguments in SAYS.get("tools", {}).items():
        schema = {"type": "object", "properties": {key: {"type": "string"} for key in arguments}}
        more = SAYS.get("definitions", {}).get(name, {})
        tools.append({"name": name, "inputSchema": schema, **more})
    return {"tools": tools}


def call_tool(params: Message) -> Message:
    """Say which tool was called, and with which arguments."""
    if params["name"] in SAYS.get("results", {}):
        return dict(SAYS["results"][params["name"]])
    return {"content": [get_prompt(params)["messages"][-1]["content"]]}


def complete(params: Message) -> Message:
    """Give the completions that begin with what was typed."""
    typed, known = params["argument"]["value"], SAYS["completions"]
    values = known if isinstance(known, list) else known.get(params["argument"]["name"], [])
    return {"completion": {"values": [v for v in values if v.startswith(typed)]}}


def list_prompts(_: Message) -> Message:
    """List the prompts."""
    prompts = [
        {"name": name, "arguments": [{"name": a.rstrip("!"), "required": "!" in a} for a in given]}
        for name, given in SAYS.get("prompts", {}).items()
    ]
    return {"prompts": prompts}


def get_prompt(params: Message) -> Message:
    """Say which prompt was asked for, and with which arguments."""
    if params["name"] in SAYS.get("results", {}):
        return dict(SAYS["results"][params["name"]])
    got = json.dumps(params.get("arguments") or {}, ensure_ascii=False, sort_keys=True)
    content = {"type": "text", "text": f"{params['name']} {got}"}
    before = [
        {"role": role, "content": {"type": "text", "text": f"the {role} said"}}
        for role in ("user", "assistant")
        if params["name"] == "talk"
    ]
    return {"messages": [*before, {"role": "user", "content": content}]}


def list_resources(_: Message) -> Message:
    """List the resources."""
    return {"resources": [{"uri": uri, "name": uri} for uri in SAYS.get("resources", ())]}


def list_templates(_: Message) -> Message:
    """List the templates."""
    templates = SAYS.get("templates", ())
    return {"resourceTemplates": [{"uriTemplate": one, "name": one} for one in templates]}


def skills() -> Message:
    """Read what skills there are now."""
    found: Message = json.loads(Path(SAYS["skills"]).read_text(encoding="utf-8"))
    return found


def list_skills(params: Message) -> Message:
    """List two skills, or a part of very many, and where to go on."""
    entries, start = [*skills()["list"].values()], int(params.get("cursor") or 0)
    end = start + max(2, len(entries) // 20)
    more = {"nextCursor": str(end)} if end < len(entries) else {}
    return {"skills": entries[start:end], **more}


def get_skill(params: Message) -> Message | None:
    """Give one skill, listed or not."""
    entry = skills()["get"].get(params["uri"])
    return {"skill": entry} if entry is not None else None


def read_resource(params: Message) -> Message:
    """Give a resource."""
    if "skills" in SAYS and params["uri"] in (read := skills()["read"]):
        return {"contents": read[params["uri"]]}
    if params["uri"] in SAYS.get("contents", {}):
        contents = SAYS["contents"][params["uri"]]
        if isinstance(contents, str):
            contents = json.loads(Path(contents).read_text(encoding="utf-8"))
        return {"contents": contents}
    return {"contents": [{"uri": params["uri"], "text": f"content of {params['uri']}"}]}


METHODS: dict[str, Callable[[Message], Message | None]] = {
    "initialize": initialize,
    "ping": lambda _: {},
    "tools/list": list_tools,
    "tools/call": call_tool,
    "completion/complete": complete,
    "prompts/list": list_prompts,
    "prompts/get": get_prompt,
    "resources/list": list_resources,
    "resources/templates/list": list_templates,
    "resources/read": read_resource,
    "skills/list": list_skills,
    "skills/get": get_skill,
    "resources/subscribe": lambda _: {},
    "resources/unsubscribe": lambda _: {},
}


def reply(request: Message) -> Message | None:
    """Make the reply to a request; None if there is to be none."""
    params = request.get("params") or {}
    if {params.get("name"), params.get("uri")} & set(SAYS.get("silent", ())):
        return None
    method = METHODS.get(request["method"])
    if method is None:
        return {"error": {"code": -32601, "message": "no such method"}}
    if (result := method(params)) is None:
        return {"error": {"code": -32602, "message": "no such thing"}}
    return {"result": result}


def send(message: Message) -> None:
    """Write a message."""
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def wait_for_file(path: str) -> None:
    """Return when a file exists."""
    while not Path(path).exists():
        time.sleep(0.02)


def ask_before(request: Message) -> str:
    """Send what comes before a result; give the id of the request whose answer it waits for."""
    params = request.get("params") or {}
    asked = ""
    for message in SAYS.get("before", {}).get(params.get("name"), ()):
        if "gate" in message:
            wait_for_file(message["gate"])
            continue
        if message["method"] == "notifications/progress":
            message["params"]["progressToken"] = params["_meta"]["progressToken"]
        send(message)
        asked = message.get("id", asked)
    return asked


def main() -> None:
    """Serve over the standard streams."""
    held: dict[str, Message] = {}
    if "gate" in SAYS:
        wait_for_file(SAYS["gate"])
    for line in sys.stdin:
        if "record" in SAYS:
            with Path(SAYS["record"]).open("a", encoding="utf-8") as record:
                record.write(line)
        message: Message = json.loads(line)
        if "method" not in message and message["id"] in held:
            send(held.pop(message["id"]))
        elif "id" in message and "method" in message and (answer := reply(message)) is not None:
            answer["id"] = message["id"]
            if asked := ask_before(message):
                held[asked] = answer
            else:
                send(answer)


if __name__ == "__main__":
    main()
