"""Questions about what may run, and their answers. Lives on one event loop."""

import asyncio
import hashlib
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

from tui.engine.background import OrderedWorker, TaskSet
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.desk import Desk, WithdrawnError
from tui.engine.logs.audit import AuditLog
from tui.engine.settings.project import ProjectOffer
from tui.engine.trust.content import FolderContent, ServerContent, difference, disclose
from tui.engine.trust.folder_gate import OpenedFolder
from tui.engine.trust.starts import described
from tui.engine.trust.trust_store import FolderIdentity, Start, StartFolder
from tui.model.frozen import Frozen
from tui.model.requests import TrustRequest
from tui.model.servers import ServerId
from tui.model.trust import DifferenceLine, Disclosure, TrustAnswer, TrustSubject


class TrustCase(Frozen):
    """All that a question about what may run is about, and what its answer is kept by.

    Attributes:
        request: The question, without an id and details of the user's servers.
        servers: The user's servers that it is about.
        starts: What each of them would run, all of one folder; none of new servers.
        offer: What the opened folder brings.
        folder: What tells the opened folder from another one at its place.
        content: The hash of what it brings.
        refusal_keys: What a refusal of each new server is remembered by.
        entry_keys: All by which an earlier refusal of them may be remembered.
        changed: The new servers that were there before.
    """

    request: TrustRequest
    servers: tuple[ServerDefinition, ...] = ()
    starts: tuple[Start, ...] = ()
    offer: ProjectOffer = field(default_factory=ProjectOffer)
    folder: tuple[object, ...] = ()
    content: str = ""
    refusal_keys: tuple[str, ...] = ()
    entry_keys: tuple[str, ...] = ()
    changed: frozenset[ServerId] = frozenset()

    @property
    def subject(self) -> TrustSubject:
        return self.request.subject

    @property
    def place(self) -> StartFolder:
        """The folder of all starts."""
        return self.starts[0].folder

    @property
    def key(self) -> Hashable:
        is_start = self.subject is TrustSubject.STARTED_HERE
        return self.subject, self.place.shown if is_start else ""

    def of_starts(self, answer: TrustAnswer) -> TrustAnswer:
        """Return what an answer says of the user's servers: nothing where it is refused."""
        return TrustAnswer.NOT_NOW if self.request.refusal and answer.trusts else answer


def content_of(servers: Sequence[ServerDefinition]) -> str:
    """Return a hash of the servers for the audit log."""
    known = "\n".join(sorted(one.fingerprint for one in servers))
    return hashlib.sha256(known.encode()).hexdigest()


def request_of(case: TrustCase, opened: Path, salt: bytes) -> TrustRequest:
    """Return the request for a question, without an id. Blocks on the file system.

    Args:
        case: What it is about.
        opened: The opened folder.
        salt: The salt of this installation.
    """
    if case.starts:
        return _with_starts(case, opened, salt)
    words = {one.id: "changed" if one.id in case.changed else "new" for one in case.servers}
    shown = tuple(disclose(one, opened, words[one.id]) for one in case.servers)
    return replace(case.request, servers=shown) if shown else case.request


def _with_starts(question: TrustCase, opened: Path, salt: bytes) -> TrustRequest:
    """Add to a request for trust in a folder what the user's servers would run of it."""
    folder, request = question.place, question.request
    place = folder.identity.path if folder.identity is not None else opened
    more = (folder.caution,) if folder.caution and not request.refusal else ()
    shown: list[Disclosure] = []
    lines: list[DifferenceLine] = []
    standing = request.standing or tuple(
        one.id
        for one, start in zip(question.servers, question.starts, strict=True)
        if start.is_allowed
    )
    for one, start in zip(question.servers, question.starts, strict=True):
        new = "new" if standing and not start.is_allowed else ""
        disclosure = disclose(one, place, "changed" if start.has_changed else new)
        shown.append(replace(disclosure, warnings=(*more, *disclosure.warnings)))
        if start.before is not None and start.has_changed:
            lines += _changes(start.before, described(one, place, salt))
    return replace(
        request,
        started=tuple(shown),
        difference=(*request.difference, *lines),
        may_include_children=request.may_include_children or folder.may_include_children,
        standing=standing if request.subject is TrustSubject.STARTED_HERE else request.standing,
        may_start_outside=all(start.outside is not None for start in question.starts),
    )


def _changes(before: ServerContent, now: ServerContent) -> tuple[DifferenceLine, ...]:
    """Show what changed of a server since it was allowed."""
    lines = difference(FolderContent("", (before,), ""), FolderContent("", (now,), ""))
    if any(line.sign.strip() for line in lines) or not before.lines:
        return lines
    return (DifferenceLine("+", f"server {now.name} gets other values of your variables"),)


_YOU: Final = "you"
"""What an answer rests on, in records."""


@dataclass(eq=False, repr=False)
class TrustQuestions:
    """Asks the questions and stores the answers.

    Attributes:
        desk: Where questions are asked.
        opened: Keeps what was said of the opened folder.
        audit: Records every answer.
        on_problem: Takes what is wrong, in any thread.
        tasks: Ask the questions.
        take: Takes each answer.
    """

    desk: Desk
    opened: OpenedFolder
    audit: AuditLog
    on_problem: Callable[[str], None]
    tasks: TaskSet
    take: Callable[[TrustCase, TrustAnswer], None]

    def __post_init__(self) -> None:
        self._asked: dict[Hashable, tuple[TrustCase, asyncio.Task[None]]] = {}
        words = "Your answer could not be saved"
        self._writer = OrderedWorker(
            lambda error: self.on_problem(f"{words} ({type(error).__name__}).")
        )

    def ask_all(self, questions: Sequence[TrustCase]) -> None:
        """Ask these questions and no other; one that stands as it is goes on."""
        wanted = {question.key: question for question in questions}
        for key, (question, task) in tuple(self._asked.items()):
            if wanted.get(key) != question:
                task.cancel()
                del self._asked[key]
        for key in wanted.keys() - self._asked.keys():
            self._asked[key] = wanted[key], self.tasks.start(self._ask(wanted[key]))

    async def _ask(self, question: TrustCase) -> None:
        try:
            opened = self.opened
            request = await asyncio.to_thread(
                lambda: request_of(question, opened.folder, opened.salt)
            )
            answer = await self.desk.ask(replace(request, id=self.desk.new_id()))
            if answer is TrustAnswer.START_OUTSIDE and not request.may_start_outside:
                answer = TrustAnswer.NOT_NOW
        except WithdrawnError:
            return
        finally:
            if self._asked.get(question.key, (None,))[0] is question:
                del self._asked[question.key]
        self.take(question, answer)

    def keep(self, question: TrustCase, answer: TrustAnswer) -> "Future[None] | None":
        """Record an answer and begin to write it.

        Returns:
            What tells that it is written, if the settings are to be read again then.
        """
        match question.subject:
            case TrustSubject.FOLDER:
                return self._keep_folder(question, answer)
            case TrustSubject.SETTINGS:
                for source in dict.fromkeys(one.source for one in question.servers):
                    known = tuple(one for one in question.servers if one.source == source)
                    self.record(source, content_of(known), answer.value)
                keys = question.entry_keys if answer.trusts else question.refusal_keys
                word = "" if answer.trusts else answer.value
                self._writer.submit(partial(self.opened.store.refuse, keys, word))
            case TrustSubject.STARTED_HERE:
                self._keep_starts(question, answer)
        return None

    def forget(self, content: str) -> "Future[None]":
        """Start to forget the answers about the opened folder, which has this content."""
        self.record(str(self.opened.folder), content, "forget")
        return self._writer.submit(self.opened.forget)

    def record(self, place: str, content: str, decision: str, source: str = _YOU) -> None:
        self.audit.record_trust(place, content, decision=decision, source=source)

    async def aclose(self) -> None:
        await asyncio.to_thread(self._writer.close)

    def _keep_folder(self, question: TrustCase, answer: TrustAnswer) -> "Future[None] | None":
        refusal = question.request.refusal if answer.trusts else ""
        decision = "refused" if refusal else answer.value
        self.record(str(self.opened.folder), question.content, decision, refusal or _YOU)
        if question.starts:
            self._keep_starts(question, question.of_starts(answer))
        if answer is TrustAnswer.NEVER:
            return self._writer.submit(self.opened.never)
        if refusal or not answer.trusts:
            return None
        children = answer is TrustAnswer.TRUST_WITH_CHILDREN
        trust = partial(self.opened.trust, question.offer, question.folder, children=children)
        return self._writer.submit(trust)

    def _keep_starts(self, question: TrustCase, answer: TrustAnswer) -> None:
        folder = question.place
        self.record(folder.shown, content_of(question.servers), f"start here: {answer.value}")
        if answer is TrustAnswer.NOT_NOW or folder.identity is None:
            return
        self._writer.submit(partial(self._store_starts, question, answer, folder.identity))

    def _store_starts(
        self, question: TrustCase, answer: TrustAnswer, folder: FolderIdentity
    ) -> None:
        """Store an answer with what each server was seen to run. Blocks."""
        salt = self.opened.salt
        seen = (described(one, folder.path, salt) for one in question.servers)
        leaving = (start.outside for start in question.starts if start.outside is not None)
        inside = list(seen) if answer.trusts else []
        outside = list(leaving) if answer is TrustAnswer.START_OUTSIDE else []
        self.opened.start_folders.keep(folder, answer, inside, outside)
