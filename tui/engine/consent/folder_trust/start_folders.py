"""Folders in which the user's own servers may start although they run code from there.

An answer is about a folder as it lies on the disk, by its real path and identity. It says nothing
about settings that the folder brings.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tui.engine.consent.folder_trust.identity import FolderIdentity, reaches_down
from tui.engine.consent.folder_trust.trust_store import (
    FOLDER_KEYS,
    FolderRecord,
    read_records,
    write_record,
)
from tui.engine.files.entry_format import EntryFormat
from tui.engine.files.state_file import private_file
from tui.model.trust import TrustAnswer

FILE_NAME: Final = "start-folders.json"
"""Where the answers are kept, in the state folder."""

MAX_FOLDERS: Final = 1_000
"""Folders that are remembered; the oldest goes first."""


@dataclass(frozen=True, slots=True)
class StartFolder:
    """A folder in which a server would start and run code.

    Attributes:
        identity: Which folder; None if it cannot be looked at.
        shown: Its path for the screen.
        allowed: Whether the user said yes to it, or trusts its content.
        never: Whether the user said never.
        may_include_children: Whether a yes can also cover the folders in it.
        caution: Why others could change what runs there, or "".
        is_opened: Whether it is the opened folder.
    """

    identity: FolderIdentity | None
    shown: str
    allowed: bool = False
    never: bool = False
    may_include_children: bool = False
    caution: str = ""
    is_opened: bool = False

    @property
    def key(self) -> tuple[object, ...]:
        return self.identity.key if self.identity is not None else (self.shown,)


@dataclass(frozen=True, slots=True)
class _Record(FolderRecord):
    answer: TrustAnswer
    when: float


_RECORDS: Final = EntryFormat(_Record, FOLDER_KEYS)


class StartFolders:
    """Keeps the answers. All methods block.

    Args:
        folder: The state folder, or None for this run only.
        home: The user's home, from which a yes never reaches down.
        on_problem: Takes what is wrong with the file.
    """

    def __init__(self, folder: Path | None, home: Path, on_problem: Callable[[str], None]) -> None:
        self._file = private_file(folder, FILE_NAME, on_problem)
        self._home = home

    def answer(self, folder: FolderIdentity) -> TrustAnswer | None:
        """Return the answer about a folder, or a yes to one above it that covers it."""
        records = read_records(_RECORDS, self._file.load() or {})
        known = {record.folder.path: record for record in records}
        own = known.get(folder.path)
        if own is not None and own.folder.key == folder.key:
            return own.answer
        above = (record for place in folder.path.parents if (record := known.get(place)))
        covered = any(
            record.answer is TrustAnswer.TRUST_WITH_CHILDREN
            and reaches_down(record.folder, self._home)
            for record in above
        )
        return TrustAnswer.TRUST if covered else None

    def keep(self, folder: FolderIdentity, answer: TrustAnswer | None) -> None:
        """Keep the answer about a folder; None forgets it."""
        new = [_Record(folder, answer, time.time())] if answer is not None else []

        def change(content: dict[str, Any]) -> dict[str, Any]:
            known = read_records(_RECORDS, content)
            others = [one for one in known if one.folder.path != folder.path]
            kept = [*others[-(MAX_FOLDERS - 1) :], *new]
            return {"folders": [write_record(_RECORDS, record) for record in kept]}

        self._file.update(change)
