"""The demo's notes: one SQLite file that several processes can share."""

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
MAX_NOTE_LENGTH: Final = 4_000  # characters
MAX_TAGS: Final = 10
MAX_TAG_LENGTH: Final = 40  # characters
LOCK_WAIT: Final = 5.0  # seconds to wait for another process

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
_TAGGED: Final = "WHERE ?1 IS NULL OR id IN (SELECT note FROM tags WHERE tag = ?1)"
_RECENT: Final = f"{_SELECT} {_TAGGED} ORDER BY id DESC"
_SEEDS: Final = (
    ("Welcome! These notes live in a small file on this computer.", ("hello",)),
    ("Try: add a note: buy milk", ("hello", "ideas")),
    ("Water the basil on Friday", ("home",)),
)


class NotesError(Exception):
    """A request failed; the message says why and what to do."""


@dataclass(frozen=True)  # no slots: the SDK would treat them as defaults
class Note:
    """One note; the times are ISO 8601, UTC."""

    id: int  # from 1, never reused
    text: str
    tags: tuple[str, ...]  # lower case, sorted
    created: str
    updated: str


class Notebook:
    """The notes of one file. Every method is thread-safe.

    Raises:
        NotesError: From any method, if the file cannot be used or a limit is exceeded.
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._connection = _open(path)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def add(self, text: str, tags: Sequence[str] = ()) -> Note:
        """Add a note."""
        text, tags = _checked_text(text), _checked_tags(tags)
        now = _now()
        with self._writing() as connection:
            (count,) = connection.execute("SELECT count(*) FROM notes").fetchone()
            if count >= MAX_NOTES:
                raise NotesError(f"The notebook is full ({MAX_NOTES} notes). Delete one first.")
            number = _insert(connection, text, tags, now)
        return Note(number, text, tuple(tags), now, now)

    def get(self, number: int) -> Note:
        """Read one note."""
        with self._reading() as connection:
            return _fetch(connection, number)

    def recent(self, tag: str | None = None) -> list[Note]:
        """Return the notes, newest first; with `tag`, those that have it."""
        with self._reading() as connection:
            return _notes(connection, _RECENT, None if tag is None else _normalized_tag(tag))

    def search(self, query: str) -> list[Note]:
        """Return the notes with every word of `query` in text or tags, newest first."""
        words = query.casefold().split()
        if not words:
            raise NotesError("Give at least one word to search for.")
        return [
            note
            for note in self.recent()
            if all(word in " ".join((note.text, *note.tags)).casefold() for word in words)
        ]

    def update(self, number: int, text: str) -> Note:
        """Replace the text of a note; its tags stay."""
        text = _checked_text(text)
        with self._writing() as connection:
            _fetch(connection, number)
            connection.execute(
                "UPDATE notes SET text = ?, updated = ? WHERE id = ?", (text, _now(), number)
            )
            return _fetch(connection, number)

    def delete(self, number: int) -> Note:
        """Delete a note permanently and return it."""
        with self._writing() as connection:
            note = _fetch(connection, number)
            connection.execute("DELETE FROM notes WHERE id = ?", (number,))
            return note

    def tags(self) -> tuple[str, ...]:
        """Return the tags in use, sorted."""
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
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._reading() as connection, connection:  # which commits or rolls back
            connection.execute("BEGIN IMMEDIATE")
            yield connection


def _open(path: Path) -> sqlite3.Connection:
    """Open the file; a new one is made private and gets the first notes.

    A file that is not a notebook is renamed, never overwritten.
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
    """Rename the file and its journals."""
    suffix = f".corrupt-{time.time_ns()}"
    for kind in ("", "-journal", "-wal", "-shm"):
        part = path.with_name(path.name + kind)
        if part.exists():
            part.rename(part.with_name(part.name + suffix))


def _connect(path: Path) -> sqlite3.Connection:
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    connection = sqlite3.connect(
        path, timeout=LOCK_WAIT, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        _prepare(connection)
    except BaseException:  # do not leave the file open
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection) -> None:
    """Create the tables and the first notes, once across all processes."""
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > _VERSION:
            raise NotesError("A newer gemdeck wrote the notes file. Update gemdeck to use it.")
        if version == 0:
            for statement in _SCHEMA:
                connection.execute(statement)
            for text, tags in _SEEDS:
                _insert(connection, text, tags, _now())
            connection.execute(f"PRAGMA user_version = {_VERSION}")


def _insert(connection: sqlite3.Connection, text: str, tags: Iterable[str], now: str) -> int:
    cursor = connection.execute(
        "INSERT INTO notes (text, created, updated) VALUES (?, ?, ?)", (text, now, now)
    )
    number = cursor.lastrowid or 0
    connection.executemany("INSERT INTO tags VALUES (?, ?)", [(number, tag) for tag in tags])
    return number


def _fetch(connection: sqlite3.Connection, number: int) -> Note:
    try:
        found = _notes(connection, _BY_NUMBER, number)
    except OverflowError:  # beyond SQLite's 64 bits
        found = []
    if not found:
        raise NotesError(f"There is no note {number}. List the notes to see their numbers.")
    return found[0]


def _notes(connection: sqlite3.Connection, query: str, value: str | int | None) -> list[Note]:
    return [
        Note(number, text, tuple(sorted((tags or "").split())), created, updated)
        for number, text, created, updated, tags in connection.execute(query, (value,))
    ]


def _checked_text(text: str) -> str:
    text = text.strip()
    if not text:
        raise NotesError("A note needs some text.")
    if len(text) > MAX_NOTE_LENGTH:
        raise NotesError(f"A note has at most {MAX_NOTE_LENGTH} characters, not {len(text)}.")
    return text


def _checked_tags(tags: Sequence[str]) -> list[str]:
    known = sorted({normalized for tag in tags if (normalized := _normalized_tag(tag))})
    if len(known) > MAX_TAGS:
        raise NotesError(f"A note has at most {MAX_TAGS} tags, not {len(known)}.")
    for tag in known:
        if len(tag) > MAX_TAG_LENGTH:
            raise NotesError(f"A tag has at most {MAX_TAG_LENGTH} characters: {tag[:20]}…")
    return known


def _normalized_tag(tag: str) -> str:
    """Normalize a tag: lower case, no ``#``, hyphens for white space."""
    return "-".join(tag.lstrip("#").casefold().split())


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
