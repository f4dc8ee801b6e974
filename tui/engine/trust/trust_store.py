"""What the user said about folders, kept across runs: which folder, with which content."""

import os
import pwd
import stat
import tempfile
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Generic, TypeVar

from pydantic import PlainSerializer, PlainValidator

from tui.engine.files.entry_format import EntryFormat, read_path, write_path
from tui.engine.files.state_file import private_file
from tui.engine.trust.content import FolderContent, ServerContent
from tui.model.frozen import Frozen
from tui.model.trust import TrustAnswer

_SHARED: Final = ("/tmp", "/var/tmp", "/dev/shm", "/private/tmp")  # noqa: S108 - never written to

MAX_FOLDERS: Final = 1_000
"""Folders that are remembered; the oldest that is not forbidden goes first."""

MAX_HASHES: Final = 8
"""Contents of one folder that are remembered as trusted, the newest first."""

MAX_REFUSED: Final = 2_000
"""Servers of the user's settings whose refusal is remembered; the oldest goes first."""

_REFUSED: Final = "refused"
_ADDED: Final = "added"


def _read_absolute(text: object) -> Path:
    path = Path(read_path(text))
    if not path.is_absolute():
        raise ValueError("not an absolute path")
    return path


class FolderIdentity(Frozen):
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
    try:
        return pwd.getpwuid(os.geteuid()).pw_gid
    except KeyError:
        return os.getegid()


class Word(StrEnum):
    """What the user said of a folder. ASK takes trust in a folder above it back."""

    TRUSTED = "trusted"
    NEVER = "never"
    ASK = "ask"


class Record(Frozen):
    """What the user said about one folder.

    Attributes:
        folder: Which folder.
        word: What was said.
        when: When, in seconds since the epoch.
        children: Whether trust reaches the folders in it.
        hashes: The contents that were trusted, the newest first.
        content: The content that was trusted last, or None.
        inherited: Whether it was trust in a folder above that reached it, and no answer about it;
            it ends with that.
    """

    folder: FolderIdentity
    word: Word
    when: float
    children: bool = False
    hashes: tuple[str, ...] = ()
    content: FolderContent | None = None
    inherited: bool = False

    @property
    def is_never(self) -> bool:
        return self.word is Word.NEVER


class StartRecord(Frozen):
    """What the user said of one folder.

    Attributes:
        folder: Which folder.
        answer: The last answer. Not now takes a yes to a folder above it back.
        when: When, in seconds since the epoch.
        inside: What each server ran that was allowed in it.
        outside: What was allowed outside it.
        inherited: Whether it was a yes to a folder above that reached it, and no answer about it;
            it ends with that.
    """

    folder: FolderIdentity
    answer: TrustAnswer
    when: float
    inside: tuple[ServerContent, ...]
    outside: tuple[ServerContent, ...]
    inherited: bool = False

    @property
    def is_never(self) -> bool:
        return self.answer is TrustAnswer.NEVER


Kept = TypeVar("Kept", Record, StartRecord)

_FOLDER_KEYS: Final = {"device": "dev", "inode": "ino", "owner": "uid"}


class _FolderFile(Generic[Kept]):
    """A state file with a record for each folder. All methods block; none is for the event loop.

    Args:
        folder: The state folder, or None for this run only.
        home: The user's home, from which a yes never reaches down.
        on_problem: Takes what is wrong with the file.
    """

    name: ClassVar[str]
    form: ClassVar[EntryFormat[Any]]

    def __init__(self, folder: Path | None, home: Path, on_problem: Callable[[str], None]) -> None:
        self._file = private_file(folder, self.name, on_problem)
        self._home = home

    def _known(self, content: Mapping[str, Any] | None) -> dict[Path, Kept]:
        """Read the records in the file, without the invalid ones."""
        entries = (content or {}).get("folders")
        listed = entries[-MAX_FOLDERS:] if isinstance(entries, list) else ()
        # what identifies the folder stands beside the rest
        found = (self.form.read({**one, "folder": one}) for one in listed if isinstance(one, dict))
        return {record.folder.path: record for record in found if record is not None}

    def _change(self, folder: FolderIdentity, renew: Callable[[Kept | None], Kept | None]) -> None:
        """Put another record in the place of what was said of the folder at this path."""

        def change(content: dict[str, Any]) -> dict[str, Any]:
            records = self._known(content)
            new = renew(records.pop(folder.path, None))
            others: list[Kept] = sorted(records.values(), key=lambda one: (one.is_never, one.when))
            kept = (*others[-(MAX_FOLDERS - 1) :], new)
            written = (self.form.write(one) for one in kept if one is not None)
            return {**content, "folders": [{**one.pop("folder"), **one} for one in written]}

        self._file.update(change)


class Standing(Frozen):
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


class TrustStore(_FolderFile[Record]):
    """Knows what the user said about folders and what they bring."""

    name = "trust.json"
    form = EntryFormat(
        Record,
        {
            **_FOLDER_KEYS,
            "word": "state",
            "always_deny": "denied",
            "max_tool_calls": "calls",
            "max_result_size": "result",
            "idle_timeout": "idle",
        },
    )

    def standing(self, folder: FolderIdentity) -> Standing:
        """Find what was said of a folder, or of the nearest one above it."""
        by_path = self._known(self._file.load())
        own = by_path.get(folder.path)
        if own is not None and not own.inherited:
            swapped = own.folder.key != folder.key
            return Standing(own, never=own.is_never, swapped=swapped)
        above = self._from_above(folder, by_path)
        if own is None or not above.covered:
            return above
        return Standing(own, swapped=own.folder.key != folder.key)

    def _from_above(self, folder: FolderIdentity, by_path: Mapping[Path, Record]) -> Standing:
        """Find what the folders above say: the nearest counts, and `never` goes through all."""
        is_asked = False
        for place in folder.path.parents:
            if (above := by_path.get(place)) is None:
                continue
            if above.is_never:
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
            is_same = before is not None and before.folder.key == folder.key
            hashes = dict.fromkeys((content.hash, *(before.hashes if before and is_same else ())))
            kept = tuple(hashes)[:MAX_HASHES]
            return Record(folder, Word.TRUSTED, time.time(), children, kept, content.kept())

        self._change(folder, renew)

    def never(self, folder: FolderIdentity) -> None:
        self._change(folder, lambda _: Record(folder, Word.NEVER, time.time()))

    def forget(self, folder: FolderIdentity) -> None:
        """Forget a folder's record; trust from a folder above no longer covers it either."""
        self._change(folder, lambda _: None)
        standing = self.standing(folder)
        if standing.covered or standing.never:
            self._change(folder, lambda _: Record(folder, Word.ASK, time.time()))

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


class StartFolder(Frozen):
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


class Start(Frozen):
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


class StartFolders(_FolderFile[StartRecord]):
    """Keeps where the user's servers may run code of folders, and what they ran there then.

    A yes is to a folder as it lies on the disk, by its real path and identity, and to each server
    with the entry and the files that it had. It says nothing about settings that the folder brings.
    """

    name = "start-folders.json"
    form = EntryFormat(StartRecord, _FOLDER_KEYS)

    def standing(self, folder: FolderIdentity) -> tuple[StartRecord | None, bool]:
        """Return what was said of a folder, and whether a yes to one above it reaches it.

        What a folder that is reached would run is kept the first time, and counts from then on.
        """
        known = self._known(self._file.load())
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
            is_same = before is not None and before.folder.key == folder.key
            known = before if is_same and answer.allows else None
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


def _kept(
    before: Iterable[ServerContent], names: Container[str], now: Iterable[ServerContent]
) -> tuple[ServerContent, ...]:
    """Return what is stored: what was allowed before under other names, and what is now."""
    servers = (*(one for one in before if one.name not in names), *now)
    return FolderContent("", servers, "").kept().servers
