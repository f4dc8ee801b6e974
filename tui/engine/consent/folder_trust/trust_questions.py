"""Questions about what may run, and their answers. Lives on one event loop."""

import asyncio
import hashlib
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from tui.engine.consent.audit import AuditLog
from tui.engine.consent.folder_trust.disclosure import disclose
from tui.engine.consent.folder_trust.folder_gate import NO_ID, OpenedFolder
from tui.engine.consent.folder_trust.start_folders import StartFolder
from tui.engine.desk import Desk, WithdrawnError
from tui.engine.settings.project import ProjectOffer
from tui.engine.settings.servers.definitions import ServerDefinition
from tui.engine.tasks import TaskSet
from tui.engine.threads import OrderedWorker
from tui.model.servers import ServerId
from tui.model.trust import Disclosure, TrustAnswer, TrustRequest, TrustSubject


@dataclass(frozen=True, slots=True)
class FolderQuestion:
    """May the settings of the opened folder take effect?

    Attributes:
        request: The question, without an id.
        offer: What the folder brings.
        folder: What tells the folder from another one at its place.
        content: The hash of what it brings.
    """

    request: TrustRequest
    offer: ProjectOffer
    folder: tuple[object, ...]
    content: str

    @property
    def key(self) -> Hashable:
        return TrustSubject.FOLDER


@dataclass(frozen=True, slots=True)
class NewServersQuestion:
    """May these servers run, which appeared or changed in the user's own settings?

    Attributes:
        servers: Their definitions.
        refusal_keys: What a refusal of each is remembered by.
        entry_keys: All by which an earlier refusal of them may be remembered.
        changed: Those that were there before.
    """

    servers: tuple[ServerDefinition, ...]
    refusal_keys: tuple[str, ...]
    entry_keys: tuple[str, ...]
    changed: frozenset[ServerId]

    @property
    def key(self) -> Hashable:
        return TrustSubject.SETTINGS


@dataclass(frozen=True, slots=True)
class StartQuestion:
    """May these servers of the user start in a folder whose code they would run?"""

    servers: tuple[ServerDefinition, ...]
    folder: StartFolder

    @property
    def key(self) -> Hashable:
        return TrustSubject.STARTED_HERE, self.folder.shown


def content_of(servers: Sequence[ServerDefinition]) -> str:
    """Return a hash of the servers for the audit log."""
    known = "\n".join(sorted(one.fingerprint for one in servers))
    return hashlib.sha256(known.encode()).hexdigest()


Question = FolderQuestion | NewServersQuestion | StartQuestion


def request_of(question: Question, opened: Path) -> TrustRequest:
    """Return the request for a question, without an id. Blocks on the file system."""
    match question:
        case FolderQuestion():
            return question.request
        case NewServersQuestion(servers, changed=changed):
            return TrustRequest(
                NO_ID,
                TrustSubject.SETTINGS,
                ", ".join(dict.fromkeys(one.source for one in servers)),
                tuple(
                    disclose(one, opened, "changed" if one.id in changed else "new")
                    for one in servers
                ),
                rules=tuple(
                    f"The tools of {one.id} would run without asking."
                    for one in sorted(servers, key=lambda one: one.id)
                    if one.trust
                ),
            )
        case StartQuestion(servers, folder):
            return TrustRequest(
                NO_ID,
                TrustSubject.STARTED_HERE,
                folder.shown,
                _with_caution(servers, folder, opened),
                may_include_children=folder.may_include_children,
            )


def _with_caution(
    servers: Sequence[ServerDefinition], folder: StartFolder, opened: Path
) -> tuple[Disclosure, ...]:
    place = folder.identity.path if folder.identity is not None else opened
    shown = (disclose(one, place) for one in servers)
    more = (folder.caution,) if folder.caution else ()
    return tuple(replace(one, warnings=(*more, *one.warnings)) for one in shown)


CLOSE_PATIENCE: Final = 5.0
"""Seconds that the last answers get to be written."""

_YOU: Final = "you"
"""What an answer rests on, in records."""


class TrustQuestions:
    """Asks the questions and stores the answers.

    Args:
        desk: Where questions are asked.
        opened: Keeps what was said of the opened folder.
        audit: Records every answer.
        on_problem: Takes what is wrong, in any thread.
        tasks: Ask the questions.
        take: Takes each answer.
    """

    def __init__(
        self,
        desk: Desk,
        opened: OpenedFolder,
        audit: AuditLog,
        on_problem: Callable[[str], None],
        tasks: TaskSet,
        take: Callable[[Question, TrustAnswer], None],
    ) -> None:
        self._desk = desk
        self._tasks = tasks
        self._take = take
        self._asked: dict[Hashable, tuple[Question, asyncio.Task[None]]] = {}
        self._opened = opened
        self._audit = audit
        self._writer = OrderedWorker(
            lambda error: on_problem(f"Your answer could not be saved ({type(error).__name__}).")
        )

    def ask_all(self, questions: Sequence[Question]) -> None:
        """Ask these questions and no other; one that stands as it is goes on."""
        wanted = {question.key: question for question in questions}
        for key, (question, task) in tuple(self._asked.items()):
            if wanted.get(key) != question:
                task.cancel()
                del self._asked[key]
        for key in wanted.keys() - self._asked.keys():
            self._asked[key] = wanted[key], self._tasks.start(self._ask(wanted[key]))

    async def _ask(self, question: Question) -> None:
        try:
            request = await asyncio.to_thread(request_of, question, self._opened.folder)
            answer = await self._desk.ask(replace(request, id=self._desk.new_id()))
        except WithdrawnError:
            return
        finally:
            if self._asked.get(question.key, (None,))[0] is question:
                del self._asked[question.key]
        self._take(question, answer)

    def keep(self, question: Question, answer: TrustAnswer) -> "Future[None] | None":
        """Record an answer and begin to write it.

        Returns:
            What tells that it is written, if the settings are to be read again then.
        """
        match question:
            case FolderQuestion():
                return self._keep_folder(question, answer)
            case NewServersQuestion(servers):
                for source in dict.fromkeys(one.source for one in servers):
                    known = tuple(one for one in servers if one.source == source)
                    self.record(source, content_of(known), answer.value)
                keys = question.entry_keys if answer.allows else question.refusal_keys
                word = "" if answer.allows else answer.value
                self._writer.submit(partial(self._opened.store.refuse, keys, word))
            case StartQuestion(folder=folder):
                self.record(folder.shown, "", f"start here: {answer.value}")
                if answer is not TrustAnswer.NOT_NOW and folder.identity is not None:
                    keep = self._opened.start_folders.keep
                    self._writer.submit(partial(keep, folder.identity, answer))
        return None

    def forget(self, content: str) -> "Future[None]":
        """Start to forget the answers about the opened folder, which has this content."""
        self.record(str(self._opened.folder), content, "forget")
        return self._writer.submit(self._opened.forget)

    def record(self, place: str, content: str, decision: str, source: str = _YOU) -> None:
        self._audit.record_trust(place, content, decision=decision, source=source)

    async def aclose(self) -> None:
        await asyncio.to_thread(self._writer.close, CLOSE_PATIENCE)

    def _keep_folder(self, question: FolderQuestion, answer: TrustAnswer) -> "Future[None] | None":
        refusal = question.request.refusal if answer.allows else ""
        decision = "refused" if refusal else answer.value
        self.record(str(self._opened.folder), question.content, decision, refusal or _YOU)
        if refusal or answer is TrustAnswer.NOT_NOW:
            return None
        if answer is TrustAnswer.NEVER:
            return self._writer.submit(self._opened.never)
        children = answer is TrustAnswer.TRUST_WITH_CHILDREN
        trust = partial(self._opened.trust, question.offer, question.folder, children=children)
        return self._writer.submit(trust)
