"""The opened folder: what was said of it, in the store and on the command line."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from tui.engine.definitions.fingerprint import SALT_FILE, load_salt
from tui.engine.files.state_file import private_file
from tui.engine.settings.project import ProjectOffer, ProjectRules
from tui.engine.trust.content import describe
from tui.engine.trust.folder_identity import (
    FolderIdentity,
    identify,
    may_cover_children,
    reason_to_refuse,
)
from tui.engine.trust.judge import FROM_ABOVE, NAMED
from tui.engine.trust.trust_store import FolderRecord, Standing, TrustStore, trusted_record
from tui.engine.trust.verdict import FolderVerdict, Seen
from tui.model.servers import ServerId
from tui.model.trust import Boxes, FolderTrust
from tui.text import sanitize_line


class OpenedFolder:
    """The user's answers about the opened folder: stored, and from the command line.

    Blocks; for threads only. Several may use it at once.

    Args:
        folder: The opened folder.
        home: The user's home.
        state: The state folder, or None for this run only.
        named: Folders that the command line says to trust, as it names them.
        on_problem: Takes what is wrong, such as with a state file, in the thread that finds it.
        attended: Whether there is a user to ask.

    Attributes:
        store: What was said about folders.
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
        self.state = state
        self.attended = attended
        self.store = TrustStore(state, home, on_problem)
        self._named = tuple(named)
        self._on_problem = on_problem
        self._is_checked = False
        self._named_first: tuple[object, ...] = ()  # the folder of the command line as it was first
        self._is_withdrawn = False
        self._in_force = ProjectRules()
        self._for_now: FolderRecord | None = None  # a yes that is for this run alone
        self._salt_file = private_file(state, SALT_FILE, on_problem)

    @cached_property
    def salt(self) -> bytes:
        """The salt of this installation; two threads that ask at once get the same."""
        return load_salt(self._salt_file)

    def standing(self, identity: FolderIdentity | None) -> Standing:
        """Find what the user said of the folder: in earlier runs, or for this run alone."""
        if identity is None:
            return Standing()
        known, now = self.store.standing(identity), self._for_now
        if now is None or now.folder.key != identity.key:
            return known
        return replace(known, record=now, swapped=False, for_now=True)

    def see(
        self,
        identity: FolderIdentity | None,
        offer: ProjectOffer | None,
        needs: Mapping[ServerId, str],
    ) -> Seen:
        """Return what there is to judge."""
        self._check_names(identity)
        if identity is None or offer is None:
            return Seen(identity, attended=self.attended, needs=needs)
        content = describe(offer, self.salt, identity.path)
        seen = Seen(
            identity,
            offer,
            content,
            reason_to_refuse(identity.path),
            attended=self.attended,
            in_force=self._in_force,
            needs=needs,
        )
        if identity.path not in self._named:
            return seen
        self._named_first = self._named_first or seen.key
        return replace(seen, named=self._named_first == seen.key)

    def heed(self, seen: Seen, record: Standing, verdict: FolderVerdict) -> None:
        """Take note of a verdict: what is forbidden, a yes for this run, and trust from above."""
        folder, content = seen.identity, seen.content
        if verdict.trust is not FolderTrust.TRUSTED or folder is None or content is None:
            return
        self._in_force = content.forbidden
        is_for_now = seen.refusal or verdict.source == NAMED or record.for_now
        self._for_now = trusted_record(folder, content, verdict.boxes) if is_for_now else None
        if verdict.source == FROM_ABOVE and not self._is_withdrawn:
            self.store.inherit(folder, content)

    def _check_names(self, identity: FolderIdentity | None) -> None:
        """Report once the folders on the command line that are not this one."""
        path = identity.path if identity is not None else self.folder
        for name in self._named if not self._is_checked else ():
            if name != path:
                text = f"--trust-folder {name} is not this folder, which is {path}."
                self._on_problem(sanitize_line(text))
        self._is_checked = True

    def trust(self, seen: Seen, boxes: Boxes = Boxes.IF_POSSIBLE, *, children: bool) -> None:
        """Trust the folder with what it was seen to say, unless another lies there meanwhile.

        Args:
            seen: The folder as the user was shown it.
            boxes: How its servers run, as the user chose.
            children: Whether trust reaches the folders in it, where it may.
        """
        identity = identify(self.folder)
        if identity is not None and identity == seen.identity and seen.content is not None:
            children = children and may_cover_children(identity.path, self.home)
            self.store.trust(identity, seen.content, boxes, children=children)
            self._is_withdrawn = False

    def trust_edit(self, before: Seen, now: Seen, server: ServerId) -> None:
        """Trust the folder with what the user's own edit of one server made of it.

        Where it was not trusted before, or anything else has changed, nothing is kept.
        """
        standing, was, content = self.standing(now.identity), before.content, now.content
        if now.identity is None or before.identity != now.identity or was is None:
            return
        if content is None or was.without(server) != content.without(server):
            return
        if not standing.has(was.hash) or (now.refusal and not standing.for_now):
            return
        record = standing.record
        boxes = record.boxes if record is not None else Boxes.IF_POSSIBLE
        if standing.for_now:
            self._for_now = trusted_record(now.identity, content, boxes)
        else:
            self.trust(now, boxes, children=record is not None and record.children)

    def never(self) -> None:
        """Never trust the folder."""
        self._withdraw()
        if (identity := identify(self.folder)) is not None:
            self.store.never(identity)

    def forget(self) -> None:
        """Forget the user's answers about the folder."""
        self._withdraw()
        if (identity := identify(self.folder)) is not None:
            self.store.forget(identity)

    def _withdraw(self) -> None:
        self._named, self._in_force, self._is_withdrawn = (), ProjectRules(), True
        self._for_now = None
