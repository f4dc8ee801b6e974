"""Read a session file: what the screen showed, and the history for the model.

Its text is as hostile as any other: it is sanitized, bounded, and read line by line. A line that
makes no sense is left out. The history is made valid for the service again: what was cut off by the
end of the process is closed, and what no gemdeck would have written is left out, so that roles
alternate and begin with the user's, each call has its response in the next content, and no part
has a field that the service would refuse.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import islice, takewhile
from math import isfinite
from pathlib import Path
from typing import Any, BinaryIO, Final

from tui.engine.chats.history import forget_old, without_surrogates
from tui.engine.chats.sessions.session_file import MAX_SESSION, Record
from tui.engine.files.atomic import UnfitFileError, open_own
from tui.engine.files.line_file import is_object
from tui.engine.files.state_file import STATE_VERSION
from tui.model.bounded_json import as_list, read_value, text_in
from tui.model.chat import (
    ChatNotice,
    Entry,
    EntryId,
    ModelText,
    Severity,
    Thought,
    ToolCall,
    ToolCallStatus,
    TurnEnd,
    Usage,
    UserMessage,
)
from tui.model.events import TaskKept
from tui.model.servers import ServerId
from tui.model.sessions import SessionView
from tui.text import counted, for_model, is_shown_whole, sanitize, sanitize_line

INTERRUPTED: Final = "Interrupted: gemdeck ended before there was a result. The call may have run."
"""The response to a call that has none."""

ENDED: Final = "The turn ended here because gemdeck ended."

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]*={0,2}")
_MIME: Final = re.compile(r"[\w.+-]{1,60}/[\w.+-]{1,60}")

Wire = dict[str, Any]

_CONTENT: Final = b'{"t":"content"'
"""How the line of a content of the history begins."""

MAX_RECORD: Final = 64 * 1024 * 1024
"""Longest line that is read, in bytes."""

MAX_ENTRIES: Final = 200_000
"""Most entries that are read."""

MAX_BAD: Final = 10_000
"""Most lines that are left out; the rest is not read."""

FORGET_EVERY: Final = 16 * 1024 * 1024
"""Bytes read after which old media and results are shortened, as they are while chatting."""

MAX_TITLE: Final = 200
"""Characters of a session's title."""

MAX_TASKS: Final = 32
"""Most tasks of a session that are followed again."""

MAX_TASK_KEY: Final = 16
"""Characters of a task's id here."""

STOPPED: Final = "Stopped: gemdeck ended."


def valid_contents(contents: Iterable[object]) -> tuple[list[Wire], list[int]]:
    """Return contents that the service takes; the given ones stay as they are.

    Calls without a response at the end are answered as interrupted; apart from that the last
    content may be the user's.

    Returns:
        The contents, and how many of them came before each of the given ones and after the last.
    """
    valid: list[Wire] = []
    places: list[int] = []
    for content in contents:
        places.append(len(valid))
        role, parts = _cleaned(content)
        if role == "user":
            _add_user(valid, parts)
        elif parts and valid:
            _add_user(valid, ())
            _add(valid, role, parts)
    _add_user(valid, ())
    return valid, [*places, len(valid)]


def closed(contents: list[Wire], said: str) -> bool:
    """End the last turn, so that the next content can be the user's; return whether it is kept.

    A message that was never answered is taken out again, as at any other stop before an answer.

    Args:
        contents: Valid contents, changed in place.
        said: What the model had said since the last of them.
    """
    if not contents or contents[-1]["role"] == "model":
        return True
    if not said and not has_responses(contents[-1]):
        del contents[-1]
        return False
    parts = [{"text": said}] if said else []
    contents.append({"role": "model", "parts": [*parts, {"text": f"[{ENDED}]"}]})
    return True


def is_whole(content: object) -> bool:
    """Tell whether the service takes every part of a content."""
    return isinstance(content, dict) and _cleaned(content)[1] == content.get("parts")


def _add_user(valid: list[Wire], parts: Sequence[Wire]) -> None:
    """Add what the user and the tools said; of calls and responses each has the other then."""
    responses = [part["functionResponse"] for part in parts if "functionResponse" in part]
    others = [part for part in parts if "functionResponse" not in part]
    before = valid[-1]["parts"] if valid else ()  # only the model's has calls
    calls = (part["functionCall"] for part in before if "functionCall" in part)
    answers = [_response(call, responses) for call in calls]
    if answers or others:
        _add(valid, "user", [*answers, *others])


def _response(call: Wire, responses: list[Wire]) -> Wire:
    """Take the response to a call out of those that came; without one it was interrupted."""
    for index, response in enumerate(responses):
        if (response["name"], response.get("id")) == (call["name"], call.get("id")):
            return {"functionResponse": responses.pop(index)}
    return {"functionResponse": {**_named(call), "response": {"error": INTERRUPTED}}}


def has_responses(content: Wire) -> bool:
    """Tell whether a content has responses to calls."""
    return any("functionResponse" in part for part in content["parts"])


def _add(valid: list[Wire], role: str, parts: Sequence[Wire]) -> None:
    if valid and valid[-1]["role"] == role:
        valid[-1]["parts"] = [*valid[-1]["parts"], *parts]
    else:
        valid.append({"role": role, "parts": [*parts]})


def _cleaned(content: object) -> tuple[str, list[Wire]]:
    """Return the role and the usable parts of a content."""
    match content:
        case {"role": "user" | "model" as role, "parts": list(parts)}:
            return role, [*_usable(parts, role)]
    return "user", []


def _usable(parts: Iterable[object], role: str) -> Iterator[Wire]:
    others = "functionResponse" if role == "model" else "functionCall"
    for part in parts:
        made = _part(part) if isinstance(part, dict) else None
        if made is not None and others not in made:
            yield made


def _part(part: Wire) -> Wire | None:
    """Return a part as the service takes it, or None."""
    signed = {"thoughtSignature": one} if (one := text_in(part, "thoughtSignature")) else {}
    match part:
        case {"thought": thought} if thought:
            return None
        case {"text": str(text)} if text or signed:
            return {"text": text if signed else for_model(without_surrogates(text))[0], **signed}
        case {"inlineData": {"mimeType": str(kind), "data": str(data)}}:
            if _MIME.fullmatch(kind) and _BASE64.fullmatch(data):
                return {"inlineData": {"mimeType": kind, "data": data}, **signed}
        case {"functionCall": dict(call)}:
            named, arguments = _named(call), call.get("args") or {}
            if named and _can_be_sent(arguments):
                return {"functionCall": {**named, "args": arguments}, **signed}
        case {"functionResponse": {"response": dict(said)} as response}:
            named, answer = _named(response), _answer(said)
            parts = _usable(as_list(response.get("parts")), "user")
            media = [made for made in parts if made.keys() == {"inlineData"}]
            if named and answer:
                more = {"parts": media} if media else {}
                return {"functionResponse": {**named, **answer, **more}}
    return None


def _named(wire: Wire) -> Wire:
    """Return the name and the id of a call or a response; nothing if its name is none."""
    name, key = wire.get("name"), wire.get("id")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return {}
    return {"name": name, "id": key} if isinstance(key, str) and key else {"name": name}


def _can_be_sent(arguments: object) -> bool:
    try:
        json.dumps(arguments, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return False
    return isinstance(arguments, dict)


def _answer(said: Wire) -> Wire:
    """Return what a response says; nothing if that is no text."""
    for key in ("output", "error"):
        if isinstance(text := said.get(key), str):
            return {"response": {key: without_surrogates(text)}}
    return {}


@dataclass
class SavedSession:
    """A session as read.

    Attributes:
        view: What a list shows of it.
        entries: What the screen shows.
        contents: The history, valid for the service and ending with the model.
        starts: For each message of the user, the number of contents before it; without those
            from before a summary.
        usage: The tokens of the last request.
        unsent: What the user had written but not sent, or what was never answered.
        settings: How the model was to answer.
        kept: How many of the contents, from the first, are as the file has them.
        tasks: The calls that ran on as tasks when it was written last, by their keys.
        remarks: What could not be read, in sentences.
        is_whole: Whether it was read to its end.
        is_new_copy: Whether its file was made to go on in, as another gemdeck has the first one.
    """

    view: SessionView
    entries: list[Entry] = field(default_factory=list)
    contents: list[Wire] = field(default_factory=list)
    starts: dict[EntryId, int] = field(default_factory=dict)
    usage: Usage = Usage()
    unsent: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    kept: int = 0
    tasks: dict[str, TaskKept] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    is_whole: bool = True
    is_new_copy: bool = False


def read_session(path: Path, view: SessionView, *, with_contents: bool = True) -> SavedSession:
    """Read a session file as far as it is sound. Blocks.

    Args:
        path: The file.
        view: What the list shows of it.
        with_contents: Whether the history for the model is read, or only what the screen showed.

    Raises:
        OSError: If it cannot be opened or read.
        UnfitFileError: If it is not a regular file, or of another version.
        ExposedFileError: If it belongs to another user.
    """
    replay = Replay(view)
    unpruned = 0
    with open_own(path) as file:
        for line in _lines(file):
            if not with_contents and line.startswith(_CONTENT):
                continue
            replay.take(line)
            unpruned += len(line)
            if replay.bad > MAX_BAD:
                replay.saved.remarks.append("The rest was not read.")
                replay.saved.is_whole = False
                break
            if unpruned > FORGET_EVERY:
                unpruned = 0
                forget_old([content for content in replay.contents if is_whole(content)])
        if file.tell() >= MAX_SESSION:
            size = MAX_SESSION // 1024 // 1024
            replay.saved.remarks.append(f"Only the first {size} MiB were read.")
            replay.saved.is_whole = False
    return replay.finish()


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Give the whole lines of a file, an empty one for each that is too long.

    The last one is left out if its writing was cut short.
    """
    while (line := file.readline(MAX_RECORD)) and file.tell() < MAX_SESSION:
        if line.endswith(b"\n") or (len(line) < MAX_RECORD and is_object(line)):
            yield line
        elif len(line) == MAX_RECORD:
            while (rest := file.readline(MAX_RECORD)) and not rest.endswith(b"\n"):
                pass
            yield b""


class Replay:
    """Puts the lines of a file together.

    Attributes:
        saved: What came of them.
        contents: The history as the file has it.
        bad: The number of lines that made no sense.
    """

    def __init__(self, view: SessionView) -> None:
        self.saved = SavedSession(view)
        self.contents: list[Any] = []
        self._entries: list[Entry] = []
        self._places: dict[str, int] = {}
        self._pieces: dict[int, list[str]] = {}
        self._starts: dict[EntryId, int] = {}
        self._said: list[str] = []
        self._typed: str | None = None
        self._draft = ""
        self._queued: list[str] = []
        self.bad = 0
        self._is_first = True

    def take(self, line: bytes) -> None:
        """Take one line; leave it out if it makes no sense.

        Raises:
            UnfitFileError: If it is the first of a file of another version.
        """
        try:
            record: Any = read_value(line)
            if self._is_first:
                self._check_version(record)
            self._take(record)
        except (ValueError, TypeError, KeyError, ArithmeticError, RecursionError):
            self.bad += 1
        self._is_first = False

    def _take(self, record: Record) -> None:
        match record["t"]:
            case "content":
                self.contents.append(record["content"])
                self._said.clear()
            case "cut":
                del self.contents[_number(record["at"]) :]
                self._said.clear()
            case "usage":
                counts = {one.name: _number(record[one.name]) for one in fields(Usage)}
                self.saved.usage = Usage(**counts)
            case "summary":
                title = sanitize_line(_text(record["title"]), MAX_TITLE)
                self.saved.view = replace(self.saved.view, title=title)
            case "settings":
                self.saved.settings = record
            case "draft":
                self._draft = _text(record["text"])
            case "queue":
                self._queued = [_text(text) for text in record["texts"]]
            case "task":
                self._keep_task(record)
            case "end":
                self._typed = None
            case "resumed":
                self._note_stop()
                # What comes later of an earlier call names its entry as this one did.
                self._places = {entry.id: at for at, entry in enumerate(self._entries)}
            case "back":
                self._go_back(_number(record["to"]))
            case "compressed":
                self._starts.clear()
            case "text" | "thought" as kind:
                self._add_text(kind, record)
            case "user" | "call" | "notice" | "took":
                self._put(record)

    def _keep_task(self, record: Record) -> None:
        """Take a task that runs, or forget one that has ended."""
        key, *named = (_text(record[name]) for name in ("key", "server", "fingerprint", "tool"))
        task, place = _text(record["task"]), self._places.get(record["call"])
        if not task:
            self.saved.tasks.pop(key, None)
        elif is_shown_whole(key, MAX_TASK_KEY) and len(self.saved.tasks) < MAX_TASKS:
            call = self._entries[place].id if place is not None else EntryId("")
            began, ttl = _seconds(record["began"]) or 0.0, _seconds(record["ttl"]) or 0.0
            server, fingerprint, tool = named
            self.saved.tasks[key] = TaskKept(
                key, call, ServerId(sanitize_line(server)), fingerprint, tool, task, began, ttl
            )

    def _check_version(self, record: Record) -> None:
        if record["t"] != "session":
            self.saved.remarks.append("The first line of the session is missing.")
        elif record["version"] != STATE_VERSION:
            raise UnfitFileError("it was written by another version of gemdeck")

    def _begin_turn(self, text: str) -> None:
        """Note what was sent, which is neither a draft nor waits any longer."""
        self._typed = text
        if sanitize(self._draft).strip() == text:
            self._draft = ""
        if self._queued and sanitize(self._queued[0]) == text:
            del self._queued[0]
        self._starts[_id_at(len(self._entries))] = len(self.contents)

    def _go_back(self, to: int) -> None:
        """Drop a message of the user's, by its number, and all that came after it."""
        messages = (i for i, e in enumerate(self._entries) if isinstance(e, UserMessage))
        place = next(islice(messages, to, None), len(self._entries))
        for gone in self._entries[place:]:
            self._starts.pop(gone.id, None)
        for index in [index for index in self._pieces if index >= place]:
            del self._pieces[index]
        del self._entries[place:]
        self._places = {key: at for key, at in self._places.items() if at < place}
        self._typed = None

    def _add_text(self, kind: str, record: Record) -> None:
        text = sanitize(_text(record["text"]))
        if kind == "text":
            self._said.append(text)
        if record["id"] not in self._places:
            self._put(record | {"text": ""})
        self._pieces.setdefault(self._places[record["id"]], []).append(text)

    def _put(self, record: Record) -> None:
        """Show an entry, in place of what was said of it before."""
        place = self._places.get(record["id"], len(self._entries))
        if place == len(self._entries) and record["t"] == "user":
            self._begin_turn(_text(record["text"]))
        entry = _entry(record, _id_at(place))
        if place < len(self._entries):
            self._entries[place] = entry
        elif place >= MAX_ENTRIES:
            raise ValueError("too many entries")
        else:
            self._places[_text(record["id"])] = place
            self._entries.append(entry)

    def finish(self) -> SavedSession:
        """Close what was cut off, and say what could not be read."""
        saved = self.saved
        for place, pieces in self._pieces.items():
            entry = self._entries[place]
            if isinstance(entry, ModelText | Thought):
                self._entries[place] = replace(entry, text="".join(pieces))
        if self.bad:
            verb = "was" if self.bad == 1 else "were"
            saved.remarks.append(f"{counted(self.bad, 'line')} of the session {verb} unreadable.")
        saved.contents, places = valid_contents(self.contents)
        waiting = [*self._stopped_message(places), *self._queued, self._draft]
        saved.unsent = "\n\n".join(filter(None, waiting))
        self._note_stop()
        saved.entries = [_ended(entry) for entry in self._entries]
        pairs = zip(saved.contents, self.contents, strict=False)
        saved.kept = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        forget_old(saved.contents)
        return saved

    def _note_stop(self) -> None:
        """Say where a turn did not end."""
        if self._typed is not None:
            self._typed = None
            words = "gemdeck ended while this turn was running."
            self._entries.append(ChatNotice(_id_at(len(self._entries)), Severity.WARNING, words))

    def _stopped_message(self, places: Sequence[int]) -> Sequence[str]:
        """Close a turn that did not end; return its message if it was never answered."""
        contents, length = self.saved.contents, len(self.saved.contents)
        is_kept = closed(contents, "".join(self._said))
        for key, at in self._starts.items():  # none is beyond a content that was taken out
            self.saved.starts[key] = min(places[min(at, len(places) - 1)], len(contents))
        if self._typed is None:
            return ()
        began = max(self.saved.starts.values(), default=0)
        return () if is_kept and length > began else (self._typed,)


def _id_at(place: int) -> EntryId:
    """Return the id that the entry at a place has in this run, which is none of a running turn."""
    return EntryId(f"r{place + 1}")


def _entry(record: Record, key: EntryId) -> Entry:
    """Return the entry of a record; see `session_file.entry`."""
    match record["t"]:
        case "user":
            servers = tuple(map(_server, record.get("servers", ())))
            text, typed = _shown(record["text"]), _shown(record.get("typed", ""))
            return UserMessage(key, text, typed, servers)
        case "text":
            return ModelText(key, _shown(record["text"]), complete=True)
        case "thought":
            return Thought(key, _shown(record["text"]), complete=True)
        case "call":
            server, tool = _server(record["server"]), sanitize_line(_text(record["tool"]))
            arguments, result = _shown(record["arguments"]), _shown(record["result"])
            status, seconds = ToolCallStatus[record["status"]], _seconds(record["seconds"])
            return ToolCall(key, server, tool, arguments, status, seconds, result)
        case "notice":
            text, advice = _shown(record["text"]), _shown(record["advice"])
            brief = _shown(record.get("brief", ""))
            return ChatNotice(key, Severity(record["status"]), text, advice, brief)
        case _:
            calls, tokens = _number(record["calls"]), _number(record["tokens"])
            return TurnEnd(key, calls, _seconds(record["seconds"]) or 0.0, tokens)


def _server(name: object) -> ServerId:
    return ServerId(sanitize_line(_text(name)))


def _shown(text: object) -> str:
    return sanitize(_text(text))


def _seconds(value: object) -> float | None:
    if isinstance(value, int | float) and isfinite(value) and value >= 0:
        return float(value)
    return None


def _ended(entry: Entry) -> Entry:
    if isinstance(entry, ToolCall) and not entry.status.is_over:
        return replace(entry, status=ToolCallStatus.CANCELLED, result=STOPPED)
    return entry


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return without_surrogates(value)


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError("not a number")
    return value
