"""From what was read and what was answered to what runs: one pure function.

Nothing here looks at a file, a clock or a task: every rule can be tested without an engine.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Final

from tui.engine.definitions.definition import REVIEW_ADVICE, Inheritance, ServerDefinition
from tui.engine.demo.model import demo_server
from tui.engine.settings.loader import LoadedSettings, inheritance_of
from tui.engine.settings.prohibitions import PlanRule
from tui.engine.settings.project import ProjectVerdict
from tui.engine.trust.folder_gate import NO_ID, Trust
from tui.engine.trust.starts import (
    KnownServer,
    is_new,
    is_users,
    known_server,
    outside,
    refusal_key,
    written_keys,
)
from tui.engine.trust.trust_questions import TrustCase
from tui.engine.trust.trust_store import Start, StartFolder
from tui.model.chat import Severity
from tui.model.events import ContextFile, Notice
from tui.model.frozen import Frozen
from tui.model.requests import TrustRequest
from tui.model.servers import Origin, ServerId, ServerStatus
from tui.model.settings import EVERYTHING, GemdeckSettings, Profile, ToolPattern
from tui.model.trust import FolderTrust, TrustAnswer, TrustSubject
from tui.text import sanitize_line

_STILL_DENIED: Final = "Prohibitions removed from your settings hold until a restart."
_LIFT: Final = "Start with --approval-mode default to lift it."
_NEVER: Final = "You chose never to trust this folder, so its own settings were not read."
_REFUSED: Final = "Not started: you refused it when it appeared in your settings."
_OTHER_PROFILE: Final = "Choose another profile with /profile, or enable it here for now."
_ASKS: Final = "counts only in a folder that you trust"

FolderKey = tuple[object, ...]
"""What tells a folder from another one at the same place."""

StartKey = tuple[object, ...]
"""What tells a start from one of other code; its beginning is the key of the folder."""


class Answers(Frozen):
    """What was decided in this run, and what it began with.

    Attributes:
        demo: Whether the bundled servers run beside the user's, because the demo answers.
        demo_servers: Whether they run because the user asked for them.
        names_mode: Whether an approval mode was named, so that plan mode is off.
        accepted: The servers of the user's settings that may run; None before the first reading.
        put_off: New servers that the user was asked about and did not accept.
        starts: What the user said of servers that would run code of folders. Not now, also to a
            folder, is an answer that changes nothing.
        declined: Hashes of contents of the opened folder that were answered about.
        withdrawals: How often trust in the opened folder was taken back. A reading that knows of
            fewer is older than the last one, so nothing of the folder's starts by it.
        review: The question about the folder that the user asked for, or None.
        reviews_starts: Whether to ask about the user's servers in the opened folder, too.
        reviews_all: Whether to ask even if the answer was never.
        allow: The permissions that the user's settings gave at first.
        deny: What the user's settings denied at any time.
        inheritance: Which variables servers inherited at first.
        profiles: Those that the open conversations go by, by name.
    """

    demo: bool = False
    demo_servers: bool = False
    names_mode: bool = False
    accepted: frozenset[KnownServer] | None = None
    put_off: frozenset[KnownServer] = frozenset()
    starts: Mapping[StartKey | FolderKey, TrustAnswer] = field(default_factory=dict)
    declined: frozenset[str] = frozenset()
    withdrawals: int = 0
    review: TrustCase | None = None
    reviews_starts: bool = False
    reviews_all: bool = False
    allow: frozenset[tuple[object, ...]] = frozenset()
    deny: tuple[ToolPattern, ...] = ()
    inheritance: Inheritance = field(default_factory=Inheritance)
    profiles: Mapping[str, Profile] = field(default_factory=lambda: {"": EVERYTHING})

    def left_out(self, server: ServerId) -> str:
        """Return why no conversation may use a server; empty if one may."""
        is_in = any(profile.includes(server) for profile in self.profiles.values())
        return "" if is_in else f"Left out by the profile {' and '.join(self.profiles)}."

    def reading(self, sources: LoadedSettings, trust: Trust) -> "Answers":
        """Take note of settings that were read; the first ones are the user's own word."""
        own = _own_denials(sources)
        gone = tuple(pattern for pattern in self.deny if pattern not in own)
        now = replace(self, deny=(*own, *gone))
        if self.accepted is not None:
            users = filter(is_users, sources.servers if trust.added else ())
            added = (
                one for one in users if written_keys(one.written, trust.salt)[1] in trust.added
            )
            return replace(now, accepted=self.accepted.union(map(known_server, added)))
        accepted, put_off = set[KnownServer](), set[KnownServer]()
        for one in filter(is_users, sources.servers):
            words = {trust.refused.get(key) for key in written_keys(one.written, trust.salt)}
            if words == {None}:
                accepted.add(known_server(one))
            elif TrustAnswer.NEVER in words:
                put_off.add(known_server(one))
        return replace(
            now,
            accepted=frozenset(accepted),
            put_off=frozenset(put_off),
            allow=frozenset(rule.key for rule in sources.gemdeck.always_allow),
            inheritance=inheritance_of(sources.gemdeck),
        )

    def answered(self, question: TrustCase, answer: TrustAnswer) -> "Answers":
        """Take the user's answer to a question. What it says about a folder is kept elsewhere."""
        if question.subject is TrustSubject.SETTINGS:
            known = frozenset(map(known_server, question.servers))
            if answer.trusts:
                return replace(self, accepted=(self.accepted or frozenset()) | known)
            return replace(self, put_off=self.put_off | known)
        now = self
        if question.subject is TrustSubject.FOLDER:
            now = replace(self, declined=self.declined | {question.content}, review=None)
            if answer is TrustAnswer.NEVER:
                now = now.withdrawn(question.content, question.folder)
            answer = question.of_starts(answer)
        if not question.starts:
            return now
        said = {**now.starts, **dict.fromkeys((one.key for one in question.starts), answer)}
        reviews = self.reviews_starts and not question.place.is_opened
        return replace(now, starts=said, reviews_starts=reviews)

    def withdrawn(self, content: str, folder: FolderKey = ()) -> "Answers":
        """Take back trust in the opened folder.

        Args:
            content: The hash of what it brings.
            folder: Its key.
        """
        elsewhere = {key: said for key, said in self.starts.items() if key[:-1] != folder}
        return replace(
            self,
            withdrawals=self.withdrawals + 1,
            declined=self.declined | {content},
            review=None,
            starts={**elsewhere, folder: TrustAnswer.NOT_NOW},
        )

    def kept(self, contents: frozenset[str]) -> "Answers":
        return replace(self, declined=self.declined - contents)

    def reviewing(self, question: TrustCase | None) -> "Answers":
        """Let everything be asked about again, the opened folder with this question."""
        content = {question.content} if question is not None else set[str]()
        return replace(
            self,
            review=question,
            reviews_starts=True,
            reviews_all=True,
            declined=self.declined - content,
            put_off=frozenset(),
            starts={key: said for key, said in self.starts.items() if said.allows},
        )


class Plan(Frozen):
    """What is to run and to be asked.

    Attributes:
        definitions: All servers; those that must not start yet are withheld.
        rules: The settings with the rules on tools that are in force.
        questions: What to ask the user now.
        notices: What the user should know; each is told once for as long as it stands.
        trust: What the user says of the opened folder.
        asks: Why tools are asked about although their server has ``trust: true``, or "".
        context: What the opened folder tells the model.
    """

    definitions: tuple[ServerDefinition, ...]
    rules: GemdeckSettings
    questions: tuple[TrustCase, ...]
    notices: tuple[Notice, ...]
    trust: FolderTrust
    asks: str = ""
    context: tuple[ContextFile, ...] = ()


def plan(sources: LoadedSettings, trust: Trust, answers: Answers) -> Plan:
    """Say what runs and what is asked.

    Args:
        sources: What the settings files say, the opened folder's as far as it is trusted.
        trust: What the user's earlier answers say.
        answers: What was decided in this run, `reading` of these sources included.
    """
    trust = _up_to_date(trust, answers)
    servers = tuple(_admitted(one, trust, answers) for one in sources.servers)
    bundled = [_bundled(servers)] if answers.demo or answers.demo_servers else []
    definitions = tuple(_within_profiles(one, answers) for one in (*servers, *bundled))
    verdict = sources.project
    is_withdrawn = trust.withdrawals < answers.withdrawals
    folder = verdict.trust
    if is_withdrawn and folder is FolderTrust.TRUSTED:
        folder = FolderTrust.UNTRUSTED
    starts = _start_questions(sources, trust, answers)
    questions = tuple(_questions(sources, trust, answers, starts)) if trust.attended else ()
    asks = "" if _has_yes(folder, trust) else _ASKS
    # what tightens counts at once; what was loosened while gemdeck runs counts from the next start
    own = _own_denials(sources)
    lifted = PlanRule if answers.names_mode else ()
    known = (rule for rule in answers.deny if not isinstance(rule, lifted))
    gone = tuple(rule for rule in known if rule not in own)
    allow = [rule for rule in sources.gemdeck.always_allow if rule.key in answers.allow]
    standing = [r for r in sources.gemdeck.always_deny if not isinstance(r, lifted)]
    changes = {"always_allow": tuple(allow), "always_deny": (*standing, *gone)}
    rules = sources.gemdeck.model_copy(update=changes)
    notices = [] if trust.attended else list(_withheld_here(verdict, starts))
    trusting = ", ".join(one.id for one in servers if one.trust)
    if asks and trusting and not trust.attended:
        words = f"trust: true {asks}, so the tools of these servers are not allowed: {trusting}."
        notices.append(Notice(Severity.WARNING, sanitize_line(words)))
    if trust.attended and sources.plan_mode and not answers.names_mode:
        words = f"Plan mode is on ({sources.plan_mode}): no tool runs."
        notices.append(Notice(Severity.WARNING, sanitize_line(words), _LIFT))
    if gone:
        notices.append(Notice(Severity.INFO, _STILL_DENIED))
    context = verdict.offer.context if folder is FolderTrust.TRUSTED and verdict.offer else ()
    return Plan(definitions, rules, questions, tuple(notices), folder, asks, context)


def _up_to_date(trust: Trust, answers: Answers) -> Trust:
    """Let the answers of this run be the last word on what servers would run of folders."""

    def judged(start: Start) -> Start:
        is_outdated = start.folder.is_opened and trust.withdrawals < answers.withdrawals
        said, now = None if is_outdated else start.said, answers.starts.get(start.key)
        said = now if now not in {None, TrustAnswer.NOT_NOW} else said
        is_allowed = said is not None and said.allows
        return replace(start, said=said, before=None if is_allowed else start.before)

    starts = {server: tuple(map(judged, found)) for server, found in trust.starts.items()}
    return replace(trust, starts=starts)


def _has_yes(folder: FolderTrust, trust: Trust) -> bool:
    """Return whether the user said yes to the opened folder, or it has nothing to say yes to."""
    if folder not in {FolderTrust.TRUSTED, FolderTrust.NOTHING_TO_TRUST}:
        return False
    return all(start.is_allowed for start in trust.here)


def _admitted(one: ServerDefinition, trust: Trust, answers: Answers) -> ServerDefinition:
    """Give a server as it may run; withheld if it must not yet.

    It inherits no more than when gemdeck started, whatever was written since.
    """
    one = replace(one, inheritance=one.inheritance.narrowed(answers.inheritance))
    accepted = answers.accepted or frozenset()
    if one.withheld is not None:
        return one
    if one.origin is Origin.PROJECT:
        if trust.withdrawals < answers.withdrawals:
            reason = "Comes with this folder, which is no longer trusted."
            return one.held(ServerStatus.UNTRUSTED, reason, REVIEW_ADVICE)
        return one
    if is_new(one, accepted):
        if any(key in trust.refused for key in written_keys(one.written, trust.salt)):
            return one.held(ServerStatus.UNTRUSTED, _REFUSED, REVIEW_ADVICE)
        word = "changed" if any(known.id == one.id for known in accepted) else "new"
        reason = f"Not started: {word} in your settings since gemdeck started."
        return one.held(ServerStatus.UNTRUSTED, reason, REVIEW_ADVICE)
    starts = trust.starts.get(one.id, ())
    if (held := next((start for start in starts if not start.is_allowed), None)) is not None:
        return one.held(ServerStatus.UNTRUSTED, _why_held(held), REVIEW_ADVICE)
    leaves = any(start.said is TrustAnswer.START_OUTSIDE for start in starts)
    return outside(one, trust.outside) if leaves and trust.outside is not None else one


def _within_profiles(one: ServerDefinition, answers: Answers) -> ServerDefinition:
    """Give a server as it may run; withheld if no conversation may use it."""
    if one.withheld is not None or not (reason := answers.left_out(one.id)):
        return one
    return one.held(ServerStatus.DISABLED, reason, _OTHER_PROFILE, may_enable=True)


def _why_held(start: Start) -> str:
    shown = start.folder.shown
    if start.folder.identity is None:
        return f"Its working folder cannot be examined: {shown}."
    if start.folder.never:
        return f"You chose never to run code from {shown}."
    if start.has_changed:
        return f"What it would run from {shown} has changed since you allowed it."
    return f"Would run code from {shown}, where it may not start yet."


def _bundled(servers: Sequence[ServerDefinition]) -> ServerDefinition:
    """Give the demo's server under a name that is still free."""
    one = demo_server()
    is_taken = one.id in {other.id for other in servers}
    return replace(one, id=ServerId(f"demo-{one.id}")) if is_taken else one


def _start_questions(sources: LoadedSettings, trust: Trust, answers: Answers) -> list[TrustCase]:
    """Ask about each folder whose code servers would run that wait for no other answer.

    A server waits for one folder after the other. On review those count that need not wait, too.
    """
    asked: dict[StartFolder, list[tuple[ServerDefinition, Start]]] = {}
    for one in sources.servers:
        is_due = answers.reviews_starts or not answers.left_out(one.id)
        if is_new(one, answers.accepted or frozenset()) or not is_due:
            continue
        starts = trust.starts.get(one.id, ())
        held = [start for start in starts if not start.is_allowed][:1]
        reviewed = [s for s in starts if s.folder.is_opened] if answers.reviews_starts else []
        for start in dict.fromkeys((*held, *reviewed)):
            asked.setdefault(start.folder, []).append((one, start))
    return [
        TrustCase(
            TrustRequest(NO_ID, TrustSubject.STARTED_HERE, folder.shown),
            tuple(one for one, _ in pairs),
            tuple(start for _, start in pairs),
        )
        for folder, pairs in asked.items()
    ]


def _questions(
    sources: LoadedSettings, trust: Trust, answers: Answers, starts: Sequence[TrustCase]
) -> Iterator[TrustCase]:
    verdict, folder = sources.project, answers.review
    if folder is None or (
        verdict.trust is not FolderTrust.NEVER and verdict.hash != folder.content
    ):
        folder = None if verdict.hash in answers.declined else folder_question(verdict)
    own = [start for start in starts if _is_due(start, answers)]
    if folder is not None:
        start = next((one for one in own if one.place.key == folder.folder), folder)
        yield replace(folder, servers=start.servers, starts=start.starts)
        own = [one for one in own if one is not start]
    accepted = answers.accepted or frozenset()
    new = tuple(one for one in sources.servers if is_new(one, accepted))
    if not answers.put_off.issuperset(map(known_server, new)):
        places = ", ".join(dict.fromkeys(one.source for one in new))
        trusting = sorted(one.id for one in new if one.trust)
        rules = tuple(f"The tools of {name} would run without asking." for name in trusting)
        yield TrustCase(
            TrustRequest(NO_ID, TrustSubject.SETTINGS, places, rules=rules),
            new,
            refusal_keys=tuple(refusal_key(one, accepted, trust.salt) for one in new),
            entry_keys=tuple(k for one in new for k in written_keys(one.written, trust.salt)),
            changed=frozenset(known.id for known in accepted),
        )
    yield from own


def _is_due(question: TrustCase, answers: Answers) -> bool:
    """Return whether to ask about a folder now."""
    folder = question.place
    if folder.identity is None:
        return False
    if folder.is_opened and answers.reviews_starts:
        return True
    is_said = all({one.key, folder.key} & answers.starts.keys() for one in question.starts)
    return not is_said and (answers.reviews_all or not folder.never)


def folder_question(verdict: ProjectVerdict) -> TrustCase | None:
    """Give the question that reading a folder raised, or None."""
    if verdict.question is None or verdict.offer is None:
        return None
    return TrustCase(
        verdict.question, offer=verdict.offer, folder=verdict.folder, content=verdict.hash
    )


def _withheld_here(verdict: ProjectVerdict, starts: Sequence[TrustCase]) -> Iterator[Notice]:
    """Say, if nobody can be asked, what has no effect and why."""
    question = verdict.question
    if verdict.trust is FolderTrust.NEVER:
        yield Notice(Severity.WARNING, _NEVER)
    elif question is not None:
        brought = [*(str(one.server) for one in question.servers), *question.context]
        names = ", ".join(brought) or "its rules"
        is_changed = verdict.trust is FolderTrust.CHANGED
        state = "has changed since you trusted it" if is_changed else "is not trusted"
        words = f"This folder {state}, so what it brings has no effect: {names}."
        advice = question.refusal or _trust_folder(str(verdict.folder[0]))
        yield Notice(Severity.WARNING, sanitize_line(words), advice)
    for start in starts:
        place = start.place.identity
        is_open = place is not None and not start.place.never
        advice = _trust_folder(str(start.place.key[0])) if is_open else ""
        for one, held in zip(start.servers, start.starts, strict=True):
            words = f"Not started: {one.id}. {_why_held(held)}"
            yield Notice(Severity.WARNING, sanitize_line(words), advice)


def _trust_folder(folder: str) -> str:
    """Say how a run without a screen is told to trust this very folder."""
    words = f"To let it take effect in this run, add --trust-folder {shlex.quote(folder)}"
    return sanitize_line(words)


def _own_denials(sources: LoadedSettings) -> tuple[ToolPattern, ...]:
    """Give what the user's own settings deny; the folder's rules stand behind them."""
    denied = sources.gemdeck.always_deny
    return denied[: len(denied) - len(sources.project.standing_rules.always_deny)]
