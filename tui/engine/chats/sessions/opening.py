"""Open a saved session, so that it goes on in its file or, where that cannot be, in a copy."""

import copy
from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Final

from tui.engine.chats.sessions import records
from tui.engine.chats.sessions.library import SessionLibrary
from tui.engine.chats.sessions.records import Record
from tui.engine.chats.sessions.replay import SavedSession
from tui.engine.chats.sessions.session_file import SessionLock
from tui.model.frozen import dataclass
from tui.model.sessions import SessionView

MAX_PREVIEW: Final = 40
"""Last entries of a session that a preview shows."""

READ_ONLY: Final = "This session is open in another gemdeck, so it is read-only here."
COPIED: Final = "A message goes on in a copy; the file stays as it is."


@dataclass(frozen=True, slots=True)
class OpenedSession:
    """A session that was read to go on.

    Attributes:
        saved: What was read.
        lock: The right to write its file; without it a copy is written.
        copied: With what the copy begins.
        remark: Why it is a copy, for the user, or an empty string.
    """

    saved: SavedSession
    lock: SessionLock | None = None
    copied: list[Record] = field(default_factory=list)
    remark: str = ""

    def release(self) -> None:
        """Let others have it."""
        if self.lock is not None:
            self.lock.release()


def open_session(library: SessionLibrary, view: SessionView) -> OpenedSession:
    """Open a session for writing if that can be, else to go on in a copy. Blocks.

    Raises:
        SessionError: If it cannot be read.
    """
    lock = library.lock(view)
    try:
        saved = library.read(view)
    except BaseException:
        if lock is not None:
            lock.release()
        raise
    if lock is not None and not saved.remarks:
        return OpenedSession(saved, lock)
    if lock is not None:
        lock.release()
    why = [READ_ONLY] if lock is None else saved.remarks
    return OpenedSession(saved, None, [*copied_records(saved)], " ".join([*why, COPIED]))


def copied_records(saved: SavedSession) -> Iterator[Record]:
    """Give the records of a new file with what was read of another, but for its first line."""
    written = 0
    for shown in saved.entries:
        place = saved.starts.get(shown.id)
        if place is not None:
            yield from _contents(saved.contents[written:place])
            written = place
        yield records.entry(shown)
        yield {"t": "done", "id": shown.id}
    yield from _contents(saved.contents[written:])
    yield {"t": "end"}


def _contents(contents: Iterable[Record]) -> Iterator[Record]:
    for content in contents:
        yield {"t": "content", "content": copy.deepcopy(content)}
