"""One session's file: who may write it, and how its lines are written."""

import contextlib
import copy
import fcntl
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tui.engine.files.line_file import LineFile
from tui.engine.files.state_file import STATE_VERSION
from tui.engine.files.unwritten import make_folder
from tui.engine.logs.redaction import Redactor
from tui.model.chat import ChatNotice, Entry, ModelText, Thought, ToolCall, TurnEnd, UserMessage
from tui.model.sessions import SessionView

MAX_SESSION: Final = 256 * 1024 * 1024
"""Most bytes of a session that are written and read."""

MAX_FIRST: Final = 200
"""Characters of the user's first words in a list."""

Record = dict[str, Any]

_STRUCTURE: Final = frozenset({"t", "id", "role", "name", "mimeType", "status", "thoughtSignature"})
"""Keys whose values are names of the format: masking one would break the record."""

_ANY: Final = frozenset[str]()
"""In a call's arguments every key and value is the model's."""

MAX_UNWRITTEN: Final = 200_000
"""Lines kept in memory while the disk is full."""

_FLAGS: Final[int] = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW


def header(view: SessionView) -> Record:
    """Return the first line of a session."""
    names = ("id", "folder", "started", "model", "first", "parent")
    return {"t": "session", "version": STATE_VERSION, **fields_of(view, *names)}


def summary(view: SessionView) -> Record:
    """Return what a list shows of a session."""
    names = ("title", "first", "model", "tokens", "turns", "parent")
    return {"t": "summary", **fields_of(view, *names)}


def fields_of(shown: object, *names: str) -> Record:
    """Return some fields by their names."""
    return {name: getattr(shown, name) for name in names}


def entry(shown: Entry) -> Record:
    """Return the line of a whole entry."""
    match shown:
        case UserMessage(id, text, typed, servers):
            return {"t": "user", "id": id, "text": text, "typed": typed, "servers": [*servers]}
        case ModelText(id, text):
            return {"t": "text", "id": id, "text": text}
        case Thought(id, text):
            return {"t": "thought", "id": id, "text": text}
        case ToolCall():
            names = ("id", "server", "tool", "arguments", "seconds", "result")
            return {"t": "call", "status": shown.status.name, **fields_of(shown, *names)}
        case ChatNotice():
            shared = fields_of(shown, "id", "text", "advice", "brief")
            return {"t": "notice", "status": shown.severity, **shared}
        case TurnEnd(id, calls, seconds, tokens):
            return {"t": "took", "id": id, "calls": calls, "seconds": seconds, "tokens": tokens}


def changes(contents: Sequence[Mapping[str, Any]], seen: list[list[Any]]) -> list[Record]:
    """Return how a history differs from what was `seen` of it, which is brought up to it.

    Whoever changes a content gives it another list of parts.
    """
    pairs = enumerate(zip(seen, contents, strict=False))
    differing = (place for place, (parts, content) in pairs if content["parts"] is not parts)
    same = next(differing, min(len(seen), len(contents)))
    cut: list[Record] = [{"t": "cut", "at": same}] if same < len(seen) else []
    new = contents[same:]
    seen[same:] = [content["parts"] for content in new]
    return [*cut, *({"t": "content", "content": copy.deepcopy(content)} for content in new)]


def masked(record: Record, redactor: Redactor) -> Record:
    """Return a record with the known secrets masked in its texts.

    A thought signature holds for the exact part only, and media with a secret in them are none:
    the one is dropped, the others become a note.
    """
    return _masked_object(record, redactor, _STRUCTURE)


def _masked(value: Any, redactor: Redactor, names: frozenset[str]) -> Any:  # noqa: ANN401 - any JSON
    match value:
        case str():
            return redactor.redact_known(value)
        case list():
            return [_masked(item, redactor, names) for item in value]
        case {"inlineData": {"data": str(data)} as media} if redactor.redact_known(data) != data:
            return {"text": f"[The {media.get('mimeType')} is not saved: it contains a secret.]"}
        case dict():
            return _masked_object(value, redactor, names)
    return value


def _masked_object(value: Mapping[str, Any], redactor: Redactor, names: frozenset[str]) -> Record:
    shown: Record = {}
    for key, item in value.items():
        if key in names and isinstance(item, str):
            shown[key] = item
            continue
        inner = _ANY if key == "args" else names
        shown[key if names else redactor.redact_known(key)] = _masked(item, redactor, inner)
    if "thoughtSignature" in shown and shown != value:
        del shown["thoughtSignature"]
    return shown


class SessionLock:
    """Holds the only right to write a session; the end of the process gives it back."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def take(cls, path: Path, *, make: bool = False) -> "SessionLock | None":
        """Take the lock of a file; None if another process has it.

        Raises:
            OSError: If the file cannot be opened.
        """
        descriptor = os.open(path, _FLAGS | (os.O_CREAT if make else 0), 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if isinstance(error, BlockingIOError):
                return None
            raise
        return cls(descriptor)

    def release(self) -> None:
        """Give the lock back. A second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


@dataclass
class SessionFile:
    """Appends records to a session; all methods block and belong to one thread.

    A text that streams is held back where it may be the beginning of a secret.

    Attributes:
        path: The file; it is made with the first line.
        redactor: Knows the secrets that are masked.
        on_problem: Told once if the file cannot be written.
        lock: The right to write it; taken with the first line unless it is given.
        is_empty: Whether nothing was in it after the last write.
        lines: What is appended to it, also while it waits.
    """

    path: Path
    redactor: Redactor
    on_problem: Callable[[str], None]
    lock: SessionLock | None = None
    is_empty: bool = True
    _held: dict[str, Record] = field(default_factory=dict)
    _is_full: bool = False

    def __post_init__(self) -> None:
        size = 2 * MAX_SESSION
        self.lines = LineFile(self.path, size, 1, max_unwritten=MAX_UNWRITTEN, alone=True)

    def write(self, records: Iterable[Record]) -> None:
        """Append records now, or as soon as they can be."""
        self._take_lock()
        for record in records:
            if self._is_full:
                return
            for line in self._settled(record):
                self.lines.keep(_encoded(line), self.on_problem)
        self._check_size()

    def close(self) -> None:
        """Write what was held back, and let others have the file."""
        for record in self._held.values():
            self.lines.keep(_encoded(masked(record, self.redactor)), self.on_problem)
        self._held.clear()
        if self.lock is not None:
            self.lock.release()

    def _take_lock(self) -> None:
        if self.lock is None:
            with contextlib.suppress(OSError):  # no room: it is taken with a later line
                make_folder(self.path)
                self.lock = SessionLock.take(self.path, make=True)

    def _settled(self, record: Record) -> Iterable[Record]:
        """Give what of a record can be written now."""
        key = record.get("id")
        if record["t"] == "done":
            held = self._held.pop(str(key), None)
            return [masked(held, self.redactor)] if held is not None else []
        if record["t"] not in {"text", "thought"}:
            return [masked(record, self.redactor)]
        before = self._held.pop(str(key), record | {"text": ""})["text"]
        text = self.redactor.redact_known(before + record["text"])
        end = self.redactor.settled(text)
        if end < len(text):
            self._held[str(key)] = record | {"text": text[end:]}
        return [record | {"text": text[:end]}] if end else []

    def _check_size(self) -> None:
        with contextlib.suppress(OSError):
            length = self.path.stat().st_size
            self.is_empty = length == 0
            if length > MAX_SESSION:
                self._is_full = True
                size = MAX_SESSION // 1024 // 1024
                words = f"This conversation exceeds {size} MiB, so the rest of it is not saved."
                self.on_problem(f"{words} Start a new one, or use /compress.")


def _encoded(record: Record) -> bytes:
    """Return a line of ASCII, so that no text can end it or control a terminal."""
    return json.dumps(record, separators=(",", ":")).encode("ascii")
