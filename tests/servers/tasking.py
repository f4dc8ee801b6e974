"""A server without any SDK whose tools become tasks, in either era.

Run it as ``tasking.py ERA FILE``: ``old`` is 2025-11-25, ``new`` 2026-07-28. What it keeps of its
tasks lies in FILE, so that another process goes on with them, and beside it (``.said``) every
message that it got, one a line.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

Message = dict[str, Any]

IS_NEW, FILE = sys.argv[1] == "new", Path(sys.argv[2])
HUGE = 10**400
RELATED = "io.modelcontextprotocol/related-task"
FORM: Message = {"type": "object", "properties": {"who": {"type": "string"}}, "required": ["who"]}
ASKED: Message = {"mode": "form", "message": "Deploy as whom?", "requestedSchema": FORM}
WORDS: Message = {"type": "text", "text": "Deploy as whom?"}
THOUGHT: Message = {"messages": [{"role": "user", "content": WORDS}], "maxTokens": 9}
ASKING = dict.fromkeys(("ask", "pester"), ("elicitation/create", ASKED))
ASKING["think"] = ("sampling/createMessage", THOUGHT)
"""What a tool asks for: of the user, and of the model."""
TOOLS = {
    "steps": "works for three looks",
    "ask": "needs a name",
    "think": "needs the model",
    "hold": "never ends",
    "brief": "never ends, but its time to live does",
    "flood": "announces more than anybody reads",
    "other": "is answered for by another task",
    "odd": "has a status that is none",
    "nameless": "has no id",
    "loud": "says more than is shown, in words and in numbers",
    "soon": "is done when it begins",
    "fail": "fails",
    "end": "ends the server at the first look",
    "linger": "closes the server's output at the first look, which then takes its time to end",
    "quit": "cancels itself",
    "late": "is done once there is a file beside its own",
    "unasked": "becomes a task though nobody asks for one",
    "pester": "needs a name again and again, whatever the answer is",
    "badger": "is no task, and needs a name again and again until that is refused",
}
DESCRIPTION = {"capabilities": {"tools": {}}, "serverInfo": {"name": "tasking", "version": "1"}}
WAITING: dict[str, Message] = {}
"""Requests for results that are answered once their task is over."""


def send(**message: object) -> None:
    """Send a message."""
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def load() -> dict[str, Message]:
    """Read the tasks."""
    return json.loads(FILE.read_text()) if FILE.exists() else {}


def save(task_id: str, task: Message) -> None:
    """Keep a task."""
    whole = FILE.with_suffix(".new")
    whole.write_text(json.dumps({**load(), task_id: task}))
    whole.replace(FILE)


def shown(task_id: str, task: Message) -> Message:
    """Give a task as the era spells it."""
    names = ("ttlMs", "pollIntervalMs") if IS_NEW else ("ttl", "pollInterval")
    ttl, poll = {"brief": (700, 1), "loud": (HUGE, -HUGE)}.get(task["tool"], (60_000, 1))
    status = task["status"]
    told: Message = {
        **{"taskId": task_id, "status": status, "statusMessage": task["said"]},
        **dict.fromkeys(("createdAt", "lastUpdatedAt"), "2026-07-28T09:30:00Z"),
        **dict(zip(names, (ttl, poll), strict=True)),
    }
    if IS_NEW and status == "input_required":
        method, params = ASKING[task["tool"]]
        told["inputRequests"] = {key_of(task): {"method": method, "params": params}}
    if IS_NEW and status == "completed":
        told["result"] = task["result"]
    if IS_NEW and status == "failed":
        told["error"] = {"code": -32050, "message": task["said"]}
    return told


def key_of(task: Message) -> str:
    """Name what a task asks for now."""
    return f"who{task['asked']}" if "asked" in task else "who"


def begin(params: Message) -> Message:
    """Begin the task of a call."""
    tool, task_id = params["name"], f"task {len(load()) + 1}"
    task = {"tool": tool, "status": "working", "said": "begun", "looks": 0, "args": params}
    if tool == "loud":
        task["said"] = "\x1b[2J" + "x" * 5_000
    save(task_id, task)
    if tool == "soon":
        finish(task_id, task, "soon is done")
    told = shown(task_id, task)
    told.pop({"nameless": "taskId"}.get(tool, "result"), None)  # which only a look gives
    return {"resultType": "task", **told} if IS_NEW else {"task": told}


def look(task_id: str) -> Message:
    """Tell how a task stands; each look takes it on."""
    task = load()[task_id]
    task["looks"] += 1
    tool, looks = task["tool"], task["looks"]
    if task["status"] in {"completed", "failed", "cancelled"}:
        return shown(task_id, task)
    task["said"] = f"look {looks}"
    token = task["args"]["_meta"]["progressToken"]
    told = {"progressToken": token, "progress": looks, "total": 3}
    send(method="notifications/progress", params=told)
    if tool == "end" and looks == 1:
        save(task_id, task)
        os._exit(3)
    if tool == "linger" and looks == 1:
        save(task_id, task)
        os.close(1)
        sys.stdin.read()
        time.sleep(0.5)
        os._exit(0)
    if tool in {"steps", "end", "linger", "flood", "loud", "unasked"} and looks >= 3:
        finish(task_id, task, f"{tool} is done")
    elif tool == "late" and FILE.with_suffix(".go").exists():
        finish(task_id, task, "late is done")
    elif tool in ASKING and "who" not in task:
        task["status"] = "input_required"
    elif tool == "fail":
        task |= {"status": "failed", "said": "no disk"}
    elif tool == "quit":
        task |= {"status": "cancelled", "said": "changed my mind"}
    save(task_id, task)
    if tool == "flood":
        told = {"method": "notifications/tasks/status", "params": shown(task_id, task)}
        for _ in range(500):
            send(**told)
    lies = {"other": {"taskId": "task 99"}, "odd": {"status": "bored"}}
    return {**shown(task_id, task), **lies.get(tool, {})}


def finish(task_id: str, task: Message, words: str) -> None:
    """Complete a task."""
    result = {"content": [{"type": "text", "text": words}], "isError": False}
    task |= {"status": "completed", "said": "done", "result": result}
    save(task_id, task)
    if (request := WAITING.pop(task_id, None)) is not None:
        send(id=request["id"], result=result)


def give(task_id: str, who: Message) -> None:
    """Take the answer to what a task asked for."""
    task = load()[task_id]
    if task["tool"] == "pester":
        save(task_id, {**task, "asked": task.get("asked", 0) + 1})
        if task["status"] == "input_required" and task_id in WAITING:
            result(WAITING[task_id], task_id)
        return
    task |= {"who": who, "status": "working"}
    finish(task_id, task, f"deployed as {who.get('content', who)}")


def result(request: Message, task_id: str) -> None:
    """Answer a request for a result now or, asking for what is needed, later."""
    task = load()[task_id]
    match task["status"]:
        case "completed":
            send(id=request["id"], result=task["result"])
        case "failed":
            send(id=request["id"], error={"code": -32050, "message": task["said"]})
        case "input_required":
            WAITING[task_id] = request
            method, params = ASKING[task["tool"]]
            about = {RELATED: {"taskId": task_id}}
            send(id=f"ask {task_id}", method=method, params={**params, "_meta": about})
        case _:
            WAITING[task_id] = request


def answer(request: Message) -> None:
    """Answer a request about tasks or tools."""
    params = request.get("params") or {}
    task_id = params.get("taskId", "")
    if "taskId" in params and task_id not in load():
        send(id=request["id"], error={"code": -32602, "message": "unknown task"})
        return
    match request["method"]:
        case "tools/list":
            execution = {} if IS_NEW else {"execution": {"taskSupport": "required"}}
            tools = [
                {
                    **{"name": name, "description": words, "inputSchema": {"type": "object"}},
                    **(execution if name not in {"unasked", "badger"} else {}),
                }
                for name, words in TOOLS.items()
            ]
            send(id=request["id"], result={"tools": tools, "resultType": "complete"})
        case "tools/call" if params["name"] == "badger":
            WAITING["badger"] = request
            send(id="ask badger", method="elicitation/create", params=ASKED)
        case "tools/call":
            send(id=request["id"], result=begin(params))
        case "tasks/get":
            send(id=request["id"], result={**look(task_id), "resultType": "complete"})
        case "tasks/result":
            result(request, task_id)
        case "tasks/update":
            give(task_id, params["inputResponses"][key_of(load()[task_id])])
            send(id=request["id"], result={"resultType": "complete"})
        case "tasks/cancel":
            task = {**load()[task_id], "status": "cancelled"}
            save(task_id, task)
            send(id=request["id"], result={**shown(task_id, task), "resultType": "complete"})
        case _:
            send(id=request["id"], error={"code": -32601, "message": "method not found"})


def main() -> None:
    """Serve until the input ends."""
    for line in sys.stdin:
        with FILE.with_suffix(".said").open("a") as file:
            file.write(line)
        message = json.loads(line)
        if "method" not in message:
            task_id = message["id"].removeprefix("ask ")
            if task_id == "badger" and "error" in message:
                text = {"type": "text", "text": message["error"]["message"]}
                send(id=WAITING.pop(task_id)["id"], result={"content": [text]})
            elif task_id == "badger":
                send(id="ask badger", method="elicitation/create", params=ASKED)
            elif "result" in message or load()[task_id]["tool"] == "pester":
                give(task_id, message.get("result", {}))
            elif load()[task_id]["tool"] == "think":  # not withdrawn
                finish(task_id, load()[task_id], message["error"]["message"])
        elif message["method"] == "initialize" and not IS_NEW:
            known: Message = {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}
            about = {**DESCRIPTION, "capabilities": known, "protocolVersion": "2025-11-25"}
            send(id=message["id"], result=about)
        elif message["method"] == "server/discover" and IS_NEW:
            known = {"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
            about = {**DESCRIPTION, "capabilities": known, "supportedVersions": ["2026-07-28"]}
            kept = {"ttlMs": 0, "cacheScope": "private", "resultType": "complete"}
            send(id=message["id"], result={**about, **kept})
        elif "id" in message:
            answer(message)


if __name__ == "__main__":
    main()
