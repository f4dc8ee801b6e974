"""Decides, while the settings are read, what of an opened folder may take effect."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Final

from tui.engine.consent.fingerprint import load_salt, salt_file
from tui.engine.consent.folders.content import FolderContent, describe, difference
from tui.engine.consent.folders.disclosure import disclose
from tui.engine.consent.folders.identity import (
    FolderIdentity,
    identify,
    may_cover_children,
    reason_to_refuse,
)
from tui.engine.consent.folders.trust import Standing, TrustStore, trust_file
from tui.engine.settings.places import shown_path
from tui.engine.settings.project import ProjectOffer, ProjectRules, ProjectVerdict
from tui.model.consent import RequestId
from tui.model.servers import ServerId
from tui.model.trust import DifferenceLine, Disclosure, FolderTrust, TrustRequest, TrustSubject
from tui.text import sanitize_line

NO_ID: Final = RequestId("")
"""The id of a question that was not put yet."""

_OTHER_FOLDER: Final = DifferenceLine("+", "another folder than the trusted one stands here now")


class FolderWord:
    """What was said of the opened folder: kept across runs, and on the command line for this one.

    Blocks; for threads only. Several may use it at once.

    Args:
        folder: The opened folder.
        home: The user's home.
        state: The state folder, or None for this run only.
        named: Folders that the command line says to trust, as it names them.
        attended: Whether there is a user to ask. Where there is none, only the command line's
            word makes a folder trusted; what was forbidden stays so.
        on_problem: Takes what is wrong, such as with a state file, in the thread that finds it.

    Attributes:
        in_force: What the folder forbade when it was trusted last in this run.
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
        self._named = tuple(named)
        self._on_problem = on_problem
        self._is_checked = False
        self._named_hash = ""
        self.in_force = ProjectRules()
        self._salt_file = salt_file(state, on_problem)
        self._lock = threading.Lock()
        self.store = TrustStore(trust_file(state, on_problem), home)

    def gate(self, *, review: bool = False) -> "FolderGate":
        """Give what decides during one reading of the settings.

        Args:
            review: Whether the user wants to see what the folder brings, whatever was said.
        """
        return FolderGate(self, review=review)

    @property
    def salt(self) -> bytes:
        """The salt of this installation."""
        with self._lock:
            return self._salt

    @cached_property
    def _salt(self) -> bytes:
        return load_salt(self._salt_file)

    def check_names(self, identity: FolderIdentity | None) -> None:
        """Say once which of the folders on the command line is not this one."""
        path = identity.path if identity is not None else self.folder
        for name in self._named if not self._is_checked else ():
            if name != path:
                text = f"--trust-folder {name} is not this folder, which is {path}."
                self._on_problem(sanitize_line(text))
        self._is_checked = True

    def is_named(self, identity: FolderIdentity, content_hash: str) -> bool:
        """Tell whether the command line trusts this folder; with the content it had first."""
        if identity.path not in self._named:
            return False
        self._named_hash = self._named_hash or content_hash
        return self._named_hash == content_hash

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

    def never(self) -> None:
        """Never trust the folder."""
        self._named = ()
        self.in_force = ProjectRules()
        if (identity := identify(self.folder)) is not None:
            self.store.never(identity)

    def forget(self) -> None:
        """Take back what was said."""
        self._named = ()
        self.in_force = ProjectRules()
        if (identity := identify(self.folder)) is not None:
            self.store.forget(identity)


class FolderGate:
    """A `ProjectGate` for one reading of the settings.

    Args:
        word: What was said of the folder.
        review: Whether the user wants to see what it brings, whatever was said.
    """

    def __init__(self, word: FolderWord, *, review: bool = False) -> None:
        self._word = word
        self._review = review

    @property
    def salt(self) -> bytes:
        """The salt of this installation, for fingerprints."""
        return self._word.salt

    @property
    def identity(self) -> tuple[object, ...]:
        """What tells this folder from another one at its place."""
        return self._identity.key if self._identity is not None else ()

    @cached_property
    def _identity(self) -> FolderIdentity | None:
        return identify(self._word.folder)

    @cached_property
    def _standing(self) -> Standing:
        identity = self._identity
        return self._word.store.standing(identity) if identity is not None else Standing()

    def may_read(self) -> bool:
        """Tell, from the folder's identity alone, whether its files may be read."""
        if self._identity is None:
            return False
        return self._review or not self._standing.never

    def judge(self, offer: ProjectOffer | None) -> ProjectVerdict:
        """Tell what of this content may take effect; None where nothing was read."""
        self._word.check_names(self._identity)
        verdict = self._judge(offer)
        if verdict.trust is FolderTrust.TRUSTED and offer is not None:
            self._word.in_force = offer.rules
        return replace(verdict, refused=self._word.store.refused())

    def _judge(self, offer: ProjectOffer | None) -> ProjectVerdict:
        identity, standing = self._identity, self._standing
        if identity is None or offer is None:
            never = standing.never
            return ProjectVerdict(FolderTrust.NEVER if never else FolderTrust.UNTRUSTED)
        forbidden = self._forbidden
        if offer.is_empty and (standing.never or not forbidden.words()):
            nothing = FolderTrust.NEVER if standing.never else FolderTrust.NOTHING_TO_TRUST
            return ProjectVerdict(nothing, offer=offer)
        content = describe(offer, self.salt, identity.path)
        refusal = reason_to_refuse(identity.path)
        verdict = replace(
            self._verdict(identity, content, refusal),
            offer=offer,
            hash=content.hash,
            folder=identity.key,
            forbidden=forbidden,
        )
        if verdict.trust is FolderTrust.TRUSTED and offer.is_empty:
            return replace(verdict, trust=FolderTrust.NOTHING_TO_TRUST)
        if verdict.trust is FolderTrust.TRUSTED and not self._review:
            return verdict
        question = self._question(identity, offer, content, refusal)
        standing_servers = tuple(one.id for one in offer.servers if one.id in verdict.servers)
        return replace(verdict, question=replace(question, standing=standing_servers))

    @property
    def _forbidden(self) -> ProjectRules:
        """What was forbidden with the user's yes, until a change of it got one as well."""
        standing = self._standing
        record = standing.record
        if standing.never:
            return ProjectRules()
        if self._word.attended and record is not None and record.content is not None:
            return record.content.forbidden
        return self._word.in_force

    def _verdict(
        self, identity: FolderIdentity, content: FolderContent, refusal: str
    ) -> ProjectVerdict:
        standing = self._standing
        record = standing.record
        everything = ProjectVerdict(
            FolderTrust.TRUSTED, frozenset(ServerId(s.name) for s in content.servers), rules=True
        )
        if standing.never:
            return ProjectVerdict(FolderTrust.NEVER)
        if refusal:
            return ProjectVerdict(FolderTrust.UNTRUSTED)
        if self._word.is_named(identity, content.hash):
            return replace(everything, source="--trust-folder")
        if not self._word.attended:
            return ProjectVerdict(FolderTrust.UNTRUSTED)
        if standing.covered:
            self._word.store.inherit(identity, content)
            return replace(everything, source="trust in a folder above")
        if record is None or not record.hashes:
            return ProjectVerdict(FolderTrust.UNTRUSTED)
        if standing.swapped:
            return ProjectVerdict(FolderTrust.CHANGED)
        if content.hash in record.hashes:
            return everything
        known = {server.hash for server in record.content.servers} if record.content else set()
        same = frozenset(ServerId(s.name) for s in content.servers if s.hash in known)
        rules = record.content is not None and record.content.rules == content.rules
        return ProjectVerdict(FolderTrust.CHANGED, same, rules=rules)

    def _question(
        self, identity: FolderIdentity, offer: ProjectOffer, content: FolderContent, refusal: str
    ) -> TrustRequest:
        record = self._standing.record
        before = record.content if record is not None else None
        lines = difference(before, content) if before is not None else ()
        if self._standing.swapped:
            lines = (_OTHER_FOLDER, *lines)
        return TrustRequest(
            NO_ID,
            TrustSubject.FOLDER,
            shown_path(identity.path, self._word.home),
            _disclosures(offer, content, before, identity.path),
            variables=tuple(offer.variables),
            rules=offer.rules.words(),
            difference=lines,
            refusal=refusal,
            may_include_children=may_cover_children(identity.path, self._word.home),
        )


def _disclosures(
    offer: ProjectOffer, content: FolderContent, before: FolderContent | None, folder: Path
) -> tuple[Disclosure, ...]:
    """Tell all of every server, and name those that were there when the folder was trusted."""
    old = {server.name: server for server in before.servers} if before is not None else {}
    shown: list[Disclosure] = []
    for definition, now in zip(offer.servers, content.servers, strict=True):
        known = old.pop(now.name, None)
        change = "new" if known is None else "" if known.hash == now.hash else "changed"
        shown.append(disclose(definition, folder, change if before is not None else ""))
    gone = [
        Disclosure(ServerId(one.name), one.source, one.transport, change="gone")
        for one in old.values()
    ]
    return (*shown, *gone)
