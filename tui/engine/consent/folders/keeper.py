"""Asks the user about what an opened folder brings, and holds its servers until there is a yes.

Newcomers in the user's own settings are asked about here as well: both questions are about what
would run. Lives on one event loop; what blocks is done in threads.
"""

import asyncio
import hashlib
import importlib
import itertools
import shlex
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tui.engine.consent.audit import RecordTrust
from tui.engine.consent.folders.newcomers import Newcomers
from tui.engine.events import Publish
from tui.engine.settings.definitions import REVIEW_ADVICE, ServerDefinition
from tui.model.chat import Severity
from tui.model.consent import RequestId
from tui.model.events import (
    FolderTrustChanged,
    Notice,
    NoticeRaised,
    RequestRaised,
    RequestSettled,
)
from tui.model.servers import Failure, Origin, ServerStatus
from tui.model.trust import FolderTrust, TrustAnswer, TrustRequest
from tui.text import sanitize_line

if TYPE_CHECKING:
    from tui.engine.consent.folders.gate import FolderGate, FolderWord
    from tui.engine.settings.loader import LoadedSettings
    from tui.engine.settings.project import ProjectVerdict
    from tui.model.settings import GemdeckSettings, ToolPattern

Spawn = Callable[[Coroutine[Any, Any, None]], None]
"""Runs a coroutine as a task of the engine."""

_YOU: Final = "you"
"""What an answer rests on, in records."""

_STILL_DENIED: Final = "Rules that went from alwaysDeny in your settings hold until gemdeck ends."
_YES: Final = frozenset({TrustAnswer.TRUST, TrustAnswer.TRUST_WITH_CHILDREN})


@dataclass(slots=True)
class Hooks:
    """What the keeper needs of the engine.

    Attributes:
        spawn: Runs a coroutine as a task.
        reload: Has the settings read and applied again, soon.
        reconfigure: Applies the servers as they are admitted now.
        load: Reads the settings through a gate; blocks.
        record: Keeps a record of what was decided.
    """

    spawn: Spawn
    reload: Callable[[], None]
    reconfigure: Callable[[], None]
    load: Callable[["FolderGate"], "LoadedSettings"]
    record: RecordTrust


@dataclass(slots=True)
class _Asked:
    """A question about the folder that stands, with what the answer is about.

    `of_user`: whether the user wanted to be asked, whatever was said of the folder.
    """

    request: TrustRequest
    verdict: "ProjectVerdict"
    of_user: bool


@dataclass(slots=True)
class _Held:
    """A question about newcomers that stands, with their definitions as shown."""

    request: RequestId
    waiting: tuple[ServerDefinition, ...] = field(repr=False)


class FolderKeeper:
    """Keeps what is not trusted from running, asks about it, and takes the answers.

    Args:
        folder: The opened folder.
        publish: Takes `FolderTrustChanged`, `RequestRaised`, `RequestSettled` and notices.
        hooks: What it needs of the engine.
        asks: Whether there is a user to ask.

    Attributes:
        trust: What the user says of the folder.
        asks: Whether there is a user to ask.
    """

    def __init__(self, folder: Path, publish: Publish, hooks: Hooks, *, asks: bool) -> None:
        self.trust = FolderTrust.UNKNOWN
        self._folder = folder
        self._publish = publish
        self._hooks = hooks
        self.asks = asks
        self._word: FolderWord | None = None
        self._verdict: ProjectVerdict | None = None
        self._newcomers = Newcomers()
        self._own: tuple[ServerDefinition, ...] = ()
        self._asked: _Asked | None = None
        self._held: _Held | None = None
        self._declined: set[str] = set()
        self._declined_own: frozenset[str] = frozenset()
        self._has_admitted = self._barred = self._lifts = False
        self._bars = 0
        self._writer = ThreadPoolExecutor(1, "folder trust")
        self._permissions: frozenset[tuple[str, str]] | None = None
        self._denied: tuple[ToolPattern, ...] = ()
        self._told_gone: set[ToolPattern] = set()
        self._numbers = itertools.count(1)

    def begin(
        self, state: Path | None, named: Sequence[Path], on_problem: Callable[[str], None]
    ) -> None:
        """Open what was said of the folder, once the heavy imports are done.

        Args:
            state: The state folder, or None for this run only.
            named: Folders that the command line says to trust.
            on_problem: Takes what is wrong, in any thread.
        """
        module = importlib.import_module("tui.engine.consent.folders.gate")
        self._word = module.FolderWord(
            self._folder, Path.home(), state, named, on_problem, attended=self.asks
        )

    def gate(self) -> "FolderGate":
        """Give what decides on the folder's part, for one reading of the settings."""
        if self._word is None:
            raise RuntimeError("begin comes first")
        return self._word.gate()

    def take(self, loaded: "LoadedSettings") -> None:
        """Take settings that were read, before `admit` is asked about their servers."""
        self._verdict = loaded.project
        if self._word is not None:
            self._newcomers.salt = self._word.salt
        self._barred = self._barred and not self._lifts
        self._lifts = False

    def admit(self, definitions: Sequence[ServerDefinition]) -> tuple[ServerDefinition, ...]:
        """Withhold the servers that must not run yet; the others pass as they are."""
        self._own = tuple(definitions)
        refused = self._verdict.refused if self._verdict is not None else {}
        admitted = self._newcomers.admit(definitions, refused)
        if not self._has_admitted:
            self._has_admitted = True
            never = {key for key, word in refused.items() if word == TrustAnswer.NEVER}
            waiting = self._newcomers.waiting(definitions)
            kept = [one for one in waiting if not never.isdisjoint(self._newcomers.all_keys([one]))]
            self._declined_own |= _identities(kept)
        return tuple(map(_barred, admitted)) if self._barred else admitted

    def admit_rules(self, settings: "GemdeckSettings") -> "GemdeckSettings":
        """Leave out what the user's settings loosened while gemdeck runs.

        Permissions that came, and prohibitions that went, count from the next start on; what
        tightens counts at once. What the folder forbids is asked about instead.
        """
        update = {"always_allow": self._known_permissions(settings)}
        return settings.model_copy(update={**update, "always_deny": self._all_denied(settings)})

    def _all_denied(self, settings: "GemdeckSettings") -> "tuple[ToolPattern, ...]":
        """Give all that is denied, with what the user's settings denied before in this run."""
        denied = settings.always_deny
        rules = self._verdict.standing_rules.always_deny if self._verdict is not None else ()
        own = denied[: len(denied) - len(rules)]  # the folder's stand behind the user's
        gone = tuple(pattern for pattern in self._denied if pattern not in own)
        if set(gone) - self._told_gone:
            self._publish(NoticeRaised(Notice(Severity.INFO, _STILL_DENIED)))
        self._told_gone = set(gone)
        self._denied = (*own, *gone)
        return (*denied, *gone)

    def _known_permissions(self, settings: "GemdeckSettings") -> "tuple[ToolPattern, ...]":
        if self._permissions is None:
            self._permissions = frozenset(
                (pattern.server, pattern.tool) for pattern in settings.always_allow
            )
        return tuple(
            pattern
            for pattern in settings.always_allow
            if (pattern.server, pattern.tool) in self._permissions
        )

    def ask(self) -> None:
        """Publish what the user says of the folder, and put the questions that are open."""
        verdict = self._verdict
        if verdict is None:
            return
        is_news = verdict.trust is not self.trust
        self._tell(verdict.trust)
        if is_news and verdict.source:
            self._record(verdict.hash, verdict.trust.value, verdict.source)
        if not self.asks:
            if is_news:
                self._tell_what_is_withheld(verdict)
            return
        self._ask_about_folder(verdict)
        self._ask_about_newcomers()

    def answer(self, request: RequestId, answer: TrustAnswer) -> None:
        """Take the answer to a question. One to a question that is not open is ignored."""
        if self._asked is not None and self._asked.request.id == request:
            asked, self._asked = self._asked, None
            self._publish(RequestSettled(request))
            self._answer_folder(asked, answer)
        elif self._held is not None and self._held.request == request:
            held, self._held = self._held, None
            self._publish(RequestSettled(request))
            self._record_newcomers(held.waiting, answer)
            self._remember_newcomers(held.waiting, answer)
            if answer in _YES:
                self._newcomers.accept(held.waiting)
                self._hooks.reconfigure()
            else:
                self._declined_own |= _identities(held.waiting)

    def review(self) -> None:
        """Ask again about what the folder brings, and about newcomers that are held."""
        self._declined_own = frozenset()
        self._ask_about_newcomers()
        self._hooks.spawn(self._review())

    def forget(self) -> None:
        """Take back what was said of the folder: its servers stop, also in later runs."""
        self._bar()
        if self._word is not None:
            self._keep(self._word.forget)
            self._record(self._verdict.hash if self._verdict is not None else "", "forget", _YOU)

    def _record(self, content: str, decision: str, source: str) -> None:
        self._hooks.record(str(self._folder), content, decision=decision, source=source)

    def _record_newcomers(self, asked: Sequence[ServerDefinition], answer: TrustAnswer) -> None:
        for source in dict.fromkeys(one.source for one in asked):
            known = sorted(one.fingerprint for one in asked if one.source == source)
            content = hashlib.sha256("\n".join(known).encode()).hexdigest()
            self._hooks.record(source, content, decision=answer.value, source=_YOU)

    def _remember_newcomers(self, asked: Sequence[ServerDefinition], answer: TrustAnswer) -> None:
        """Keep a refusal for the next start, or take an earlier one back."""
        if self._word is None:
            return
        is_yes = answer in _YES
        find = self._newcomers.all_keys if is_yes else self._newcomers.refusal_keys
        keys, word = find(asked), "" if is_yes else answer.value
        kept = self._writer.submit(self._word.store.refuse, keys, word)
        self._hooks.spawn(_wait_for(kept))

    async def _review(self) -> None:
        if self._word is None:
            return
        gate = self._word.gate(review=True)
        verdict = (await asyncio.to_thread(self._hooks.load, gate)).project
        if verdict.question is None:
            words = "This folder brings no settings of its own; there is nothing to review."
            self._publish(NoticeRaised(Notice(Severity.INFO, words)))
            return
        self._declined.discard(verdict.hash)
        self._raise(verdict, verdict.question, of_user=True)

    def _answer_folder(self, asked: _Asked, answer: TrustAnswer) -> None:
        offer, word = asked.verdict.offer, self._word
        self._declined.add(asked.verdict.hash)
        refusal = asked.request.refusal if answer in _YES else ""
        decision = "refused" if refusal else answer.value
        self._record(asked.verdict.hash, decision, refusal or _YOU)
        if word is None or offer is None or refusal:
            return
        if answer is TrustAnswer.NEVER:
            self._bar()
            self._keep(word.never)
        elif answer in _YES:
            self._declined.discard(asked.verdict.hash)
            children = answer is TrustAnswer.TRUST_WITH_CHILDREN
            trust = partial(word.trust, offer, asked.verdict.folder, children=children)
            self._keep(trust, lifts=True)

    def _keep(self, work: Callable[[], None], *, lifts: bool = False) -> None:
        """Keep the user's word, one after the other, also if the engine ends at once."""
        kept = self._writer.submit(work)
        self._hooks.spawn(self._take_effect(kept, self._bars if lifts else -1))

    async def _take_effect(self, kept: Future[None], lifts: int) -> None:
        """Keep the user's word, and let it take effect: what is read from now on goes by it."""
        await asyncio.shield(asyncio.wrap_future(kept))
        self._lifts = lifts == self._bars  # not where it was forbidden again meanwhile
        self._hooks.reload()

    def _bar(self) -> None:
        """Stop the folder's servers at once, whatever the settings say."""
        self._barred, self._lifts = True, False
        self._bars += 1
        if self._verdict is not None:
            self._declined.add(self._verdict.hash)
        self._hooks.reconfigure()

    def _tell(self, trust: FolderTrust) -> None:
        if self._barred and trust is FolderTrust.TRUSTED:
            trust = FolderTrust.UNTRUSTED
        if trust is not self.trust:
            self.trust = trust
            self._publish(FolderTrustChanged(trust))

    def _tell_what_is_withheld(self, verdict: "ProjectVerdict") -> None:
        """Say, where nobody can be asked, what of the folder takes no effect and why."""
        question = verdict.question
        if verdict.trust is FolderTrust.NEVER:
            words = "This folder is never to be trusted, so its own settings were not read."
            self._publish(NoticeRaised(Notice(Severity.WARNING, words)))
        elif question is not None:
            names = ", ".join(one.server for one in question.servers) or "its rules"
            words = f"This folder is not trusted, so what it brings has no effect: {names}."
            advice = question.refusal or self._advice(verdict)
            self._publish(NoticeRaised(Notice(Severity.WARNING, sanitize_line(words), advice)))

    def _advice(self, verdict: "ProjectVerdict") -> str:
        """Say how a run without a screen is told to trust this very folder."""
        place = shlex.quote(str(verdict.folder[0]))
        return sanitize_line(f"To let it take effect in this run, add --trust-folder {place}")

    def _ask_about_folder(self, verdict: "ProjectVerdict") -> None:
        """Put the question that a verdict raises, unless the user has answered it."""
        asked, question = self._asked, verdict.question
        if asked is not None and asked.of_user and asked.verdict.hash == verdict.hash:
            return
        if question is None or verdict.hash in self._declined:
            self._withdraw_folder()
        elif asked is None or replace(question, id=asked.request.id) != asked.request:
            self._raise(verdict, question, of_user=False)

    def _raise(self, verdict: "ProjectVerdict", question: TrustRequest, *, of_user: bool) -> None:
        """Put a question under a new id: an answer to the one before must not count for it."""
        self._withdraw_folder()
        request = replace(question, id=self._new_id())
        self._asked = _Asked(request, verdict, of_user)
        self._publish(RequestRaised(request))

    def _withdraw_folder(self) -> None:
        if self._asked is not None:
            self._publish(RequestSettled(self._asked.request.id))
            self._asked = None

    def _ask_about_newcomers(self) -> None:
        waiting = self._newcomers.waiting(self._own)
        if self._held is not None and self._held.waiting == waiting:
            return
        if self._held is not None:
            self._publish(RequestSettled(self._held.request))
            self._held = None
        if self.asks and _identities(waiting) - self._declined_own:
            self._held = _Held(self._new_id(), waiting)
            self._hooks.spawn(self._raise_held(self._held))

    async def _raise_held(self, held: _Held) -> None:
        """Put the question about newcomers, once all there is to say of them was found out."""
        question = partial(self._newcomers.question, held.request, held.waiting, self._folder)
        request = await asyncio.to_thread(question)
        if self._held is held:
            self._publish(RequestRaised(request))

    def _new_id(self) -> RequestId:
        return RequestId(f"trust{next(self._numbers)}")


def _identities(definitions: Sequence[ServerDefinition]) -> frozenset[str]:
    """Tell newcomers from those that were declined."""
    return frozenset(
        repr((one.id, one.fingerprint, one.trust, one.include_tools, one.exclude_tools))
        for one in definitions
    )


async def _wait_for(kept: Future[None]) -> None:
    """Wait for what is being kept, so that its failure is heard of."""
    await asyncio.shield(asyncio.wrap_future(kept))


def _barred(definition: ServerDefinition) -> ServerDefinition:
    """Withhold a server of the folder that could run otherwise."""
    if definition.origin is not Origin.PROJECT or definition.withheld is not None:
        return definition
    failure = Failure("Comes with this folder, which is no longer trusted.", REVIEW_ADVICE)
    return replace(definition, withheld=ServerStatus.UNTRUSTED, failure=failure)
