"""Decide which settings of an opened folder take effect."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from tui.engine.definitions.fingerprint import SALT_FILE, load_salt
from tui.engine.files.paths import shown_path
from tui.engine.files.state_file import private_file
from tui.engine.settings.project import ProjectOffer, ProjectRules, ProjectVerdict
from tui.engine.trust.content import FolderContent, describe, difference, disclose
from tui.engine.trust.trust_store import (
    FolderIdentity,
    Standing,
    Start,
    StartFolders,
    TrustStore,
    identify,
    may_cover_children,
    reason_to_refuse,
)
from tui.model.consent import RequestId
from tui.model.frozen import Frozen
from tui.model.requests import TrustRequest
from tui.model.servers import ServerId
from tui.model.trust import DifferenceLine, Disclosure, FolderTrust, TrustAnswer, TrustSubject
from tui.text import sanitize_line

OUTSIDE: Final = "outside"
"""The folder of the empty folders in which servers start, in the state folder."""

NO_ID: Final = RequestId("")
"""The id of a question that has not been asked yet."""

_OTHER_FOLDER: Final = DifferenceLine(
    "+", "this is not the trusted folder, but another in its place"
)


class Trust(Frozen):
    """What the user's earlier answers say, as found while the settings were read.

    Attributes:
        attended: Whether there is a user to ask.
        refused: Servers of the user's settings that were refused, with the answer; see
            `starts.written_keys`.
        starts: What the user's servers would run of folders. A yes to one folder is none to the
            others.
        folder: The key of the opened folder.
        outside: The folder of the empty folders in which servers start, or None.
        withdrawals: How often trust in the opened folder had been taken back in this run.
        salt: The salt of this installation.
        added: Servers of the user's settings that the user wrote there by a command; see
            `starts.written_keys`.
    """

    attended: bool = True
    refused: Mapping[str, str] = field(default_factory=dict)
    starts: Mapping[ServerId, tuple[Start, ...]] = field(default_factory=dict)
    folder: tuple[object, ...] = ()
    outside: Path | None = None
    withdrawals: int = 0
    salt: bytes = field(default=b"", repr=False)
    added: frozenset[str] = frozenset()

    @property
    def here(self) -> tuple[Start, ...]:
        """What the user's servers would run of the opened folder."""
        every = (one for starts in self.starts.values() for one in starts)
        return tuple(one for one in every if one.folder.is_opened)


class OpenedFolder:
    """The user's answers about the opened folder: stored, and from the command line.

    Blocks; for threads only. Several may use it at once.

    Args:
        folder: The opened folder.
        home: The user's home.
        state: The state folder, or None for this run only.
        named: Folders that the command line says to trust, as it names them.
        attended: Whether there is a user to ask. Where there is none, only the command line's
            word or a yes to exactly this makes a folder trusted; what was forbidden stays so.
        on_problem: Takes what is wrong, such as with a state file, in the thread that finds it.

    Attributes:
        store: What was said about folders.
        start_folders: Where the user's servers may start although they run code from there.
        outside: The folder of the empty folders in which servers start, or None.
        named: Folders that the command line says to trust.
        first_seen: What each server was first seen to run in a folder that is named, and what
            that folder was first seen to bring itself, under no name.
        in_force: What the folder forbade when it was trusted last in this run.
        withdrawals: How often trust was taken back in this run.
        is_withdrawn: Whether it was, and not given again: this holds even if it cannot be written.
    """

    def __init__(
        self,
        folder: Path,
        home: Path,
        state: Path | None,
        named: Sequence[Path],
        on_problem: Callable[[str], None],
        *,
        attended: bool,
    ) -> None:
        self.folder = folder
        self.home = home
        self.attended = attended
        self.named = tuple(named)
        self.first_seen: dict[tuple[Path, str], str] = {}
        self._on_problem = on_problem
        self._is_checked = False
        self.in_force = ProjectRules()
        self.withdrawals = 0
        self.is_withdrawn = False
        self._salt_file = private_file(state, SALT_FILE, on_problem)
        self.store = TrustStore(state, home, on_problem)
        self.start_folders = StartFolders(state, home, on_problem)
        self.outside = state / OUTSIDE if state is not None else None

    @cached_property
    def salt(self) -> bytes:
        """The salt of this installation; two threads that ask at once get the same."""
        return load_salt(self._salt_file)

    def check_names(self, identity: FolderIdentity | None) -> None:
        """Report once the folders on the command line that are not this one."""
        path = identity.path if identity is not None else self.folder
        for name in self.named if not self._is_checked else ():
            if name != path:
                text = f"--trust-folder {name} is not this folder, which is {path}."
                self._on_problem(sanitize_line(text))
        self._is_checked = True

    def is_named(self, identity: FolderIdentity, content_hash: str) -> bool:
        """Return whether the command line trusts this folder; with the content it had first."""
        if identity.path not in self.named:
            return False
        return self.first_seen.setdefault((identity.path, ""), content_hash) == content_hash

    def trust(self, offer: ProjectOffer, shown: tuple[object, ...], *, children: bool) -> None:
        """Trust the folder with what it was seen to bring.

        Args:
            offer: What it brings.
            shown: The identity of the folder that the user was asked about; another one that was
                put in its place meanwhile is not trusted.
            children: Whether trust reaches the folders in it, where it may.
        """
        identity = identify(self.folder)
        if identity is not None and identity.key == shown:
            children = children and may_cover_children(identity.path, self.home)
            content = describe(offer, self.salt, identity.path)
            self.store.trust(identity, content, children=children)
            if children:
                self.start_folders.keep(identity, TrustAnswer.TRUST_WITH_CHILDREN)
            self.is_withdrawn = False

    def trust_edit(self, before: ProjectVerdict, now: ProjectVerdict, server: ServerId) -> None:
        """Trust the folder with what the user's own edit of one server made of it.

        Where it was not trusted before, or anything else has changed, nothing is kept.
        """
        identity = identify(self.folder)
        if identity is None or not before.folder == now.folder == identity.key:
            return
        if before.trust is FolderTrust.TRUSTED and before.offer and now.offer:
            was, content = (
                describe(offer, self.salt, identity.path) for offer in (before.offer, now.offer)
            )
            if was.without(server) == content.without(server):
                record = self.store.standing(identity).record
                children = record is not None and record.children
                self.store.trust(identity, content, children=children)

    def never(self) -> None:
        """Never trust the folder."""
        self._withdraw()
        if (identity := identify(self.folder)) is not None:
            self.store.never(identity)
            self.start_folders.keep(identity, TrustAnswer.NEVER)

    def forget(self) -> None:
        """Forget the user's answers about the folder."""
        self._withdraw()
        if (identity := identify(self.folder)) is not None:
            self.store.forget(identity)
            self.start_folders.forget(identity)

    def _withdraw(self) -> None:
        self.withdrawals += 1
        self.is_withdrawn = True
        self.named = ()
        self.in_force = ProjectRules()


class FolderGate:
    """A `ProjectGate` for one reading of the settings.

    Args:
        opened: What was said of the folder.
        review: Whether the user wants to see what it brings, whatever was said.
    """

    def __init__(self, opened: OpenedFolder, *, review: bool = False) -> None:
        self._opened = opened
        self._review = review
        self._withdrawals = opened.withdrawals
        self._folder = folder = identify(opened.folder)
        self._standing = opened.store.standing(folder) if folder is not None else Standing()
        record = self._standing.record
        self._before = record.content if record is not None else None

    def trust(self, starts: Mapping[ServerId, tuple[Start, ...]]) -> Trust:
        """Return the user's earlier answers, with those about these starts."""
        opened = self._opened
        return Trust(
            opened.attended,
            opened.store.refused(),
            starts,
            self.identity,
            opened.outside,
            self._withdrawals,
            self.salt,
            opened.store.added(),
        )

    @property
    def salt(self) -> bytes:
        return self._opened.salt

    @property
    def identity(self) -> tuple[object, ...]:
        return self._folder.key if self._folder is not None else ()

    def trusted_servers(self) -> tuple[str, ...]:
        """Name the servers that the folder had when it was trusted last; it is not read."""
        if self._before is None or self._standing.swapped:
            return ()
        return tuple(server.name for server in self._before.servers)

    def may_read(self) -> bool:
        """Return, from the folder's identity alone, whether its files may be read."""
        return self._folder is not None and (self._review or not self._standing.never)

    def judge(self, offer: ProjectOffer | None) -> ProjectVerdict:
        """Decide which of this content takes effect; None means nothing was read."""
        self._opened.check_names(self._folder)
        verdict = self._judge(offer)
        if verdict.trust is FolderTrust.TRUSTED and offer is not None:
            self._opened.in_force = offer.rules
        return verdict

    def _judge(self, offer: ProjectOffer | None) -> ProjectVerdict:
        folder, is_never = self._folder, self._standing.never
        if folder is None or offer is None:
            return ProjectVerdict(FolderTrust.NEVER if is_never else FolderTrust.UNTRUSTED)
        # what was forbidden with the user's yes holds until a change of it got one as well
        forbidden = self._before.forbidden if self._before is not None else self._opened.in_force
        if offer.is_empty and (is_never or not forbidden.words()):
            nothing = FolderTrust.NEVER if is_never else FolderTrust.NOTHING_TO_TRUST
            return ProjectVerdict(nothing, offer=offer)
        content = describe(offer, self.salt, folder.path)
        refusal = reason_to_refuse(folder.path)
        verdict = replace(
            self._verdict(folder, content, refusal),
            offer=offer,
            hash=content.hash,
            folder=folder.key,
            forbidden=ProjectRules() if is_never else forbidden,
        )
        if verdict.trust is FolderTrust.TRUSTED and offer.is_empty:
            return replace(verdict, trust=FolderTrust.NOTHING_TO_TRUST)
        if verdict.trust is FolderTrust.TRUSTED and not self._review:
            return verdict
        lines = difference(self._before, content) if self._before is not None else ()
        question = TrustRequest(
            NO_ID,
            TrustSubject.FOLDER,
            shown_path(folder.path, self._opened.home),
            tuple(_disclosures(offer, content, self._before, folder.path)),
            variables=tuple(offer.variables),
            rules=offer.rules.words(),
            context=offer.context_words(),
            difference=(_OTHER_FOLDER, *lines) if self._standing.swapped else lines,
            refusal=refusal,
            may_include_children=may_cover_children(folder.path, self._opened.home),
            standing=tuple(one.id for one in offer.servers if one.id in verdict.servers),
        )
        return replace(verdict, question=question)

    def _verdict(
        self, folder: FolderIdentity, content: FolderContent, refusal: str
    ) -> ProjectVerdict:
        opened, standing, before = self._opened, self._standing, self._before
        record = standing.record
        everything = ProjectVerdict(
            FolderTrust.TRUSTED, frozenset(ServerId(s.name) for s in content.servers), rules=True
        )
        if standing.never:
            return ProjectVerdict(FolderTrust.NEVER)
        if refusal or opened.is_withdrawn:
            return ProjectVerdict(FolderTrust.UNTRUSTED)
        if opened.is_named(folder, content.hash):
            return replace(everything, source="--trust-folder")
        if standing.covered and opened.attended:
            opened.store.inherit(folder, content)
            return replace(everything, source="trust in a folder above")
        if standing.covered or record is None or not record.hashes:
            return ProjectVerdict(FolderTrust.UNTRUSTED)
        if content.hash in record.hashes and not standing.swapped:
            return everything
        if standing.swapped or not opened.attended or before is None:
            return ProjectVerdict(FolderTrust.CHANGED)
        known = {server.hash for server in before.servers}
        same = frozenset(ServerId(s.name) for s in content.servers if s.hash in known)
        return ProjectVerdict(FolderTrust.CHANGED, same, rules=before.rules == content.rules)


def _disclosures(
    offer: ProjectOffer, content: FolderContent, before: FolderContent | None, folder: Path
) -> Iterator[Disclosure]:
    """Return details of every server, and the names of servers removed since the last trust."""
    old = {server.name: server for server in before.servers} if before is not None else {}
    for definition, now in zip(offer.servers, content.servers, strict=True):
        known = old.pop(now.name, None)
        change = "new" if known is None else "" if known.hash == now.hash else "changed"
        yield disclose(definition, folder, change if before is not None else "")
    for one in old.values():
        yield Disclosure(ServerId(one.name), one.source, one.transport, change="gone")
