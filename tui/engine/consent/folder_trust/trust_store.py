"""The user's word on folders, kept across runs: which folder, with which content."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from tui.engine.consent.folders.content import FolderContent, ServerContent
from tui.engine.consent.folders.identity import FolderIdentity, identify, may_cover_children
from tui.engine.settings.project import ProjectRules
from tui.engine.state_file import StateFile
from tui.model.settings import ToolPattern

FILE_NAME: Final = "trust.json"
"""Where the user's word on folders is kept, in the state folder."""

MAX_FOLDERS: Final = 1_000
"""Folders that are remembered; the oldest that is not forbidden goes first."""

MAX_HASHES: Final = 8
"""Contents of one folder that are remembered as trusted, the newest first."""

MAX_REFUSED: Final = 2_000
"""Servers of the user's settings whose refusal is remembered; the oldest goes first."""

_REFUSED: Final = "refused"
_VERSION: Final = 1


class Word(StrEnum):
    """What the user said of a folder. ASK takes trust in a folder above it back."""

    TRUSTED = "trusted"
    NEVER = "never"
    ASK = "ask"


@dataclass(frozen=True, slots=True)
class Record:
    """The user's word on one folder.

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


@dataclass(frozen=True, slots=True)
class Standing:
    """How a folder stands before its content is known.

    Attributes:
        record: The user's word on this very folder, or None.
        never: Whether it, or the nearest folder above it, is never to be trusted.
        swapped: Whether another folder stands at its path than the one the user spoke of.
        covered: Whether trust in a folder above it reaches it.
    """

    record: Record | None = None
    never: bool = False
    swapped: bool = False
    covered: bool = False


class TrustStore:
    """Knows the user's word on folders. All methods block; none is for the event loop.

    Args:
        file: Keeps it; see `trust_file`.
        home: The user's home, from which trust never reaches down.
    """

    def __init__(self, file: StateFile, home: Path) -> None:
        self._file = file
        self._home = home

    def standing(self, folder: FolderIdentity) -> Standing:
        """Find what was said of a folder, or of the nearest one above it."""
        by_path = {str(record.folder.path): record for record in self._records()}
        own = by_path.get(str(folder.path))
        if own is not None and not own.inherited:
            swapped = own.folder.key != folder.key
            return Standing(own, never=own.word is Word.NEVER, swapped=swapped)
        above = self._from_above(folder, by_path)
        if own is None or not above.covered:
            return above
        return Standing(own, swapped=own.folder.key != folder.key)

    def _from_above(self, folder: FolderIdentity, by_path: Mapping[str, Record]) -> Standing:
        """Find what the folders above say: the nearest counts, and `never` goes through all."""
        is_asked = False
        for place in folder.path.parents:
            above = by_path.get(str(place))
            if above is None:
                continue
            if above.word is Word.NEVER:
                return Standing(never=True)
            is_asked = is_asked or above.word is Word.ASK
            if not is_asked and above.children and self._holds(above):
                return Standing(covered=True)
        return Standing()

    def inherit(self, folder: FolderIdentity, content: FolderContent) -> None:
        """Let trust from above reach a folder with the content that it has when it is opened."""
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
        """Never trust a folder, nor those in it."""
        self._change(folder, lambda _: Record(folder, Word.NEVER, time.time()))

    def forget(self, folder: FolderIdentity) -> None:
        """Take the word on a folder back; trust from above no longer reaches it either."""
        self._change(folder, lambda _: None)
        standing = self.standing(folder)
        if standing.covered or standing.never:
            self._change(folder, lambda _: Record(folder, Word.ASK, time.time()))

    def _holds(self, record: Record) -> bool:
        """Tell whether trust in a folder above still reaches down."""
        now = identify(record.folder.path)
        same = now is not None and now.key == record.folder.key
        return same and may_cover_children(record.folder.path, self._home)

    def _records(self) -> Iterable[Record]:
        return _parsed(self._file.load() or {})

    def _change(
        self, folder: FolderIdentity, renew: Callable[[Record | None], Record | None]
    ) -> None:
        path = str(folder.path)

        def change(content: dict[str, Any]) -> dict[str, Any]:
            records = {str(record.folder.path): record for record in _parsed(content)}
            new = renew(records.pop(path, None))
            kept = sorted(records.values(), key=lambda r: (r.word is Word.NEVER, r.when))
            kept = kept[-(MAX_FOLDERS - 1) :]
            written = [_written(record) for record in (*kept, *([new] if new else []))]
            return {"folders": written, _REFUSED: _refused(content)}

        self._file.update(change)

    def refused(self) -> dict[str, str]:
        """Give the servers of the user's settings that were refused, each with the answer."""
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
            return {"folders": content.get("folders", []), _REFUSED: kept}

        self._file.update(change)


def trust_file(folder: Path | None, on_problem: Callable[[str], None]) -> StateFile:
    """Give the file of trust in a state folder; None keeps it in memory."""
    path = folder / FILE_NAME if folder is not None else None
    return StateFile(path, version=_VERSION, fails_closed=True, on_problem=on_problem)


def _refused(content: Mapping[str, Any]) -> dict[str, str]:
    known = content.get(_REFUSED)
    return {key: str(word) for key, word in known.items()} if isinstance(known, dict) else {}


def _parsed(content: dict[str, Any]) -> list[Record]:
    """Read the records; one that makes no sense counts as none."""
    entries = content.get("folders")
    found = map(_record, entries if isinstance(entries, list) else ())
    return [record for record in found if record is not None]


def _record(entry: Any) -> Record | None:  # noqa: ANN401 - any JSON value
    match entry:
        case {
            "path": str(path),
            "dev": int(device),
            "ino": int(inode),
            "uid": int(owner),
            "state": str(word),
            "when": int() | float() as when,
        } if word in set(Word) and Path(path).is_absolute():
            folder = FolderIdentity(Path(path), device, inode, owner)
        case _:
            return None
    hashes = entry.get("hashes")
    return Record(
        folder,
        Word(word),
        float(when),
        entry.get("children") is True,
        _words(hashes)[:MAX_HASHES],
        _content(entry.get("content")),
        entry.get("inherited") is True,
    )


def _content(entry: Any) -> FolderContent | None:  # noqa: ANN401 - any JSON value
    match entry:
        case {"hash": str(whole), "servers": list(servers), "rules": str(rules)}:
            known = [_server(server) for server in servers]
            kept = tuple(server for server in known if server is not None)
            return FolderContent(
                whole, kept, rules, _words(entry.get("rule_lines")), _forbidden(entry)
            )
    return None


def _forbidden(entry: Mapping[str, Any]) -> ProjectRules:
    """Read what a folder forbade. A record without it forbids nothing."""
    value = entry.get("forbidden")
    known = value if isinstance(value, dict) else {}
    allowed, denied = known.get("allowed"), known.get("denied")
    pairs = map(_words, denied) if isinstance(denied, list) else ()
    calls, size, idle = known.get("calls"), known.get("result"), known.get("idle")
    return ProjectRules(
        frozenset(_words(allowed)) if isinstance(allowed, list) else None,
        frozenset(_words(known.get("excluded"))),
        tuple(ToolPattern(server=p[0], tool=p[1]) for p in pairs if len(p) > 1 and all(p)),
        calls if isinstance(calls, int) and calls > 0 else None,
        size if isinstance(size, int) and size > 0 else None,
        float(idle) if isinstance(idle, int | float) and idle > 0 else None,
        str(known.get("source", "")),
    )


def _written_rules(rules: ProjectRules) -> dict[str, Any]:
    """Write what a folder forbids as it stands in the file."""
    return {
        "allowed": None if rules.allowed is None else sorted(rules.allowed),
        "excluded": sorted(rules.excluded),
        "denied": [[pattern.server, pattern.tool] for pattern in rules.always_deny],
        "calls": rules.max_tool_calls,
        "result": rules.max_result_size,
        "idle": rules.idle_timeout,
        "source": rules.source,
    }


def _server(entry: Any) -> ServerContent | None:  # noqa: ANN401 - any JSON value
    match entry:
        case {"name": str(name), "source": str(source), "transport": str(way), "hash": str(one)}:
            return ServerContent(name, source, way, one, _words(entry.get("lines")))
    return None


def _words(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _written(record: Record) -> dict[str, Any]:
    """Write a record as it stands in the file."""
    folder = record.folder
    entry: dict[str, Any] = {
        "path": str(folder.path),
        "dev": folder.device,
        "ino": folder.inode,
        "uid": folder.owner,
        "state": record.word.value,
        "when": record.when,
        "children": record.children,
        "hashes": list(record.hashes),
        "inherited": record.inherited,
    }
    if record.content is not None:
        content = record.content
        entry["content"] = {
            "hash": content.hash,
            "servers": [
                {
                    "name": server.name,
                    "source": server.source,
                    "transport": server.transport,
                    "hash": server.hash,
                    "lines": list(server.lines),
                }
                for server in content.servers
            ],
            "rules": content.rules,
            "rule_lines": list(content.rule_lines),
            "forbidden": _written_rules(content.forbidden),
        }
    return entry
