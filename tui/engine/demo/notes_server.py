"""The bundled MCP server: a notebook, and a tool that is slow and reports its progress.

It runs alone as ``python -I -S notes_server.py`` with the standard library only, which starts at
once. Over stdio it speaks revision 2026-07-28.
"""

import json
import os
import sqlite3
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, BinaryIO, Final, NamedTuple

Json = dict[str, Any]
RequestId = str | int

REVISION: Final = "2026-07-28"
META: Final = "io.modelcontextprotocol/"
INFO: Final = {"name": "gemdeck-notes", "title": "Notes", "version": "2.0.0"}
ABOUT: Final[Json] = {
    "capabilities": {"tools": {}, "prompts": {}, "resources": {"listChanged": True}},
    "instructions": "A small notebook on the user's computer. Notes have a number, a text and "
    "tags. Use the numbers that list_notes and search_notes give when you delete a note.",
}
INVALID: Final = -32602
FAILED: Final = -32603

MAX_NOTES: Final = 1_000
MAX_TEXT: Final = 4_000  # characters of a note, and of any other argument
MAX_LISTED: Final = 20  # notes in one answer
LOCK_WAIT: Final = 5.0  # seconds to wait for another process
FILE_VERSION: Final = 2
SEEDS: Final = (
    ("Welcome! These notes live in a small file on this computer.", "#hello"),
    ("Try: add a note: buy milk", "#hello #ideas"),
    ("Water the basil on Friday", "#home"),
)
READS: Final = {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}
ADDS: Final = {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False}
DESTROYS: Final = {**ADDS, "destructiveHint": True, "idempotentHint": True}
TYPES: Final[Json] = {"string": str, "integer": int, "number": (int, float), "array": list}


def _value(kind: str, about: str, **more: object) -> Json:
    return {"type": kind, "description": about, **more}


def _tool(name: str, title: str, about: str, hints: Json, **properties: Json) -> Json:
    required = [key for key, schema in properties.items() if "default" not in schema]
    schema = {"type": "object", "properties": properties, "required": required}
    named = {"name": name, "title": title, "description": about}
    return {**named, "inputSchema": schema, "annotations": hints}


TOOLS: Final = (
    _tool(
        *("list_notes", "List notes", "List the notes in the notebook, newest first.", READS),
        tag=_value("string", "Only notes with this tag", default=""),
    ),
    _tool(
        *("search_notes", "Search notes", "Find the notes that contain all the given words."),
        READS,
        query=_value("string", "Words the note must contain", maxLength=MAX_TEXT),
    ),
    _tool(
        *("add_note", "Add a note", "Add a note to the notebook.", ADDS),
        text=_value("string", "Text of the note", maxLength=MAX_TEXT),
        tags=_value("array", "Tags of the note", items={"type": "string"}, default=[]),
    ),
    _tool(
        *("delete_note", "Delete a note", "Delete a note permanently.", DESTROYS),
        id=_value("integer", "Number of the note", minimum=1, maximum=10**9),
    ),
    _tool(
        *("count_slowly", "Count slowly", "Count to a number and report the progress.", READS),
        steps=_value("integer", "How far to count", minimum=1, maximum=100, default=5),
        seconds_per_step=_value("number", "Seconds", minimum=0, maximum=10, default=0.5),
    ),
)
FOCUS: Final = {"name": "focus", "description": "Today's focus", "required": True}
PROMPT: Final = {"name": "plan_day", "title": "Plan my day", "arguments": [FOCUS]}
MARKDOWN: Final = {"mimeType": "text/markdown"}
ALL_NOTES: Final = {"uri": "notes://all", "name": "all-notes", "title": "All notes", **MARKDOWN}
TEMPLATE: Final = {"uriTemplate": "notes://note/{id}", "name": "note", "title": "A note"}


class RequestError(Exception):
    """A request fails; the message says why and what to do."""

    def __init__(self, message: str, code: int = FAILED, **data: object) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, "data": data}


class Note(NamedTuple):
    """A note; its number is never used again, its tags are written as ``#one #two``."""

    number: int
    text: str
    tags: str

    @property
    def line(self) -> str:
        return f"{self.text} {self.tags}".strip()

    @property
    def resource(self) -> Json:
        uri, name = f"notes://note/{self.number}", f"note-{self.number}"
        return {"uri": uri, "name": name, "title": self.text[:60], **MARKDOWN}


class Notebook:
    """Notes in one SQLite file, which several processes can share.

    Raises:
        RequestError: From any method, if it has no such note or no room.
        sqlite3.Error: From any method, if the file cannot be used.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            self._connection = _connect(path)
        except sqlite3.OperationalError:  # busy, or a full disk: the file may be sound
            raise
        except sqlite3.DatabaseError as error:
            aside = path.rename(f"{path}.corrupt-{time.time_ns()}")
            _log(f"{path} could not be read ({error}); it is now {aside.name}")
            self._connection = _connect(path)

    def notes(self) -> list[Note]:
        """Return the notes, newest first."""
        found = self._connection.execute("SELECT id, text, tags FROM notes ORDER BY id DESC")
        return [Note(*row) for row in found]

    def add(self, text: str, tags: Iterable[object]) -> Note:
        """Add a note."""
        words = {"-".join(str(tag).lstrip("#").casefold().split()) for tag in tags}
        joined = " ".join(f"#{word}" for word in sorted(words - {""}))
        if not text.strip():
            raise RequestError("A note needs some text.")
        if len(joined) > MAX_TEXT or len(self.notes()) >= MAX_NOTES:
            raise RequestError(f"The notebook is full: {MAX_NOTES} notes are the maximum.")
        return _add(self._connection, text.strip(), joined)

    def delete(self, number: int) -> Note:
        """Delete a note for good and return it."""
        for note in self.notes():
            if note.number == number:
                self._connection.execute("DELETE FROM notes WHERE id = ?", (number,))
                return note
        raise RequestError(f"There is no note {number}. List the notes to see their numbers.")


def _connect(path: Path) -> sqlite3.Connection:
    """Open the file; a new one is private and gets the first notes, once across processes."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    connection = sqlite3.connect(path, timeout=LOCK_WAIT, isolation_level=None)
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == 0:
            columns = "id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT, tags TEXT"
            connection.execute(f"CREATE TABLE notes ({columns})")
            for text, tags in SEEDS:
                _add(connection, text, tags)
            connection.execute(f"PRAGMA user_version = {FILE_VERSION}")
        elif version != FILE_VERSION:
            raise sqlite3.DatabaseError("it is of another version")
    return connection


def _add(connection: sqlite3.Connection, text: str, tags: str) -> Note:
    added = connection.execute("INSERT INTO notes (text, tags) VALUES (?, ?)", (text, tags))
    return Note(added.lastrowid or 0, text, tags)


class Server:
    """Answers the requests of one client.

    Args:
        notebook: Holds the notes.
        output: Takes messages, one a line.
    """

    def __init__(self, notebook: Notebook, output: BinaryIO) -> None:
        self._notebook, self._output = notebook, output
        self._writing = Lock()
        self._counting: dict[RequestId, Event] = {}
        self._listening: dict[RequestId, Json] = {}

    def serve(self, lines: Iterable[bytes]) -> None:
        """Read messages until there are no more. Counting runs in threads of its own."""
        for line in lines:
            try:
                message = json.loads(line)
            except ValueError:
                self._send(id=None, error={"code": -32700, "message": "This is not JSON."})
                continue
            match message:
                case {"method": str(method), "id": str() | int() as request}:
                    work = (request, method, message.get("params") or {})
                    if method == "tools/call" and work[2].get("name") == "count_slowly":
                        self._counting[request] = Event()
                        Thread(target=self._answer, args=work, daemon=True).start()
                    else:
                        self._answer(*work)
                case {"method": "notifications/cancelled", "params": {"requestId": request}}:
                    self._listening.pop(request, None)
                    if stopped := self._counting.get(request):
                        stopped.set()

    def _answer(self, request: RequestId, method: str, params: Json) -> None:
        version = params.get("_meta", {}).get(f"{META}protocolVersion")
        try:
            if version != REVISION:
                known = {"supported": [REVISION], "requested": version}
                raise RequestError("This revision is not known.", -32022, **known)
            result = self._result(request, method, params)
        except RequestError as failed:
            self._send(id=request, error=failed.error)
        except sqlite3.Error as failed:
            self._send(id=request, error={"code": FAILED, "message": str(failed)})
        except KeyError as missing:
            self._send(id=request, error={"code": INVALID, "message": f"Missing: {missing}"})
        else:
            stopped = self._counting.pop(request, None)
            if stopped and stopped.is_set():
                _log("count_slowly was cancelled")
            elif result is not None:
                result |= {"resultType": "complete", "_meta": {f"{META}serverInfo": INFO}}
                if method.endswith(("list", "read", "discover")):
                    result |= {"ttlMs": 0, "cacheScope": "private"}  # nothing is to be kept
                self._send(id=request, result=result)

    def _result(self, request: RequestId, method: str, params: Json) -> Json | None:
        """Return the result of a request, or None if it stays open."""
        match method:
            case "server/discover":
                return {"supportedVersions": [REVISION], **ABOUT}
            case "subscriptions/listen":
                meta = {"_meta": {f"{META}subscriptionId": request}}
                wants = params["notifications"].get("resourcesListChanged") is True
                granted = {"notifications": {"resourcesListChanged": True} if wants else {}}
                self._listening |= {request: meta} if wants else {}
                self._send(method="notifications/subscriptions/acknowledged", params=meta | granted)
                return None
            case "tools/list":
                return {"tools": TOOLS}
            case "tools/call":
                return self._call(request, params)
            case "resources/list":
                recent = self._notebook.notes()[:MAX_LISTED]
                return {"resources": [ALL_NOTES, *(note.resource for note in recent)]}
            case "resources/templates/list":
                return {"resourceTemplates": [TEMPLATE]}
            case "resources/read":
                return {"contents": [self._read(params["uri"])]}
            case "prompts/list":
                return {"prompts": [PROMPT]}
            case "prompts/get":
                return self._prompt(params["name"], params.get("arguments", {}))
        raise RequestError(f"There is no method {method}.", -32601)

    def _call(self, request: RequestId, params: Json) -> Json:
        """Call a tool; why it cannot be done is a result as well."""
        tool = next((one for one in TOOLS if one["name"] == params["name"]), None)
        if tool is None:
            raise RequestError(f"There is no tool {params['name']}.", INVALID)
        is_error = False
        try:
            arguments = _checked(tool, params.get("arguments", {}))
            match params["name"]:
                case "count_slowly":
                    token = params.get("_meta", {}).get("progressToken")
                    text = self._count(self._counting[request], token, *arguments)
                case "add_note":
                    text = self._changed("Added", self._notebook.add(*arguments))
                case "delete_note":
                    text = self._changed("Deleted", self._notebook.delete(*arguments))
                case name:
                    words = arguments[0].casefold().split()
                    if name == "list_notes":
                        words = [f"#{word.lstrip('#')} " for word in words]
                    text = self._found(words)
        except (RequestError, sqlite3.Error) as failed:
            text, is_error = str(failed), True
        return {"content": [{"type": "text", "text": text}], "isError": is_error}

    def _changed(self, verb: str, note: Note) -> str:
        """Announce that the listed resources have changed."""
        for listener in list(self._listening.values()):
            self._send(method="notifications/resources/list_changed", params=listener)
        return f"{verb} note {note.number}: {note.line}"

    def _found(self, words: list[str]) -> str:
        """List the notes with all these words."""
        notes = [
            note
            for note in self._notebook.notes()
            if all(word in f"{note.line} ".casefold() for word in words)
        ]
        lines = [f"{note.number}. {note.line}" for note in notes[:MAX_LISTED]]
        more = [f"({len(notes) - MAX_LISTED} older notes are not shown.)"]
        return "\n".join(lines + more[: len(notes) > MAX_LISTED]) or "No notes found."

    def _count(self, stopped: Event, token: RequestId | None, steps: int, seconds: float) -> str:
        for step in range(1, steps + 1):
            if stopped.wait(seconds):
                break
            if token is not None:
                done = {"progressToken": token, "progress": step, "total": steps}
                words = {"message": f"Counted to {step} of {steps}"}
                self._send(method="notifications/progress", params=done | words)
        return f"Counted to {steps}, {seconds:g} seconds a step."

    def _read(self, uri: str) -> Json:
        is_all = uri == ALL_NOTES["uri"]
        notes = [one for one in self._notebook.notes() if is_all or uri == one.resource["uri"]]
        if not (is_all or notes):
            raise RequestError(f"There is no resource {uri[:80]}.", INVALID, uri=uri)
        text = "\n\n".join(f"# Note {note.number}\n\n{note.line}" for note in notes)
        return {"uri": uri, "text": text, **MARKDOWN}

    def _prompt(self, name: str, arguments: Json) -> Json:
        if name != PROMPT["name"]:
            raise RequestError(f"There is no prompt {name}.", INVALID)
        words = f"Plan my day with a focus on {arguments['focus']}. My notes are attached."
        attached = {"type": "resource", "resource": self._read(ALL_NOTES["uri"])}
        contents = ({"type": "text", "text": words}, attached)
        return {"messages": [{"role": "user", "content": content} for content in contents]}

    def _send(self, **message: object) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        with self._writing:
            self._output.write(line)
            self._output.flush()


def _checked(tool: Json, given: Json) -> list[Any]:
    """Return the arguments of a tool in the order of its parameters."""
    arguments = []
    for key, schema in tool["inputSchema"]["properties"].items():
        value, kind = given.get(key, schema.get("default")), schema["type"]
        if isinstance(value, float) and kind == "integer" and value.is_integer():
            value = int(value)
        low, high = schema.get("minimum", 0), schema.get("maximum", MAX_TEXT)
        is_fitting = isinstance(value, TYPES[kind]) and not isinstance(value, bool)
        size = len(value) if isinstance(value, str | list) else value
        if not is_fitting or not low <= size <= high:
            raise RequestError(f"{key} must be: {kind}, {low} to {high}.")
        arguments.append(value)
    return arguments


def _log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - its log


def main() -> None:
    """Serve until standard input closes."""
    path = Path(os.environ["GEMDECK_NOTES_DB"])
    try:
        notebook = Notebook(path)
    except (OSError, sqlite3.Error) as error:
        sys.exit(f"The notes file {path} cannot be used: {error}.")
    Server(notebook, sys.stdout.buffer).serve(sys.stdin.buffer)


if __name__ == "__main__":
    main()
