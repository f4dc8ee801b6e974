"""The user's own servers that wait: new ones, and those that would run code of a folder."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from tui.engine.definitions.admission import Starts, Where
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.definitions.fingerprint import digest, effective_entry, server_fingerprint
from tui.engine.definitions.folder_code import code_folders
from tui.engine.definitions.known_programs import is_loader_variable
from tui.engine.definitions.programs import is_within
from tui.engine.files.paths import shown_path
from tui.engine.settings.project import ProjectOffer
from tui.engine.trust.content import ServerContent, describe
from tui.engine.trust.folder_gate import OpenedFolder
from tui.engine.trust.trust_store import (
    Start,
    StartFolder,
    identify,
    may_cover_children,
    reason_to_refuse,
)
from tui.model.servers import Origin, ServerId
from tui.model.trust import TrustAnswer

_ALLOWING: Final = ("trust", "includeTools", "excludeTools")
_NOT_OURS: Final = frozenset({Origin.PROJECT, Origin.DEMO})

MAX_NAME: Final = 40
"""Characters of a server's name in that of its empty folder."""

_SEPARATORS: Final = re.compile(r"""[\s=:,;'"()]+""")


class KnownServer(NamedTuple):
    """What a server of the user's settings is, and what its entry allows it.

    The files that it runs are left out: they are asked about with the folder they lie in.
    """

    id: ServerId
    entry: str
    trust: bool
    include_tools: frozenset[str] | None
    exclude_tools: frozenset[str]


def known_server(definition: ServerDefinition) -> KnownServer:
    """Return the parts of a definition that matter for consent."""
    return KnownServer(
        definition.id,
        server_fingerprint(replace(definition, files=()), b""),
        definition.trust,
        definition.include_tools,
        definition.exclude_tools,
    )


def is_users(definition: ServerDefinition) -> bool:
    """Return whether a server is one of the user's that could run."""
    return definition.origin not in _NOT_OURS and definition.withheld is None


def is_new(definition: ServerDefinition, accepted: Iterable[KnownServer]) -> bool:
    """Return whether a server may do more than any that the user accepted."""
    if not is_users(definition):
        return False
    now = known_server(definition)
    same = (known for known in accepted if known.entry == now.entry)
    return not any(_gains_nothing(now, before) for before in same)


def written_keys(written: Mapping[str, object], salt: bytes) -> tuple[str, str]:
    """Return the hashes of what an entry runs, and of that with what it allows.

    A refusal is remembered by them, since the entry as written does not change with the
    environment.
    """
    entry = effective_entry(written).items()
    runs = {key: value for key, value in entry if key not in _ALLOWING}
    whole = {**runs, **{key: written[key] for key in _ALLOWING if key in written}}
    return digest(["runs", runs], salt), digest(["allows", whole], salt)


def refusal_key(definition: ServerDefinition, accepted: Iterable[KnownServer], salt: bytes) -> str:
    """Return the key that a refusal is stored under.

    For a server that ran before its entry allowed more, only the new entry is refused.
    """
    now = known_server(definition).entry
    ran = any(known.entry == now for known in accepted)
    return written_keys(definition.written, salt)[ran]


def _gains_nothing(now: KnownServer, before: KnownServer) -> bool:
    """Return whether a definition, the same server as before, may do no more than before."""
    if now.trust and not before.trust:
        return False
    if before.exclude_tools - now.exclude_tools:
        return False
    if before.include_tools is None:
        return True
    return now.include_tools is not None and now.include_tools <= before.include_tools


class StartFinder:
    """Finds what would run where, and what the user said of exactly that. Blocks.

    Serves one reading: it looks at folders, and at what names them, once.

    Args:
        opened: The user's answers.
    """

    def __init__(self, opened: OpenedFolder) -> None:
        self._opened = opened
        self._identity = identify(opened.folder)
        self._folder = cache(self._look_at)
        self._is_in = cache(_is_in)

    def find(self, servers: Sequence[ServerDefinition]) -> dict[ServerId, tuple[Start, ...]]:
        """Find the starts of all servers; only the user's own count."""
        opened = self._opened
        found: dict[ServerId, tuple[Start, ...]] = {}
        asked: dict[StartFolder, list[tuple[ServerDefinition, Start]]] = {}
        for one in servers:
            if not one.command or not is_users(one):
                continue
            for place in code_folders(one, opened.folder, opened.home, os.environ):
                leaving = None
                if self._could_leave(one, one.cwd or opened.folder, place):
                    entry = server_fingerprint(replace(one, files=()), opened.salt)
                    leaving = _content(one, entry)
                start = Start(self._folder(place), _content(one, one.fingerprint), leaving)
                asked.setdefault(start.folder, []).append((one, start))
        for folder, pairs in asked.items():
            for (one, _), start in zip(pairs, self._judged(folder, pairs), strict=True):
                found[one.id] = (*found.get(one.id, ()), start)
        return found

    def _judged(
        self, folder: StartFolder, pairs: Sequence[tuple[ServerDefinition, Start]]
    ) -> list[Start]:
        """Add to all starts in one folder, each with its server, what the user said of them."""
        opened, identity = self._opened, folder.identity
        starts = [start for _, start in pairs]
        if identity is None:
            return starts
        record, is_reached = opened.start_folders.standing(identity)
        is_never = opened.store.standing(identity).never if record is None else record.is_never
        if is_never:
            return [replace(one, folder=replace(folder, never=True)) for one in starts]
        is_back = opened.is_withdrawn and folder.is_opened
        if identity.path in opened.named and not is_back:
            return [self._as_named(one, identity.path) for one in starts]
        if record is not None and not is_back:
            inside = {one.name: one for one in record.inside}
            outside = {(one.name, one.hash) for one in record.outside}
            return [_said(one, inside.get(one.seen.name), outside) for one in starts]
        if is_back or not is_reached or not opened.attended or folder.caution:
            return starts
        seen = [described(one, identity.path, opened.salt) for one, _ in pairs]
        opened.start_folders.inherit(identity, seen)
        return [replace(one, said=TrustAnswer.TRUST) for one in starts]

    def _as_named(self, start: Start, folder: Path) -> Start:
        """Allow a start in a folder of the command line; with the content it had first."""
        first = self._opened.first_seen.setdefault((folder, start.seen.name), start.seen.hash)
        return replace(start, said=TrustAnswer.TRUST) if first == start.seen.hash else start

    def _could_leave(self, one: ServerDefinition, start: Path, folder: Path) -> bool:
        """Return whether a server starts in a folder and would not look there from elsewhere."""
        if not self._is_in(os.path.realpath(start), folder, start):
            return False
        outside = self._opened.outside
        if outside is None or self._is_in(str(outside), folder, start):
            return False
        inherited = one.inheritance.of(os.environ, is_small=False).items()
        loaded = (v for name, v in inherited if is_loader_variable(name) and name != "PATH")
        words = {one.command, one.program, *one.args, *one.env.values(), *loaded} - {""}
        pieces = {piece for word in words for piece in _pieces(word)}
        if any(map(_is_relative, pieces)):
            return False
        return not any(self._is_in(word, folder, start) for word in words | pieces)

    def _look_at(self, place: Path) -> StartFolder:
        identity, home = identify(place), self._opened.home
        if identity is None:
            return StartFolder(None, shown_path(place, home))
        return StartFolder(
            identity,
            shown_path(identity.path, home),
            may_include_children=may_cover_children(identity.path, home),
            caution=reason_to_refuse(identity.path),
            is_opened=identity == self._identity,
        )


def outside(one: ServerDefinition, folders: Path) -> ServerDefinition:
    """Let a server start in an empty folder of its own."""
    del folders
    return replace(one, cwd=None, files=(), admission=Starts(Where.OUTSIDE))


def described(one: ServerDefinition, folder: Path, salt: bytes) -> ServerContent:
    """Describe what a server would run line by line, for a later comparison."""
    [content] = describe(ProjectOffer((one,)), salt, folder).servers
    return replace(content, hash=one.fingerprint)


def _content(one: ServerDefinition, known: str) -> ServerContent:
    return ServerContent(one.id, one.source, one.transport.value, known)


def _said(start: Start, before: ServerContent | None, outside: set[tuple[str, str]]) -> Start:
    """Add what was said of a server in a folder."""
    if before is not None and before.hash == start.seen.hash:
        return replace(start, said=TrustAnswer.TRUST, before=before)
    if start.outside is not None and (start.outside.name, start.outside.hash) in outside:
        return replace(start, said=TrustAnswer.START_OUTSIDE)
    return replace(start, before=before)


def _pieces(word: str) -> set[str]:
    """Split a word into all that could be a path in it."""
    pieces = set(_SEPARATORS.split(word))
    pieces |= {piece[2:] for piece in pieces if re.match(r"-\w", piece)}  # as in -fFILE
    return pieces - {""}


def _is_relative(piece: str) -> bool:
    """Return whether a word is a relative path; the name of a package, ``@scope/name``, is none."""
    if piece.startswith(("/", "~", "@", "-")):
        return False
    return piece in {".", ".."} or "/" in piece or "\\" in piece


def _is_in(word: str, folder: Path, start: Path) -> bool:
    """Return whether a word names something in a folder; in doubt it does."""
    try:
        path = Path(word).expanduser()
        if path.is_absolute():
            return is_within(path, folder)
        return os.path.lexists(start / path)
    except (OSError, ValueError, RuntimeError):
        return True
