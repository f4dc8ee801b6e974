"""Questions about what may run, and their answers. Lives on one event loop."""

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from tui.engine.background import OrderedWorker, TaskSet
from tui.engine.definitions.bubblewrap import sandbox_problem
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.desk import Desk, WithdrawnError
from tui.engine.files.paths import shown_path
from tui.engine.logs.audit import AuditLog
from tui.engine.trust.content import FolderContent, difference, disclose
from tui.engine.trust.folder_identity import may_cover_children
from tui.engine.trust.opened_folder import OpenedFolder
from tui.engine.trust.own_servers import UNANSWERED
from tui.engine.trust.trust_store import Standing
from tui.engine.trust.verdict import FolderVerdict, Seen
from tui.model.consent import RequestId
from tui.model.frozen import Frozen
from tui.model.requests import TrustRequest
from tui.model.servers import ServerId, Transport
from tui.model.trust import Boxes, DifferenceLine, Disclosure, TrustAnswer, TrustSubject
from tui.text import counted

NO_ID: Final = RequestId("")
"""The id of a question that has not been asked yet."""

_OTHER_FOLDER: Final = DifferenceLine("+", "this is a different folder in place of the trusted one")
_YOU: Final = "you"
"""What an answer rests on, in records."""


class TrustCase(Frozen):
    """All that a question about what may run is about, and what its answer is kept by.

    Attributes:
        subject: Its subject.
        seen: The opened folder.
        record: What the user said of it before.
        verdict: What counts of it now.
        own: The user's servers that would start in it after a yes.
        servers: The new servers of the settings.
        refusal_keys: What a refusal of each of these is remembered by.
        entry_keys: All by which an earlier refusal of them may be remembered.
        changed: Those that were there before.
        boxes: How the folder's servers run, as chosen with the answer.
        no_sandbox: Why no sandbox could be had when it was asked, or "".
    """

    subject: TrustSubject
    seen: Seen = Seen()
    record: Standing = Standing()
    verdict: FolderVerdict = FolderVerdict()
    own: tuple[ServerId, ...] = ()
    servers: tuple[ServerDefinition, ...] = ()
    refusal_keys: tuple[str, ...] = ()
    entry_keys: tuple[str, ...] = ()
    changed: frozenset[ServerId] = frozenset()
    boxes: Boxes = Boxes.IF_POSSIBLE
    no_sandbox: str = ""


def content_of(servers: Sequence[ServerDefinition]) -> str:
    """Return a hash of the servers for the audit log."""
    known = "\n".join(sorted(one.fingerprint for one in servers))
    return hashlib.sha256(known.encode()).hexdigest()


def request_of(case: TrustCase, opened: Path, home: Path) -> TrustRequest:
    """Return the request for a question, without an id. Blocks on the file system.

    Args:
        case: What it is about.
        opened: The opened folder.
        home: The user's home.
    """
    if case.subject is TrustSubject.FOLDER:
        return _about_folder(case, home)
    words = {one.id: "changed" if one.id in case.changed else "new" for one in case.servers}
    trusting = sorted(one.id for one in case.servers if one.trust)
    return TrustRequest(
        NO_ID,
        case.subject,
        ", ".join(dict.fromkeys(one.entry.source for one in case.servers)),
        tuple(disclose(one, opened, words[one.id]) for one in case.servers),
        rules=tuple(f"The tools of {name} would run without asking." for name in trusting),
    )


def _about_folder(case: TrustCase, home: Path) -> TrustRequest:
    seen, before = case.seen, case.record.content
    folder, offer, content = seen.identity, seen.offer, seen.content
    if folder is None or offer is None or content is None:
        return TrustRequest(NO_ID, case.subject, "")
    lines = difference(before, content) if before is not None else ()
    starts = any(one.transport is Transport.STDIO for one in offer.servers)
    no_sandbox = sandbox_problem()[0] if starts else ""
    return TrustRequest(
        NO_ID,
        case.subject,
        shown_path(folder.path, home),
        tuple(_disclosures(seen, content, before, can_box=not no_sandbox)),
        variables=tuple(offer.variables),
        rules=offer.rules.words(),
        context=tuple(
            f"{one.place}, {counted(len(one.text.splitlines()), 'line')}" for one in offer.context
        ),
        difference=(_OTHER_FOLDER, *lines) if case.record.swapped else lines,
        refusal=seen.refusal,
        may_include_children=may_cover_children(folder.path, home),
        standing=tuple(one.id for one in offer.servers if one.id in case.verdict.servers),
        taken=offer.taken,
        own=case.own,
        no_sandbox=no_sandbox,
    )


def _disclosures(
    seen: Seen, content: FolderContent, before: FolderContent | None, *, can_box: bool
) -> Iterator[Disclosure]:
    """Return details of every server, and the names of servers removed since the last trust."""
    old = {server.name: server for server in before.servers} if before is not None else {}
    servers = seen.offer.servers if seen.offer is not None else ()
    folder = seen.identity.path if seen.identity is not None else None
    for definition, now in zip(servers, content.servers, strict=True):
        known = old.pop(now.name, None)
        change = "new" if known is None else "" if known.hash == now.hash else "changed"
        word = change if before is not None else ""
        yield disclose(definition, folder, word, can_box=can_box)
    for one in old.values():
        yield Disclosure(ServerId(one.name), one.source, one.transport, change="gone")


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
        self._asked: dict[TrustSubject, tuple[TrustCase, asyncio.Task[None]]] = {}
        words = "Your answer could not be saved"
        self._writer = OrderedWorker(
            lambda error: self.on_problem(f"{words} ({type(error).__name__}).")
        )

    def ask_all(self, questions: Sequence[TrustCase]) -> None:
        """Ask these questions and no other; one that stands as it is goes on."""
        wanted = {question.subject: question for question in questions}
        for subject, (question, task) in tuple(self._asked.items()):
            if wanted.get(subject) != question:
                task.cancel()
                del self._asked[subject]
        for subject in wanted.keys() - self._asked.keys():
            self._asked[subject] = wanted[subject], self.tasks.start(self._ask(wanted[subject]))

    async def _ask(self, question: TrustCase) -> None:
        store, opened = self.opened.store, self.opened
        if question.subject is TrustSubject.SETTINGS:
            self._writer.submit(partial(store.refuse_new, question.refusal_keys, UNANSWERED))
        try:
            request = await asyncio.to_thread(request_of, question, opened.folder, opened.home)
            answer = await self.desk.ask(replace(request, id=self.desk.new_id()))
        except WithdrawnError:
            return
        finally:
            if self._asked.get(question.subject, (None,))[0] is question:
                del self._asked[question.subject]
        boxes = Boxes.IF_POSSIBLE if request.no_sandbox else Boxes.BY_ENTRY
        boxes = Boxes.NONE if answer is TrustAnswer.TRUST_BARE else boxes
        self.take(replace(question, boxes=boxes, no_sandbox=request.no_sandbox), answer)

    def keep(self, question: TrustCase, answer: TrustAnswer) -> "Future[None]":
        """Record an answer and begin to write it."""
        if question.subject is TrustSubject.FOLDER:
            return self._keep_folder(question.seen, answer, question.boxes)
        for source in dict.fromkeys(one.entry.source for one in question.servers):
            known = tuple(one for one in question.servers if one.entry.source == source)
            self.record(source, content_of(known), answer.value)
        keys = question.entry_keys if answer.allows else question.refusal_keys
        word = "" if answer.allows else answer.value
        return self._writer.submit(partial(self.opened.store.refuse, keys, word))

    def forget(self, content: str) -> "Future[None]":
        """Start to forget the answers about the opened folder, which has this content."""
        self.record(str(self.opened.folder), content, "forget")
        return self._writer.submit(self.opened.forget)

    def record(self, place: str, content: str, decision: str, source: str = _YOU) -> None:
        self.audit.record_trust(place, content, decision=decision, source=source)

    async def aclose(self) -> None:
        await asyncio.to_thread(self._writer.close)

    def _keep_folder(self, seen: Seen, answer: TrustAnswer, boxes: Boxes) -> "Future[None]":
        for_now = seen.refusal if answer.allows else ""
        decision = f"{answer.value} in this run" if for_now else answer.value
        self.record(str(self.opened.folder), seen.hash, decision)
        if answer is TrustAnswer.NEVER:
            return self._writer.submit(self.opened.never)
        if for_now or not answer.allows:
            return self._writer.submit(lambda: None)
        children = answer is TrustAnswer.TRUST_WITH_CHILDREN
        return self._writer.submit(partial(self.opened.trust, seen, boxes, children=children))
