"""Folders whose code the user's own servers may run, and what they ran there when that was said.

A yes is to a folder as it lies on the disk, by its real path and identity, and to each server with
the entry and the files that it had. It says nothing about settings that the folder brings.
"""

import time
from collections.abc import Callable, Container, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from tui.engine.files.entry_format import EntryFormat
from tui.engine.files.state_file import private_file
from tui.engine.trust.content import FolderContent, ServerContent
from tui.engine.trust.trust_store import (
    FOLDER_KEYS,
    FolderIdentity,
    FolderRecord,
    reaches_down,
    read_records,
    write_record,
)
from tui.model.frozen import dataclass
from tui.model.trust import TrustAnswer

FILE_NAME: Final = "start-folders.json"
"""Where the answers are kept, in the state folder."""

MAX_FOLDERS: Final = 1_000
"""Folders that are remembered; the oldest goes first."""


@dataclass(frozen=True, slots=True)
class StartFolder:
    """A folder whose code a server would run.

    Attributes:
        identity: Which folder; None if it cannot be looked at.
        shown: Its path for the screen.
        never: Whether the user said never.
        may_include_children: Whether a yes can also cover the folders in it.
        caution: Why others could change what runs there, or "".
        is_opened: Whether it is the opened folder.
    """

    identity: FolderIdentity | None
    shown: str
    never: bool = False
    may_include_children: bool = False
    caution: str = ""
    is_opened: bool = False

    @property
    def key(self) -> tuple[object, ...]:
        return self.identity.key if self.identity is not None else (self.shown,)


@dataclass(frozen=True, slots=True)
class Start:
    """What one server would run in a folder, and what the user said of exactly that.

    Attributes:
        folder: The folder.
        seen: What it would run, as it is now, without the lines.
        outside: What it would run outside the folder, which no file of that changes; None where
            it would look into the folder from anywhere.
        said: The answer, or None.
        before: What it ran when it was allowed last, or None.
    """

    folder: StartFolder
    seen: ServerContent
    outside: ServerContent | None = None
    said: TrustAnswer | None = None
    before: ServerContent | None = None

    @property
    def key(self) -> tuple[object, ...]:
        return (*self.folder.key, (self.seen.name, self.seen.hash))

    @property
    def is_allowed(self) -> bool:
        return self.said is not None and self.said.allows

    @property
    def has_changed(self) -> bool:
        return self.before is not None and self.before.hash != self.seen.hash


@dataclass(frozen=True, slots=True)
class StartRecord(FolderRecord):
    """What the user said of one folder.

    Attributes:
        answer: The last answer. Not now takes a yes to a folder above it back.
        when: When, in seconds since the epoch.
        inside: What each server ran that was allowed in it.
        outside: What was allowed outside it.
        inherited: Whether it was a yes to a folder above that reached it, and no answer about it;
            it ends with that.
    """

    answer: TrustAnswer
    when: float
    inside: tuple[ServerContent, ...]
    outside: tuple[ServerContent, ...]
    inherited: bool = False


_RECORDS: Final = EntryFormat(StartRecord, FOLDER_KEYS)


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

    def standing(self, folder: FolderIdentity) -> tuple[StartRecord | None, bool]:
        """Return what was said of a folder, and whether a yes to one above it reaches it.

        What a folder that is reached would run is kept the first time, and counts from then on.
        """
        known = {record.folder.path: record for record in self._records()}
        own = known.get(folder.path)
        if own is not None and own.folder.key != folder.key:
            return None, False
        if own is not None and not own.inherited:
            return own, False
        above = (record for place in folder.path.parents if (record := known.get(place)))
        nearest = next((record for record in above if not record.inherited), None)
        if nearest is None:
            return None, False
        reaches = nearest.answer is TrustAnswer.TRUST_WITH_CHILDREN
        if not (reaches and reaches_down(nearest.folder, self._home)):
            return None, False
        return own, own is None

    def keep(
        self,
        folder: FolderIdentity,
        answer: TrustAnswer,
        inside: Sequence[ServerContent] = (),
        outside: Sequence[ServerContent] = (),
    ) -> None:
        """Keep an answer; what was allowed before stands unless the answer allows nothing.

        Args:
            folder: The folder.
            answer: The answer.
            inside: What it allows to run in the folder.
            outside: What it allows to run outside it.
        """

        def renew(before: StartRecord | None) -> StartRecord:
            known = before if answer.allows else None
            names = {one.name for one in (*inside, *outside)}
            return StartRecord(
                folder,
                answer,
                time.time(),
                _kept(known.inside if known is not None else (), names, inside),
                _kept(known.outside if known is not None else (), names, outside),
            )

        self._change(folder, renew)

    def inherit(self, folder: FolderIdentity, inside: Sequence[ServerContent]) -> None:
        """Keep what would run in a folder that a yes to one above it reaches."""
        new = StartRecord(
            folder, TrustAnswer.TRUST, time.time(), _kept((), (), inside), (), inherited=True
        )
        self._change(folder, lambda _: new)

    def forget(self, folder: FolderIdentity) -> None:
        """Forget an answer; a yes to a folder above it no longer reaches it either."""
        self._change(folder, lambda _: None)
        if self.standing(folder) != (None, False):
            self.keep(folder, TrustAnswer.NOT_NOW)

    def _records(self) -> list[StartRecord]:
        return read_records(_RECORDS, self._file.load() or {})

    def _change(
        self, folder: FolderIdentity, renew: Callable[[StartRecord | None], StartRecord | None]
    ) -> None:
        def change(content: dict[str, Any]) -> dict[str, Any]:
            known = read_records(_RECORDS, content)
            new = renew(next((one for one in known if one.folder.key == folder.key), None))
            others = [one for one in known if one.folder.path != folder.path]
            kept = [*others[-(MAX_FOLDERS - 1) :], *([new] if new is not None else [])]
            return {"folders": [write_record(_RECORDS, record) for record in kept]}

        self._file.update(change)


def _kept(
    before: Iterable[ServerContent], names: Container[str], now: Iterable[ServerContent]
) -> tuple[ServerContent, ...]:
    """Return what is stored: what was allowed before under other names, and what is now."""
    servers = (*(one for one in before if one.name not in names), *now)
    return FolderContent("", servers, "").kept().servers
