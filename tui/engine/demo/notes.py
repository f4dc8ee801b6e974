"""The demo's notes: one SQLite file that several processes may use at the same time."""

import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

MAX_NOTES: Final = 1_000
"""Notes that the notebook holds."""

MAX_NOTE_LENGTH: Final = 4_000
"""Longest text of a note, in characters."""

MAX_TAGS: Final = 10
"""Tags that one note may carry."""

MAX_TAG_LENGTH: Final = 40
"""Longest tag, in characters."""

LOCK_WAIT: Final = 5.0
"""Seconds to wait for another process that is writing."""

OPEN_ATTEMPTS: Final = 50
"""Tries to open the file while another process creates it."""

OPEN_PAUSE: Final = 0.05
"""Seconds between those tries."""

_VERSION: Final = 1
_SCHEMA: Final = (
    """CREATE TABLE notes (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        text TEXT NOT NULL,
        created TEXT NOT NULL,
        updated TEXT NOT NULL
    )""",
    """CREATE TABLE tags (
        note INTEGER NOT NULL REFERENCES notes (id) ON DELETE CASCADE,
        tag TEXT NOT NULL,
        PRIMARY KEY (note, tag)
    ) WITHOUT ROWID""",
    "CREATE INDEX tags_by_tag ON tags (tag)",
)
_SELECT: Final = """
    SELECT id, text, created, updated,
        (SELECT group_concat(tag, ' ') FROM tags WHERE note = notes.id)
    FROM notes
"""
_BY_NUMBER: Final = _SELECT + "WHERE id = ?"
_RECENT: Final = _SELECT + "ORDER BY id DESC LIMIT ?"
_TAGGED: Final = "WHERE id IN (SELECT note FROM tags WHERE tag = ?)"
_RECENT_TAGGED: Final = f"{_SELECT} {_TAGGED} ORDER BY id DESC LIMIT ?"
_SEEDS: Final = (
    ("Welcome! These notes live in a small file on this computer.", ("hello",)),
    ("Try: add a note: buy milk", ("hello", "ideas")),
    ("Water the basil on Friday", ("home",)),
)


class NotesError(Exception):
    """A request that the notebook cannot fulfil; the text says why and what to do."""


class UnknownNoteError(NotesError):
    """There is no note with that number."""

    def __init__(self, number: int) -> None:
        super().__init__(f"There is no note {number}. List the notes to see their numbers.")


@dataclass(frozen=True, slots=True)
class Note:
    """One note.

    Attributes:
        id: Its number, from 1; never given twice.
        text: What it says.
        tags: Its tags, in alphabetical order, lower case.
        created: When it was written, ISO 8601, UTC.
        updated: When it was last changed, ISO 8601, UTC.
    """

    id: int
    text: str
    tags: tuple[str, ...]
    created: str
    updated: str


class Notebook:
    """All notes of one file. Every method is safe to call from any thread.

    Raises:
        NotesError: From any method, if the file cannot be used or a limit is exceeded.
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._connection = _open(path)

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()

    def add(self, text: str, tags: Sequence[str] = ()) -> Note:
        """Write a new note."""
        text, tags = _checked_text(text), _checked_tags(tags)
        now = _now()
        with self._transaction() as connection:
            (count,) = connection.execute("SELECT count(*) FROM notes").fetchone()
            if count >= MAX_NOTES:
                raise NotesError(f"The notebook is full ({MAX_NOTES} notes). Delete one first.")
            number = _insert(connection, text, tags, now)
        return Note(number, text, tuple(tags), now, now)

    def get(self, number: int) -> Note:
        """Read one note.

        Raises:
            UnknownNoteError: If there is none with that number.
        """
        with self._reading() as connection:
            return _fetch(connection, number)

    def recent(self, tag: str | None = None, limit: int = MAX_NOTES) -> list[Note]:
        """Read the newest notes, newest first; with `tag`, those that carry it."""
        with self._reading() as connection:
            if tag is None:
                return _notes(connection, _RECENT, (limit,))
            return _notes(connection, _RECENT_TAGGED, (_normalized_tag(tag), limit))

    def search(self, query: str) -> list[Note]:
        """Find the notes that hold every word of `query` in text or tags, newest first."""
        words = query.casefold().split()
        if not words:
            raise NotesError("Say at least one word to search for.")
        return [note for note in self.recent() if _holds(note, words)]

    def update(self, number: int, text: str) -> Note:
        """Replace the text of a note; its tags stay.

        Raises:
            UnknownNoteError: If there is none with that number.
        """
        text = _checked_text(text)
        with self._transaction() as connection:
            _fetch(connection, number)
            connection.execute(
                "UPDATE notes SET text = ?, updated = ? WHERE id = ?", (text, _now(), number)
            )
            return _fetch(connection, number)

    def delete(self, number: int) -> Note:
        """Delete a note for good and give what it was.

        Raises:
            UnknownNoteError: If there is none with that number.
        """
        with self._transaction() as connection:
            note = _fetch(connection, number)
            connection.execute("DELETE FROM notes WHERE id = ?", (number,))
            return note

    def tags(self) -> tuple[str, ...]:
        """List the tags in use, in alphabetical order."""
        with self._reading() as connection:
            return tuple(tag for (tag,) in connection.execute("SELECT DISTINCT tag FROM tags"))

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._connection
            except sqlite3.Error as error:
                raise NotesError(f"The notes file cannot be used: {error}.") from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Hold the write lock; commit at the end, roll back on an error."""
        with self._reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:  # whatever ends it: no lock may outlive it
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")


def _open(path: Path) -> sqlite3.Connection:
    """Open the file, made private and filled with the first notes where it is new.

    A file that is no notebook is set aside under another name, never overwritten.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            return _connect(path)
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            _set_aside(path)
            return _connect(path)
    except (OSError, sqlite3.Error) as error:
        raise NotesError(f"The notes file {path} cannot be used: {error}.") from error


def _set_aside(path: Path) -> None:
    """Rename the file and its write-ahead log, which belongs to no other file."""
    suffix = f".corrupt-{time.time_ns()}"
    for part in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
        if part.exists():
            part.rename(part.with_name(part.name + suffix))


def _connect(path: Path) -> sqlite3.Connection:
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    connection = sqlite3.connect(
        path, timeout=LOCK_WAIT, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        _enter_wal_mode(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        _prepare(connection)
    except BaseException:  # whatever it is: the file is not to stay open
        connection.close()
        raise
    return connection


def _enter_wal_mode(connection: sqlite3.Connection) -> None:
    """Let readers and a writer work side by side.

    SQLite does not wait for a lock here, whatever the timeout, so the wait is ours.
    """
    for attempt in range(1, OPEN_ATTEMPTS + 1):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if attempt == OPEN_ATTEMPTS:
                raise
            time.sleep(OPEN_PAUSE)
        else:
            return


def _prepare(connection: sqlite3.Connection) -> None:
    """Create the tables and the first notes, once among all processes."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > _VERSION:
            raise NotesError("The notes file was written by a newer gemdeck; this one is too old.")
        if version == 0:
            for statement in _SCHEMA:
                connection.execute(statement)
            for text, tags in _SEEDS:
                _insert(connection, text, tags, _now())
            connection.execute(f"PRAGMA user_version = {_VERSION}")
    except BaseException:  # whatever ends it: no lock may outlive it
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _insert(connection: sqlite3.Connection, text: str, tags: Iterable[str], now: str) -> int:
    cursor = connection.execute(
        "INSERT INTO notes (text, created, updated) VALUES (?, ?, ?)", (text, now, now)
    )
    number = cursor.lastrowid or 0
    connection.executemany("INSERT INTO tags VALUES (?, ?)", [(number, tag) for tag in tags])
    return number


def _fetch(connection: sqlite3.Connection, number: int) -> Note:
    try:
        found = _notes(connection, _BY_NUMBER, (number,))
    except OverflowError:  # beyond SQLite's 64 bits
        found = []
    if not found:
        raise UnknownNoteError(number)
    return found[0]


def _notes(connection: sqlite3.Connection, query: str, values: tuple[str | int, ...]) -> list[Note]:
    return [
        Note(number, text, tuple(sorted((tags or "").split())), created, updated)
        for number, text, created, updated, tags in connection.execute(query, values)
    ]


def _holds(note: Note, words: Iterable[str]) -> bool:
    haystack = " ".join((note.text, *note.tags)).casefold()
    return all(word in haystack for word in words)


def _checked_text(text: str) -> str:
    text = text.strip()
    if not text:
        raise NotesError("A note needs some text.")
    if len(text) > MAX_NOTE_LENGTH:
        raise NotesError(f"A note holds at most {MAX_NOTE_LENGTH} characters, not {len(text)}.")
    return text


def _checked_tags(tags: Sequence[str]) -> list[str]:
    known = sorted({normalized for tag in tags if (normalized := _normalized_tag(tag))})
    if len(known) > MAX_TAGS:
        raise NotesError(f"A note carries at most {MAX_TAGS} tags, not {len(known)}.")
    for tag in known:
        if len(tag) > MAX_TAG_LENGTH:
            raise NotesError(f"A tag has at most {MAX_TAG_LENGTH} characters: {tag[:20]}…")
    return known


def _normalized_tag(tag: str) -> str:
    """Give the one spelling of a tag: lower case, no ``#``, hyphens for white space."""
    return "-".join(tag.lstrip("#").casefold().split())


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
