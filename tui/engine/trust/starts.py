"""Find the user's own servers that would run code of the folders they start in or reach."""

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Final

from tui.engine.definitions.definition import ServerDefinition
from tui.engine.definitions.fingerprint import server_fingerprint
from tui.engine.definitions.folder_code import code_folders
from tui.engine.definitions.inheritance import Inheritance
from tui.engine.definitions.known_programs import is_loader_variable
from tui.engine.definitions.programs import is_within
from tui.engine.settings.project import ProjectOffer
from tui.engine.settings.sources.locations import shown_path
from tui.engine.trust.content import ServerContent, describe
from tui.engine.trust.identity import (
    FolderIdentity,
    identify,
    may_cover_children,
    reason_to_refuse,
)
from tui.engine.trust.new_servers import is_users
from tui.engine.trust.start_folders import Start, StartFolder, StartFolders
from tui.engine.trust.trust_store import TrustStore
from tui.model.servers import ServerId, Transport
from tui.model.trust import TrustAnswer

OUTSIDE: Final = "outside"
"""The folder of the empty folders in which servers start, in the state folder."""

MAX_NAME: Final = 40
"""Characters of a server's name in that of its empty folder."""

_SEPARATORS: Final = re.compile(r"""[\s=:,;'"()]+""")


@dataclass
class StartFinder:
    """Finds what would run where, and what the user said of exactly that. Blocks.

    Attributes:
        folder: The opened folder.
        home: The user's home.
        outside: The folder of the empty folders, or None where there can be none.
        records: What the user said of the folders that servers start in.
        trust: What the user said of folders.
        attended: Whether there is a user to ask.
        named: What each server was first seen to run in a folder that the command line trusts.
    """

    folder: Path
    home: Path
    outside: Path | None
    records: StartFolders
    trust: TrustStore
    attended: bool
    named: dict[tuple[Path, ServerId], str] = field(default_factory=dict)

    def find(
        self,
        servers: Sequence[ServerDefinition],
        salt: bytes,
        trusted: Sequence[Path],
        *,
        is_withdrawn: bool,
    ) -> dict[ServerId, tuple[Start, ...]]:
        """Find the starts of all servers.

        Args:
            servers: All servers; only the user's own count.
            salt: The salt of this installation.
            trusted: The folders that the command line says to trust.
            is_withdrawn: Whether trust in the opened folder was taken back in this run.
        """
        opened = identify(self.folder)
        look = _Look(self.home, self.outside, opened)
        found: dict[ServerId, tuple[Start, ...]] = {}
        asked: dict[StartFolder, list[tuple[ServerDefinition, Start]]] = {}
        for one in servers:
            if one.transport is not Transport.STDIO or not is_users(one):
                continue
            for place in code_folders(one, self.folder, self.home, os.environ):
                leaves = look.could_leave(one, one.cwd or self.folder, place)
                entry = server_fingerprint(replace(one, files=()), salt) if leaves else ""
                leaving = _content(one, entry) if leaves else None
                start = Start(look.folder(place), _content(one, one.fingerprint), leaving)
                asked.setdefault(start.folder, []).append((one, start))
        for folder, pairs in asked.items():
            is_back = is_withdrawn and folder.is_opened
            starts = self._judged(folder, pairs, salt, () if is_back else trusted, is_back=is_back)
            for (one, _), start in zip(pairs, starts, strict=True):
                found[one.id] = (*found.get(one.id, ()), start)
        return found

    def _judged(
        self,
        folder: StartFolder,
        pairs: Sequence[tuple[ServerDefinition, Start]],
        salt: bytes,
        trusted: Sequence[Path],
        *,
        is_back: bool,
    ) -> list[Start]:
        """Add to all starts in one folder what the user said of them.

        Args:
            folder: The folder.
            pairs: The starts, each with its server.
            salt: The salt of this installation.
            trusted: The folders that the command line says to trust.
            is_back: Whether what was said before was taken back.
        """
        starts = [start for _, start in pairs]
        if folder.identity is None:
            return starts
        record, is_reached = self.records.standing(folder.identity)
        said = record.answer if record is not None else None
        is_never = said is None and self.trust.standing(folder.identity).never
        if is_never or said is TrustAnswer.NEVER:
            never = replace(folder, never=True)
            return [replace(one, folder=never) for one in starts]
        if folder.identity.path in trusted:
            return [self._as_named(one, folder.identity.path) for one in starts]
        if not is_back and record is not None:
            inside = {one.name: one for one in record.inside}
            outside = {(one.name, one.hash) for one in record.outside}
            return [_said(one, inside.get(one.seen.name), outside) for one in starts]
        if is_back or not is_reached or not self.attended or folder.caution:
            return starts
        place = folder.identity.path
        self.records.inherit(folder.identity, [described(one, place, salt) for one, _ in pairs])
        return [replace(one, said=TrustAnswer.TRUST) for one in starts]

    def _as_named(self, start: Start, folder: Path) -> Start:
        """Allow a start in a folder of the command line; with the content it had first."""
        first = self.named.setdefault((folder, ServerId(start.seen.name)), start.seen.hash)
        return replace(start, said=TrustAnswer.TRUST) if first == start.seen.hash else start


class _Look:
    """Looks at folders and at what names them, each once. Blocks.

    Args:
        home: The user's home.
        outside: The folder of the empty folders, or None where there can be none.
        opened: The opened folder.
    """

    def __init__(self, home: Path, outside: Path | None, opened: FolderIdentity | None) -> None:
        self._home, self._outside, self._opened = home, outside, opened
        self.folder = cache(self._folder)
        self.is_in = cache(_is_in)
        self._loaded: dict[Inheritance, list[str]] = {}

    def could_leave(self, one: ServerDefinition, start: Path, folder: Path) -> bool:
        """Return whether a server starts in a folder and would not look there from elsewhere."""
        if not self.is_in(os.path.realpath(start), folder, start):
            return False
        if self._outside is None or self.is_in(str(self._outside), folder, start):
            return False
        if one.inheritance not in self._loaded:
            inherited = one.inheritance.of(os.environ, is_small=False).items()
            loaded = [v for name, v in inherited if is_loader_variable(name) and name != "PATH"]
            self._loaded[one.inheritance] = loaded
        own = (one.command, one.program, *one.args, *one.env.values())
        words = {*own, *self._loaded[one.inheritance]} - {""}
        pieces = {piece for word in words for piece in _pieces(word)}
        if any(map(_is_relative, pieces)):
            return False
        return not any(self.is_in(word, folder, start) for word in words | pieces)

    def _folder(self, place: Path) -> StartFolder:
        identity = identify(place)
        if identity is None:
            return StartFolder(None, shown_path(place, self._home))
        return StartFolder(
            identity,
            shown_path(identity.path, self._home),
            may_include_children=may_cover_children(identity.path, self._home),
            caution=reason_to_refuse(identity.path),
            is_opened=identity == self._opened,
        )


def outside(one: ServerDefinition, folders: Path) -> ServerDefinition:
    """Let a server start in an empty folder of its own."""
    name = re.sub(r"\W", "_", one.id)[:MAX_NAME]
    folder = folders / f"{name}-{hashlib.sha256(one.id.encode()).hexdigest()[:8]}"
    env = {**one.env, "PWD": str(folder)}
    return replace(one, cwd=folder, env=env, files=(), starts_outside=True)


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
