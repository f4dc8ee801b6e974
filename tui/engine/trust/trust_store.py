"""What the user said about folders, kept across runs: which folder, with which content."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from tui.engine.files.entry_format import EntryFormat
from tui.engine.files.state_file import private_file
from tui.engine.trust.content import FolderContent
from tui.engine.trust.folder_identity import FolderIdentity, reaches_down
from tui.model.bounded_json import as_list, as_object, as_texts
from tui.model.frozen import Frozen
from tui.model.trust import Boxes, TrustAnswer

FILE_NAME: Final = "trust.json"

MAX_FOLDERS: Final = 1_000
"""Folders that are remembered; the oldest that is not forbidden goes first."""

MAX_HASHES: Final = 8
"""Contents of one folder that are remembered as trusted, the newest first."""

MAX_REFUSED: Final = 2_000
"""Servers of the user's settings whose refusal is remembered; the oldest goes first."""

EARLIER: Final = "start-folders.json"
"""The file in which older versions kept a yes to servers alone, and a never to the whole folder."""

_REFUSED: Final = "refused"
_ADDED: Final = "added"


class Word(StrEnum):
    """What the user said of a folder. ASK takes trust in a folder above it back."""

    TRUSTED = "trusted"
    NEVER = "never"
    ASK = "ask"


class FolderRecord(Frozen):
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
        boxes: How its servers run, as the user chose.
    """

    folder: FolderIdentity
    word: Word
    when: float
    children: bool = False
    hashes: tuple[str, ...] = ()
    content: FolderContent | None = None
    inherited: bool = False
    boxes: Boxes = Boxes.IF_POSSIBLE

    @property
    def is_never(self) -> bool:
        return self.word is Word.NEVER


def trusted_record(
    folder: FolderIdentity, content: FolderContent, boxes: Boxes = Boxes.IF_POSSIBLE, **more: bool
) -> FolderRecord:
    """Make the record of a yes that is given now."""
    known = (content.hash,)
    kept = content.kept()
    return FolderRecord(
        folder, Word.TRUSTED, time.time(), hashes=known, content=kept, boxes=boxes, **more
    )


class Standing(Frozen):
    """How a folder stands before its content is known.

    Attributes:
        record: What the user said about this exact folder, or None.
        never: Whether it, or the nearest folder above it, is never to be trusted.
        swapped: Whether another folder stands at its path than the one the user spoke of.
        covered: Whether trust in a folder above it reaches it.
        for_now: Whether the record is a yes for this run alone, and kept nowhere.
    """

    record: FolderRecord | None = None
    never: bool = False
    swapped: bool = False
    covered: bool = False
    for_now: bool = False

    @property
    def content(self) -> FolderContent | None:
        """The content that was trusted last."""
        return self.record.content if self.record is not None else None

    def has(self, content: str) -> bool:
        """Return whether this very folder was trusted with a content, by its hash."""
        return self.record is not None and not self.swapped and content in self.record.hashes


_FORM: Final = EntryFormat(
    FolderRecord,
    {
        **{"device": "dev", "inode": "ino", "owner": "uid", "word": "state"},
        **{"always_deny": "denied", "max_tool_calls": "calls", "max_result_size": "result"},
        "idle_timeout": "idle",
    },
)


class TrustStore:
    """Keeps what the user said about folders, and about servers of the settings.

    All methods block; none is for the event loop.

    Args:
        folder: The state folder, or None for this run only.
        home: The user's home, from which a yes never reaches down.
        on_problem: Takes what is wrong with the file.
    """

    def __init__(self, folder: Path | None, home: Path, on_problem: Callable[[str], None]) -> None:
        self._file = private_file(folder, FILE_NAME, on_problem)
        self._earlier = folder / EARLIER if folder is not None else None
        self._on_problem = on_problem
        self._home = home

    def standing(self, folder: FolderIdentity) -> Standing:
        """Find what was said of a folder, or of the nearest one above it."""
        self._take_over()
        by_path = _records(self._file.load() or {})
        own = by_path.get(folder.path)
        if own is not None and not own.inherited:
            swapped = own.folder.key != folder.key
            return Standing(own, never=own.is_never, swapped=swapped)
        above = self._from_above(folder, by_path)
        if own is None or not above.covered:
            return above
        return Standing(own, swapped=own.folder.key != folder.key)

    def _from_above(self, folder: FolderIdentity, by_path: Mapping[Path, FolderRecord]) -> Standing:
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

    def _take_over(self) -> None:
        """Take each never over from the file of older versions, once; its yeses are dropped."""
        path = self._earlier
        if path is None or not path.exists():
            return
        if (earlier := private_file(path.parent, EARLIER, self._on_problem).load()) is None:
            self._earlier = None
            return

        def change(content: dict[str, Any]) -> dict[str, Any]:
            nevers = [one for one in _listed(earlier) if one.get("answer") == TrustAnswer.NEVER]
            known = [one.get("path") for one in _listed(content)]
            new = [
                {**one, "state": Word.NEVER.value} for one in nevers if one.get("path") not in known
            ]
            return {**content, "folders": [*_listed(content), *new]}

        self._file.update(change)
        self._earlier = None  # only now, as another thread may ask meanwhile
        if self._file.is_kept:
            path.unlink(missing_ok=True)

    def inherit(self, folder: FolderIdentity, content: FolderContent) -> None:
        """Trust a folder covered from above, with the content that it has now."""
        self._change(folder, lambda _: trusted_record(folder, content, inherited=True))

    def trust(
        self,
        folder: FolderIdentity,
        content: FolderContent,
        boxes: Boxes = Boxes.IF_POSSIBLE,
        *,
        children: bool = False,
    ) -> None:
        """Trust a folder with this content, beside those contents it was trusted with before."""

        def renew(before: FolderRecord | None) -> FolderRecord:
            is_same = before is not None and before.folder.key == folder.key
            hashes = dict.fromkeys((content.hash, *(before.hashes if before and is_same else ())))
            record = trusted_record(folder, content, boxes, children=children)
            return replace(record, hashes=tuple(hashes)[:MAX_HASHES])

        self._change(folder, renew)

    def never(self, folder: FolderIdentity) -> None:
        self._change(folder, lambda _: FolderRecord(folder, Word.NEVER, time.time()))

    def forget(self, folder: FolderIdentity) -> None:
        """Forget a folder's record; trust from a folder above no longer covers it either."""
        self._change(folder, lambda _: None)
        standing = self.standing(folder)
        if standing.covered or standing.never:
            self._change(folder, lambda _: FolderRecord(folder, Word.ASK, time.time()))

    def _change(
        self,
        folder: FolderIdentity,
        renew: Callable[[FolderRecord | None], FolderRecord | None],
    ) -> None:
        """Put another record in the place of what was said of the folder at this path."""
        self._take_over()

        def change(content: dict[str, Any]) -> dict[str, Any]:
            records = _records(content)
            new = renew(records.pop(folder.path, None))
            others = sorted(records.values(), key=lambda one: (one.is_never, one.when))
            kept = (*others[-(MAX_FOLDERS - 1) :], new)
            written = (_FORM.write(one) for one in kept if one is not None)
            return {**content, "folders": [{**one.pop("folder"), **one} for one in written]}

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
            return {**content, _REFUSED: dict(list(known.items())[-MAX_REFUSED:])}

        self._file.update(change)

    def refuse_new(self, keys: Iterable[str], word: str) -> None:
        """Remember a word about those servers about which there is none."""
        known = self.refused()
        self.refuse([key for key in keys if key not in known], word)

    def added(self) -> frozenset[str]:
        return frozenset(as_texts((self._file.load() or {}).get(_ADDED)))

    def add(self, key: str, *, is_gone: bool = False) -> None:
        """Remember a server that the user wrote into the settings; see `refuse` for the key.

        One that the user removed there (`is_gone`) is asked about when it comes again.
        """

        def change(content: dict[str, Any]) -> dict[str, Any]:
            known = [one for one in as_texts(content.get(_ADDED)) if one != key]
            refused = {one: word for one, word in _refused(content).items() if one != key}
            added = known if is_gone else [*known, key][-MAX_REFUSED:]
            return {**content, _REFUSED: _refused(content) if is_gone else refused, _ADDED: added}

        self._file.update(change)


def _refused(content: Mapping[str, Any]) -> dict[str, str]:
    return {key: str(word) for key, word in as_object(content.get(_REFUSED)).items()}


def _listed(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the records in a file as they stand there."""
    listed = as_list(content.get("folders"))[-MAX_FOLDERS:]
    return [one for one in listed if isinstance(one, dict)]


def _records(content: Mapping[str, Any]) -> dict[Path, FolderRecord]:
    """Read the records in a file, without the invalid ones."""
    # what identifies the folder stands beside the rest
    found = (_FORM.read({**one, "folder": one}) for one in _listed(content))
    return {record.folder.path: record for record in found if record is not None}
