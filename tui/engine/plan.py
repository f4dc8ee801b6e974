"""From what was read and what was answered to what runs: one pure function.

Nothing here looks at a file, a clock or a task: every rule can be tested without an engine.
"""

import shlex
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Final

from tui.engine.definitions.definition import REVIEW_ADVICE, Inheritance, ServerDefinition
from tui.engine.demo.model import demo_server
from tui.engine.reload import Reading
from tui.engine.settings.loader import inheritance_of
from tui.engine.settings.prohibitions import PlanRule
from tui.engine.trust.judge import judge
from tui.engine.trust.own_servers import (
    UNANSWERED,
    KnownServer,
    is_new,
    is_users,
    known_server,
    refusal_key,
    words_on,
    written_keys,
)
from tui.engine.trust.trust_questions import TrustCase
from tui.engine.trust.verdict import Answered, FolderVerdict, Seen
from tui.model.chat import Severity
from tui.model.events import ContextFile, Notice
from tui.model.frozen import Frozen
from tui.model.servers import Origin, ServerId, ServerStatus, Transport
from tui.model.settings import EVERYTHING, GemdeckSettings, Profile, ToolPattern
from tui.model.trust import FolderTrust, TrustAnswer, TrustSubject
from tui.text import sanitize_line

_STILL_DENIED: Final = "Prohibitions removed from your settings apply until a restart."
_LIFT: Final = "Start with --approval-mode default to lift it."
_NEVER: Final = "You chose never to trust this folder, so its own settings were not read."
_REFUSED: Final = "Not started: you refused it when it appeared in your settings."
_UNANSWERED: Final = "Not started: it appeared in your settings while gemdeck was running."
_OTHER_PROFILE: Final = "Choose another profile with /profile, or enable it here for now."
_ASKS: Final = "applies only in a folder that you trust"
_TRUST_ADVICE: Final = REVIEW_ADVICE.replace("review it", "trust the folder")


class Answers(Frozen):
    """What was decided in this run, and what it began with.

    Attributes:
        demo: Whether the bundled servers run beside the user's, because the demo answers.
        demo_servers: Whether they run because the user asked for them.
        names_mode: Whether an approval mode was named, so that plan mode is off.
        profiles: Those that the open conversations go by, by name.
        accepted: The servers of the user's settings that may run without a question; None before
            the first reading.
        allow: The permissions that the user's settings gave at first.
        deny: What the user's settings denied at any time.
        inheritance: Which variables servers inherited at first.
        answered: What the user answered.
    """

    demo: bool = False
    demo_servers: bool = False
    names_mode: bool = False
    profiles: Mapping[str, Profile] = field(default_factory=lambda: {"": EVERYTHING})
    accepted: frozenset[KnownServer] | None = None
    allow: frozenset[tuple[object, ...]] = frozenset()
    deny: tuple[ToolPattern, ...] = ()
    inheritance: Inheritance = field(default_factory=Inheritance)
    answered: Answered = Answered()

    def left_out(self, server: ServerId) -> str:
        """Return why no conversation may use a server; empty if one may."""
        is_in = any(profile.includes(server) for profile in self.profiles.values())
        return "" if is_in else f"Not in the profile {' or '.join(self.profiles)}."

    def reading(self, found: Reading) -> "Answers":
        """Take note of settings that were read; the first ones are the user's own word."""
        settings, said = found.settings, self.answered.said
        own = settings.gemdeck.always_deny
        gone = tuple(pattern for pattern in self.deny if pattern not in own)
        # what the record has counts by that: another gemdeck may take it back
        is_kept = found.record.has(found.seen.hash)
        kept = {k: v for k, v in said.items() if k != found.seen.key or not is_kept}
        now = replace(self, deny=(*own, *gone), answered=replace(self.answered, said=kept))
        users = list(filter(is_users, settings.servers))
        if self.accepted is not None:
            added = (
                one
                for one in (users if found.added else ())
                if written_keys(one.entry.written, found.salt)[1] in found.added
            )
            return replace(now, accepted=self.accepted.union(map(known_server, added)))
        words = {known_server(one): _words_on(one, found) for one in users}
        never = (known for known, said in words.items() if TrustAnswer.NEVER.value in said)
        refused: dict[Hashable, TrustAnswer] = dict.fromkeys(never, TrustAnswer.NEVER)
        return replace(
            now,
            accepted=frozenset(known for known, said in words.items() if not said),
            answered=Answered(refused),
            allow=frozenset(rule.key for rule in settings.gemdeck.always_allow),
            inheritance=inheritance_of(settings.gemdeck),
        )

    def answer(self, question: TrustCase, answer: TrustAnswer) -> "Answers":
        """Take the user's answer to a question."""
        if question.subject is TrustSubject.FOLDER:
            answered = self.answered.about(question.seen.key, answer, question.boxes)
            return replace(self, answered=answered)
        known = frozenset(map(known_server, question.servers))
        if answer.allows:
            return replace(self, accepted=(self.accepted or frozenset()) | known)
        said = dict(self.answered.said)
        for one in known:
            said[one] = answer
        return replace(self, answered=replace(self.answered, said=said))


def _words_on(one: ServerDefinition, found: Reading) -> set[str]:
    """Return what was said of a server when it appeared in the settings."""
    return words_on(written_keys(one.entry.written, found.salt), found.refused, found.added)


class Plan(Frozen):
    """What is to run and to be asked.

    Attributes:
        definitions: All servers, each with whether and where it starts.
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


def plan(found: Reading, answers: Answers) -> Plan:
    """Say what runs and what is asked.

    Args:
        found: What was read.
        answers: What was decided in this run, `reading` of this included.
    """
    settings, seen = found.settings, found.seen
    verdict = judge(seen, found.record, answers.answered)
    servers = tuple(_admitted(one, found, verdict, answers) for one in settings.servers)
    bundled = [_bundled(servers, verdict)] if answers.demo or answers.demo_servers else []
    definitions = tuple(_within_profiles(one, answers) for one in (*servers, *bundled))
    questions = tuple(_questions(found, verdict, answers)) if seen.attended else ()
    asks = "" if verdict.trust in {FolderTrust.TRUSTED, FolderTrust.NOTHING_TO_TRUST} else _ASKS
    # what tightens counts at once; what was loosened while gemdeck runs counts from the next start
    own, lifted = settings.gemdeck.always_deny, PlanRule if answers.names_mode else ()
    gone = tuple(r for r in answers.deny if not isinstance(r, lifted) and r not in own)
    allow = [rule for rule in settings.gemdeck.always_allow if rule.key in answers.allow]
    denied = (r for r in (*own, *verdict.rules.always_deny) if not isinstance(r, lifted))
    changes = {"always_allow": tuple(allow), "always_deny": (*denied, *gone)}
    rules = settings.gemdeck.model_copy(update=changes)
    notices = [] if seen.attended else list(_unattended(servers, seen, verdict))
    trusting = ", ".join(one.id for one in servers if one.trust)
    if asks and trusting and not seen.attended:
        words = f"trust: true {asks}, so the tools of these servers are not allowed: {trusting}."
        notices.append(Notice(Severity.WARNING, sanitize_line(words)))
    if seen.attended and settings.plan_mode and not answers.names_mode:
        words = f"Plan mode is on ({settings.plan_mode}): no tool runs."
        notices.append(Notice(Severity.WARNING, sanitize_line(words), _LIFT))
    if gone:
        notices.append(Notice(Severity.INFO, _STILL_DENIED))
    offered = seen.offer.context if seen.offer is not None else ()
    context = tuple(one for one in offered if one.place in verdict.context)
    return Plan(definitions, rules, questions, tuple(notices), verdict.trust, asks, context)


def _admitted(
    one: ServerDefinition, found: Reading, verdict: FolderVerdict, answers: Answers
) -> ServerDefinition:
    """Decide whether and where a server starts.

    It inherits no more than when gemdeck started, whatever was written since.
    """
    inherited = one.launch.inheritance.narrowed(answers.inheritance)
    one = replace(one, launch=replace(one.launch, inheritance=inherited))
    waits, accepted = ServerStatus.UNTRUSTED, answers.accepted or frozenset()
    if one.withheld is not None and not one.may_enable:
        return one
    if one.entry.origin is Origin.PROJECT:
        if one.id not in verdict.servers:
            reason = "Comes with this folder, which is no longer trusted."
            return one.held(waits, reason, REVIEW_ADVICE)
        settings = found.settings  # where all are to have one, a start without any fails
        is_demanded = bool(settings.run.sandbox or settings.gemdeck.sandbox)
        one = one.boxed(verdict.boxes, can_box=is_demanded or not found.no_sandbox)
        reason, advice = settings.run.why_held(one)
        return one.held(ServerStatus.DISABLED, f"Disabled: {reason}.", advice) if reason else one
    if is_new(one, accepted):
        word = "changed" if any(known.id == one.id for known in accepted) else "new"
        reason = f"Not started: {word} in your settings since gemdeck started."
        if words := _words_on(one, found):
            reason = _UNANSWERED if UNANSWERED in words else _REFUSED
        return one.held(waits, reason, REVIEW_ADVICE)
    if verdict.inside:
        return one
    if needs := found.seen.needs.get(one.id):
        gone = " It does not exist." * ("/" in one.launch.command and not one.launch.program)
        return one.held(waits, f"Needs this folder: {needs}.{gone}", _TRUST_ADVICE)
    return replace(one, is_outside=True)


def _within_profiles(one: ServerDefinition, answers: Answers) -> ServerDefinition:
    """Give a server as it may run; withheld if no conversation may use it."""
    if one.withheld is not None or not (reason := answers.left_out(one.id)):
        return one
    return one.held(ServerStatus.DISABLED, reason, _OTHER_PROFILE, may_enable=True)


def _bundled(servers: Sequence[ServerDefinition], verdict: FolderVerdict) -> ServerDefinition:
    """Give the demo's server under a name that is still free."""
    one = demo_server()
    taken = {other.id for other in servers}
    name = ServerId(f"demo-{one.id}") if one.id in taken else one.id
    return replace(one, id=name, is_outside=not verdict.inside)


def _questions(found: Reading, verdict: FolderVerdict, answers: Answers) -> Iterator[TrustCase]:
    accepted, servers = answers.accepted or frozenset(), found.settings.servers
    new = tuple(one for one in servers if is_new(one, accepted))
    if verdict.asks:
        waiting = () if verdict.inside else (one for one in servers if is_users(one))
        own = (one.id for one in waiting if one.transport is Transport.STDIO and one not in new)
        seen = replace(found.seen, in_force=verdict.rules)  # not those of before
        yield TrustCase(TrustSubject.FOLDER, seen, found.record, verdict, tuple(own))
    if not answers.answered.said.keys() >= set(map(known_server, new)):
        yield TrustCase(
            TrustSubject.SETTINGS,
            servers=new,
            refusal_keys=tuple(refusal_key(one, accepted, found.salt) for one in new),
            entry_keys=tuple(
                key for one in new for key in written_keys(one.entry.written, found.salt)
            ),
            changed=frozenset(known.id for known in accepted),
        )


def _unattended(
    servers: Sequence[ServerDefinition], seen: Seen, verdict: FolderVerdict
) -> Iterator[Notice]:
    """Say, if nobody can be asked, what has no effect and why."""
    path = str(seen.identity.path) if seen.identity is not None else ""
    advice = f"To trust this folder for this run, add --trust-folder {shlex.quote(path)}"
    advice = sanitize_line(advice) if path else ""
    if verdict.trust is FolderTrust.NEVER:
        yield Notice(Severity.WARNING, _NEVER)
    elif verdict.asks and seen.offer is not None:
        offer = seen.offer
        brought = [*(one.id for one in offer.servers), *(one.place for one in offer.context)]
        names = ", ".join(brought) or "its rules"
        is_changed = verdict.trust is FolderTrust.CHANGED
        state = "has changed since you trusted it" if is_changed else "is not trusted"
        words = f"This folder {state}, so these have no effect: {names}."
        yield Notice(Severity.WARNING, sanitize_line(words), advice)
    for one in servers:
        is_held = one.withheld is ServerStatus.UNTRUSTED and one.id in seen.needs
        if is_held and one.failure is not None:
            words = f"Not started: {one.id}. {one.failure.reason}"
            yield Notice(Severity.WARNING, sanitize_line(words), advice)
