"""The saved sessions of a state folder: listed, found, read, renamed, deleted and exported.

They lie in ``sessions/KEY/ID.jsonl``, where KEY stands for the opened folder. All functions block.
"""

import contextlib
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Final

from tui.engine.chats.sessions.replay import MAX_TITLE, SavedSession, read_session
from tui.engine.chats.sessions.session_file import (
    MAX_FIRST,
    Record,
    SessionFile,
    SessionLock,
    entry,
    fields_of,
    summary,
)
from tui.engine.files.atomic import open_own
from tui.engine.files.paths import SESSIONS, folder_key
from tui.engine.files.state_file import STATE_VERSION
from tui.engine.logs.redaction import Redactor
from tui.engine.options import LATEST
from tui.model.bounded_json import as_object, json_or_text, text_in
from tui.model.chat import ChatNotice, Entry, ModelText, Thought, ToolCall, TurnEnd, UserMessage
from tui.model.sessions import (
    LastSessionFound,
    SessionId,
    SessionMatch,
    SessionsSearched,
    SessionView,
)
from tui.text import AdvisedError, sanitize_line

MAX_LISTED: Final = 10_000
"""Most sessions of a folder that are listed."""

HEAD: Final = 4 * 1024
"""Bytes at the beginning of a file that are read for a list."""

TAIL: Final = 16 * 1024
"""Bytes at its end, where the last summary mostly is; before them it is looked for in blocks."""

BLOCK: Final = 1024 * 1024
"""Bytes of such a block."""

MAX_BACK: Final = 64 * 1024 * 1024
"""How far before the end, in bytes."""

MAX_SEARCHED: Final = 1024 * 1024 * 1024
"""Bytes of sessions that one search reads."""

MAX_MATCHES: Final = 100
"""Sessions that one search finds."""

BEFORE, AFTER = 40, 120
"""Characters around a match that are shown."""

MAX_COUNT: Final = 2**53
"""Largest number that is believed."""

LAST_MOMENT: Final = 253_402_214_400.0
"""The latest time that the calendar expresses in every time zone, in seconds since the epoch."""

DAY: Final = 86_400.0
"""Seconds."""

_ID: Final = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{6}")
DRAFT: Final = ".draft"
"""How the files of drafts end that have no session yet."""

_SUFFIX: Final = ".jsonl"
_SUMMARY: Final = b'\n{"t":"summary"'
_BEGUN: Final = b'\n{"t":"user"'
_ENDED: Final = tuple(b'\n{"t":"%b"' % kind for kind in (b"end", b"resumed", b"back"))
"""After one of these no turn is open."""

_OPEN: Final = "This session is open in another gemdeck. Close it there first."
_COPY: Final = "This session is open in another gemdeck, so you continue in a copy."

KIND: Final = "gemdeck session"
"""What an export says that it is."""

_MIN_FENCE: Final = 3


class SessionError(AdvisedError):
    """A session cannot be used."""


def new_id(now: float) -> SessionId:
    """Return the id of a session that begins now, in seconds since the epoch."""
    return SessionId(f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}-{secrets.token_hex(3)}")


class SessionLibrary:
    """The saved sessions of all folders.

    Args:
        state: The state folder.
    """

    def __init__(self, state: Path) -> None:
        self._root = state / SESSIONS

    def place(self, folder: Path) -> Path:
        """Return where the sessions of a folder lie; it need not exist."""
        return self._root / folder_key(folder)

    def path_of(self, view: SessionView) -> Path:
        """Return the file of a listed session."""
        return self._root / view.place / f"{view.id}{_SUFFIX}"

    def sessions(self, folder: Path | None = None) -> tuple[SessionView, ...]:
        """List the sessions of a folder, or of all folders, the last changed first."""
        places = [self.place(folder)] if folder is not None else self._places()
        views = [view for place in places for path in _files(place) if (view := _view(path))]
        return tuple(sorted(views, key=lambda view: view.changed, reverse=True))

    def last(self, folder: Path) -> LastSessionFound | None:
        """Find the session of a folder that changed last, unless another gemdeck has it open."""
        with contextlib.suppress(OSError):
            files = _files(self.place(folder))
            path = max(files, key=lambda path: path.stat().st_mtime, default=None)
            view = _view(path) if path is not None else None
            if path and view and (lock := SessionLock.take(path)) is not None:
                lock.release()
                with open_own(path) as file:
                    line = b"\n" + _last_line(file, view.size, _BEGUN, *_ENDED)
                return LastSessionFound(view, line.startswith(_BEGUN))
        return None

    def find(self, words: str, folder: Path | None = None) -> SessionView:
        """Find a session by the beginning or the last digits of its id, or the last that changed.

        Raises:
            SessionError: If there is none, or several.
        """
        views = self.sessions(folder)
        if words in {"", LATEST}:
            found = views[:1]
        else:
            named = tuple(view for view in views if view.id.endswith(f"-{words}"))
            found = named or tuple(view for view in views if view.id.startswith(words))
        if not found:
            raise SessionError("There is no such session." if views else "There are no sessions.")
        if len(found) > 1:
            raise SessionError(f"{len(found)} sessions begin with {sanitize_line(words, 40)}.")
        return found[0]

    def read(self, view: SessionView) -> SavedSession:
        """Read a whole session.

        Raises:
            SessionError: If its file cannot be read.
        """
        try:
            return read_session(self.path_of(view), view)
        except OSError as error:
            raise _unusable("read", error) from None

    def search(
        self, words: str, folder: Path | None = None, is_wanted: Callable[[], bool] = lambda: True
    ) -> SessionsSearched:
        """Find the sessions with a message, an answer or a tool call that has all the words.

        Args:
            words: The words, in any case.
            folder: The folder whose sessions are read; None for those of all folders.
            is_wanted: Asked before each session; the search ends once it says no.
        """
        left, room = [*self.sessions(folder)], MAX_SEARCHED
        wanted, matches = words.lower().split(), list[SessionMatch]()
        while left and wanted and is_wanted() and len(matches) < MAX_MATCHES:
            if (room := room - left[0].size) < 0:
                break
            view = left.pop(0)
            with contextlib.suppress(OSError):  # deleted meanwhile, or of another version
                saved = read_session(self.path_of(view), view, with_contents=False)
                texts = (text for text in _texts(saved) if all(map(text.lower().count, wanted)))
                if text := next(texts, ""):
                    matches.append(SessionMatch(view, _around(text, wanted[0])))
        return SessionsSearched(words, tuple(matches), len(left))

    def open(
        self, view: SessionView, redactor: Redactor | None
    ) -> tuple[SavedSession, SessionLock | None]:
        """Read a session to go on in its file, or in a copy if another gemdeck has that open.

        Returns:
            What was read, and the right to write it; None if it was not read to its end, or
            without a redactor, as nothing is to be written then.

        Raises:
            SessionError: If it cannot be read.
            OSError: If it cannot be copied.
        """
        if redactor is None:
            return self.read(view), None
        lock = self.lock(view)
        is_new_copy = lock is None
        if lock is None:
            view = self.copy(view, view.title, redactor)
            lock = self._own_lock(view)
        try:
            saved = self.read(view)
        except BaseException:
            lock.release()
            raise
        if is_new_copy:
            saved.is_new_copy = True
            saved.remarks.insert(0, _COPY)
        if saved.is_whole:
            return saved, lock
        lock.release()
        saved.remarks.append("New messages go into a new session.")
        return saved, None

    def lock(self, view: SessionView) -> SessionLock | None:
        """Take the right to write a session; None if another gemdeck has it.

        Raises:
            SessionError: If the file cannot be opened.
        """
        try:
            return SessionLock.take(self.path_of(view))
        except OSError as error:
            raise _unusable("opened", error) from None

    def rename(
        self, view: SessionView, title: str, redactor: Redactor, on_problem: Callable[[str], None]
    ) -> SessionView:
        """Give a session another title.

        Raises:
            SessionError: If it is open elsewhere, or cannot be opened.
        """
        renamed = replace(view, title=sanitize_line(title, MAX_TITLE))
        file = SessionFile(self.path_of(view), redactor, on_problem, self._own_lock(view))
        file.write([summary(renamed)])
        file.close()
        with contextlib.suppress(OSError):  # a new name is no use of it
            os.utime(file.path, (view.changed, view.changed))
        return renamed

    def copy(self, view: SessionView, title: str, redactor: Redactor) -> SessionView:
        """Copy a session as it is now to one with another id in the same folder.

        Raises:
            OSError: If it cannot be read or written; nothing of it is left.
        """
        made = replace(view, id=new_id(time.time()), title=title, parent=view.id)
        target = self.path_of(made)
        try:
            with open_own(self.path_of(view)) as source, target.open("xb") as file:
                target.chmod(0o600)
                shutil.copyfileobj(source, file)
        except OSError:
            target.unlink(missing_ok=True)
            raise
        copied = SessionFile(target, redactor, lambda _: None)
        copied.write([summary(made)])
        copied.close()
        return made

    def delete(self, view: SessionView) -> None:
        """Delete a session.

        Raises:
            SessionError: If it is open elsewhere, or cannot be deleted.
        """
        lock = self._own_lock(view)
        try:
            self.path_of(view).unlink(missing_ok=True)
        except OSError as error:
            raise _unusable("deleted", error) from None
        finally:
            lock.release()

    def delete_old(self, days: float, now: float) -> int:
        """Delete the sessions and drafts that were not written for so many days; return how many.

        One that is open stays.
        """
        deleted = 0
        kept = (_files(place, kind) for place in self._places() for kind in (_SUFFIX, DRAFT))
        for path in chain.from_iterable(kept):
            with contextlib.suppress(OSError):
                if now - path.stat().st_mtime > days * DAY and (lock := SessionLock.take(path)):
                    try:
                        path.unlink()
                    finally:
                        lock.release()
                    deleted += 1
        return deleted

    def _own_lock(self, view: SessionView) -> SessionLock:
        lock = self.lock(view)
        if lock is None:
            raise SessionError(_OPEN)
        return lock

    def _places(self) -> list[Path]:
        try:
            return sorted(path for path in self._root.iterdir() if path.is_dir())
        except OSError:
            return []


def _files(place: Path, suffix: str = _SUFFIX) -> Iterator[Path]:
    """Give the files of a folder's sessions, the newest first."""
    with contextlib.suppress(OSError):
        names = (name for name in os.listdir(place) if name.endswith(suffix))  # noqa: PTH208
        ids = (name.removesuffix(suffix) for name in names)
        for name in sorted(filter(_ID.fullmatch, ids), reverse=True)[:MAX_LISTED]:
            yield place / f"{name}{suffix}"


def _view(path: Path) -> SessionView | None:
    """Read what a list shows of a session; None if it cannot be read at all."""
    try:
        with open_own(path) as file:
            status = os.fstat(file.fileno())
            head = file.read(HEAD)
            last = _last_line(file, status.st_size, _SUMMARY)
    except OSError:
        return None
    known = as_object(json_or_text(head.partition(b"\n")[0])) | as_object(json_or_text(last))
    parent = _word(known, "parent")
    return SessionView(
        id=SessionId(path.name.removesuffix(_SUFFIX)),
        folder=_word(known, "folder", 4_096),
        title=_word(known, "title", MAX_TITLE),
        first=_word(known, "first", MAX_FIRST),
        model=_word(known, "model", 64),
        tokens=_count(known, "tokens"),
        turns=_count(known, "turns"),
        started=min(float(_count(known, "started")), LAST_MOMENT),
        changed=min(status.st_mtime, LAST_MOMENT),
        size=status.st_size,
        parent=SessionId(parent) if _ID.fullmatch(parent) else None,
        place=path.parent.name,
    )


def _last_line(file: BinaryIO, size: int, *starts: bytes) -> bytes:
    """Return the last whole line in a file that starts in one of these ways, or nothing."""
    start, after, length = size, b"", TAIL
    while start > max(0, size - MAX_BACK):
        start, length = max(0, start - length), min(start, length)
        file.seek(start)
        data = file.read(length) + after
        whole = data[: data.rfind(b"\n") + 1]
        if (found := max(map(whole.rfind, starts))) >= 0:
            return whole[found:].split(b"\n", 2)[1]
        after, length = data[:TAIL], BLOCK
    return b""


def _word(record: Record, key: str, limit: int = 100) -> str:
    return sanitize_line(text_in(record, key), limit)


def _count(record: Record, key: str) -> int:
    match record.get(key):
        case (int() | float()) as value if 0 <= value < MAX_COUNT:
            return int(value)
    return 0


def _unusable(done: str, error: OSError) -> SessionError:
    reason = sanitize_line(error.strerror or str(error))
    return SessionError(f"The session cannot be {done}: {reason}.")


def _texts(saved: SavedSession) -> Iterator[str]:
    """Yield what a search looks at: the title, and the text of each entry."""
    yield saved.view.title
    for shown in saved.entries:
        match shown:
            case UserMessage(text=text) | ModelText(text=text):
                yield text
            case ToolCall():
                yield f"{shown.server} {shown.tool} {shown.arguments} {shown.result}"


def _around(text: str, word: str) -> str:
    """Return what is around a word in a text, in one line."""
    start = max(0, text.lower().find(word) - BEFORE)
    end = start + BEFORE + AFTER
    return f"{'…' * (start > 0)}{sanitize_line(text[start:end])}{'…' * (end < len(text))}"


def export_text(saved: SavedSession, file: Path) -> str:
    """Return what goes into a file: JSON if its name ends so, else Markdown."""
    return to_json(saved) if file.suffix.lower() == ".json" else to_markdown(saved)


def to_markdown(saved: SavedSession) -> str:
    """Return a session as a Markdown document."""
    view = saved.view
    began = datetime.fromtimestamp(view.started, UTC).isoformat(" ", "minutes")
    facts = [f"- session: {view.id}", f"- began: {began}", f"- model: {view.model or 'unknown'}"]
    head = [f"# {view.name}", "\n".join(facts)]
    return "\n\n".join([*head, *filter(None, map(_paragraph, saved.entries))]) + "\n"


def to_json(saved: SavedSession) -> str:
    """Return a session as JSON in ASCII."""
    about = fields_of(saved.view, "id", "title", "model", "started")
    entries = [entry(shown) for shown in saved.entries]
    content = {"kind": KIND, "version": STATE_VERSION, **about, "entries": entries}
    return json.dumps(content, indent=2) + "\n"


def write_export(file: Path, text: str) -> Path:
    """Write an export to a new private file and return it. Blocks.

    Raises:
        SessionError: If there is a file of that name, or it cannot be written.
    """
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as new:  # noqa: PTH123  (no path)
            new.write(text)
    except OSError as error:
        name = sanitize_line(str(file))
        raise SessionError(f"{name} cannot be written: {error.strerror}.") from None
    return file


def _paragraph(shown: Entry) -> str:
    """Return an entry as Markdown; thoughts are left out."""
    match shown:
        case UserMessage(text=text):
            return f"## You\n\n{text}"
        case ModelText(text=text):
            return f"## Model\n\n{text}"
        case ToolCall():
            name = f"{shown.server} · {shown.tool}" if shown.server else shown.tool
            said = f"\n\n{fenced(shown.result)}" if shown.result else ""
            return f"### {name} ({shown.status.value})\n\n{fenced(shown.arguments, 'json')}{said}"
        case ChatNotice(text=text, advice=advice):
            return f"> {' '.join(f'{text} {advice}'.split())}"
        case Thought() | TurnEnd():
            return ""


def fenced(text: str, language: str = "") -> str:
    """Return a code block that no line of the text can end."""
    fence = "`" * max(_MIN_FENCE, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"
