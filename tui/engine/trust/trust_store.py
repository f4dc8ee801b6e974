"""What the user said about folders, kept across runs: which folder, with which content."""

import os
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from pydantic import PlainSerializer, PlainValidator

from tui.engine.files.entry_format import EntryFormat, read_path, write_path
from tui.engine.files.state_file import private_file
from tui.engine.trust.content import FolderContent
from tui.model.frozen import dataclass

_SHARED: Final = ("/tmp", "/var/tmp", "/dev/shm", "/private/tmp")  # noqa: S108 - never written to


def _read_absolute(text: object) -> Path:
    path = Path(read_path(text))
    if not path.is_absolute():
        raise ValueError("not an absolute path")
    return path


@dataclass(frozen=True, slots=True)
class FolderIdentity:
    """A folder as it lies on the disk now.

    Attributes:
        path: Its real path.
        device: The device it lies on.
        inode: Its number there.
        owner: The id of the user it belongs to.
    """

    path: Annotated[Path, PlainValidator(_read_absolute), PlainSerializer(write_path)]
    device: int
    inode: int
    owner: int

    @property
    def key(self) -> tuple[str, int, int, int]:
        return str(self.path), self.device, self.inode, self.owner


def identify(folder: Path) -> FolderIdentity | None:
    """Determine which folder a path leads to; None where it leads to none. Blocks."""
    try:
        path = Path(os.path.realpath(folder))
        found = path.stat()
    except (OSError, ValueError):
        return None
    if not stat.S_ISDIR(found.st_mode):
        return None
    return FolderIdentity(path, found.st_dev, found.st_ino, found.st_uid)


def reason_to_refuse(folder: Path) -> str:
    """Return why a folder cannot be trusted: somebody else may change what is in it. Blocks.

    The rule is that of git's ``safe.directory`` and OpenSSH's ``StrictModes``.

    Returns:
        One sentence, or "" where there is no reason.
    """
    if sys.platform == "win32":
        return ""
    try:
        found = folder.stat()
    except OSError:
        return "The folder cannot be read."
    if found.st_uid != os.geteuid():
        return "The folder belongs to another user, who could change what runs."
    if found.st_mode & stat.S_IWOTH:
        return "Anyone can write to the folder and change what runs. Remedy: chmod o-w."
    if found.st_mode & stat.S_IWGRP and found.st_gid != _own_group():
        return "A group can write to the folder and change what runs. Remedy: chmod g-w."
    return ""


def may_cover_children(folder: Path, home: Path) -> bool:
    """Return whether trust in a folder may reach the folders in it. Blocks.

    Never for the home or what holds it, nor for places in which anybody may make folders.
    """
    place, own = Path(os.path.realpath(folder)), Path(os.path.realpath(home))
    shared = {Path(os.path.realpath(path)) for path in (*_SHARED, tempfile.gettempdir())}
    if place == own or place in own.parents or place in shared or len(place.parts) == 1:
        return False
    return not reason_to_refuse(place)


def reaches_down(folder: FolderIdentity, home: Path) -> bool:
    """Return whether a yes to a folder still covers the folders in it. Blocks."""
    now = identify(folder.path)
    return now is not None and now.key == folder.key and may_cover_children(folder.path, home)


def _own_group() -> int:
    """Return the user's primary group; the process may have changed its own (``newgrp``)."""
    if sys.platform == "win32":
        return -1
    import pwd  # noqa: PLC0415 - not on every platform

    try:
        return pwd.getpwuid(os.geteuid()).pw_gid
    except KeyError:
        return os.getegid()


FILE_NAME: Final = "trust.json"
"""Where what the user said about folders is kept, in the state folder."""

MAX_FOLDERS: Final = 1_000
"""Folders that are remembered; the oldest that is not forbidden goes first."""

MAX_HASHES: Final = 8
"""Contents of one folder that are remembered as trusted, the newest first."""

MAX_REFUSED: Final = 2_000
"""Servers of the user's settings whose refusal is remembered; the oldest goes first."""

_REFUSED: Final = "refused"
_ADDED: Final = "added"


class Word(StrEnum):
    """What the user said of a folder. ASK takes trust in a folder above it back."""

    TRUSTED = "trusted"
    NEVER = "never"
    ASK = "ask"


@dataclass(frozen=True, slots=True)
class FolderRecord:
    """What a state file keeps about one folder."""

    folder: FolderIdentity


Kept = TypeVar("Kept", bound=FolderRecord)


@dataclass(frozen=True, slots=True)
class Record(FolderRecord):
    """What the user said about one folder.

    Attributes:
        word: What was said.
        when: When, in seconds since the epoch.
        children: Whether trust reaches the folders in it.
        hashes: The contents that were trusted, the newest first.
        content: The content that was trusted last, or None.
        inherited: Whether it was trust in a folder above that reached it, and no answer about it;
            it ends with that.
    """

    word: Word
    when: float
    children: bool = False
    hashes: tuple[str, ...] = ()
    content: FolderContent | None = None
    inherited: bool = False


@dataclass(frozen=True, slots=True)
class Standing:
    """How a folder stands before its content is known.

    Attributes:
        record: What the user said about this exact folder, or None.
        never: Whether it, or the nearest folder above it, is never to be trusted.
        swapped: Whether another folder stands at its path than the one the user spoke of.
        covered: Whether trust in a folder above it reaches it.
    """

    record: Record | None = None
    never: bool = False
    swapped: bool = False
    covered: bool = False


class TrustStore:
    """Knows what the user said about folders. All methods block; none is for the event loop.

    Args:
        folder: The state folder, or None for this run only.
        home: The user's home, from which trust never reaches down.
        on_problem: Takes what is wrong with the file.
    """

    def __init__(self, folder: Path | None, home: Path, on_problem: Callable[[str], None]) -> None:
        self._file = private_file(folder, FILE_NAME, on_problem)
        self._home = home

    def standing(self, folder: FolderIdentity) -> Standing:
        """Find what was said of a folder, or of the nearest one above it."""
        by_path = _by_path(self._file.load() or {})
        own = by_path.get(folder.path)
        if own is not None and not own.inherited:
            swapped = own.folder.key != folder.key
            return Standing(own, never=own.word is Word.NEVER, swapped=swapped)
        above = self._from_above(folder, by_path)
        if own is None or not above.covered:
            return above
        return Standing(own, swapped=own.folder.key != folder.key)

    def _from_above(self, folder: FolderIdentity, by_path: Mapping[Path, Record]) -> Standing:
        """Find what the folders above say: the nearest counts, and `never` goes through all."""
        is_asked = False
        for place in folder.path.parents:
            above = by_path.get(place)
            if above is None:
                continue
            if above.word is Word.NEVER:
                return Standing(never=True)
            is_asked = is_asked or above.word is Word.ASK
            if not is_asked and above.children and reaches_down(above.folder, self._home):
                return Standing(covered=True)
        return Standing()

    def inherit(self, folder: FolderIdentity, content: FolderContent) -> None:
        """Trust a folder covered from above, with the content that it has now."""
        new = Record(
            folder,
            Word.TRUSTED,
            time.time(),
            hashes=(content.hash,),
            content=content.kept(),
            inherited=True,
        )
        self._change(folder, lambda _: new)

    def trust(
        self, folder: FolderIdentity, content: FolderContent, *, children: bool = False
    ) -> None:
        """Trust a folder with this content, beside those contents it was trusted with before."""

        def renew(before: Record | None) -> Record:
            known = before is not None and before.folder.key == folder.key
            hashes = before.hashes if known and before is not None else ()
            hashes = (content.hash, *(known for known in hashes if known != content.hash))
            return Record(
                folder, Word.TRUSTED, time.time(), children, hashes[:MAX_HASHES], content.kept()
            )

        self._change(folder, renew)

    def never(self, folder: FolderIdentity) -> None:
        self._change(folder, lambda _: Record(folder, Word.NEVER, time.time()))

    def forget(self, folder: FolderIdentity) -> None:
        """Forget a folder's record; trust from a folder above no longer covers it either."""
        self._change(folder, lambda _: None)
        standing = self.standing(folder)
        if standing.covered or standing.never:
            self._change(folder, lambda _: Record(folder, Word.ASK, time.time()))

    def _change(
        self, folder: FolderIdentity, renew: Callable[[Record | None], Record | None]
    ) -> None:
        def change(content: dict[str, Any]) -> dict[str, Any]:
            records = _by_path(content)
            new = renew(records.pop(folder.path, None))
            kept = sorted(records.values(), key=lambda r: (r.word is Word.NEVER, r.when))
            kept = kept[-(MAX_FOLDERS - 1) :]
            kept += [new] if new is not None else []
            written = [write_record(_RECORDS, record) for record in kept]
            return {**content, "folders": written}

        self._file.update(change)

    def refused(self) -> dict[str, str]:
        return _refused(self._file.load() or {})

    def refuse(self, keys: Iterable[str], word: str) -> None:
        """Remember the answer about servers of the user's settings; an empty one is forgotten.

        Args:
            keys: What tells them from others.
            word: The answer.
        """
        asked = tuple(keys)

        def change(content: dict[str, Any]) -> dict[str, Any]:
            known = {key: said for key, said in _refused(content).items() if key not in asked}
            known |= dict.fromkeys(asked, word) if word else {}
            kept = dict(list(known.items())[-MAX_REFUSED:])
            return {**content, _REFUSED: kept}

        self._file.update(change)

    def added(self) -> frozenset[str]:
        return frozenset(_added(self._file.load() or {}))

    def add(self, key: str, *, is_gone: bool = False) -> None:
        """Remember a server that the user wrote into the settings; see `refuse` for the key.

        One that the user removed there (`is_gone`) is asked about when it comes again.
        """

        def change(content: dict[str, Any]) -> dict[str, Any]:
            known = [one for one in _added(content) if one != key]
            refused = {one: word for one, word in _refused(content).items() if one != key}
            added = known if is_gone else [*known, key][-MAX_REFUSED:]
            return {**content, _REFUSED: _refused(content) if is_gone else refused, _ADDED: added}

        self._file.update(change)


def _refused(content: Mapping[str, Any]) -> dict[str, str]:
    known = content.get(_REFUSED)
    return {key: str(word) for key, word in known.items()} if isinstance(known, dict) else {}


def _added(content: Mapping[str, Any]) -> list[str]:
    known = content.get(_ADDED)
    return [key for key in known if isinstance(key, str)] if isinstance(known, list) else []


FOLDER_KEYS: Final = {"device": "dev", "inode": "ino", "owner": "uid"}

_RECORDS: Final = EntryFormat(
    Record,
    {
        **FOLDER_KEYS,
        "word": "state",
        "always_deny": "denied",
        "max_tool_calls": "calls",
        "max_result_size": "result",
        "idle_timeout": "idle",
    },
)


def _by_path(content: dict[str, Any]) -> dict[Path, Record]:
    return {record.folder.path: record for record in read_records(_RECORDS, content)}


def read_records(form: EntryFormat[Kept], content: dict[str, Any]) -> list[Kept]:
    """Read the records on folders in a state file, without the invalid ones."""
    entries = content.get("folders")
    listed = entries[-MAX_FOLDERS:] if isinstance(entries, list) else ()
    # what identifies the folder stands beside the rest
    found = (form.read({**entry, "folder": entry}) for entry in listed if isinstance(entry, dict))
    return [record for record in found if record is not None]


def write_record(form: EntryFormat[Kept], record: Kept) -> dict[str, Any]:
    """Write a record, with what identifies its folder beside the rest."""
    entry = form.write(record)
    return {**entry.pop("folder"), **entry}
